import { Button, Group, Stack, Text } from '@mantine/core';
import { PlayIcon } from '@heroicons/react/24/solid';
import type { EstimateView } from '../../../../src/dashboard/views/playground.ts';
import { usePlace } from '../../session.tsx';
import { atFirstClick } from '../../ui/first-click.ts';
import { useBalance } from '../../ui/balance.ts';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { exactText, moneyText } from '../../ui/Money.tsx';
import { Failed } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';
import { problemText } from './form/problems.ts';
import type { Estimating } from './useEstimate.ts';

type Props = {
  estimate: Estimating;
  starting: boolean;
  can_run: boolean;
  error: Error | null;
  run: () => void;
  /** Models that run at once. */
  models?: number;
};

/** The price, the button, and why it cannot be pressed. */
export function RunLine({ estimate, starting, can_run, error, run, models = 1 }: Props) {
  const { may } = usePlace();
  const { view, is_stale } = estimate;
  const holds = view?.ok && !is_stale ? ` · holds ${exactText(view.estimated_cost)}` : '';
  const why = may('run') ? reasonOf(estimate) : 'Your role here does not run models.';
  return (
    <Stack gap="xs">
      {error && <Failed error={error} />}
      <Group gap="md">
        <Button
          onClick={atFirstClick(run)} // a double click pays once
          onKeyDown={(event) => event.key === 'Enter' && event.repeat && event.preventDefault()}
          size="md"
          loading={starting}
          disabled={!can_run}
          aria-describedby="run-why"
          h="auto"
          mih={44}
          styles={{ label: { whiteSpace: 'normal' } }} // it is long in some languages
          leftSection={<PlayIcon width={18} aria-hidden />}
        >
          <span className="figure">
            {models === 1 ? 'Run' : `Run ${models} models`}
            {holds}
          </span>
        </Button>
        <Text
          size="sm"
          c="dimmed"
          id="run-why"
          component="div"
          role="status"
          aria-live={why === undefined ? 'off' : 'polite'}
          flex={1}
          miw={160}
        >
          {why ?? <Left view={view} />}
        </Text>
      </Group>
      <Text size="xs" c="dimmed">
        Ctrl+Enter or ⌘+Enter also runs it. The unused part of the hold is released.
      </Text>
    </Stack>
  );
}

/** The available balance of now, as in the header: that of the estimate is older. Nothing for whoever may not see it. */
function Left({ view }: { view: EstimateView | undefined }) {
  const enabled = view?.ok === true && view.available !== null;
  const { data } = useBalance({ enabled });
  return enabled && data ? <>{moneyText(data.available)} available</> : null;
}

/** Returns the reason why it cannot run; undefined if it can, or if that is being checked. */
function reasonOf({ view, is_stale, error }: Estimating) {
  if (error) return error.message;
  if (!view || is_stale) return undefined;
  if (!view.ok) return view.errors[0] ? problemText(view.errors[0]) : 'The input has errors.';
  if (view.obstacle === null) return undefined;
  if (view.obstacle === 'insufficient_balance' && !view.available)
    return 'This costs more than the account has. Ask an owner of the account.';
  if (view.obstacle === 'insufficient_balance' && view.available) {
    return (
      <>
        Only {moneyText(view.available)} is available.{' '}
        <LinkTo href="/billing" underline="always" size="sm">
          Top up
        </LinkTo>
      </>
    );
  }
  if (view.obstacle === 'spend_limit') {
    return (
      <>
        The monthly limit of the key “Playground” is reached.{' '}
        <LinkTo href="/keys" underline="always" size="sm">
          Change it
        </LinkTo>
      </>
    );
  }
  if (view.obstacle === 'account_blocked') return 'This account is blocked. Ask the operator of this service.';
  return (
    <>
      Too many generations have failed. The pause ends:{' '}
      {view.paused_until ? <Time at={view.paused_until} /> : 'tomorrow'}
    </>
  );
}
