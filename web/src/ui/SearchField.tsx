import { TextInput } from '@mantine/core';
import { MagnifyingGlassIcon } from '@heroicons/react/24/outline';
import { useEffect, useRef, useState } from 'react';

type Props = {
  label: string;
  placeholder?: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
  width?: number;
};

/** Text that narrows a list, told when one has stopped typing for a moment, or presses Enter. */
export function SearchField({ label, placeholder, value, onChange, width = 280 }: Props) {
  const [typed, setTyped] = useState(value ?? '');
  const [seen, setSeen] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  if (seen !== value) {
    setSeen(value);
    if ((value ?? '') !== typed.trim()) setTyped(value ?? '');
  }
  useEffect(() => () => clearTimeout(timer.current), []);
  const apply = (text: string) => {
    clearTimeout(timer.current);
    onChange(text.trim() || undefined);
  };
  return (
    <TextInput
      type="search"
      label={label}
      w={{ base: '100%', xs: width }}
      leftSection={<MagnifyingGlassIcon width={16} aria-hidden />}
      value={typed}
      {...(placeholder !== undefined && { placeholder })}
      onChange={({ currentTarget }) => {
        const text = currentTarget.value;
        setTyped(text);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => apply(text), 300);
      }}
      onKeyDown={({ key, currentTarget }) => {
        if (key === 'Enter') apply(currentTarget.value);
      }}
    />
  );
}
