import { rational } from '../money/money.ts';
import { units } from './model.ts';
import type { Units } from './price.ts';

/** Upper bound for a plausible count of one unit in a reported usage. */
const reported_max = 1_000_000_000n;

/**
 * Merges the units of a run: measured here where possible, else as the upstream reports them. A reported value
 * counts only if it is a plain decimal of a known unit; any other unit is charged as held.
 */
export function mergeUnits(reported: Readonly<Record<string, unknown>>, ...measured: readonly Units[]): Units {
  const all_units: Units = Object.assign({}, ...measured);
  const has_time = all_units.second !== undefined || all_units.minute !== undefined;
  const usable: Units = {};
  for (const unit of units) {
    const text = Object.hasOwn(reported, unit) ? reported[unit] : undefined;
    const is_time = unit === 'second' || unit === 'minute'; // which tell each other
    if (isCount(text) && !(is_time && has_time)) usable[unit] = text;
  }
  return { ...usable, ...all_units };
}

function isCount(text: unknown): text is string {
  const value = typeof text === 'string' ? rational(text) : undefined;
  return value !== undefined && value.numerator <= reported_max * value.denominator;
}
