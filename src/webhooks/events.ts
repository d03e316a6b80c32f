import type { Invoice } from '../billing/invoice.ts';
import type { Queryable } from '../db/database.ts';
import { recordText } from '../db/record.ts';
import { newId } from '../lib/ids.ts';
import { balanceView, costView, type Cost, type Money } from '../money/money.ts';

/** Events that an account's endpoints may ask for, each with the moment in which it happens. */
export const event_meanings = {
  'task.succeeded': 'A generation has its output.',
  'task.failed': 'A generation has failed; it costs nothing.',
  'task.canceled': 'A generation was canceled; it costs nothing.',
  'balance.low': 'Less is available than the amount of the alert, or nothing is.',
  'balance.topped_up': 'Money was paid in.',
  'budget.threshold': 'A key has used 80 % of its limit for the month, or a budget has come to 50 or 80 %.',
  'budget.exceeded': 'A key has used its limit for the month, or a budget is reached.',
  'invoice.created': 'The invoice of a month is there.',
  'model.retiring': 'A model ends within 30 days.',
} as const;

export type EventType = keyof typeof event_meanings;

/** Data of the events that are of no task; those have the body of `GET /v1/tasks/{id}`. */
export type EventData = {
  'balance.low': { available: Cost; threshold: Cost };
  'balance.topped_up': { amount: Cost; available: Cost; reference: string };
  'budget.threshold': BudgetData;
  'budget.exceeded': BudgetData;
  'invoice.created': { number: string; month: string; total: Cost; supplement_to: string | null };
  'model.retiring': { ends_on: string; models: readonly { id: string; replacement: string | null }[] };
};

/** The data of an event about the limit of a key or about a budget; the fields of the other are null. */
type BudgetData = {
  key_id: string | null;
  key_name: string | null;
  budget_id: string | null;
  budget_name: string | null;
  limit: Cost;
  used: Cost;
  used_percent: number;
  /** Null for a budget of all time. */
  resets_at: string | null;
};

/** Tells whether this is the type of an event. */
export function isEventType(text: string): text is EventType {
  return Object.hasOwn(event_meanings, text);
}

export const event_types: readonly EventType[] = Object.keys(event_meanings).filter(isEventType);

/** Kinds of events, such as `task`: an endpoint may ask for all of one, as `task.*`. */
export const event_kinds: readonly string[] = [...new Set(event_types.map((type) => type.replace(/\..*/, '')))];

/** An event that is of no task, with its data. */
export type AccountEvent = { [T in keyof EventData]: { type: T; data: EventData[T] } }[keyof EventData];

/**
 * Publishes an event of an account in the caller's transaction: if that commits, it is delivered to each endpoint that
 * asks for it. Call `wake` for `delivery.send` after the commit, where there is an engine. Returns the number of
 * deliveries. Events of tasks are published by `end_task`.
 */
export async function publishEvent(
  tx: Queryable,
  account_id: string,
  { type, data }: AccountEvent,
  now: Date,
): Promise<number> {
  const event = { account_id, id: newId('evt', now.getTime()), type };
  const rows = await tx.query<{ deliveries: number }>('select publish_event($1, $2, $3) as deliveries', [
    now,
    recordText(event),
    recordText(data),
  ]);
  return rows[0]?.deliveries ?? 0;
}

/** Publishes an event in every account with an endpoint that asks for it. */
export async function publishToAll(tx: Queryable, event: AccountEvent, now: Date): Promise<void> {
  const rows = await tx.query<{ account_id: string }>(
    `select distinct w.account_id from webhook_endpoints w
      where endpoint_wants(w, $1, null, null, null) order by w.account_id`,
    [event.type],
  );
  for (const { account_id } of rows) await publishEvent(tx, account_id, event, now);
}

/** Publishes that money was paid in. */
export async function publishTopUp(
  tx: Queryable,
  { id, currency }: { id: string; currency: string },
  { amount, available, ref }: { amount: Money; available: Money; ref: string },
  now: Date,
): Promise<void> {
  const data = { amount: costView(amount, currency), available: balanceView(available, currency), reference: ref };
  await publishEvent(tx, id, { type: 'balance.topped_up', data }, now);
}

/** Publishes that an invoice is there, in the transaction that makes it. */
export async function publishInvoice(tx: Queryable, invoice: Invoice, total: Money, now: Date): Promise<void> {
  const { number, month, currency, supplement_to = null, customer } = invoice;
  const data = { number, month, total: costView(total, currency), supplement_to };
  await publishEvent(tx, customer.account_id, { type: 'invoice.created', data }, now);
}

/** The body of an event as `publish_event` writes it, for tests that somebody sends: `data` is JSON text. */
export function eventBody(
  { id, type, account_id, data }: { id: string; type: EventType; account_id: string; data: string },
  now: Date,
): string {
  return `{"id":"${id}","type":"${type}","created_at":"${now.toISOString()}","account_id":"${account_id}","data":${data}}`;
}
