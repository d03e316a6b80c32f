import type { Account } from '../accounts/accounts.ts';
import { chargeParts, holdParts, type Breakdown } from '../catalog/breakdown.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import { input_token_units } from '../catalog/model.ts';
import { pricingOfInput, unitsOfOutputs, type Pricing, type Units } from '../catalog/price.ts';
import { findPrice } from '../chat/call-prices.ts';
import { pricingOf, unitsOf } from '../chat/price.ts';
import type { ChatRecord } from '../chat/record.ts';
import type { Db } from '../db/database.ts';
import { bookedCharge, type BookedCharge } from '../money/ledger.ts';
import { costView, exact, type Money } from '../money/money.ts';
import type { Task } from '../tasks/task.ts';
import type { ChargeView } from './views/activity.ts';

/** Charges of tasks and calls, taken apart by the code that made them. */

/** Returns the rows of a task's charge, or of its hold while it runs; null for one that failed. */
export async function chargeOfTask(db: Db, task: Task, base_currency: string): Promise<ChargeView | null> {
  const { pricing, held_units, currency, created_at } = task;
  const shared = { currency, base_currency, priced_at: created_at };
  if (!task.completed_at) {
    const breakdown = holdParts(pricing, held_units);
    return render(breakdown, { ...shared, of: 'hold', cost: task.estimate, charged: task.estimate });
  }
  if (task.status === 'failed') return null;
  const booked = await bookedCharge(db, task.account_id, task.id);
  const units = booked?.units ?? unitsOfOutputs(task.files.map(({ item }) => item));
  const breakdown = chargeParts(pricing, units, held_units);
  return render(breakdown, { ...shared, of: 'charge', ...sumsOf(booked, breakdown, task.cost) });
}

/** Returns the rows of a call's charge; null for one that cost nothing. */
export async function chargeOfCall(
  { db, catalog }: { db: Db; catalog: CatalogHolder },
  account: Account,
  record: ChatRecord,
): Promise<ChargeView | null> {
  const { current } = catalog;
  const booked = await bookedCharge(db, account.id, record.id);
  if (!booked && record.cost === 0n) return null;
  const stored = record.price_id === null ? undefined : await findPrice(db, record.price_id);
  const model = current.models.get(record.model);
  const pricing = stored ?? (model && pricingOf(model, record.currency, current.settings));
  if (!pricing) return null;
  const units = booked?.units ?? unitsOfRecord(pricing, record);
  const input_tokens = input_token_units.reduce((sum, unit) => sum + Number(units[unit] ?? 0), 0);
  const breakdown = chargeParts(pricingOfInput(pricing, input_tokens), units, {});
  return render(breakdown, {
    of: 'charge',
    currency: record.currency,
    base_currency: current.settings.base_currency,
    priced_at: stored ? record.created_at : null,
    ...sumsOf(booked, breakdown, record.cost),
  });
}

function unitsOfRecord(pricing: Pricing, { tools, ...usage }: ChatRecord): Units {
  return unitsOf(pricing, { ...usage, ...(tools?.calls && { tool_calls: tools.calls }) });
}

/** The ledger has the cost before it was cut to what was held, or to what there was. Entries of closed months are gone. */
function sumsOf(booked: BookedCharge | undefined, { sum }: Breakdown, charged: Money): { cost: Money; charged: Money } {
  return booked ? { cost: booked.cost, charged: booked.charged } : { cost: sum > charged ? sum : charged, charged };
}

type Facts = {
  of: ChargeView['of'];
  currency: string;
  base_currency: string;
  priced_at: Date | null;
  /** The sum of the rows, as it was booked. */
  cost: Money;
  /** The part of it that was charged. */
  charged: Money;
};

function render(breakdown: Breakdown, { of, currency, base_currency, priced_at, cost, charged }: Facts): ChargeView {
  const { parts, rounding, rate, sum } = breakdown;
  return {
    of,
    rows: parts.map(({ unit, quantity, measured = null, price, amount }) => ({
      unit,
      quantity,
      measured,
      price: { ...price, currency: base_currency },
      amount: { amount, currency },
    })),
    rate: rate ?? null,
    rounding: rounding === '0' ? null : { amount: rounding, currency },
    not_charged: cost === charged ? null : { amount: exact(charged - cost), currency },
    charged: costView(charged, currency),
    priced_at: priced_at?.toISOString() ?? null,
    adds_up: sum === cost,
  };
}
