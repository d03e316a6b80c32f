import { Alert, Button, Group, Select, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { EnvelopeIcon } from '@heroicons/react/24/outline';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import type { SpendMailView, UsageGrouping } from '../../../../src/dashboard/views/usage.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Failed, Loaded } from '../../ui/states.tsx';
import { Saved } from '../../ui/Saved.tsx';
import { groupChoices, readGroup } from './groups.ts';
import { groups } from './search.ts';

const never = 'never';

const choices = [
  { value: never, label: 'Never' },
  { value: 'day', label: 'Every day' },
  { value: 'week', label: 'Every Monday' },
  { value: 'month', label: 'On the first of the month' },
];

type Props = {
  /** The group that the page shows. */
  group: UsageGrouping;
  pairs: readonly string[];
};

/** Chooses whether this person is mailed the spend of the account, and when. Operators of others' accounts are not. */
export function SpendMail(props: Props) {
  const { account } = usePlace();
  const [opened, { open, close }] = useDisclosure();
  if (account.role === 'operator') return null;
  return (
    <>
      <Button variant="default" size="xs" leftSection={<EnvelopeIcon width={16} aria-hidden />} onClick={open}>
        Mail
      </Button>
      <Modal opened={opened} onClose={close} title="Spend by mail">
        <Choices {...props} />
      </Modal>
    </>
  );
}

function Choices(props: Props) {
  const { account, base } = usePlace();
  const query = useQuery({
    queryKey: [account.id, 'spend-mail'],
    queryFn: ({ signal }) => api.get<SpendMailView>(`${base}/usage/mail`, { signal }),
  });
  return (
    <Loaded query={query} height={220}>
      {(view) =>
        view.mails ? (
          <Form {...props} view={view} />
        ) : (
          <Text size="sm">
            This service sends no mail. Its operator can set a mail server. The tables of this page are files, too.
          </Text>
        )
      }
    </Loaded>
  );
}

function Form({ view, group, pairs }: Props & { view: SpendMailView }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const [every, setEvery] = useState<string>(view.every ?? never);
  const [by, setBy] = useState<UsageGrouping>(view.group ?? group);
  const save = useMutation({
    mutationFn: () =>
      api.put<SpendMailView>(`${base}/usage/mail`, every === never ? { every: null } : { every, group: by }),
    onSuccess: (saved) => queries.setQueryData([account.id, 'spend-mail'], saved),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!save.isPending) save.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        {view.email === null && (
          <Alert color="yellow" title="Your address is not confirmed">
            Mails go to confirmed addresses alone. Confirm yours in <LinkTo href="/settings">Settings</LinkTo>.
          </Alert>
        )}
        <Select
          label="Send"
          description="An hour after the day, week or month ends (UTC), with the one before beside it."
          data={choices}
          value={every}
          allowDeselect={false}
          onChange={(value) => {
            save.reset();
            setEvery(value ?? never);
          }}
        />
        {every !== never && (
          <Select
            label="Grouped by"
            data={groupChoices(groups, pairs, by)}
            value={by}
            allowDeselect={false}
            onChange={(value) => {
              save.reset();
              setBy(readGroup(value, groups) ?? 'model');
            }}
          />
        )}
        {view.email !== null && (
          <Text size="sm" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
            To {view.email}. Other members choose their own.
          </Text>
        )}
        {save.error && <Failed error={save.error} />}
        <Group>
          <Button type="submit" loading={save.isPending}>
            Save
          </Button>
          <Saved is_saved={save.isSuccess} />
        </Group>
      </Stack>
    </form>
  );
}
