import { Button, Code, Group, Stack, Table, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { AdminJob } from '../../../../src/dashboard/views/admin.ts';
import { api } from '../../api.ts';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Card } from '../../ui/Page.tsx';
import { Failed } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { useChange, type Change } from './useChange.ts';

/** Jobs that may need a person. */
export function Troubled({ jobs }: { jobs: readonly AdminJob[] }) {
  const change = useChange();
  const [ending, setEnding] = useState<string>();
  return (
    <Card title="Jobs in trouble">
      {change.error && <Failed error={change.error} />}
      {jobs.length === 0 ? (
        <Text c="dimmed">
          None. Jobs appear here after a failed attempt, after 3 minutes of running, or after a minute of waiting.
        </Text>
      ) : (
        <ListTable
          caption="Jobs in trouble, the longest due first"
          columns={[
            { name: 'Job' },
            { name: 'State' },
            { name: 'Attempts', align: 'right' },
            { name: 'Last error' },
            { name: 'Actions', hidden: true },
          ]}
        >
          {jobs.map((job) => (
            <JobRow key={job.id} job={job} change={change} end={setEnding} />
          ))}
        </ListTable>
      )}
      {ending !== undefined && <EndTask id={ending} close={() => setEnding(undefined)} />}
    </Card>
  );
}

type RowProps = { job: AdminJob; change: Change; end: (task_id: string | undefined) => void };

function JobRow({ job, change, end }: RowProps) {
  return (
    <Table.Tr>
      <Table.Td maw={300}>
        <Code>{job.queue}</Code>
        <Text size="xs" c="dimmed" truncate title={job.key ?? ''}>
          {job.key ?? 'no key'}
        </Text>
      </Table.Td>
      <Table.Td>
        <State job={job} />
      </Table.Td>
      <Table.Td ta="right" className="figure">
        {job.attempts.toLocaleString('en-US')}
      </Table.Td>
      <Table.Td miw={200} maw={320}>
        <Text size="sm" lineClamp={3} style={{ overflowWrap: 'anywhere' }}>
          {job.reason ?? '–'}
        </Text>
      </Table.Td>
      <Table.Td>
        <Group gap={4} wrap="nowrap" justify="flex-end">
          <Button
            size="xs"
            variant="default"
            loading={change.isPending}
            onClick={() => change.make(`jobs/${job.id}/requeue`, {})}
            aria-label={`Restart: ${job.queue} of ${job.key}`}
          >
            Restart
          </Button>
          {job.key?.startsWith('task_') && (
            <Button
              size="xs"
              variant="default"
              onClick={() => end(job.key ?? undefined)}
              aria-label={`End and refund ${job.key}`}
            >
              End and refund
            </Button>
          )}
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}

function State({ job: { state, started_at, due_at } }: { job: AdminJob }) {
  const looks = {
    running: { of: 'running', words: 'since', at: started_at ?? due_at },
    waiting: { of: 'queued', words: 'due', at: due_at },
    later: { of: 'retrying', words: 'again', at: due_at },
  };
  const { of, words, at } = looks[state];
  return (
    <Stack gap={2} align="flex-start">
      <Status of={of} />
      <Text size="xs" c="dimmed">
        {words} <Time at={at} ago />
      </Text>
    </Stack>
  );
}

/** It costs its customer nothing; what the upstream does meanwhile is the operator's. */
function EndTask({ id, close }: { id: string; close: () => void }) {
  const [reason, setReason] = useState('');
  const queries = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => api.post(`/dash/admin/tasks/${id}/fail`, { reason }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['admin'] });
      close();
    },
  });
  return (
    <Modal opened onClose={close} title="End and refund a task">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          mutate();
        }}
      >
        <Stack>
          <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
            {id} fails now, and its hold is released. Its run is stopped upstream if possible; if not, the provider may
            charge you for it.
          </Text>
          <TextInput
            label="Reason, for the log"
            required
            maxLength={500}
            value={reason}
            onChange={({ currentTarget }) => setReason(currentTarget.value)}
            data-autofocus
          />
          <FormEnd word="End and refund" color="red.9" isPending={isPending} error={error} cancel={close} />
        </Stack>
      </form>
    </Modal>
  );
}
