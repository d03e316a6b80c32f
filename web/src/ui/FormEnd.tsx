import { Button, Group } from '@mantine/core';
import { Failed } from './states.tsx';

type Props = {
  /** Label of the button, in a word or two. */
  word: string;
  color?: string;
  isPending: boolean;
  /** False while something is missing. */
  is_ready?: boolean;
  error: Error | null;
  cancel: () => void;
};

/** The end of a form in a dialog: why it failed, the way out, and the button that sends it. */
export function FormEnd({ word, color, isPending, is_ready = true, error, cancel }: Props) {
  return (
    <>
      {error && <Failed error={error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={cancel}>
          Cancel
        </Button>
        <Button type="submit" {...(color !== undefined && { color })} loading={isPending} disabled={!is_ready}>
          {word}
        </Button>
      </Group>
    </>
  );
}
