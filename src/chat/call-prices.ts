import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { Pricing } from '../catalog/price.ts';
import type { Db, Queryable } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { rememberByObject } from '../lib/remember.ts';

/**
 * Prices of calls, as they were when the call was made. Many calls have the same: each is stored once, under an id made of
 * what it says, and the record of a call has that id.
 */

/** Returns the id of these prices. */
export const priceIdOf = rememberByObject((pricing: Pricing): string =>
  createHash('sha256')
    .update(JSON.stringify(textParts(pricing)))
    .digest('base64url')
    .slice(0, id_length),
);

const id_length = 22;

function textParts({ currency, rate, rows }: Pricing): unknown[] {
  return [
    currency,
    rate,
    ...rows.map(({ unit, amount, per, above_input_tokens }) => [unit, amount, per, above_input_tokens ?? -1]),
  ];
}

/** Those that this process knows to be stored; a price list has some hundreds. */
const stored = new WeakMap<Db, Set<string>>();
const remembered_max = 10_000;

/** The parts of the app that storing prices takes. */
export type PriceParts = { readonly db: Db; readonly clock: Clock; readonly log: Pick<Logger, 'warn'> };

/** Stores the prices of a call, unless they are. A failure is logged, and the next call with them tries again. */
export function keepPrice({ db, clock, log }: PriceParts, pricing: Pricing): void {
  const ids = stored.get(db) ?? new Set<string>();
  stored.set(db, ids);
  const id = priceIdOf(pricing);
  if (ids.has(id)) return;
  if (ids.size >= remembered_max) ids.clear();
  ids.add(id);
  const { currency, rate, rows } = pricing;
  db.query('insert into call_prices (id, pricing, first_used_at) values ($1, $2, $3) on conflict (id) do nothing', [
    id,
    JSON.stringify({ currency, rate, rows }),
    new Date(clock.now()),
  ]).catch((error: unknown) => {
    ids.delete(id);
    log.warn({ err: error }, 'the prices of a call could not be stored');
  });
}

/** Returns the prices with this id. */
export async function findPrice(db: Queryable, id: string): Promise<Pricing | undefined> {
  const rows = await db.query<{ pricing: Pricing }>('select pricing from call_prices where id = $1', [id]);
  return rows[0]?.pricing;
}
