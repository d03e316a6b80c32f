import { ActionIcon, Button, Tooltip, VisuallyHidden, type ButtonProps } from '@mantine/core';
import { useId, type ReactNode } from 'react';
import type { MyAccount } from '../session.tsx';
import { usePlace } from '../session.tsx';
import { atFirstClick } from './first-click.ts';
import { useHint } from './Hint.tsx';
import { roleName } from './roles.ts';

type Right = MyAccount['rights'][number];

/**
 * Returns the reason why this person may not; undefined if they may. The server decides, this only says it
 * beforehand.
 */
export function useDenial(right: Right): string | undefined {
  const { may, account } = usePlace();
  if (may(right)) return undefined;
  return `Your role here (${roleName(account.role)}) does not allow this. Ask an owner of the account.`;
}

type Props = { right: Right; onClick: () => void; children: ReactNode };

/** One that sends its form has nothing else to do. */
type ButtonAct = Pick<Props, 'onClick'> | { type: 'submit' };

/** A button for what needs a right: without it, it stays in its place, can be reached, and says why it does nothing. */
export function MayButton({ right, children, ...rest }: Omit<Props, 'onClick'> & ButtonAct & ButtonProps) {
  const denial = useDenial(right);
  const id = useId();
  if (denial === undefined) {
    return <Button {...rest}>{children}</Button>;
  }
  return (
    <Tooltip label={denial} multiline maw={280} events={{ hover: true, focus: true, touch: true }}>
      <Button {...rest} data-disabled aria-disabled aria-describedby={id} onClick={(event) => event.preventDefault()}>
        {children}
        <VisuallyHidden id={id}>{denial}</VisuallyHidden>
      </Button>
    </Tooltip>
  );
}

/** The same as a small icon in a row of a table. */
export function MayIcon({
  right,
  onClick,
  children,
  label,
  color = 'gray',
}: Props & { label: string; color?: string }) {
  const denial = useDenial(right);
  const denied = denial !== undefined;
  const { near, hint } = useHint(denial ?? label);
  return (
    <>
      <ActionIcon
        variant="subtle"
        color={color}
        aria-label={denied ? `${label}: ${denial}` : label}
        {...(denied && { 'data-disabled': true, 'aria-disabled': true })}
        {...near}
        onClick={denied ? (event) => event.preventDefault() : atFirstClick(onClick)}
      >
        {children}
      </ActionIcon>
      {hint}
    </>
  );
}
