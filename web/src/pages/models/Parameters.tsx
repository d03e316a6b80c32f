import { Badge, Code, Group, Stack, Table, Text } from '@mantine/core';
import { isRecord } from '../../api.ts';
import { ListTable } from '../../ui/ListTable.tsx';
import { fieldsOf, mediaOf, numberOf, textOf, typeOf, type Field, type FieldSchema } from '../../ui/schema.ts';

/** The parameters of an input, read from its schema. */
export function Parameters({ schema }: { schema: FieldSchema }) {
  const fields = fieldsOf(schema);
  if (fields.length === 0) return <Text c="dimmed">The schema names no fields.</Text>;
  return (
    <ListTable
      caption="Parameters"
      columns={[{ name: 'Name' }, { name: 'Type' }, { name: 'Default' }, { name: 'Meaning' }]}
    >
      {fields.map((field) => (
        <Row key={field.name} field={field} />
      ))}
    </ListTable>
  );
}

function Row({ field }: { field: Field }) {
  const { name, schema, required } = field;
  const usual = schema['default'];
  return (
    <Table.Tr style={{ verticalAlign: 'top' }}>
      <Table.Td miw={150}>
        <Group gap={6} wrap="nowrap">
          <Code style={{ whiteSpace: 'nowrap' }}>{name}</Code>
          {required && (
            <Badge size="sm" variant="light" tt="none" miw="max-content">
              required
            </Badge>
          )}
        </Group>
      </Table.Td>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <Text size="sm">{typeText(field)}</Text>
      </Table.Td>
      <Table.Td>{usual === undefined ? <Text c="dimmed">–</Text> : <Code>{JSON.stringify(usual)}</Code>}</Table.Td>
      <Table.Td miw={240}>
        <Stack gap={2}>
          <Text size="sm">{textOf(schema, 'description') ?? textOf(schema, 'title') ?? ''}</Text>
          <Text size="xs" c="dimmed">
            {boundsText(schema)}
          </Text>
        </Stack>
      </Table.Td>
    </Table.Tr>
  );
}

function typeText(field: Field): string {
  const media = mediaOf(field);
  if (media) return media;
  const type = typeOf(field.schema);
  if (type === 'array') {
    const { items } = field.schema;
    return `list of ${isRecord(items) ? (mediaOf({ name: '', schema: items }) ?? typeOf(items) ?? 'value') : 'value'}s`;
  }
  return type ?? (field.schema['enum'] === undefined ? 'any' : 'choice');
}

/** `16 to 2048`, `one of 480p, 720p`, `at most 4,000 characters`. */
function boundsText(schema: FieldSchema): string {
  const { enum: choices } = schema;
  if (Array.isArray(choices)) return `One of ${choices.map((choice) => JSON.stringify(choice)).join(', ')}`;
  const parts = [
    rangeText(numberOf(schema, 'minimum'), numberOf(schema, 'maximum'), ''),
    rangeText(numberOf(schema, 'minLength'), numberOf(schema, 'maxLength'), ' characters'),
    rangeText(numberOf(schema, 'minItems'), numberOf(schema, 'maxItems'), ' of them'),
    textOf(schema, 'pattern') === undefined ? undefined : `must match ${textOf(schema, 'pattern')}`,
  ];
  return parts.filter((part) => part !== undefined).join(', ');
}

function rangeText(least: number | undefined, most: number | undefined, of: string): string | undefined {
  const number = (value: number) => value.toLocaleString('en-US');
  if (least !== undefined && most !== undefined) return `${number(least)} to ${number(most)}${of}`;
  if (most !== undefined) return `at most ${number(most)}${of}`;
  return least === undefined ? undefined : `at least ${number(least)}${of}`;
}
