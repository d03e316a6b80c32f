import { ActionIcon, Button, Group, Input, Stack, TextInput } from '@mantine/core';
import { ArrowDownIcon, ArrowUpIcon, PlusIcon, TrashIcon } from '@heroicons/react/24/outline';
import { atFirstClick } from '../../../ui/first-click.ts';
import { mediaOf, numberOf, titleOf } from '../../../ui/schema.ts';
import { itemsOf, labelsOf, type ControlProps } from './control-labels.ts';
import { MediaInput } from './MediaControl.tsx';
import { problemAt } from './problems.ts';

/** Rows of texts or files, which can be added, taken away and put in another order. */
export function ListControl(props: ControlProps) {
  const { field, value, update, problems, path, disabled } = props;
  const rows = rowsOf(value);
  const title = titleOf(field);
  const kind = mediaOf({ name: '', schema: itemsOf(field) });
  const most = numberOf(field.schema, 'maxItems') ?? 64;
  const change = (next: (rows: string[]) => string[]) =>
    update((before) => {
      const changed = next(rowsOf(before));
      return changed.length === 0 ? undefined : changed;
    });
  const set = (index: number, text: string) => change((now) => now.map((row, at) => (at === index ? text : row)));
  const remove = (index: number) => change((now) => now.filter((_, at) => at !== index));
  const { label, description, withAsterisk, error } = labelsOf(props);
  return (
    <Input.Wrapper {...{ label, description, withAsterisk, error }} labelElement="div">
      <Stack gap="xs" mt={4} role="group" aria-label={title}>
        {rows.map((row, index) => (
          <Group key={index} gap={4} wrap="nowrap" align="flex-start">
            {kind ? (
              <MediaInput
                kind={kind}
                label={`${title} ${index + 1}`}
                in_list
                value={row}
                onChange={(next) => (next === undefined ? remove(index) : set(index, next))}
                disabled={disabled}
              />
            ) : (
              <TextInput
                flex={1}
                aria-label={`${title} ${index + 1}`}
                value={row}
                onChange={({ currentTarget }) => set(index, currentTarget.value)}
                disabled={disabled}
                error={problemAt(problems, `${path}[${index}]`)}
              />
            )}
            <RowButtons count={rows.length} index={index} change={change} remove={remove} disabled={disabled} />
          </Group>
        ))}
        {rows.length < most && (
          <OneMore
            kind={kind}
            title={title}
            count={rows.length}
            add={(text) => change((now) => [...now, text])}
            disabled={disabled}
          />
        )}
      </Stack>
    </Input.Wrapper>
  );
}

function rowsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

type MoreProps = {
  kind: ReturnType<typeof mediaOf>;
  title: string;
  count: number;
  add: (text: string) => void;
  disabled: boolean;
};

function OneMore({ kind, title, count, add, disabled }: MoreProps) {
  if (kind) {
    return (
      <MediaInput
        key={count}
        kind={kind}
        label={`Another of ${title}`}
        value={undefined}
        late
        onChange={(next) => next !== undefined && add(next)}
        disabled={disabled}
      />
    );
  }
  const plus = <PlusIcon width={16} aria-hidden />;
  return (
    <Group>
      <Button size="xs" variant="light" leftSection={plus} onClick={() => add('')} disabled={disabled}>
        Add
      </Button>
    </Group>
  );
}

type RowProps = {
  count: number;
  index: number;
  change: (next: (rows: string[]) => string[]) => void;
  remove: (index: number) => void;
  disabled: boolean;
};

function RowButtons({ count, index, change, remove, disabled }: RowProps) {
  const swap = (other: number) =>
    change((rows) =>
      rows.map((row, at) => (at === index ? (rows[other] ?? row) : at === other ? (rows[index] ?? row) : row)),
    );
  return (
    <>
      <RowButton label="Move up" disabled={disabled || index === 0} onClick={() => swap(index - 1)}>
        <ArrowUpIcon width={16} aria-hidden />
      </RowButton>
      <RowButton label="Move down" disabled={disabled || index === count - 1} onClick={() => swap(index + 1)}>
        <ArrowDownIcon width={16} aria-hidden />
      </RowButton>
      <RowButton label="Remove" disabled={disabled} onClick={atFirstClick(() => remove(index))}>
        <TrashIcon width={16} aria-hidden />
      </RowButton>
    </>
  );
}

type RowButtonProps = {
  label: string;
  disabled: boolean;
  onClick: (event: React.MouseEvent) => void;
  children: React.ReactNode;
};

function RowButton(props: RowButtonProps) {
  const { label, disabled, onClick, children } = props;
  return (
    <ActionIcon variant="subtle" color="gray" size={36} aria-label={label} disabled={disabled} onClick={onClick}>
      {children}
    </ActionIcon>
  );
}
