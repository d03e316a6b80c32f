import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { usePlace } from '../../session.tsx';
import { ModelAndKey } from '../activity/ModelAndKey.tsx';
import type { SpeedSearch } from './search.ts';
import { SpeedReport } from './SpeedReport.tsx';

const route = getRouteApi('/signed-in/speed');

/** The page of how fast an account's calls and tasks were, and how many failed. */
export function Speed() {
  const { account, base, me } = usePlace();
  const search = route.useSearch();
  const navigate = useNavigate();
  const set = (change: SpeedSearch) => void navigate({ to: '/speed', search: { ...search, ...change }, replace: true });
  return (
    <SpeedReport
      about="How long your calls and generations took, and how many failed. What a caller got wrong or left is not counted. p95: 95 of 100 were faster."
      path={`${base}/speed`}
      query_key={[account.id, 'speed']}
      groups={me.user.is_operator ? ['model', 'key', 'route', 'user', 'tag'] : ['model', 'key', 'user', 'tag']}
      search={search}
      set={set}
      filters={<ModelAndKey search={search} set={set} />}
    />
  );
}
