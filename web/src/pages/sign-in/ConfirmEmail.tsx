import { Button, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { below } from '../../below.ts';
import { api } from '../../api.ts';
import { Failed } from '../../ui/states.tsx';
import { EntryPage } from './EntryPage.tsx';

/** The other end of the link in the mail. By a button: programs that look at mail follow links, and press nothing. */
export function ConfirmEmail() {
  const token = new URLSearchParams(location.search).get('token') ?? '';
  const queries = useQueryClient();
  const { mutate, error, isPending, data } = useMutation({
    mutationFn: () => api.post<{ email: string }>('/auth/confirm-email', { token }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['me'] }),
  });
  return (
    <EntryPage title="Your e-mail address">
      {data ? (
        <>
          <Text>{data.email} is confirmed. You can sign in with it from now on.</Text>
          <Button component="a" href={below('/')}>
            Go to the dashboard
          </Button>
        </>
      ) : (
        <>
          <Text size="sm">
            Press the button if it was you who gave this address. If it was not, close this page: nothing changes.
          </Text>
          {error && <Failed error={error} />}
          <Button onClick={() => mutate()} loading={isPending}>
            Yes, this address is mine
          </Button>
        </>
      )}
    </EntryPage>
  );
}
