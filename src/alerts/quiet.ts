import type { QuietHours } from '../catalog/model.ts';
import { minuteOfDay } from '../lib/time-zone.ts';

/** Tells whether it is one of the quiet hours. Where clocks are set, an hour may be quiet twice, or not at all. */
export function isQuiet({ from, to, time_zone }: QuietHours, now_ms: number): boolean {
  const minute = minuteOfDay(now_ms, time_zone);
  return from < to ? minute >= from && minute < to : minute >= from || minute < to;
}
