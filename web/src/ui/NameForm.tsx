import { Button, Group, TextInput } from '@mantine/core';
import { useState, type FormEvent } from 'react';

type Props = {
  label: string;
  length_max: number;
  /** Label of the button. */
  act: string;
  /** The name that is there before. */
  name?: string;
  is_pending?: boolean;
  error?: Error | null;
  submit: (name: string) => void;
};

/** Asks for a name, in one line. An empty one is not sent. */
export function NameForm({ label, length_max, act, name: before = '', is_pending = false, error, submit }: Props) {
  const [name, setName] = useState(before);
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (name.trim() !== '') submit(name.trim());
  };
  return (
    <form onSubmit={onSubmit}>
      <Group align="flex-end" gap="xs" wrap="nowrap">
        <TextInput
          data-autofocus
          label={label}
          maxLength={length_max}
          flex={1}
          value={name}
          error={error?.message}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <Button type="submit" loading={is_pending}>
          {act}
        </Button>
      </Group>
    </form>
  );
}
