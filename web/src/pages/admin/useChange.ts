import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api } from '../../api.ts';

export type Change = {
  /** Asks for a change below `/dash/admin/`; what pages show is read again, since lists of models change, too. */
  make(path: string, body: Record<string, unknown>): void;
  isPending: boolean;
  error: Error | null;
};

/** One change at a time, and why the last one did not work. */
export function useChange(): Change {
  const queries = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: ({ path, body }: { path: string; body: Record<string, unknown> }) =>
      api.post(`/dash/admin/${path}`, body),
    onSettled: () => queries.invalidateQueries(),
  });
  return { make: (path, body) => mutate({ path, body }), isPending, error };
}
