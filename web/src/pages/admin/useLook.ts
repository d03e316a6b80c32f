import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useSession } from '../../session.tsx';

type Target = { account_id: string; to: string };

/**
 * Opens a page of an account as its people see it, which is written down there. Who belongs to the account needs no
 * permission for that.
 */
export function useLook() {
  const { me, look, choose } = useSession();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const isOwn = (account_id: string) => me.accounts.some(({ id, role }) => id === account_id && role !== 'operator');
  const { mutate, error, isPending } = useMutation({
    mutationFn: async ({ account_id, to }: Target) => {
      if (isOwn(account_id)) choose(account_id);
      else await look(account_id);
      await navigate({ to });
    },
    onSuccess: (_, { account_id }) => queries.invalidateQueries({ queryKey: [account_id] }),
  });
  return { open: mutate, error, isPending, isOwn };
}
