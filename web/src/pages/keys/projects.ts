import { useQuery, type QueryClient } from '@tanstack/react-query';
import type { ProjectsView } from '../../../../src/dashboard/views/keys.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';

/** The project of keys that are in no other. */
export const default_project = 'default';

/** Reads the projects of the account. */
export function useProjects() {
  const { account, base } = usePlace();
  return useQuery({
    queryKey: [account.id, 'projects'],
    queryFn: ({ signal }) => api.get<ProjectsView>(`${base}/projects`, { signal }),
  });
}

/** Returns the projects that a key can be in, as choices. */
export function projectChoices(view: ProjectsView | undefined) {
  const active = view?.data.filter(({ state }) => state === 'active') ?? [];
  return active.map(({ id, name }) => ({ value: id, label: name }));
}

/** Reads the keys of an account again, and its projects, which count them. */
export async function renewKeys(queries: QueryClient, account_id: string): Promise<void> {
  await Promise.all(['keys', 'projects'].map((name) => queries.invalidateQueries({ queryKey: [account_id, name] })));
}
