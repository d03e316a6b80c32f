import { Alert, Badge, Box, Button, Code, Group, Stack, Text, Textarea } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { ChatContentView, ChatView, ContentAccesses } from '../../../../src/dashboard/views/activity.ts';
import { api, isRecord } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { MayButton } from '../../ui/MayButton.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Card } from '../../ui/Page.tsx';
import { Failed } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';

/** The content of a call: read when somebody asks for it, since each read is written down. */
export function CallContent({ call }: { call: ChatView }) {
  const { account, base } = usePlace();
  const reading = useMutation({
    mutationFn: (reason: string | undefined) =>
      reason === undefined
        ? api.post<ChatContentView>(`${base}/chats/${call.id}/content`, {})
        : api.post<ChatContentView>(`/dash/admin/accounts/${account.id}/chats/${call.id}/content`, { reason }),
    gcTime: 0,
  });
  const { data, error, isPending, mutate } = reading;
  if (!call.has_content)
    return (
      <Card title="Content">
        <Text size="sm" c="dimmed">
          The content of this call is not stored, or no longer. Each key has a setting for that: change it on the page
          API keys.
        </Text>
      </Card>
    );
  return (
    <Card title="Content">
      <Stack>
        {!data && (
          <Text size="sm" c="dimmed">
            Requests and answers of this key are stored. The audit log says who read them.
          </Text>
        )}
        {!data && account.role === 'operator' && <Reason read={mutate} isPending={isPending} />}
        {!data && account.role !== 'operator' && (
          <Group>
            <MayButton right="content" variant="default" loading={isPending} onClick={() => mutate(undefined)}>
              Show the content
            </MayButton>
            <OpenInPlayground call={call} />
          </Group>
        )}
        {error && <Failed error={error} />}
        {data && <Conversation call={call} content={data} />}
        {!account.is_limited && <Accesses call={call} is_read={data !== undefined} />}
      </Stack>
    </Card>
  );
}

const acts: Record<string, string> = {
  'content.read': 'read it',
  'content.delete': 'deleted it',
  'content.export': 'exported contents of calls',
};

/** Those who read it, as the audit log has them. */
function Accesses({ call, is_read }: { call: ChatView; is_read: boolean }) {
  const { account, base } = usePlace();
  const { data } = useQuery({
    queryKey: [account.id, 'chat', call.id, 'accesses', is_read],
    queryFn: ({ signal }) => api.get<ContentAccesses>(`${base}/chats/${call.id}/content/accesses`, { signal }),
  });
  if (!data || data.data.length === 0) return null;
  return (
    <Stack gap={2} role="list" aria-label="Read by">
      {data.data.map(({ actor, action, projects, reason, address, at }) => (
        <Text key={`${at} ${actor}`} role="listitem" size="sm" c="dimmed">
          {actor} {acts[action] ?? action}
          {projects !== null && ` (${projects.join(', ')})`} <Time at={at} />
          {address !== null && ` from ${address}`}
          {reason !== null && `: ${reason}`}
        </Text>
      ))}
    </Stack>
  );
}

/** Operators say why they read the contents of calls of others. */
function Reason({ read, isPending }: { read: (reason: string) => void; isPending: boolean }) {
  const [reason, setReason] = useState('');
  return (
    <Stack gap="sm" maw={480}>
      <Textarea
        label="Reason"
        description="The account reads it in its audit log. At least 10 characters."
        maxLength={300}
        autosize
        minRows={1}
        value={reason}
        onChange={({ currentTarget }) => setReason(currentTarget.value)}
      />
      <Group>
        <Button
          variant="default"
          loading={isPending}
          disabled={reason.trim().length < 10}
          onClick={() => read(reason.trim())}
        >
          Show the content
        </Button>
      </Group>
    </Stack>
  );
}

function Conversation({ call, content }: { call: ChatView; content: ChatContentView }) {
  const { account } = usePlace();
  const redacted = Object.entries(content.redacted);
  return (
    <Stack>
      {content.is_cut && (
        <Alert color="yellow" variant="light">
          Something was too long to be stored whole: a note says where it was cut.
        </Alert>
      )}
      <Stack gap="sm" role="list" aria-label="Messages">
        {content.messages.map((message, index) => (
          <Message key={index} message={message} />
        ))}
        {content.answers.map((message, index) => (
          <Message key={`answer ${index}`} message={message} is_answer />
        ))}
        {content.answers.length === 0 && (
          <Text size="sm" c="dimmed">
            No answer is stored.
          </Text>
        )}
      </Stack>
      <details>
        <summary>Settings</summary>
        <Code block>{JSON.stringify(content.settings, undefined, 2)}</Code>
      </details>
      <Group gap="xs">
        {redacted.map(([kind, count]) => (
          <Badge key={kind} variant="light" color="gray" tt="none">
            {kind} replaced: {count.toLocaleString('en-US')}
          </Badge>
        ))}
        <Text size="sm" c="dimmed">
          Deleted <Time at={content.expires_at} />
        </Text>
      </Group>
      {account.role !== 'operator' && (
        <Group>
          <OpenInPlayground call={call} />
          <DeleteContent call={call} />
        </Group>
      )}
    </Stack>
  );
}

/** The playground reads it by itself: that is a read of its own in the audit log. */
function OpenInPlayground({ call: { id, model } }: { call: ChatView }) {
  const navigate = useNavigate();
  return (
    <MayButton
      right="content"
      variant="default"
      onClick={() => void navigate({ to: '/playground', search: { model, call: id } })}
    >
      Open in the playground
    </MayButton>
  );
}

function DeleteContent({ call }: { call: ChatView }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const [is_open, setIsOpen] = useState(false);
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => api.delete(`${base}/chats/${call.id}/content`),
    onSuccess: () => queries.invalidateQueries({ queryKey: [account.id, 'chat', call.id] }),
  });
  return (
    <>
      <Button variant="subtle" color="red" onClick={() => setIsOpen(true)}>
        Delete the content
      </Button>
      <Modal opened={is_open} onClose={() => setIsOpen(false)} title="Delete the content">
        <Stack>
          <Text size="sm">The content of this call is deleted for good. Its numbers and its cost stay.</Text>
          {error && <Failed error={error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={() => setIsOpen(false)}>
              Cancel
            </Button>
            <Button color="red" loading={isPending} onClick={() => mutate()}>
              Delete
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}

const wrapped = { whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' } as const;

const names: Record<string, string> = { system: 'System', developer: 'System', user: 'User', tool: 'Tool' };

function Message({ message, is_answer = false }: { message: Record<string, unknown>; is_answer?: boolean }) {
  const { role, content, reasoning_content: thinking, refusal, tool_calls } = message;
  const calls = (Array.isArray(tool_calls) ? tool_calls : []).filter(isRecord);
  const name = is_answer ? 'Answer' : (names[String(role)] ?? 'Assistant');
  const background = is_answer ? 'var(--mantine-primary-color-light)' : 'var(--mantine-color-default-hover)';
  return (
    <Box role="listitem" p="sm" style={{ background, borderRadius: 8 }}>
      <Text size="xs" fw={600} c="dimmed">
        {name}
      </Text>
      {typeof thinking === 'string' && thinking !== '' && (
        <details>
          <summary>Thinking</summary>
          <Text size="sm" c="dimmed" style={wrapped}>
            {thinking}
          </Text>
        </details>
      )}
      <Text style={wrapped}>{textOf(content)}</Text>
      {typeof refusal === 'string' && <Text style={wrapped}>{refusal}</Text>}
      {calls.map(({ function: called }, index) => (
        <div key={index}>
          <Text size="xs" fw={600} c="dimmed">
            Calls {isRecord(called) ? String(called['name']) : 'a tool'}
          </Text>
          <Code block>{isRecord(called) ? String(called['arguments']) : ''}</Code>
        </div>
      ))}
    </Box>
  );
}

/** The texts of a message, and the links or notes of its files. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.filter(isRecord).map(partText).join('\n');
}

function partText(part: Record<string, unknown>): string {
  const { text, image_url } = part;
  if (typeof text === 'string') return text;
  if (isRecord(image_url) && typeof image_url['url'] === 'string') return image_url['url'];
  return JSON.stringify(part);
}
