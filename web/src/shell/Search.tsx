import { ActionIcon, Tooltip } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { MagnifyingGlassIcon } from '@heroicons/react/24/outline';
import { lazy, Suspense } from 'react';

/** Loaded when it is first opened. */
const Palette = lazy(() => import('./Palette.tsx').then(({ Palette: component }) => ({ default: component })));

/** The button of the search, and its key: ⌘K or Ctrl+K, in fields too. */
export function Search() {
  const [opened, { open, close, toggle }] = useDisclosure();
  useHotkeys([['mod+K', toggle]], []);
  const keys = isApple() ? '⌘K' : 'Ctrl+K';
  return (
    <>
      <Tooltip label={`Search (${keys})`}>
        <ActionIcon
          variant="subtle"
          size="lg"
          color="gray"
          onClick={open}
          aria-label="Search"
          aria-keyshortcuts={isApple() ? 'Meta+K' : 'Control+K'}
        >
          <MagnifyingGlassIcon width={20} aria-hidden />
        </ActionIcon>
      </Tooltip>
      {opened && (
        <Suspense>
          <Palette close={close} />
        </Suspense>
      )}
    </>
  );
}

function isApple(): boolean {
  return /mac|iphone|ipad/i.test(navigator.userAgent);
}
