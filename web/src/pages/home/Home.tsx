import { Alert, Anchor, Button, Card as MantineCard, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import { ExclamationTriangleIcon } from '@heroicons/react/24/outline';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { TaskLineView } from '../../../../src/dashboard/views/activity.ts';
import type { HomeView } from '../../../../src/dashboard/views/home.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { useBalance } from '../../ui/balance.ts';
import { ButtonTo, LinkTo } from '../../ui/LinkTo.tsx';
import { Thumbnail } from '../../ui/Thumbnail.tsx';
import { Money, moneyText } from '../../ui/Money.tsx';
import { Card, Figure, Page } from '../../ui/Page.tsx';
import { Spark } from '../../ui/Spark.tsx';
import { Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { BudgetsCard, RecentCalls } from './OfProjects.tsx';
import { FirstSteps } from './FirstSteps.tsx';
import { ProveEmail } from './ProveEmail.tsx';
import { SetUp } from './SetUp.tsx';

/** The start page. */
export function Home() {
  const { me, account, base } = usePlace();
  const home = useQuery({
    queryKey: [account.id, 'home'],
    queryFn: ({ signal }) => api.get<HomeView>(`${base}/home`, { signal }),
    refetchInterval: (query) => (query.state.data?.running.length ? 2_000 : 15_000),
  });
  return (
    <Page title="Home">
      {account.role !== 'operator' && <OwnNotices is_new={me.user.is_new} />}
      <Loaded query={home} height={420}>
        {(view) => (
          <Stack gap="lg">
            <Attention view={view} />
            <FirstSteps steps={view.steps} />
            <div className="balance-and-spend">
              {account.is_limited ? <BudgetsCard /> : <BalanceCard />}
              <SpendCard spend={view.spend} />
            </div>
            {view.running.length > 0 && <Running tasks={view.running} />}
            {account.is_limited && <RecentCalls />}
            {view.results.length > 0 && <Results tasks={view.results} />}
          </Stack>
        )}
      </Loaded>
    </Page>
  );
}

/** About the person, not the account: not for an operator who looks at an account of others. */
function OwnNotices({ is_new }: { is_new: boolean }) {
  return (
    <>
      {is_new && <SetUp />}
      <ProveEmail />
    </>
  );
}

function BalanceCard() {
  const { may } = usePlace();
  const balance = useBalance();
  return (
    <Card
      title="Balance"
      side={
        <Anchor component={Link} to="/billing" size="sm">
          Billing
        </Anchor>
      }
      h="100%"
    >
      <Loaded query={balance} height={90}>
        {({ available, held, balance: whole }) => (
          <SimpleGrid cols={2}>
            <Figure name="Available" value={<Money cost={available} />} note="can be spent now" />
            <Figure
              name="Held"
              value={<Money cost={held} />}
              note={
                <>
                  of <Money cost={whole} />, for running work
                </>
              }
            />
          </SimpleGrid>
        )}
      </Loaded>
      {may('billing') && (
        <ButtonTo href="/billing" size="xs" variant="light" mt="md">
          Top up
        </ButtonTo>
      )}
    </Card>
  );
}

function SpendCard({ spend }: { spend: HomeView['spend'] }) {
  const bars = spend.days.map(({ day, cost }) => ({ label: day, value: Number(cost.exact), text: moneyText(cost) }));
  const summary = `Spend of the last 30 days by day: ${moneyText(spend.month)} this month, ${moneyText(spend.today)} today.`;
  return (
    <Card
      title="Spend"
      side={
        <Anchor component={Link} to="/usage" size="sm">
          Usage
        </Anchor>
      }
      h="100%"
    >
      <Stack gap="sm">
        <SimpleGrid cols={3}>
          <Figure name="Today" value={<Money cost={spend.today} />} note="UTC" />
          <Figure name="This month" value={<Money cost={spend.month} />} />
          <Figure name="Last month" value={<Money cost={spend.month_before} />} note="to the same day" />
        </SimpleGrid>
        <div>
          <Spark bars={bars} summary={summary} />
          <Text size="xs" c="dimmed" mt={4}>
            The last 30 days, day by day
          </Text>
        </div>
      </Stack>
    </Card>
  );
}

function Attention({ view }: { view: HomeView }) {
  const { failures, undelivered, low_balance } = view;
  const notices = [
    ...(low_balance !== null
      ? [
          <Text key="balance" size="sm">
            Less than {moneyText(low_balance)} is available.{' '}
            <Anchor component={Link} to="/billing">
              Top up
            </Anchor>
          </Text>,
        ]
      : []),
    ...(failures.paused_until !== null
      ? [
          <Text key="paused" size="sm">
            {failures.counted} generations failed within 24 hours: new ones are paused until{' '}
            <Time at={failures.paused_until} />.{' '}
            <LinkTo href="/activity?tab=tasks&status=failed" c="inherit" underline="always">
              Show failures
            </LinkTo>
          </Text>,
        ]
      : failures.counted * 2 >= failures.limit
        ? [
            <Text key="failures" size="sm">
              {failures.counted} of {failures.limit} failed generations within 24 hours; at the limit, new ones are
              paused.{' '}
              <LinkTo href="/activity?tab=tasks&status=failed" c="inherit" underline="always">
                Show failures
              </LinkTo>
            </Text>,
          ]
        : []),
    ...keysNearLimit(view),
    ...(undelivered.dropped + undelivered.retrying > 0
      ? [
          <Text key="webhooks" size="sm">
            {undeliveredText(undelivered)}{' '}
            <LinkTo
              href={`/webhooks?state=${undelivered.dropped > 0 ? 'dropped' : 'retrying'}`}
              c="inherit"
              underline="always"
            >
              Deliveries
            </LinkTo>
          </Text>,
        ]
      : []),
  ];
  if (notices.length === 0) return null;
  return (
    <Alert color="yellow" variant="light" icon={<ExclamationTriangleIcon aria-hidden />} title="Needs your attention">
      <Stack gap={4}>{notices}</Stack>
    </Alert>
  );
}

function keysNearLimit({ keys_near_limit, has_more_near_limit }: HomeView) {
  const notices = keys_near_limit.map(({ id, name, used_percent }) => (
    <Text key={id} size="sm">
      The key {name} has used {used_percent} % of its monthly limit.{' '}
      <LinkTo href={`/keys?search=${id}`} c="inherit" underline="always">
        Show the key
      </LinkTo>
    </Text>
  ));
  if (!has_more_near_limit) return notices;
  return [
    ...notices,
    <Text key="more-keys" size="sm">
      Further keys have used 80 % of their monthly limit or more.{' '}
      <Anchor component={Link} to="/keys" c="inherit" underline="always">
        API keys
      </Anchor>
    </Text>,
  ];
}

/** Those that are sent again may still arrive. */
function undeliveredText({ dropped, retrying }: HomeView['undelivered']): string {
  const lost =
    dropped === 1
      ? '1 webhook of the last 24 hours did not arrive.'
      : `${dropped.toLocaleString('en-US')} webhooks of the last 24 hours did not arrive.`;
  const late =
    retrying === 1
      ? '1 webhook of the last 24 hours failed so far and is sent again.'
      : `${retrying.toLocaleString('en-US')} webhooks of the last 24 hours failed so far and are sent again.`;
  return [dropped > 0 ? lost : '', retrying > 0 ? late : ''].filter((text) => text !== '').join(' ');
}

function Running({ tasks }: { tasks: TaskLineView[] }) {
  return (
    <Card title="Running now">
      <Stack gap="xs" aria-live="polite">
        {tasks.map((task) => (
          <Group key={task.id} gap="sm" wrap="nowrap">
            <Status of={task.status} />
            <Anchor component={Link} to={`/tasks/${task.id}`} size="sm" truncate style={{ flex: 1, minWidth: 0 }}>
              {task.prompt ?? task.model}
            </Anchor>
            <Text size="sm" c="dimmed" visibleFrom="sm">
              {task.model}
            </Text>
            <Text size="sm" c="dimmed">
              <Time at={task.created_at} ago />
            </Text>
          </Group>
        ))}
      </Stack>
    </Card>
  );
}

function Results({ tasks }: { tasks: TaskLineView[] }) {
  return (
    <Card
      title="Latest results"
      side={
        <Button component={Link} to="/playground" size="xs" variant="light">
          Playground
        </Button>
      }
    >
      <SimpleGrid cols={{ base: 2, xs: 3, md: 6 }}>
        {tasks.map((task) => (
          <MantineCard key={task.id} component={Link} to={`/tasks/${task.id}`} p={0} radius="md" bg="transparent">
            <Thumbnail file={task.files[0]} size="100%" label="" />
            <Text size="xs" truncate mt={4}>
              {task.prompt ?? task.model}
            </Text>
            <Text size="xs" c="dimmed">
              <Money cost={task.cost} exact /> · <Time at={task.created_at} ago />
            </Text>
          </MantineCard>
        ))}
      </SimpleGrid>
    </Card>
  );
}
