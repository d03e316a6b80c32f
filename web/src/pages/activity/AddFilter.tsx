import { Button, NativeSelect, Popover, Stack, Text, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { FunnelIcon } from '@heroicons/react/24/outline';
import { useState, type FormEvent, type ReactNode } from 'react';
import { filter_labels, type LabelName } from './filters.ts';
import { isHttpStatus, pairName, type LabelSearch } from './search.ts';

type Props = {
  /** The filters to choose from. */
  names: readonly LabelName[];
  set: (change: LabelSearch) => void;
  /** A text that says why others are not among them. */
  note?: ReactNode;
};

/** Adds a filter by what is said of a call: by its caller, or by how it failed. */
export function AddFilter({ names, set, note }: Props) {
  const [opened, { close, toggle }] = useDisclosure();
  return (
    <Popover opened={opened} onChange={close} position="bottom-start" trapFocus withinPortal>
      <Popover.Target>
        <Button variant="default" leftSection={<FunnelIcon width={16} aria-hidden />} onClick={toggle}>
          More filters
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <LabelForm
          names={names}
          note={note}
          submit={(change) => {
            set(change);
            close();
          }}
        />
      </Popover.Dropdown>
    </Popover>
  );
}

type FormProps = Pick<Props, 'names' | 'note'> & { submit: (change: LabelSearch) => void };

function LabelForm({ names, note, submit }: FormProps) {
  const [chosen, setChosen] = useState<LabelName>();
  const by = names.find((each) => each === chosen) ?? names[0];
  const [name, setName] = useState('');
  const [value, setValue] = useState('');
  const [error, setError] = useState<string>();
  const send = (event: FormEvent) => {
    event.preventDefault();
    const parameter = by === 'metadata' ? pairName(name.trim()) : by;
    if (parameter === undefined || value.trim() === '') return;
    if (by === 'http_status' && !isHttpStatus(value.trim())) return setError('A number such as 429.');
    submit({ [parameter]: value.trim() });
  };
  return (
    <form onSubmit={send}>
      <Stack gap="sm" w={230}>
        <NativeSelect
          label="Filter by"
          value={by}
          data={names.map((each) => ({ value: each, label: filter_labels[each] }))}
          onChange={({ currentTarget }) => {
            setChosen(names.find((each) => each === currentTarget.value));
            setError(undefined);
          }}
        />
        {by === 'metadata' && (
          <TextInput
            label="Name"
            placeholder="team"
            required
            value={name}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
          />
        )}
        <TextInput
          label="Value"
          required
          error={error}
          value={value}
          onChange={({ currentTarget }) => setValue(currentTarget.value)}
        />
        {note && (
          <Text size="xs" c="dimmed">
            {note}
          </Text>
        )}
        <Button type="submit">Add</Button>
      </Stack>
    </form>
  );
}
