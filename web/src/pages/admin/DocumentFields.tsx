import { useMediaQuery } from '@mantine/hooks';
import { Anchor, Checkbox, Group, Stack, Table, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { DocumentFieldView } from '../../../../src/dashboard/views/admin-providers.ts';
import { ListTable } from '../../ui/ListTable.tsx';
import { initialChoice, problemOf, type FieldChoice } from './document-choice.ts';

type Props = {
  fields: readonly DocumentFieldView[];
  choices: ReadonlyMap<string, FieldChoice>;
  set: (target: string, choice: FieldChoice) => void;
};

const columns = [{ name: 'Callers may set' }, { name: 'Name for callers' }, { name: 'At most' }];
const narrow_columns = [{ name: 'Callers may set' }];

/** The fields of a document to tick: those that models of this form usually have first, the others on demand. */
export function DocumentFields({ fields, choices, set }: Props) {
  const is_narrow = useMediaQuery('(max-width: 40em)') ?? false;
  const usual = fields.filter(({ is_suggested }) => is_suggested);
  const others = fields.filter(({ is_suggested }) => !is_suggested);
  const [shows_all, setShowsAll] = useState(usual.length === 0);
  const shown = shows_all ? [...usual, ...others] : usual;
  return (
    <Stack gap="xs">
      <div style={is_narrow ? {} : { maxHeight: '44vh', overflowY: 'auto' }}>
        <ListTable caption="Fields of the document" columns={is_narrow ? narrow_columns : columns}>
          {shown.map((field) => (
            <Row
              key={field.target}
              is_narrow={is_narrow}
              field={field}
              choice={choices.get(field.target) ?? initialChoice(field)}
              set={(choice) => set(field.target, choice)}
            />
          ))}
        </ListTable>
      </div>
      {others.length > 0 && !shows_all && (
        <Group>
          <Anchor component="button" type="button" size="sm" onClick={() => setShowsAll(true)}>
            {others.length === 1 ? 'One more field' : `${others.length} more fields`}
          </Anchor>
        </Group>
      )}
      <Text size="xs" c="dimmed">
        Everything that is not ticked stays as it is. Fields of the same name are set together.
      </Text>
    </Stack>
  );
}

type RowProps = { field: DocumentFieldView; choice: FieldChoice; set: (choice: FieldChoice) => void };

/** On a phone everything of a field is below it. */
function Row({ is_narrow, ...props }: RowProps & { is_narrow: boolean }) {
  if (is_narrow) {
    return (
      <Table.Tr>
        <Table.Td>
          <Stack gap={6}>
            <Tick {...props} />
            <Name {...props} has_label />
            <Most {...props} has_label />
          </Stack>
        </Table.Td>
      </Table.Tr>
    );
  }
  return (
    <Table.Tr>
      <Table.Td miw={220} maw={380}>
        <Tick {...props} />
      </Table.Td>
      <Table.Td miw={180}>
        <Name {...props} />
      </Table.Td>
      <Table.Td miw={110}>
        <Most {...props} />
      </Table.Td>
    </Table.Tr>
  );
}

const value_length_max = 70;

function Tick({ field: { target, part, field, type, value, choices }, choice, set }: RowProps) {
  const text = String(value);
  const shown = text.length > value_length_max ? `${text.slice(0, value_length_max)}…` : text;
  const is_file = type === 'image' || type === 'video' || type === 'audio';
  return (
    <Checkbox
      checked={choice.is_ticked}
      onChange={({ currentTarget }) => set({ ...choice, is_ticked: currentTarget.checked })}
      aria-label={`${part}: ${field} (${target})`}
      label={
        <>
          <Text size="sm" component="span" style={{ overflowWrap: 'anywhere' }}>
            {part}: <strong>{field}</strong>
          </Text>
          <Text size="xs" c="dimmed" component="span" display="block" style={{ overflowWrap: 'anywhere' }}>
            {is_file ? `a file: ${type}` : shown === '' ? 'empty' : shown}
            {choices > 0 && `, one of ${choices}`}
          </Text>
        </>
      }
    />
  );
}

type LabelledProps = RowProps & { has_label?: boolean };

function Name({ field: { target }, choice, set, has_label = false }: LabelledProps) {
  if (!choice.is_ticked) return null;
  return (
    <TextInput
      size="xs"
      {...(has_label && { label: 'Name for callers' })}
      aria-label={`Name for callers of ${target}`}
      maxLength={64}
      autoComplete="off"
      value={choice.name}
      onChange={({ currentTarget }) => set({ ...choice, name: currentTarget.value })}
      error={problemOf({ ...choice, maximum: '' })}
    />
  );
}

/** Numbers that make no work, such as seeds, have no end to choose. */
function Most({ field: { target, maximum }, choice, set, has_label = false }: LabelledProps) {
  if (!choice.is_ticked || maximum === null) return null;
  return (
    <TextInput
      size="xs"
      {...(has_label && { label: 'At most' })}
      aria-label={`At most, of ${target}`}
      placeholder="no limit"
      inputMode="decimal"
      autoComplete="off"
      value={choice.maximum}
      onChange={({ currentTarget }) => set({ ...choice, maximum: currentTarget.value })}
      error={problemOf({ ...choice, name: 'a' })}
    />
  );
}
