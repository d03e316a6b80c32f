import { getRouteApi, useNavigate } from '@tanstack/react-router';
import type { SpeedSearch } from './search.ts';
import { SpeedReport } from './SpeedReport.tsx';

const route = getRouteApi('/signed-in/operating/admin/speed');

/** The page of how fast models and routes were for all accounts. */
export function OperatorSpeed() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const set = (change: SpeedSearch) =>
    void navigate({ to: '/admin/speed', search: { ...search, ...change }, replace: true });
  return (
    <SpeedReport
      about="How long the calls and tasks of all accounts took, and how many failed, by model and by the last route that was tried. p95: 95 of 100 were faster."
      path="/dash/admin/speed"
      query_key={['admin', 'speed']}
      groups={['model', 'route']}
      search={search}
      set={set}
    />
  );
}
