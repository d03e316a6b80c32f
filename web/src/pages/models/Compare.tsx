import { Button, Group, Stack, Table, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { ModelSpeedView, ModelView } from '../../../../src/dashboard/views/models.ts';
import { isInPlayground, kindText } from '../../ui/kinds.ts';
import { ButtonTo, LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { ModelStatus } from '../../ui/ModelStatus.tsx';
import { Card } from '../../ui/Page.tsx';
import { conditionText, isFree, perText, priceText } from '../../ui/price.ts';
import { Empty } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';
import { Calculator } from './Calculator.tsx';
import { capabilityText, contextOf, speedNote, speedText, successText, tokensText } from './facts.ts';

type Props = { models: ModelView[]; speeds: ReadonlyMap<string, ModelSpeedView>; back: () => void };

/** Up to four models beside each other, and what the same work costs with each. */
export function Compare({ models, speeds, back }: Props) {
  const list = (
    <Button variant="default" onClick={back}>
      Back to the list
    </Button>
  );
  if (models.length === 0) {
    return (
      <Empty title="No models to compare" action={list}>
        Tick up to four models in the list.
      </Empty>
    );
  }
  return (
    <Stack gap="lg">
      <Group>{list}</Group>
      <ListTable caption="Comparison of models" columns={[{ name: 'Property' }, ...headsOf(models)]}>
        {properties.map(({ name, of }) => (
          <Table.Tr key={name} style={{ verticalAlign: 'top' }}>
            <Table.Th scope="row" role="rowheader" fw={600}>
              {name}
            </Table.Th>
            {models.map((model) => (
              <Table.Td key={model.id}>{of(model, speeds.get(model.id))}</Table.Td>
            ))}
          </Table.Tr>
        ))}
      </ListTable>
      <Card title="Price calculator">
        <Calculator key={models.map(({ id }) => id).join()} models={models} />
      </Card>
    </Stack>
  );
}

/** Names of models, or ids where two have the same name. */
function headsOf(models: readonly ModelView[]): { name: string }[] {
  const is_unique = new Set(models.map(({ display_name }) => display_name)).size === models.length;
  return models.map(({ id, display_name }) => ({ name: is_unique ? display_name : id }));
}

type Property = { name: string; of: (model: ModelView, speed: ModelSpeedView | undefined) => ReactNode };

const properties: readonly Property[] = [
  { name: 'Id', of: ({ id }) => <LinkTo href={`/models/${encodeURI(id)}`}>{id}</LinkTo> },
  { name: 'Kind', of: ({ modality }) => kindText(modality) },
  { name: 'Price', of: (model) => <PriceRows model={model} /> },
  { name: 'Context', of: (model) => tokensText(contextOf(model)) },
  { name: 'Longest output', of: ({ limits }) => tokensText(limits['max_output_tokens']) },
  { name: 'Capabilities', of: ({ capabilities }) => capabilities.map(capabilityText).join(', ') || '–' },
  { name: 'Speed', of: (_, speed) => <Lines texts={[speedText(speed), speed ? speedNote(speed) : '']} /> },
  { name: 'Succeeded in 7 days', of: ({ pace }) => successText(pace) },
  { name: 'Status', of: ({ status }) => <ModelStatus of={status} /> },
  { name: 'Ends', of: ({ retires }) => (retires === undefined ? '–' : <Time at={`${retires}T00:00:00Z`} />) },
  { name: 'Try', of: (model) => <TryIt model={model} /> },
];

function PriceRows({ model: { pricing } }: { model: ModelView }) {
  if (isFree(pricing)) return 'free';
  return (
    <Stack gap={2}>
      {pricing.map((row) => (
        <div key={JSON.stringify(row)}>
          <Text size="sm" className="figure">
            {priceText(row)} per {perText(row)}
          </Text>
          {conditionText(row) !== '' && (
            <Text size="xs" c="dimmed">
              {conditionText(row)}
            </Text>
          )}
        </div>
      ))}
    </Stack>
  );
}

function Lines({ texts: [first, second] }: { texts: readonly [string, string] }) {
  return (
    <>
      <Text size="sm" className="figure">
        {first}
      </Text>
      {second !== '' && (
        <Text size="xs" c="dimmed">
          {second}
        </Text>
      )}
    </>
  );
}

function TryIt({ model: { id, display_name, modality } }: { model: ModelView }) {
  if (!isInPlayground(modality)) return 'by the API';
  return (
    <ButtonTo
      href={`/playground?model=${encodeURIComponent(id)}`}
      size="xs"
      variant="light"
      aria-label={`Try it: ${display_name}`}
    >
      Try it
    </ButtonTo>
  );
}
