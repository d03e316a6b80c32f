import type { Entry } from '../money/ledger.ts';
import { costView, estimateView } from '../money/money.ts';
import type { Attempt, Task } from '../tasks/task.ts';
import type { WaitingPlace } from '../tasks/waiting.ts';
import type { DeliveryAttempt } from '../webhooks/delivery.ts';
import type { Moment } from './views/activity.ts';

type TaskTimes = Pick<
  Task,
  'currency' | 'status' | 'error_type' | 'error_message' | 'created_at' | 'started_at' | 'completed_at'
>;

type Tried = Pick<Attempt, 'number' | 'route' | 'state' | 'reason' | 'message' | 'created_at' | 'ended_at'>;

type TimelineInput = {
  task: TaskTimes;
  attempts: readonly Tried[];
  entries: readonly Entry[];
  attempt_log: readonly DeliveryAttempt[];
  /** The providers that a queued task waits for, and when that was so. */
  waiting: readonly WaitingPlace[];
  now: Date;
  /** Names of routes and an upstream's words are the operator's business. */
  sees_routes: boolean;
};

/** Everything that happened to a task, in one line of time: money, routes, the run, its webhook. */
export function timelineOf(input: TimelineInput): Moment[] {
  const { task, attempts } = input;
  const earlier = attempts.slice(0, -1).flatMap((attempt) => attemptMoments(attempt, input));
  const last = attempts.slice(-1).flatMap((attempt) => attemptMoments(attempt, input));
  const moments: Moment[] = [
    at(task.created_at, 'created', 'Created', 'plain'),
    ...input.entries.flatMap((entry) => moneyMoments(entry, task)),
    ...earlier,
    ...last,
    ...input.waiting.map((each) => waitingMoment(each, input)),
    ...(task.started_at ? [at(task.started_at, 'started', 'The run started', 'plain')] : []),
    ...endOf(task),
    ...input.attempt_log.map(deliveryMoment),
  ];
  // An attempt may end in the millisecond in which the next one begins: its moments stay before those of the next.
  const rank = (moment: Moment) => order.indexOf(earlier.includes(moment) ? 'attempt' : moment.kind);
  return moments.toSorted((a, b) => a.at.localeCompare(b.at) || rank(a) - rank(b));
}

/** The order of what happened in the same millisecond: in one transaction, as a rule. */
const order: readonly Moment['kind'][] = [
  'created',
  'held',
  'attempt',
  'started',
  'attempt_ended',
  'waiting',
  'succeeded',
  'failed',
  'charged',
  'released',
  'delivery',
];

function at(when: Date, kind: Moment['kind'], title: string, tone: Moment['tone'], detail?: string): Moment {
  return { at: when.toISOString(), kind, title, tone, ...(detail !== undefined && { detail }) };
}

function waitingMoment({ place, reason }: WaitingPlace, { now, sees_routes }: TimelineInput): Moment {
  const detail = sees_routes ? reason : 'The model provider is full.';
  return at(now, 'waiting', `Queued: position ${place}`, 'waiting', detail);
}

function moneyMoments(entry: Entry, { currency }: Pick<Task, 'currency'>): Moment[] {
  const text = ({ amount, exact }: { amount: string; exact: string }) =>
    `${exact.replace(/0{1,4}$/, '') || amount} ${currency}`;
  const when = entry.created_at;
  if (entry.type === 'hold') return [at(when, 'held', `Held ${text(estimateView(entry.held, currency))}`, 'plain')];
  if (entry.type === 'release') {
    return [at(when, 'released', `Released ${text(costView(-entry.held, currency))}: it costs nothing`, 'good')];
  }
  if (entry.type !== 'settle') return [];
  const charged = at(when, 'charged', `Charged ${text(costView(entry.charged, currency))}`, 'plain');
  if (entry.available <= 0n) return [charged];
  return [charged, at(when, 'released', `Released ${text(costView(entry.available, currency))} of the hold`, 'good')];
}

function attemptMoments(attempt: Tried, { sees_routes }: TimelineInput): Moment[] {
  const name = sees_routes ? `Route ${attempt.number}: ${attempt.route}` : `Route ${attempt.number}`;
  const begun = at(attempt.created_at, 'attempt', `${name} was tried`, 'plain');
  const message = messages[attempt.state];
  if (!attempt.ended_at || !message) return [begun];
  const words = sees_routes ? [attempt.reason, attempt.message].filter(Boolean).join(': ') : '';
  const tone = attempt.state === 'done' ? 'good' : 'bad';
  return [begun, at(attempt.ended_at, 'attempt_ended', `${name} ${message}`, tone, words === '' ? undefined : words)];
}

const messages: Partial<Record<Attempt['state'], string>> = {
  done: 'finished',
  failed: 'failed',
  not_started: 'did not start: the next one is tried',
  ambiguous: 'may have accepted it, but its response was lost',
  canceled: 'was stopped',
  abandoned: 'goes on without its task',
};

function endOf({ completed_at, status, error_message, error_type }: TaskTimes): Moment[] {
  if (!completed_at) return [];
  if (status === 'succeeded') return [at(completed_at, 'succeeded', 'Succeeded', 'good')];
  return [at(completed_at, 'failed', `Failed: ${error_type}`, 'bad', error_message ?? undefined)];
}

function deliveryMoment({ number, started_at, status, error, duration_ms }: DeliveryAttempt): Moment {
  const good = status !== null && status >= 200 && status < 300;
  const answer = status === null ? (error ?? 'no response') : `answered ${status}`;
  const title = good ? 'Webhook delivered' : `Webhook attempt ${number} failed`;
  return at(started_at, 'delivery', title, good ? 'good' : 'bad', `${answer} after ${duration_ms} ms`);
}
