import { ActionIcon, Code, Group, Loader, Stack, Text } from '@mantine/core';
import { ArrowPathIcon, HandThumbDownIcon, HandThumbUpIcon } from '@heroicons/react/24/outline';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { Copy, CodeBox } from '../../ui/Copy.tsx';
import { durationText } from '../../ui/duration.ts';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { Markdown } from '../../ui/markdown/Markdown.tsx';
import { Money } from '../../ui/Money.tsx';
import { Failed } from '../../ui/states.tsx';
import { failureOf } from './conversation.ts';
import { Versions, type Pager } from './Versions.tsx';
import type { ModelAnswer, Vote } from './turn.ts';

type Props = {
  answer: ModelAnswer;
  /** `answer 2 of Sandbox chat`. */
  name: string;
  /** The stream as it came; none of an answer that was stored. */
  events: readonly string[];
  pager: Pager;
  /** Undefined while that cannot be done. */
  regenerate: (() => void) | undefined;
  vote: (vote: Vote | undefined) => void;
};

/** An answer of a model: its text as Markdown, its calls of tools, its cost. */
export function AnswerView({ answer, name, events, pager, regenerate, vote }: Props) {
  const { text, thinking, tools, state, error, finish } = answer;
  const votes = useVotes(answer, vote);
  return (
    <Stack gap={6}>
      {thinking !== '' && (
        <details>
          <summary>Thinking</summary>
          <Text size="sm" c="dimmed" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
            {thinking}
          </Text>
        </details>
      )}
      {text !== '' && <Markdown text={text} is_growing={state === 'streaming'} below_level={2} />}
      {tools.map(({ key, name: called, arguments: input }) => (
        <div key={key}>
          <Text size="xs" fw={600} c="dimmed">
            Calls {called}
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
      {error && <Failed error={failureOf(error)} />}
      {state === 'stopped' && (
        <Text size="xs" c="dimmed">
          It was stopped here.
        </Text>
      )}
      {finish === 'length' && (
        <Text size="xs" c="dimmed">
          It was cut at the limit of its tokens.
        </Text>
      )}
      <BillLine answer={answer} />
      {state !== 'streaming' && (
        <Group gap={4} role="group" aria-label={`What to do with ${name}`}>
          <Versions pager={pager} of="answer" />
          {text !== '' && <Copy text={text} label="Copy the answer" />}
          {regenerate && <Action name="Regenerate the answer" Icon={ArrowPathIcon} act={regenerate} />}
          <Votes chosen={answer.vote} toggle={votes.toggle} />
        </Group>
      )}
      {votes.error && <Failed error={votes.error} />}
      {events.length > 0 && <Stream events={events} name={name} />}
    </Stack>
  );
}

type ActionProps = { name: string; Icon: typeof ArrowPathIcon; act: () => void; is_pressed?: boolean };

function Action({ name, Icon, act, is_pressed }: ActionProps) {
  return (
    <ActionIcon
      variant={is_pressed ? 'light' : 'subtle'}
      color={is_pressed ? 'brand' : 'gray'}
      aria-label={name}
      title={name}
      aria-pressed={is_pressed}
      onClick={act}
    >
      <Icon width={18} aria-hidden />
    </ActionIcon>
  );
}

/** Votes are feedback to the call, too. One that the service does not take is taken back here. */
function useVotes({ request_id, vote: chosen }: ModelAnswer, vote: Props['vote']) {
  const { account, base, may } = usePlace();
  const queries = useQueryClient();
  const { mutate, error } = useMutation({
    mutationFn: ({ score }: { score: number; before: Vote | undefined }) =>
      api.post(`${base}/feedback`, { reference_id: request_id, score }),
    onSuccess: () => queries.invalidateQueries({ queryKey: [account.id, 'chat', request_id] }),
    onError: (_, { before }) => vote(before),
    scope: { id: `feedback ${request_id ?? ''}` }, // one after another
  });
  const toggle = (one: Vote) => {
    const next = chosen === one ? undefined : one;
    vote(next);
    const score = next === undefined ? 0 : scores[next];
    if (request_id !== undefined && may('run')) mutate({ score, before: chosen });
  };
  return { toggle, error };
}

const scores: Readonly<Record<Vote, number>> = { up: 1, down: -1 };

function Votes({ chosen, toggle }: { chosen: Vote | undefined; toggle: (one: Vote) => void }) {
  return (
    <>
      <Action name="Good answer" Icon={HandThumbUpIcon} act={() => toggle('up')} is_pressed={chosen === 'up'} />
      <Action name="Bad answer" Icon={HandThumbDownIcon} act={() => toggle('down')} is_pressed={chosen === 'down'} />
    </>
  );
}

/** The number of events that are shown of longer streams, from the beginning. */
const shown_events_max = 2_000;

/** Read when somebody opens it: it has fifty times the length of the answer. */
function Stream({ events, name }: Pick<Props, 'events' | 'name'>) {
  const [is_open, setOpen] = useState(false);
  const rest = events.length - shown_events_max;
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary style={{ fontSize: 'var(--mantine-font-size-xs)', color: 'var(--mantine-color-dimmed)' }}>
        Stream: {events.length.toLocaleString('en-US')} events
      </summary>
      {is_open && (
        <CodeBox
          text={events.slice(0, shown_events_max).join('\n\n') + (rest > 0 ? `\n\n… and ${rest} more` : '')}
          label={`stream of ${name}`}
          height={280}
        />
      )}
    </details>
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
