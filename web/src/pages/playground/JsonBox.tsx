import { Textarea } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { isRecord } from '../../api.ts';

type Props = {
  label: string;
  description: string;
  value: Record<string, unknown>;
  onChange: (value: Record<string, unknown>) => void;
  disabled?: boolean;
};

/**
 * An object as JSON that can be edited: what is not whole yet changes nothing. What is typed stays as it is typed; a value
 * that changes elsewhere, as when an upload ends, is shown.
 */
export function JsonBox({ label, description, value, onChange, disabled = false }: Props) {
  const json = JSON.stringify(value, undefined, 2);
  const [text, setText] = useState(json);
  const [error, setError] = useState<string | null>(null);
  const is_typed = useRef(false);
  useEffect(() => {
    if (is_typed.current) return;
    setText(json);
    setError(null);
  }, [json]);
  useEffect(() => {
    is_typed.current = false;
  });
  const change = (next: string) => {
    is_typed.current = true;
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
