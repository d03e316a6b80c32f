import { Stack, Text } from '@mantine/core';
import type { WebhooksView } from '../../../../src/dashboard/views/webhooks.ts';
import { Card } from '../../ui/Page.tsx';
import { Samples } from '../../ui/Samples.tsx';
import { Secret } from './Secret.tsx';
import { SendTest } from './SendTest.tsx';
import { verify_snippets } from './verify.ts';

/** Set-up of a receiver: the secret, the way to verify, and a test delivery. */
export function Setup({ view }: { view: WebhooksView }) {
  return (
    <Stack>
      <Secret view={view} />
      <SendTest />
      <Card title="Verify what you receive">
        <Stack gap="sm">
          <Text size="sm">
            Anybody can post to your address: accept only requests signed with your secret. These examples check the
            headers of Standard Webhooks, which also sign the time. During a rotation there are two signatures, and one
            valid signature is enough. Answer with a status from 200 to 299 within a few seconds; otherwise the delivery
            is tried again, {view.attempts_max} times in total.
          </Text>
          <Samples samples={[...verify_snippets]} />
        </Stack>
      </Card>
    </Stack>
  );
}
