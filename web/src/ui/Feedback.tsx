import { ActionIcon, Badge, Group, Stack, Text, Tooltip } from '@mantine/core';
import { HandThumbDownIcon, HandThumbUpIcon } from '@heroicons/react/24/outline';
import { HandThumbDownIcon as ChosenDown, HandThumbUpIcon as ChosenUp } from '@heroicons/react/24/solid';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { FeedbackView, TaskView } from '../../../src/dashboard/views/activity.ts';
import { api } from '../api.ts';
import { usePlace } from '../session.tsx';
import { useDenial } from './MayButton.tsx';
import { Card } from './Page.tsx';
import { Failed } from './states.tsx';
import { Time } from './Time.tsx';

type ThumbsProps = {
  id: string;
  feedback: FeedbackView[];
  /** Tasks beside it: one of them is the better one. */
  rivals?: readonly string[];
};

/** A thumb up and a thumb down for a call or a task: pressing the chosen one again takes it away. */
export function Thumbs({ id, feedback, rivals = [] }: ThumbsProps) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const denial = useDenial('run');
  const give = useMutation({
    mutationFn: async (score: number) => {
      await api.post(`${base}/feedback`, { reference_id: id, score });
      for (const rival of score === 1 ? rivals.filter(isUp) : []) {
        await api.post(`${base}/feedback`, { reference_id: rival, score: 0 });
      }
    },
    scope: { id: `feedback ${[id, ...rivals].toSorted().join(' ')}` }, // one after another
    onSuccess: async () => {
      for (const kind of ['task', 'chat']) {
        for (const one of [id, ...rivals]) await queries.invalidateQueries({ queryKey: [account.id, kind, one] });
      }
    },
  });
  const isUp = (rival: string) => {
    const task = queries.getQueryData<TaskView>([account.id, 'task', rival]);
    return task !== undefined && ownScore(task.feedback) === 1;
  };
  const stored = ownScore(feedback);
  const own = give.isPending ? give.variables : stored; // a button that waits would lose the focus
  const choices = [
    {
      score: 1,
      label: rivals.length > 0 ? 'Better than the others' : 'Good result',
      Icon: own === 1 ? ChosenUp : HandThumbUpIcon,
    },
    { score: -1, label: 'Bad result', Icon: own === -1 ? ChosenDown : HandThumbDownIcon },
  ];
  return (
    <Stack gap={4}>
      <Group gap={4} role="group" aria-label="Your feedback">
        {choices.map(({ score, label, Icon }) => (
          <Tooltip
            key={score}
            label={denial ?? label}
            multiline
            maw={280}
            events={{ hover: true, focus: true, touch: true }}
          >
            <ActionIcon
              variant={own === score ? 'light' : 'subtle'}
              color={own === score ? 'brand' : 'gray'}
              aria-label={denial === undefined ? label : `${label}: ${denial}`}
              aria-pressed={own === score}
              {...(denial !== undefined && { 'data-disabled': true, 'aria-disabled': true })}
              onClick={() => denial === undefined && give.mutate(own === score ? 0 : score)}
            >
              <Icon width={18} aria-hidden />
            </ActionIcon>
          </Tooltip>
        ))}
      </Group>
      {give.error && <Failed error={give.error} />}
    </Stack>
  );
}

function ownScore(feedback: readonly FeedbackView[]): number {
  return feedback.find(({ is_own }) => is_own)?.score ?? 0;
}

/** One's own thumb, and what callers gave by the API. */
export function FeedbackCard({ id, feedback }: { id: string; feedback: FeedbackView[] }) {
  const others = feedback.filter(({ is_own }) => !is_own);
  return (
    <Card title="Feedback" side={<Thumbs id={id} feedback={feedback} />}>
      {others.length === 0 ? (
        <Text size="sm" c="dimmed">
          Nobody else has given any. Your program gives it with POST /v1/feedback.
        </Text>
      ) : (
        <Stack gap="xs" component="ul" m={0} p={0} style={{ listStyle: 'none' }}>
          {others.map((each) => (
            <li key={each.id}>
              <Line of={each} />
            </li>
          ))}
        </Stack>
      )}
    </Card>
  );
}

function Line({ of: { name, user, score, comment, tags, created_at } }: { of: FeedbackView }) {
  return (
    <Stack gap={2}>
      <Group gap="xs">
        <Text size="sm" fw={600} className="figure">
          {scoreText(score)}
        </Text>
        <Text size="sm">{name}</Text>
        {tags.map((tag) => (
          <Badge key={tag} variant="light" color="gray" tt="none">
            {tag}
          </Badge>
        ))}
        <Text size="xs" c="dimmed">
          {user !== null && `${user}, `}
          <Time at={created_at} ago />
        </Text>
      </Group>
      {comment !== null && (
        <Text size="sm" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
          {comment}
        </Text>
      )}
    </Stack>
  );
}

/** `+1`, `−0.5`, `0`. */
export function scoreText(score: number): string {
  const text = Math.abs(score).toLocaleString('en', { maximumFractionDigits: 2 });
  return score > 0 ? `+${text}` : score < 0 ? `−${text}` : text;
}
