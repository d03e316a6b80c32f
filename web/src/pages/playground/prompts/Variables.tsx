import { SimpleGrid, Textarea } from '@mantine/core';
import type { Values } from './template.ts';

type Props = { names: readonly string[]; values: Values; setValues: (values: Values) => void };

/** A box for each variable of the message and of the system prompt. */
export function Variables({ names, values, setValues }: Props) {
  if (names.length === 0) return null;
  return (
    <SimpleGrid cols={{ base: 1, sm: names.length > 1 ? 2 : 1 }} role="group" aria-label="Variables">
      {names.map((name) => (
        <Textarea
          key={name}
          label={name}
          autosize
          minRows={1}
          maxRows={8}
          value={values[name] ?? ''}
          onChange={({ currentTarget }) => setValues({ ...values, [name]: currentTarget.value })}
        />
      ))}
    </SimpleGrid>
  );
}
