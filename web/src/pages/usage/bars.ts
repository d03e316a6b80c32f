import type { UsageView } from '../../../../src/dashboard/views/usage.ts';
import { day_form, short_day_form } from '../../ui/dates.ts';
import { nameOf } from './groups.ts';

/** A series of the stack: at most seven groups by name, and the others together. */
export type Series = { id: string; name: string; color: string };

/** One stack; `values` by the id of a series, for drawing, `texts` for reading. */
export type Bar = { at: string; label: string; values: Record<string, number> };

const colors = ['brand.6', 'teal.6', 'orange.6', 'grape.6', 'cyan.7', 'pink.6', 'lime.8'];
/** Returns the color of the series at this place. */
export function colorAt(index: number): string {
  return colors[index] ?? 'gray.6';
}

/** No id has this sign: PostgreSQL stores none with it. A tag may be named `others`. */
const others = '\0';

export function seriesOf(view: UsageView): Series[] {
  const used = view.rows.filter(({ count }) => count > 0);
  const named = used
    .slice(0, colors.length)
    .map(({ id, name }, index) => ({ id, name: nameOf({ id, name }, view.group), color: colorAt(index) }));
  return used.length > named.length ? [...named, { id: others, name: 'Others', color: 'gray.6' }] : named;
}

const hour_ms = 3_600_000;
const bars_max = 500;

/** Every hour or day of the range, also those without charges, up to now. */
export function barsOf(
  view: UsageView,
  series: readonly Series[],
  valueOf: (part: UsageView['bars'][number]['parts'][number]) => number,
  now_ms: number,
): Bar[] {
  const parts_by_time = new Map(view.bars.map(({ at, parts }) => [Date.parse(at), parts]));
  const named = new Set(series.map(({ id }) => id));
  const end_ms = Math.min(Date.parse(view.to), Math.max(now_ms, Date.parse(view.from)) + stepMs(view.step));
  return stepsOf(Date.parse(view.from), end_ms, view.step).map(({ at_ms, ...step }) => {
    const values: Record<string, number> = {};
    for (const part of parts_by_time.get(at_ms) ?? []) {
      const id = named.has(part.id) ? part.id : others;
      values[id] = (values[id] ?? 0) + valueOf(part);
    }
    return { ...step, values };
  });
}

type Step = 'hour' | 'day';

/** Names a step within a sentence. */
export function stepName(step: Step): string {
  return step === 'hour' ? 'hour' : 'day';
}

function stepMs(step: Step): number {
  return step === 'hour' ? hour_ms : 24 * hour_ms;
}

/** Returns the hours or days from the one of `from_ms` on, before `end_ms`; at most 500. */
export function stepsOf(from_ms: number, end_ms: number, step: Step): { at_ms: number; at: string; label: string }[] {
  const step_ms = stepMs(step);
  const first_ms = Math.floor(from_ms / step_ms) * step_ms;
  const count = Math.min(bars_max, Math.max(0, Math.ceil((end_ms - first_ms) / step_ms)));
  return Array.from({ length: count }, (_, index) => {
    const at_ms = first_ms + index * step_ms;
    return { at_ms, at: new Date(at_ms).toISOString(), label: labelOf(at_ms, step) };
  });
}

/** `Nov 14`, `Nov 14 09:00`. */
function labelOf(at_ms: number, step: Step): string {
  const day = short_day_form.format(at_ms);
  return step === 'day' ? day : `${day} ${new Date(at_ms).toISOString().slice(11, 16)}`;
}

/** `Nov 1 – 30, 2026`: both days included. */
export function rangeText({ from, to }: { from: string; to: string }): string {
  return day_form.formatRange(Date.parse(from), Date.parse(to) - 1);
}
