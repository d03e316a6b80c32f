import { Textarea } from '@mantine/core';
import { useState } from 'react';
import { labelsOf, type ControlProps } from './control-labels.ts';

/** The value as JSON, for what no other control can show. */
export function JsonControl(props: ControlProps) {
  const { value, onChange } = props;
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, undefined, 2));
  const [wrong, setWrong] = useState(false);
  const { label, error, ...labels } = labelsOf(props);
  const change = (next: string) => {
    setText(next);
    if (next.trim() === '') {
      setWrong(false);
      return onChange(undefined);
    }
    try {
      onChange(JSON.parse(next));
      setWrong(false);
    } catch {
      setWrong(true);
    }
  };
  return (
    <Textarea
      {...labels}
      label={`${label} (JSON)`}
      error={wrong ? 'This is not JSON yet; the previous value is used.' : error}
      value={text}
      onChange={({ currentTarget }) => change(currentTarget.value)}
      autosize
      minRows={2}
      maxRows={12}
      styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
    />
  );
}
