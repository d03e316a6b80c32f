import { Textarea } from '@mantine/core';
import { useState } from 'react';
import { isRecord } from '../../api.ts';

type Props = {
  label: string;
  description: string;
  value: Record<string, unknown>;
  onChange: (value: Record<string, unknown>) => void;
  disabled?: boolean;
};

/** An object as JSON that can be edited: what is not whole yet changes nothing. */
export function JsonBox({ label, description, value, onChange, disabled = false }: Props) {
  const [text, setText] = useState(() => JSON.stringify(value, undefined, 2));
  const [error, setError] = useState<string | null>(null);
  const change = (next: string) => {
    setText(next);
    const read = readObject(next);
    setError(read ? null : 'This is not a JSON object yet; the previous value is used.');
    if (read) onChange(read);
  };
  return (
    <Textarea
      label={label}
      description={description}
      value={text}
      onChange={({ currentTarget }) => change(currentTarget.value)}
      error={error}
      autosize
      minRows={10}
      maxRows={24}
      spellCheck={false}
      disabled={disabled}
      styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 13 } }}
    />
  );
}

function readObject(text: string): Record<string, unknown> | undefined {
  try {
    const read: unknown = JSON.parse(text);
    return isRecord(read) ? read : undefined;
  } catch {
    return undefined;
  }
}
