import { Outlet } from '@tanstack/react-router';
import { NotFound } from '../../shell/NotFound.tsx';
import { useSession } from '../../session.tsx';

/** Pages of operators. For everybody else there is nothing here. */
export function Operating() {
  const { me } = useSession();
  return me.user.is_operator ? <Outlet /> : <NotFound />;
}
