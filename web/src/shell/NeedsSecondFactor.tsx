import { Button } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useSession } from '../session.tsx';
import { Page } from '../ui/Page.tsx';
import { ButtonTo } from '../ui/LinkTo.tsx';
import { browser_has_passkeys, proveByPasskey } from '../ui/passkeys.ts';
import { Empty, Failed } from '../ui/states.tsx';

/** Stands in place of the pages that open after a second factor only. */
export function NeedsSecondFactor({ who }: { who: string }) {
  const { has_passkeys } = useSession().me.user;
  return (
    <Page title="A second factor first">
      {has_passkeys && browser_has_passkeys ? (
        <GivePasskey who={who} />
      ) : (
        <Empty
          title={`${who} for a second factor`}
          action={<ButtonTo href="/settings?tab=security">Turn it on</ButtonTo>}
        >
          A passkey is one: the fingerprint, face or PIN of a device of yours. So is a code that an app on your phone
          shows. It takes a minute. Your other accounts are open meanwhile.
        </Empty>
      )}
    </Page>
  );
}

/** For somebody who has signed in without the passkey that they have. */
function GivePasskey({ who }: { who: string }) {
  const queries = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: proveByPasskey,
    onSuccess: () => queries.invalidateQueries({ queryKey: ['me'] }),
  });
  return (
    <>
      {error && <Failed error={error} />}
      <Empty
        title={`${who} for a second factor`}
        action={
          <Button loading={isPending} onClick={() => mutate()}>
            Confirm with a passkey
          </Button>
        }
      >
        Your passkey is one, and you have signed in without it. Your other accounts are open meanwhile.
      </Empty>
    </>
  );
}
