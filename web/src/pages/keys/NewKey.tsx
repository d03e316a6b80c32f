import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { EyeIcon } from '@heroicons/react/24/outline';
import { useQuery } from '@tanstack/react-query';
import type { NewKeyView } from '../../../../src/dashboard/views/keys.ts';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { CodeBox } from '../../ui/Copy.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Samples } from '../../ui/Samples.tsx';
import { snippetsOf } from './snippets.ts';

/** The key, told once: nothing keeps it when this is closed. */
export function NewKey({ opened, created, close }: { opened: boolean; created: NewKeyView; close: () => void }) {
  const { me } = usePlace();
  const models = useModels();
  const snippets = snippetsOf(me.base_url, created.secret, models);
  return (
    <Modal opened={opened} onClose={close} title={`The key “${created.key.name}”`} size="lg" shows_once>
      <Stack>
        <Alert variant="light" icon={<EyeIcon aria-hidden />} title="Copy it now">
          It is shown only once: the service stores only a hash of it.
        </Alert>
        <CodeBox text={created.secret} label="key" />
        <Text size="sm" fw={600}>
          Use it
        </Text>
        <Samples samples={snippets} />
        <Group justify="flex-end">
          <Button onClick={close}>I have copied it</Button>
        </Group>
      </Stack>
    </Modal>
  );
}

/** A model of each kind that can be called here, for the examples. */
function useModels() {
  const { account, base } = usePlace();
  const { data } = useQuery({
    queryKey: [account.id, 'models'],
    queryFn: ({ signal }) => api.get<{ data: ModelView[] }>(`${base}/models`, { signal }),
    staleTime: 60_000,
  });
  const first = (kind: ModelView['modality']) => data?.data.find(({ modality }) => modality === kind)?.id;
  return { image: first('image') ?? 'sandbox/image', chat: first('chat') ?? 'sandbox/chat' };
}
