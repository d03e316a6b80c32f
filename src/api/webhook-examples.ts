import { costView, million } from '../money/money.ts';
import { newId } from '../lib/ids.ts';
import { testBody } from '../tasks/task.ts';
import type { EventData, EventType } from '../webhooks/events.ts';

/** Returns the data of an example of an event, as JSON text: of nothing that has happened. */
export function exampleData(type: EventType, currency: string, now: Date): string {
  switch (type) {
    case 'task.succeeded':
      return testBody(currency, now);
    case 'task.failed':
      return testBody(currency, now, { type: 'upstream_error', message: 'The model provider returned an error.' });
    case 'task.canceled':
      return testBody(currency, now, { type: 'canceled', message: 'The task was canceled.' });
    default:
      return JSON.stringify(examplesOf(currency, now)[type]);
  }
}

function examplesOf(currency: string, now: Date): EventData {
  const cost = (units: bigint) => costView(units * million, currency);
  const of_key = { key_id: newId('key', now.getTime()), key_name: 'Website', budget_id: null, budget_name: null };
  const budget = { ...of_key, limit: cost(100n) };
  const resets_at = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString();
  const day = (days: number) => new Date(now.getTime() + days * 86_400_000).toISOString().slice(0, 10);
  return {
    'balance.low': { available: cost(4n), threshold: cost(5n) },
    'balance.topped_up': { amount: cost(50n), available: cost(54n), reference: 'test' },
    'budget.threshold': { ...budget, used: cost(80n), used_percent: 80, resets_at },
    'budget.exceeded': { ...budget, used: cost(100n), used_percent: 100, resets_at },
    'invoice.created': { number: 'TEST-0001', month: day(-31).slice(0, 7), total: cost(12n), supplement_to: null },
    'model.retiring': { ends_on: day(30), models: [{ id: 'sandbox/image', replacement: null }] },
  };
}
