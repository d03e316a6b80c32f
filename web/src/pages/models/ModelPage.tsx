import { Badge, Grid, Group, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import { CodeBox } from '../../ui/Copy.tsx';
import { durationText } from '../../ui/duration.ts';
import { isInPlayground, isMedia, kindText } from '../../ui/kinds.ts';
import { ButtonTo, LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { ModelStatus } from '../../ui/ModelStatus.tsx';
import { Card, Figure, Page } from '../../ui/Page.tsx';
import { conditionText, isFree, perText, priceText } from '../../ui/price.ts';
import { titleOf } from '../../ui/schema.ts';
import { Loaded } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';
import { Trail } from '../../ui/Trail.tsx';
import { Calculator } from './Calculator.tsx';
import { CallIt } from './CallIt.tsx';
import { capabilityText, successText } from './facts.ts';
import { playgroundOf } from './ModelTable.tsx';
import { Parameters } from './Parameters.tsx';
import { useModel } from './queries.ts';

const route = getRouteApi('/signed-in/models/$');

/** One model: what it takes, what it costs, how to call it, how it has served. */
export function ModelPage() {
  const { _splat: id = '' } = route.useParams();
  const query = useModel(id);
  const model = query.data;
  return (
    <Page
      title={model?.display_name ?? id}
      about={<Trail list="Models" href="/models" id={id} />}
      {...(model && isInPlayground(model.modality) && { actions: <OpenIt model={model} /> })}
    >
      <Loaded query={query} height={520}>
        {(loaded) => <Whole model={loaded} />}
      </Loaded>
    </Page>
  );
}

function OpenIt({ model }: { model: ModelView }) {
  return <ButtonTo href={playgroundOf(model.id)}>Open in the playground</ButtonTo>;
}

function Whole({ model }: { model: ModelView }) {
  const has_input = isMedia(model.modality);
  return (
    <Grid gap="lg">
      <Grid.Col span={{ base: 12, md: 7 }}>
        <Stack gap="lg">
          <About model={model} />
          <Card title="Call it">
            <CallIt model={model} />
          </Card>
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 5 }}>
        <Stack gap="lg">
          <Pace model={model} />
          <Prices model={model} />
          {!isFree(model.pricing) && (
            <Card title="Price calculator">
              <Calculator models={[model]} />
            </Card>
          )}
          <Limits model={model} />
        </Stack>
      </Grid.Col>
      {has_input && (
        <Grid.Col span={12}>
          <Stack gap="lg">
            <Card title="Input parameters">
              <Parameters schema={model.input_schema} />
            </Card>
            <Card title="As a JSON Schema">
              <CodeBox text={JSON.stringify(model.input_schema, undefined, 2)} label="schema" height={260} />
            </Card>
          </Stack>
        </Grid.Col>
      )}
    </Grid>
  );
}

function About({ model }: { model: ModelView }) {
  const { modality, description, capabilities, output_types, owned_by, status } = model;
  return (
    <Card side={<ModelStatus of={status} />} title="About">
      <Text>{description}</Text>
      <Ending of={model} />
      <Group gap={6} mt="sm">
        <Badge variant="light" tt="none">
          {kindText(modality)}
        </Badge>
        {output_types
          .filter((type) => type !== modality)
          .map((type) => (
            <Badge key={type} variant="default" tt="none">
              output: {type}
            </Badge>
          ))}
        {capabilities.map((one) => (
          <Badge key={one} variant="default" tt="none" fw={500}>
            {capabilityText(one)}
          </Badge>
        ))}
        {owned_by !== '' && (
          <Text size="sm" c="dimmed">
            by {owned_by}
          </Text>
        )}
      </Group>
    </Card>
  );
}

function Ending({ of: { retires, replaced_by } }: { of: ModelView }) {
  if (retires === undefined) return null;
  return (
    <Text mt="sm" fw={500}>
      It ends on <Time at={`${retires}T00:00:00Z`} />.{' '}
      {replaced_by !== undefined && (
        <>
          Use <LinkTo href={`/models/${encodeURI(replaced_by)}`}>{replaced_by}</LinkTo> instead.
        </>
      )}
    </Text>
  );
}

function Pace({ model: { pace, modality } }: { model: ModelView }) {
  const time = (ms: number | null | undefined) => (ms == null ? '–' : durationText(ms));
  return (
    <Card title="Your last seven days">
      {pace ? (
        <SimpleGrid cols={modality === 'chat' ? 2 : 3}>
          <Figure name="Succeeded" value={successText(pace)} note={`${pace.succeeded} of ${pace.ended}`} />
          <Figure name="Median time" value={time(pace.p50_ms)} />
          <Figure name="p95" value={time(pace.p95_ms)} />
          {modality === 'chat' && <Figure name="First token, median" value={time(pace.first_p50_ms)} />}
        </SimpleGrid>
      ) : (
        <Text c="dimmed">No runs in the last seven days.</Text>
      )}
    </Card>
  );
}

function Prices({ model: { pricing } }: { model: ModelView }) {
  const has_conditions = pricing.some((row) => conditionText(row) !== '');
  return (
    <Card title="Price">
      {isFree(pricing) ? (
        <Text>It is free.</Text>
      ) : (
        <ListTable
          caption="Price"
          columns={[{ name: 'Amount' }, { name: 'Per' }, ...(has_conditions ? [{ name: 'For' }] : [])]}
        >
          {pricing.map((row) => (
            <Table.Tr key={JSON.stringify(row)}>
              <Table.Td className="figure">{priceText(row)}</Table.Td>
              <Table.Td>{perText(row)}</Table.Td>
              {has_conditions && <Table.Td>{conditionText(row) || 'everything else'}</Table.Td>}
            </Table.Tr>
          ))}
        </ListTable>
      )}
      {!isFree(pricing) && (
        <Text size="sm" c="dimmed" mt="sm">
          For each unit, the first row that fits applies. An estimate is held when a run starts; a failed run costs
          nothing.
        </Text>
      )}
    </Card>
  );
}

function Limits({ model: { limits } }: { model: ModelView }) {
  const entries = Object.entries(limits);
  if (entries.length === 0) return null;
  return (
    <Card title="Limits">
      <SimpleGrid cols={2}>
        {entries.map(([name, value]) => (
          <Figure key={name} name={titleOf({ name, schema: {} })} value={value.toLocaleString('en-US')} />
        ))}
      </SimpleGrid>
    </Card>
  );
}
