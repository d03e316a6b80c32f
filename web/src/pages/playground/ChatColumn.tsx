import { Box, Code, Group, Loader, Stack, Text } from '@mantine/core';
import { useEffect, useRef } from 'react';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import { CodeBox } from '../../ui/Copy.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { Money } from '../../ui/Money.tsx';
import { Card } from '../../ui/Page.tsx';
import { priceTexts } from '../../ui/price.ts';
import { Failed } from '../../ui/states.tsx';
import { durationText } from '../../ui/Time.tsx';
import { AttachmentView } from './AttachmentView.tsx';
import type { ModelAnswer, Turn } from './conversation.ts';

/** The conversation with one model, with the cost of each answer. */
export function ChatColumn({ model, turns }: { model: ModelView; turns: Turn[] }) {
  const end = useRef<HTMLDivElement>(null);
  const last = turns.at(-1);
  const is_streaming = last?.role === 'assistant' && last.state === 'streaming';
  const length = turns.length;
  useEffect(() => {
    const box = end.current?.parentElement;
    if (box) box.scrollTop = box.scrollHeight;
  }, [length, last]);
  return (
    <Card title={model.display_name} style={{ background: 'var(--medley-surface)', minWidth: 0 }}>
      <Box
        role="log"
        aria-label={`Conversation with ${model.display_name}`}
        aria-busy={is_streaming}
        tabIndex={0}
        mih={220}
        mah="60vh"
        style={{ overflowY: 'auto' }}
      >
        <Stack gap="md">
          {turns.length === 0 && (
            <Text size="sm" c="dimmed">
              {priceTexts(model.pricing).join(', ')}. The cost of each answer is shown below it.
            </Text>
          )}
          {turns.map((turn, index) =>
            turn.role === 'assistant' ? (
              <Answer key={index} answer={turn} called={`answer ${index} of ${model.display_name}`} />
            ) : (
              <UserTurn key={index} turn={turn} />
            ),
          )}
        </Stack>
        <div ref={end} />
      </Box>
    </Card>
  );
}

const wrapped = { whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' } as const;

function UserTurn({ turn }: { turn: Exclude<Turn, ModelAnswer> }) {
  const files = turn.role === 'user' ? turn.files : [];
  return (
    <Box p="sm" style={{ background: 'var(--mantine-primary-color-light)', borderRadius: 8 }}>
      <Text size="xs" fw={600} c="dimmed">
        {turn.role === 'user' ? 'You' : 'The tool'}
      </Text>
      {files.length > 0 && (
        <Group gap="xs" my={4}>
          {files.map((file, index) => (
            <AttachmentView key={index} file={file} />
          ))}
        </Group>
      )}
      <Text style={wrapped}>{turn.text}</Text>
    </Box>
  );
}

function Answer({ answer, called }: { answer: ModelAnswer; called: string }) {
  const { text, thinking, tools, state, error, finish, events } = answer;
  return (
    <Stack gap={6}>
      {thinking !== '' && (
        <details>
          <summary>Thinking</summary>
          <Text size="sm" c="dimmed" style={wrapped}>
            {thinking}
          </Text>
        </details>
      )}
      {text !== '' && <Text style={wrapped}>{text}</Text>}
      {tools.map(({ key, name, arguments: input }) => (
        <div key={key}>
          <Text size="xs" fw={600} c="dimmed">
            Calls {name}
          </Text>
          <Code block>{input}</Code>
        </div>
      ))}
      {state === 'streaming' && (
        <Group gap={6}>
          <Loader size="xs" type="dots" aria-hidden />
          <Text size="xs" c="dimmed">
            Answering
          </Text>
        </Group>
      )}
      {error && <Failed error={error} />}
      {state === 'stopped' && (
        <Text size="xs" c="dimmed">
          You stopped it.
        </Text>
      )}
      {finish === 'length' && (
        <Text size="xs" c="dimmed">
          It was cut at the limit of its tokens.
        </Text>
      )}
      <BillLine answer={answer} />
      {events.length > 0 && (
        <details>
          <summary style={{ fontSize: 'var(--mantine-font-size-xs)', color: 'var(--mantine-color-dimmed)' }}>
            Stream: {events.length.toLocaleString()} events
          </summary>
          <CodeBox text={events.join('\n\n')} label={`stream of ${called}`} height={280} />
        </details>
      )}
    </Stack>
  );
}

function BillLine({ answer: { bill, request_id } }: { answer: ModelAnswer }) {
  if (!bill) return null;
  return (
    <Text size="xs" c="dimmed" className="figure">
      {bill.input_tokens} in, {bill.output_tokens} out · <Money cost={bill.cost} exact /> ·{' '}
      {durationText(bill.total_ms)} ·{' '}
      <LinkTo href={`/chats/${request_id ?? ''}`} size="xs" underline="always">
        details
      </LinkTo>
    </Text>
  );
}
