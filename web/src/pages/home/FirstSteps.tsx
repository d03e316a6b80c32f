import { Anchor, Box, Button, Group, Progress, Stack, Text, ThemeIcon } from '@mantine/core';
import { CheckIcon } from '@heroicons/react/24/solid';
import { useLocalStorage } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { HomeView } from '../../../../src/dashboard/views/home.ts';
import type { UnitCostView } from '../../../../src/dashboard/views/models.ts';
import { api, queryOf } from '../../api.ts';
import { below } from '../../below.ts';
import { usePlace } from '../../session.tsx';
import { useBalance } from '../../ui/balance.ts';
import { CodeBox } from '../../ui/Copy.tsx';
import { ButtonTo } from '../../ui/LinkTo.tsx';
import { Money } from '../../ui/Money.tsx';
import { Card } from '../../ui/Page.tsx';

/** Rights that the steps take: those of all of the account, and those of some projects. */
const rights = ['run', 'keys', 'webhooks'] as const;
const limited_rights = ['run', 'keys'] as const;

type StepProps = { done: boolean; title: string; children: ReactNode };

/**
 * The first steps of a new account, or of a member of some projects, for those who may take them. The card disappears once
 * all are done, or when it is dismissed.
 */
export function FirstSteps({ steps }: { steps: HomeView['steps'] }) {
  const { account, may } = usePlace();
  const [hidden, setHidden] = useLocalStorage({ key: `medley.steps.${account.id}`, defaultValue: false });
  const { is_limited } = account;
  const image: StepProps = { done: steps.image, title: 'Make an image', children: <ImageStep /> };
  const all = is_limited ? [...keySteps(steps), image] : [image, ...ownSteps(steps)];
  const done = all.filter((step) => step.done).length;
  const taken = is_limited ? limited_rights : rights;
  if (hidden || done === all.length || !taken.every((right) => may(right))) return null;
  return (
    <Card
      title="First steps"
      side={
        <Button size="xs" variant="subtle" color="gray" onClick={() => setHidden(true)}>
          Hide
        </Button>
      }
    >
      <Stack>
        <Progress value={(done / all.length) * 100} aria-label={`${done} of ${all.length} steps done`} />
        <Stack component="ol" gap="md" p={0} m={0} style={{ listStyle: 'none' }}>
          {all.map((step, index) => (
            <Step key={step.title} number={index + 1} {...step} />
          ))}
        </Stack>
        {is_limited && <Guide />}
      </Stack>
    </Card>
  );
}

function ownSteps(steps: HomeView['steps']): StepProps[] {
  return [
    { done: steps.api, title: 'Make one with the API', children: <ApiStep /> },
    {
      done: steps.webhook,
      title: 'Receive a webhook',
      children: (
        <Text size="sm">
          Pass <code>webhook_url</code> when you create a task, or send a test from{' '}
          <Anchor component={Link} to="/webhooks" underline="always">
            Webhooks
          </Anchor>
          .
        </Text>
      ),
    },
  ];
}

/** Steps of a member of some projects, who has no webhooks. */
function keySteps(steps: HomeView['steps']): StepProps[] {
  return [
    {
      done: steps.key,
      title: 'Create a key in your project',
      children: (
        <Group>
          <Text size="sm">It calls models, and reads what is of its project.</Text>
          <ButtonTo href="/keys" size="xs">
            Open API keys
          </ButtonTo>
        </Group>
      ),
    },
    { done: steps.api, title: 'Call a model with your key', children: <ApiStep /> },
  ];
}

function ApiStep() {
  const { me } = usePlace();
  const curl = `curl -sS '${me.base_url}/v1/generate?wait=60' \\
  -H "Authorization: Bearer $MEDLEY_API_KEY" -H 'Content-Type: application/json' \\
  -d '{"model":"sandbox/image","input":{"prompt":"A red bicycle"}}'`;
  return (
    <Stack gap="xs">
      <Text size="sm">
        Put a key from{' '}
        <Anchor component={Link} to="/keys" underline="always">
          API keys
        </Anchor>{' '}
        into <code>$MEDLEY_API_KEY</code>, then run:
      </Text>
      <CodeBox text={curl} label="command" />
    </Stack>
  );
}

function Guide() {
  return (
    <Text size="sm">
      The{' '}
      <Anchor href={below('/guide/path-sdk')} underline="always">
        guide
      </Anchor>{' '}
      has the same for your SDK, and says{' '}
      <Anchor href={below('/guide/roles')} underline="always">
        what members of some projects may do
      </Anchor>
      .
    </Text>
  );
}

const an_image = queryOf({ models: 'sandbox/image', units: JSON.stringify({ image: '1' }) });

/** With an empty balance the playground would only refuse: money comes first. */
function ImageStep() {
  const { account, base, me, may } = usePlace();
  const enabled = !account.is_limited; // the balance is of all of the account
  const { data: balance } = useBalance({ enabled });
  const { data: costs } = useQuery({
    queryKey: [account.id, 'model-costs', an_image],
    queryFn: async ({ signal }) =>
      (await api.get<{ data: UnitCostView[] }>(`${base}/model-costs${an_image}`, { signal })).data,
    enabled,
    staleTime: 60_000,
  });
  const cost = costs?.[0]?.cost;
  if (!balance || !cost || Number(balance.available.exact) >= Number(cost.exact)) {
    return (
      <Group>
        <Text size="sm">The sandbox needs no provider key.</Text>
        <ButtonTo href="/playground?model=sandbox%2Fimage" size="xs">
          Open the playground
        </ButtonTo>
      </Group>
    );
  }
  const { is_operator } = me.user;
  return (
    <Group>
      <Text size="sm">
        An image costs <Money cost={cost} exact />, and <Money cost={balance.available} /> is available.
        {!is_operator && !may('billing') && ' Ask an owner of the account to top up.'}
      </Text>
      {is_operator ? (
        <ButtonTo href={`/admin/accounts/${account.id}`} size="xs">
          Credit this account
        </ButtonTo>
      ) : (
        may('billing') && (
          <ButtonTo href="/billing" size="xs">
            Top up
          </ButtonTo>
        )
      )}
    </Group>
  );
}

function Step({ number, done, title, children }: StepProps & { number: number }) {
  return (
    <Group component="li" align="flex-start" gap="sm" wrap="nowrap">
      <ThemeIcon size={24} radius="xl" color={done ? 'teal' : 'gray'} variant={done ? 'filled' : 'light'}>
        {done ? <CheckIcon width={14} aria-hidden /> : <Text size="xs">{number}</Text>}
      </ThemeIcon>
      <Box flex={1} miw={0}>
        <Text fw={600}>
          {title}
          {done && <span style={{ position: 'absolute', left: -9999 }}> (done)</span>}
        </Text>
        {!done && children}
      </Box>
    </Group>
  );
}
