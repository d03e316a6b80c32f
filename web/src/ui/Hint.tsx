import { Tooltip } from '@mantine/core';
import { useState, type ReactNode, type SyntheticEvent } from 'react';

type Near = Record<'onPointerEnter' | 'onPointerLeave' | 'onFocus' | 'onBlur', (event: SyntheticEvent) => void>;

/**
 * A tooltip for what a list has hundreds of: it is mounted only while the pointer or the keyboard is on its target. Give
 * `near` to the target, and draw `hint` beside it.
 */
export function useHint(label: string): { near: Near; hint: ReactNode } {
  const [target, setTarget] = useState<HTMLElement | null>(null);
  const come = ({ type, currentTarget }: SyntheticEvent) => {
    if (!(currentTarget instanceof HTMLElement)) return;
    if (type === 'focus' && !currentTarget.matches(':focus-visible')) return;
    setTarget(currentTarget);
  };
  const go = () => setTarget(null);
  return {
    near: { onPointerEnter: come, onPointerLeave: go, onFocus: come, onBlur: go },
    hint: target && <Tooltip key={label} label={label} target={target} defaultOpened multiline maw={280} />,
  };
}
