/** Periods that reports and lists of operators offer, each up to now. */
export const periods = [
  { value: '1h', label: 'Last hour', hours: 1 },
  { value: '24h', label: 'Last 24 hours', hours: 24 },
  { value: '3d', label: 'Last 3 days', hours: 72 },
  { value: '7d', label: 'Last 7 days', hours: 168 },
  { value: '30d', label: 'Last 30 days', hours: 720 },
] as const;

export type Period = (typeof periods)[number]['value'];

/** Returns the period of this name; undefined if there is none. */
export function periodNamed(name: unknown): Period | undefined {
  return periods.find(({ value }) => value === name)?.value;
}

/** Returns the length of a period. */
export function hoursOf(period: Period): number {
  return periods.find(({ value }) => value === period)?.hours ?? 24;
}
