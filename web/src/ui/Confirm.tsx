import { Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { FormEnd } from './FormEnd.tsx';
import { Modal } from './Modal.tsx';

type Props = {
  title: string;
  /** Label of the button that does it. */
  word: string;
  color?: string;
  isPending: boolean;
  error: Error | null;
  confirm: () => void;
  close: () => void;
  /** The consequences, in words. */
  children: ReactNode;
};

/** Asks before something is done that cannot easily be undone. */
export function Confirm({ title, word, color, isPending, error, confirm, close, children }: Props) {
  return (
    <Modal opened onClose={close} title={title}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          confirm();
        }}
      >
        <Stack>
          {children}
          <FormEnd
            word={word}
            {...(color !== undefined && { color })}
            isPending={isPending}
            error={error}
            cancel={close}
          />
        </Stack>
      </form>
    </Modal>
  );
}
