import { notifications } from '@mantine/notifications';
import { useEffect, useRef, useState } from 'react';
import { copyText } from '../clipboard.ts';

const shown_ms = 2_000;

/** Copies a text for a button: `copied` is true for two seconds. Where it cannot, it says so. */
export function useCopying(text: string): { copied: boolean; copy: () => void } {
  const [copied, setCopied] = useState(false);
  const timer = useRef<number>(undefined);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const copy = async () => {
    if (!(await copyText(text))) {
      notifications.show({
        color: 'red',
        message: 'Your browser does not let this page copy. Select the text instead.',
      });
      return;
    }
    setCopied(true);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setCopied(false), shown_ms);
  };
  return { copied, copy: () => void copy() };
}
