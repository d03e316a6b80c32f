import { Button, Group, Stack, Text } from '@mantine/core';
import { PlayIcon } from '@heroicons/react/24/solid';
import type { EstimateView } from '../../../../src/dashboard/views/playground.ts';
import { usePlace } from '../../session.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { exactText, moneyText } from '../../ui/Money.tsx';
import { Failed } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';
import { problemText } from './form/problems.ts';

export type Estimating = {
  note: EstimateView | undefined;
  /** It is not that of the input as it stands now. */
  is_stale: boolean;
  error: Error | null;
  refetch: () => void;
};

type Props = { estimate: Estimating; starting: boolean; can_run: boolean; error: Error | null; run: () => void };

/** The price, the button, and why it cannot be pressed. */
export function RunLine({ estimate, starting, can_run, error, run }: Props) {
  const { may } = usePlace();
  const { note, is_stale } = estimate;
  const holds = note?.ok && !is_stale ? ` · holds ${exactText(note.estimated_cost)}` : '';
  const why = may('run') ? reasonOf(estimate) : 'Your role here does not run models.';
  return (
    <Stack gap="xs">
      {error && <Failed error={error} />}
      <Group gap="md">
        <Button
          onClick={run}
          size="md"
          loading={starting}
          disabled={!can_run}
          aria-describedby="run-why"
          leftSection={<PlayIcon width={18} aria-hidden />}
        >
          <span className="figure">Run{holds}</span>
        </Button>
        <Text size="sm" c="dimmed" id="run-why" component="div" role="status" flex={1} miw={160}>
          {why ?? <Left note={note} />}
        </Text>
      </Group>
      <Text size="xs" c="dimmed">
        Ctrl or ⌘ and Enter runs it, too. The unused part of the hold is released.
      </Text>
    </Stack>
  );
}

function Left({ note }: { note: EstimateView | undefined }) {
  return note?.ok ? <>{moneyText(note.available)} available</> : null;
}

/** Returns the reason why it cannot run; undefined if it can, or if that is being checked. */
function reasonOf({ note, is_stale, error }: Estimating) {
  if (error) return error.message;
  if (!note || is_stale) return undefined;
  if (!note.ok) return note.errors[0] ? problemText(note.errors[0]) : 'The input has errors.';
  if (note.obstacle === null) return undefined;
  if (note.obstacle === 'insufficient_balance') {
    return (
      <>
        Only {moneyText(note.available)} are available.{' '}
        <LinkTo href="/billing" underline="always" size="sm">
          Add funds
        </LinkTo>
      </>
    );
  }
  if (note.obstacle === 'spend_limit') {
    return (
      <>
        The monthly limit of the key “Playground” is reached.{' '}
        <LinkTo href="/keys" underline="always" size="sm">
          Change it
        </LinkTo>
      </>
    );
  }
  if (note.obstacle === 'account_blocked') return 'This account is blocked. Ask the operator of this service.';
  return (
    <>
      Too many generations have failed. The pause ends:{' '}
      {note.paused_until ? <Time at={note.paused_until} /> : 'tomorrow'}
    </>
  );
}
