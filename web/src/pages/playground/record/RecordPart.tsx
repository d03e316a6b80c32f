import { Button } from '@mantine/core';
import { MicrophoneIcon } from '@heroicons/react/24/outline';
import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import type { RecorderProps } from './Recorder.tsx';

/** Loaded by those who record. */
const Recorder = lazy(() => import('./Recorder.tsx').then(({ Recorder: component }) => ({ default: component })));

/** The longest recording anywhere: it is converted in the memory of the browser. */
export const record_seconds_max = 600;

/** State of a recorder, open or not: for its button and for its place, which is elsewhere. */
export function useRecorder() {
  const [is_open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const was_open = useRef(false);
  useEffect(() => {
    if (was_open.current && !is_open) button.current?.focus();
    was_open.current = is_open;
  }, [is_open]);
  return { is_open, open: () => setOpen(true), close: () => setOpen(false), button };
}

type Opened = ReturnType<typeof useRecorder>;

type ButtonProps = { recorder: Opened; disabled: boolean; size?: 'xs' | 'sm'; label?: string };

export function RecordButton({ recorder: { is_open, open, button }, disabled, size = 'sm', label }: ButtonProps) {
  return (
    <Button
      ref={button}
      size={size}
      variant="light"
      aria-expanded={is_open}
      disabled={disabled}
      onClick={open}
      leftSection={<MicrophoneIcon width={size === 'xs' ? 16 : 18} aria-hidden />}
      {...(label !== undefined && { 'aria-label': label })}
    >
      Record
    </Button>
  );
}

type PlaceProps = Omit<RecorderProps, 'close'> & { recorder: Opened };

export function RecorderPlace({ recorder: { is_open, close }, take, ...rest }: PlaceProps) {
  if (!is_open) return null;
  return (
    <Suspense>
      <Recorder
        {...rest}
        close={close}
        take={(file) => {
          take(file);
          close();
        }}
      />
    </Suspense>
  );
}
