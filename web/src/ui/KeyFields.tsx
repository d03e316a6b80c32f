import { TextInput, type TextInputProps } from '@mantine/core';

/** The end of a key that has none. */
export const never = 'never';

/** Ends of keys that a person chooses from: never, or a duration from now. */
export const key_ends = [
  { value: never, label: 'Never' },
  { value: '7d', label: 'In 7 days' },
  { value: '30d', label: 'In 30 days' },
  { value: '90d', label: 'In 90 days' },
  { value: '365d', label: 'In a year' },
];

/** The field of what a key may spend in a month; empty for no limit. */
export function MonthlyLimit({ currency, ...input }: TextInputProps & { currency: string }) {
  return (
    <TextInput
      label={`Monthly limit in ${currency}`}
      description="Maximum spending per calendar month (UTC). Empty: no limit."
      inputMode="decimal"
      placeholder="No limit"
      autoComplete="off"
      maxLength={20}
      {...input}
    />
  );
}
