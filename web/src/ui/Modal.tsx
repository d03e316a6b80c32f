import { Modal as MantineModal, type ModalProps } from '@mantine/core';
import { useLayoutEffect } from 'react';

type Props = ModalProps & {
  /** It has the only copy of a secret: neither Escape nor a click beside it closes it, only a button of its own. */
  shows_once?: boolean;
};

/**
 * A dialog that gives the focus back to where it was. The library does so too, but only for one that stays in
 * the page while it is closed, and not for a second one that takes the place of the first.
 */
export function Modal({ shows_once = false, ...props }: Props) {
  useFocusBack(props.opened);
  return <MantineModal returnFocus={false} {...(shows_once && by_own_button)} {...props} />;
}

const by_own_button = { closeOnEscape: false, closeOnClickOutside: false, withCloseButton: false };

let open_count = 0;
let before: HTMLElement | undefined;
let returning: number | undefined;

function useFocusBack(opened: boolean): void {
  useLayoutEffect(() => {
    if (!opened) return;
    if (open_count === 0 && returning === undefined) before = focused();
    open_count += 1;
    clearTimeout(returning);
    returning = undefined;
    return () => {
      open_count -= 1;
      // Later: another may open at once, in whose place the first one's buttons are gone already.
      if (open_count === 0) returning = setTimeout(restore);
    };
  }, [opened]);
}

function focused(): HTMLElement | undefined {
  return document.activeElement instanceof HTMLElement ? document.activeElement : undefined;
}

/** The page's main part, if what opened the dialog is gone: a row that was deleted in it. */
function restore(): void {
  returning = undefined;
  const main = document.getElementById('main');
  const now = focused();
  const is_lost = !now || now === document.body || now === main || now.closest('[role=dialog]') !== null;
  if (!is_lost) return; // somebody else wanted it
  const target = before?.isConnected ? before : main;
  target?.focus({ preventScroll: target === before });
  before = undefined;
}
