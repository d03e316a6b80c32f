const unit_ms: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A hundred years: added to today's date it still makes a date. */
const duration_ms_max = 36_500 * 86_400_000;

/**
 * Milliseconds of a text such as `10s`, `1.5m`, `2h`, `7d`, `250ms`; undefined if it is not one, or
 * longer than a hundred years. Results are whole milliseconds.
 */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text);
  if (!match) return undefined;
  const duration_ms = Math.round(Number(match[1]) * (unit_ms[match[2] ?? ''] ?? 0));
  return duration_ms <= duration_ms_max ? duration_ms : undefined;
}
