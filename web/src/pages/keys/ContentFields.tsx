import { Checkbox, Chip, Group, Input, NumberInput, Stack, Switch, Textarea } from '@mantine/core';
import type { UseFormReturnType } from '@mantine/form';
import { useState } from 'react';
import type { ContentRulesView } from '../../../../src/dashboard/views/keys.ts';

export type ContentValues = {
  logs_content: boolean;
  keep_days: number | string;
  redact: string[];
  patterns: string;
  /** Deletes what is stored of the key, too. */
  deletes_content: boolean;
};

const kinds = [
  { value: 'email', label: 'E-mail addresses' },
  { value: 'phone', label: 'Phone numbers' },
  { value: 'card', label: 'Card numbers' },
  { value: 'iban', label: 'IBANs' },
  { value: 'secret', label: 'Keys and passwords' },
];

const usual_days = 30;

/** The fields of a key with these rules; of one without, what most will want. */
export function contentValues(rules: ContentRulesView | null): ContentValues {
  return {
    logs_content: rules !== null,
    keep_days: rules?.keep_days ?? usual_days,
    redact: rules?.redact ?? kinds.map(({ value }) => value),
    patterns: rules?.patterns.join('\n') ?? '',
    deletes_content: false,
  };
}

/** The rules that the fields say; null: nothing is stored. */
export function contentRules({ logs_content, keep_days, redact, patterns }: ContentValues) {
  if (!logs_content) return null;
  const lines = patterns.split('\n').filter((line) => line.trim() !== '');
  return { keep_days: Number(keep_days), redact, patterns: lines };
}

type Props<Values extends ContentValues> = {
  form: UseFormReturnType<Values>;
  /** It has stored content until now. */
  had_content: boolean;
  days_max: number;
};

/** Says what is stored of the chats of a key, and what is replaced before that. */
export function ContentFields<Values extends ContentValues>({ form, had_content, days_max }: Props<Values>) {
  const [is_on, setIsOn] = useState(had_content);
  form.watch('logs_content', ({ value }) => setIsOn(value === true));
  if (days_max === 0 && !had_content) return null;
  return (
    <>
      <Switch
        label="Store the content of chats"
        description="Requests and answers of chat calls with this key. Owners and developers of the account can read them; each read is in the audit log. Off: only numbers are stored."
        key={form.key('logs_content')}
        {...form.getInputProps('logs_content', { type: 'checkbox' })}
      />
      {is_on && <Rules form={form} days_max={days_max} />}
      {had_content && !is_on && (
        <Checkbox
          label="Delete what is stored of this key"
          key={form.key('deletes_content')}
          {...form.getInputProps('deletes_content', { type: 'checkbox' })}
        />
      )}
    </>
  );
}

function Rules<Values extends ContentValues>({ form, days_max }: Pick<Props<Values>, 'form' | 'days_max'>) {
  return (
    <Stack gap="sm" pl="md">
      <NumberInput
        label="Delete after days"
        description={`At most ${days_max.toLocaleString('en-US')}, as the operator allows.`}
        min={1}
        max={days_max}
        allowDecimal={false}
        required
        key={form.key('keep_days')}
        {...form.getInputProps('keep_days')}
      />
      <Input.Wrapper
        label="Replace before storing"
        description="Found by their form; names are not found."
        labelElement="div"
      >
        <Chip.Group multiple key={form.key('redact')} {...form.getInputProps('redact')}>
          <Group gap="xs" mt={6}>
            {kinds.map(({ value, label }) => (
              <Chip key={value} value={value}>
                {label}
              </Chip>
            ))}
          </Group>
        </Chip.Group>
      </Input.Wrapper>
      <Textarea
        label="Replace these texts, too"
        description="One pattern per line: # is a digit, ? a letter or digit, * characters up to a space."
        placeholder="EMP-####"
        autosize
        minRows={1}
        maxRows={6}
        autoComplete="off"
        spellCheck={false}
        key={form.key('patterns')}
        {...form.getInputProps('patterns')}
      />
    </Stack>
  );
}
