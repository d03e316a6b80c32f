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
  told: EstimateView | undefined;
  /** It is not that of the input as it stands now. */
  is_stale: boolean;
  error: Error | null;
  refetch: () => void;
};

type Props = { estimate: Estimating; starting: boolean; can_run: boolean; error: Error | null; run: () => void };

/** The price, the button, and why it cannot be pressed. */
export function RunLine({ estimate, starting, can_run, error, run }: Props) {
  const { may } = usePlace();
  const { told, is_stale } = estimate;
  const holds = told?.ok && !is_stale ? ` · holds ${exactText(told.estimated_cost)}` : '';
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
          {why ?? <Left told={told} />}
        </Text>
      </Group>
      <Text size="xs" c="dimmed">
        Ctrl or ⌘ and Enter runs it, too. The unused part of the hold is released.
      </Text>
    </Stack>
  );
}

function Left({ told }: { told: EstimateView | undefined }) {
  return told?.ok ? <>{moneyText(told.available)} available</> : null;
}

/** Returns the reason why it cannot run; undefined if it can, or if that is being checked. */
function reasonOf({ told, is_stale, error }: Estimating) {
  if (error) return error.message;
  if (!told || is_stale) return undefined;
  if (!told.ok) return told.errors[0] ? problemText(told.errors[0]) : 'The input has errors.';
  if (told.obstacle === null) return undefined;
  if (told.obstacle === 'insufficient_balance') {
    return (
      <>
        Only {moneyText(told.available)} are available.{' '}
        <LinkTo href="/billing" underline="always" size="sm">
          Add funds
        </LinkTo>
      </>
    );
  }
  if (told.obstacle === 'spend_limit') {
    return (
      <>
        The monthly limit of the key “Playground” is reached.{' '}
        <LinkTo href="/keys" underline="always" size="sm">
          Change it
        </LinkTo>
      </>
    );
  }
  if (told.obstacle === 'account_blocked') return 'This account is blocked. Ask the operator of this service.';
  return (
    <>
      Too many generations have failed. The pause ends:{' '}
      {told.paused_until ? <Time at={told.paused_until} /> : 'tomorrow'}
    </>
  );
}
