import { parseDuration } from '../../lib/duration.ts';
import { isoTime } from '../../lib/iso-time.ts';
import { CommandError } from '../result.ts';

/** Returns the moment that an option names: a time, or how long ago. Throws CommandError (usage). */
export function readTime(name: string, text: string): Date {
  const ago_ms = parseDuration(text);
  const time = ago_ms === undefined ? isoTime(text) : new Date(Date.now() - ago_ms);
  if (time) return time;
  throw new CommandError(`${name} must be a time such as 2026-01-31T12:00:00Z, or how long ago, such as 24h.`, 2);
}
