import { Button, NativeSelect, Popover, Stack, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { FunnelIcon } from '@heroicons/react/24/outline';
import { useState, type FormEvent } from 'react';
import { filter_labels } from './filters.ts';
import { isHttpStatus, pairName, type ActivitySearch, type ActivityTab } from './search.ts';

type Props = { tab: ActivityTab; set: (change: ActivitySearch) => void };
type By = keyof typeof filter_labels | 'metadata';

const by_labels: Readonly<Record<By, string>> = { ...filter_labels, metadata: 'Metadata' };
const choices: readonly By[] = ['tag', 'user', 'error', 'http_status', 'metadata'];

/** Adds a filter by what is said of a call: by its caller, or by how it failed. */
export function AddFilter({ tab, set }: Props) {
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
          tab={tab}
          submit={(change) => {
            set(change);
            close();
          }}
        />
      </Popover.Dropdown>
    </Popover>
  );
}

function LabelForm({ tab, submit }: { tab: ActivityTab; submit: (change: ActivitySearch) => void }) {
  const [by, setBy] = useState<By>('tag');
  const [name, setName] = useState('');
  const [value, setValue] = useState('');
  const [error, setError] = useState<string>();
  const data = choices.filter((each) => each !== 'http_status' || tab !== 'tasks');
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
          data={data.map((each) => ({ value: each, label: by_labels[each] }))}
          onChange={({ currentTarget }) => {
            setBy(choices.find((each) => each === currentTarget.value) ?? 'tag');
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
        <Button type="submit">Add</Button>
      </Stack>
    </form>
  );
}
