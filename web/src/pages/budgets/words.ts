import type { BudgetPeriod, BudgetView } from '../../../../src/dashboard/views/budgets.ts';

const periods: { readonly [period in BudgetPeriod]: string } = {
  day: 'each day',
  week: 'each week from Monday',
  month: 'each month',
  total: 'in total',
};

/** `each month`. */
export function periodName(period: BudgetPeriod): string {
  return periods[period];
}

/** The choices of a period. */
export const period_choices = [
  { value: 'day', label: 'Day' },
  { value: 'week', label: 'Week, from Monday' },
  { value: 'month', label: 'Month' },
  { value: 'total', label: 'All time' },
] as const;

/** Percentages at which people can hear of a budget. */
export const alert_choices = [50, 80, 100];

/** `Alerts at 50, 80, 100 %`. */
export function alertsText(percents: readonly number[]): string {
  if (percents.length === 0) return 'No alerts';
  return `Alerts at ${percents.join(', ')} %`;
}

/** The choices of a scope. */
export const scope_choices = [
  { value: 'account', label: 'The whole account' },
  { value: 'project', label: 'A project' },
  { value: 'key', label: 'A key' },
  { value: 'member', label: 'A member' },
] as const;

/** Names of what a budget may be about. */
const subject_labels: Readonly<Record<string, string>> = {
  account: 'Account',
  project: 'Project',
  key: 'Key',
  member: 'Member',
};

/** Names what a budget is about: `Project`. */
export function subjectLabel(scope: string): string {
  return subject_labels[scope] ?? scope;
}

/** `Project Shop`. */
export function scopeText({ scope, subject }: Pick<BudgetView, 'scope' | 'subject'>): string {
  if (subject === null) return 'The whole account';
  return `${subjectLabel(scope)} ${subject.name}`;
}

const day_ms = 86_400_000;

/** `3 days left`. */
export function daysLeft(ends_at: string, now_ms: number): string {
  const days = Math.ceil((Date.parse(ends_at) - now_ms) / day_ms);
  return days <= 1 ? 'Less than a day left' : `${days} days left`;
}
