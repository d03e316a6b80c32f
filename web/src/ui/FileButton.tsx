import { Button } from '@mantine/core';
import { ArrowDownTrayIcon } from '@heroicons/react/24/outline';
import { below } from '../below.ts';

type Props = { href: string; label?: string; size?: 'xs' | 'sm' };

/** Button that downloads the page's rows, with the same filters, as a file; for spreadsheets unless it says otherwise. */
export function FileButton({ href, label = 'CSV', size = 'sm' }: Props) {
  return (
    <Button
      component="a"
      href={below(href)}
      download
      variant="default"
      size={size}
      leftSection={<ArrowDownTrayIcon width={16} aria-hidden />}
    >
      {label}
    </Button>
  );
}
