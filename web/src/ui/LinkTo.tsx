import { Anchor, Badge, Button, type AnchorProps, type BadgeProps, type ButtonProps } from '@mantine/core';
import { useRouter } from '@tanstack/react-router';
import type { MouseEvent, ReactNode } from 'react';
import { below } from '../below.ts';

/** Goes to an address of the dashboard, query and all, without loading it anew; other clicks are the browser's. */
function useGo(href: string) {
  const router = useRouter();
  return (event: MouseEvent) => {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    event.preventDefault();
    router.history.push(below(href));
  };
}

export function LinkTo({ href, ...props }: AnchorProps & { href: string; children: ReactNode }) {
  return <Anchor href={below(href)} onClick={useGo(href)} {...props} />;
}

export function BadgeTo({ href, ...props }: BadgeProps & { href: string; title?: string; children: ReactNode }) {
  return <Badge component="a" href={below(href)} onClick={useGo(href)} style={{ cursor: 'pointer' }} {...props} />;
}

export function ButtonTo({ href, ...props }: ButtonProps & { href: string; children: ReactNode }) {
  return <Button component="a" href={below(href)} onClick={useGo(href)} {...props} />;
}
