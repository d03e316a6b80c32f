import { Anchor, Box, Group, Progress, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ActivityLine, ActivityPage } from '../../../../src/dashboard/views/activity.ts';
import type { BudgetsView, BudgetView } from '../../../../src/dashboard/views/budgets.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { Money } from '../../ui/Money.tsx';
import { Card } from '../../ui/Page.tsx';
import { Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';

/** Cards of members who are limited to projects: in place of the balance, which is of all of the account. */

const budgets_shown = 3;
const calls_shown = 5;

/** Says how far the budgets of the projects are, and of their keys. */
export function BudgetsCard() {
  const { account, base } = usePlace();
  const query = useQuery({
    queryKey: [account.id, 'budgets'],
    queryFn: ({ signal }) => api.get<BudgetsView>(`${base}/budgets`, { signal }),
    refetchInterval: 15_000,
  });
  return (
    <Card
      title="Budgets"
      side={
        <Anchor component={Link} to="/budgets" size="sm">
          All budgets
        </Anchor>
      }
      h="100%"
    >
      <Loaded query={query} height={90}>
        {({ data }) =>
          data.length === 0 ? (
            <Text size="sm" c="dimmed">
              Nobody has set a budget for your projects or their keys.
            </Text>
          ) : (
            <Stack gap="sm">
              {data
                .toSorted((a, b) => b.used_percent - a.used_percent)
                .slice(0, budgets_shown)
                .map((budget) => (
                  <BudgetLine key={budget.id} budget={budget} />
                ))}
            </Stack>
          )
        }
      </Loaded>
    </Card>
  );
}

function BudgetLine({ budget: { name, spent, amount, used_percent } }: { budget: BudgetView }) {
  const color = used_percent >= 100 ? 'red' : used_percent >= 80 ? 'yellow' : 'brand';
  return (
    <div>
      <Group justify="space-between" gap="xs" wrap="nowrap">
        <Text size="sm" truncate>
          {name}
        </Text>
        <Text size="sm" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
          <Money cost={spent} /> of <Money cost={amount} />
        </Text>
      </Group>
      <Progress
        value={Math.min(100, used_percent)}
        color={color}
        aria-label={`${name}: ${used_percent} % used`}
        mt={4}
      />
    </div>
  );
}

/** The newest calls and tasks of the projects. */
export function RecentCalls() {
  const { account, base } = usePlace();
  const query = useQuery({
    queryKey: [account.id, 'home', 'calls'],
    queryFn: ({ signal }) => api.get<ActivityPage>(`${base}/activity?limit=${calls_shown}`, { signal }),
    refetchInterval: 15_000,
  });
  return (
    <Card
      title="Recent calls"
      side={
        <Anchor component={Link} to="/activity" size="sm">
          Activity
        </Anchor>
      }
    >
      <Loaded query={query} height={90}>
        {({ data }) =>
          data.length === 0 ? (
            <Text size="sm" c="dimmed">
              The calls of your projects appear here.
            </Text>
          ) : (
            <Stack gap="xs">
              {data.map((line) => (
                <CallLine key={line.id} line={line} />
              ))}
            </Stack>
          )
        }
      </Loaded>
    </Card>
  );
}

function CallLine({ line }: { line: ActivityLine }) {
  const status = line.what === 'task' ? line.status : line.status < 400 ? 'succeeded' : 'failed';
  return (
    <Group gap="sm" wrap="nowrap">
      <Status of={status} />
      <Box flex={1} miw={0}>
        <Anchor
          component={Link}
          to={line.what === 'task' ? `/tasks/${line.id}` : `/chats/${line.id}`}
          size="sm"
          truncate
          display="block"
        >
          {line.model}
        </Anchor>
        <Text size="xs" c="dimmed">
          {line.key.name} · <Money cost={line.cost} exact /> · <Time at={line.created_at} ago />
        </Text>
      </Box>
    </Group>
  );
}
