import { Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import { useHint } from './Hint.tsx';
import { minute_form, near_form, second_form } from './dates.ts';

/** `3 minutes ago`, for what is less than a day old. */
function agoText(at_ms: number, now_ms: number): string {
  const seconds = Math.round((at_ms - now_ms) / 1000);
  const size = Math.abs(seconds);
  if (size < 60) return near_form.format(seconds, 'second');
  if (size < 3_600) return near_form.format(Math.round(seconds / 60), 'minute');
  if (size < 86_400) return near_form.format(Math.round(seconds / 3_600), 'hour');
  return near_form.format(Math.round(seconds / 86_400), 'day');
}

const now_every_ms = 15_000;

/** A moment in local time; the exact one, and UTC, on hover and for whoever copies. */
export function Time({ at, ago = false }: { at: string; ago?: boolean }) {
  const date = new Date(at);
  const renewed_ms = useNow(ago ? now_every_ms : undefined);
  const now_ms = Math.max(renewed_ms, Math.min(date.getTime(), renewed_ms + now_every_ms)); // what is new is not to come
  const text = ago && now_ms - date.getTime() < 86_400_000 ? agoText(date.getTime(), now_ms) : minute_form.format(date);
  const { near, hint } = useHint(
    `${second_form.format(date)} (${date.toISOString().replace('T', ' ').slice(0, 19)} UTC)`,
  );
  return (
    <Text span inherit component="time" dateTime={at} {...near}>
      {text}
      {hint}
    </Text>
  );
}

/** The time, renewed every so often. */
export function useNow(every_ms: number | undefined): number {
  const [now_ms, setNow] = useState(Date.now);
  useEffect(() => {
    if (every_ms === undefined) return undefined;
    const timer = setInterval(() => setNow(Date.now()), every_ms);
    return () => clearInterval(timer);
  }, [every_ms]);
  return now_ms;
}
