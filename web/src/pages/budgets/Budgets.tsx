import { Badge, Group, Progress, SimpleGrid, Stack, Text } from '@mantine/core';
import { PencilSquareIcon, TrashIcon } from '@heroicons/react/24/outline';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { BudgetsView, BudgetView } from '../../../../src/dashboard/views/budgets.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { MayButton, MayIcon } from '../../ui/MayButton.tsx';
import { Money, moneyText } from '../../ui/Money.tsx';
import { Card, Page } from '../../ui/Page.tsx';
import { Empty, Loaded } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';
import { BudgetForm, RemoveBudget } from './BudgetForm.tsx';
import { alertsText, daysLeft, periodName, scopeText } from './words.ts';

type Doing = { what: 'create' } | { what: 'change' | 'remove'; budget: BudgetView } | undefined;

/** The page of budgets: how far each has come in its period. */
export function Budgets() {
  const { account, base } = usePlace();
  const [doing, setDoing] = useState<Doing>();
  const close = () => setDoing(undefined);
  const query = useQuery({
    queryKey: [account.id, 'budgets'],
    queryFn: ({ signal }) => api.get<BudgetsView>(`${base}/budgets`, { signal }),
    refetchInterval: 15_000,
  });
  const create = (
    <MayButton right="billing" onClick={() => setDoing({ what: 'create' })}>
      Create a budget
    </MayButton>
  );
  return (
    <Page
      title="Budgets"
      about="Spending of the account, a project, a key or a member in a day, a week, a month or in total (UTC). People hear of it at 50, 80 and 100 %, or at those of them that you choose; a hard budget refuses calls that it does not pay."
      actions={create}
    >
      <Loaded query={query} height={280}>
        {({ data, choices }) => (
          <>
            {data.length === 0 && account.is_limited ? (
              <Empty title="No budgets">Nobody has set a budget for your projects or their keys.</Empty>
            ) : data.length === 0 ? (
              <Empty title="No budgets" action={create}>
                Begin with a soft budget of the account for a month: it refuses nothing, and you hear how far it is.
              </Empty>
            ) : (
              <SimpleGrid cols={{ base: 1, md: 2 }}>
                {data.map((budget) => (
                  <BudgetCard key={budget.id} budget={budget} setDoing={setDoing} />
                ))}
              </SimpleGrid>
            )}
            {doing?.what === 'create' && <BudgetForm choices={choices} close={close} />}
            {doing?.what === 'change' && <BudgetForm budget={doing.budget} choices={choices} close={close} />}
          </>
        )}
      </Loaded>
      {doing?.what === 'remove' && <RemoveBudget budget={doing.budget} close={close} />}
    </Page>
  );
}

function BudgetCard({ budget, setDoing }: { budget: BudgetView; setDoing: (doing: Doing) => void }) {
  const { name, is_hard, used_percent, amount, spent, held, refused } = budget;
  const color = used_percent >= 100 ? 'red' : used_percent >= 80 ? 'yellow' : 'brand';
  return (
    <Card
      title={name}
      side={
        <Group gap={2} wrap="nowrap">
          <MayIcon right="billing" label={`Change ${name}`} onClick={() => setDoing({ what: 'change', budget })}>
            <PencilSquareIcon width={18} aria-hidden />
          </MayIcon>
          <MayIcon
            right="billing"
            label={`Remove ${name}`}
            color="red"
            onClick={() => setDoing({ what: 'remove', budget })}
          >
            <TrashIcon width={18} aria-hidden />
          </MayIcon>
        </Group>
      }
    >
      <Stack gap="xs">
        <Group gap="xs">
          <Badge variant="light" color={is_hard ? 'red' : 'gray'}>
            {is_hard ? 'Hard' : 'Soft'}
          </Badge>
          <Text size="sm" c="dimmed">
            {scopeText(budget)}, {periodName(budget.period)}. {alertsText(budget.alert_percents)}.
          </Text>
        </Group>
        <Text size="sm">
          <Money cost={spent} /> of <Money cost={amount} />
          {Number(held.exact) > 0 && (
            <Text span c="dimmed">
              {' '}
              and {moneyText(held)} held
            </Text>
          )}
          <Text span c="dimmed">
            {' '}
            – {used_percent} % used
          </Text>
        </Text>
        <Progress value={Math.min(100, used_percent)} color={color} aria-label={`${name}: ${used_percent} % used`} />
        {is_hard && <RefusedText refused={refused} />}
        <Rest budget={budget} />
      </Stack>
    </Card>
  );
}

/** Requests that the budget has refused since its period began. */
function RefusedText({ refused }: { refused: number }) {
  if (refused === 0)
    return (
      <Text size="xs" c="dimmed">
        No calls refused in this period.
      </Text>
    );
  return (
    <Text size="xs" fw={600}>
      {refused.toLocaleString('en')} {refused === 1 ? 'call' : 'calls'} refused in this period.{' '}
      <LinkTo href="/usage?period=30d#refused" size="xs" underline="always">
        See when and why
      </LinkTo>
    </Text>
  );
}

function Rest({ budget: { ends_at, projection, amount, is_hard } }: { budget: BudgetView }) {
  if (ends_at === null) {
    return (
      <Text size="xs" c="dimmed">
        For all time: it never resets.
      </Text>
    );
  }
  const is_over = projection !== null && Number(projection.exact) > Number(amount.exact);
  return (
    <Text size="xs" c="dimmed">
      {daysLeft(ends_at, Date.now())}, resets <Time at={ends_at} />
      {projection !== null && (
        <Text span {...(is_over && { c: 'var(--mantine-color-text)', fw: 600 })}>
          {is_over && is_hard
            ? '. At this speed it is used up before'
            : `. At this speed ${moneyText(projection)} by then${is_over ? ', more than the budget' : ''}`}
        </Text>
      )}
      .
    </Text>
  );
}
