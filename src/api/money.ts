import { limitOfKey } from '../catalog/key-limits.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Holds } from '../money/holds.ts';
import type { Clock } from '../lib/clock.ts';
import type { Db } from '../db/database.ts';
import { reading, type ReadParts } from '../db/reads.ts';
import type { Caller } from '../accounts/authenticate.ts';
import { no_rules } from '../accounts/key-rules.ts';
import { findKey } from '../accounts/keys.ts';
import { scopeOfKey } from '../accounts/limited-keys.ts';
import { ApiError } from '../errors.ts';
import { balanceOf, budgetsOf, listEntries, nextMonth, type Entry, type EntryFilter } from '../money/ledger.ts';
import { groupNamed, isLabel } from '../money/groups.ts';
import { labelled_rows_max, usageOf } from '../money/usage.ts';
import { balanceView, costView, type Cost } from '../money/money.ts';
import type { Answer, Call, Endpoint } from '../http/endpoint.ts';
import { oneOf, timeRange, wholeNumber } from '../http/query.ts';
import { groupQuery, range_query, readGroups, rowNames } from './groups.ts';
import { balance, key, limited_key_docs, listOf, too_slow, transaction, usage } from './schemas.ts';

/** The parts of the app that answers about money take. */
type Parts = ReadParts & {
  readonly clock: Clock;
  readonly holds: Holds;
  readonly catalog: CatalogHolder;
};

/** Returns the calling key's spending and limit of this month. Costs are rounded up, the rest down. */
async function keyUse(db: Db, caller: Caller, now: Date) {
  const [budget] = await budgetsOf(db, caller.account.id, now, [caller.key.id]);
  if (!budget) throw new Error(`the key ${caller.key.id} has no budget`);
  const { currency } = caller.account;
  const left = budget.limit_month === null ? null : budget.limit_month - budget.spent - budget.held;
  return {
    held: costView(budget.held, currency),
    use: {
      spend_limit: budget.limit_month === null ? null : balanceView(budget.limit_month, currency),
      spent: costView(budget.spent, currency),
      remaining: left === null ? null : balanceView(left < 0n ? 0n : left, currency),
      resets_at: nextMonth(now).toISOString(),
    },
  };
}

export const get_balance: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/balance',
  docs: {
    tag: 'Money',
    summary: 'Get the balance',
    description: 'The money of the account, and what the calling key has spent of its limit this month.',
    responses: { 200: { description: 'available = balance − held.', schema: balance } },
  },
  handle: handleBalance,
};

async function handleBalance(app: Parts, { caller }: Call): Promise<Answer> {
  const now = new Date(app.clock.now());
  await app.holds.flush(caller.account.id);
  const row = await balanceOf(app.db, caller.account.id);
  if (!row) throw new Error(`the account ${caller.account.id} has no balance`);
  const { currency, amount, held } = row;
  return {
    status: 200,
    body: {
      object: 'balance',
      balance: balanceView(amount, currency),
      held: balanceView(held, currency),
      available: balanceView(amount - held, currency),
      currency,
      key: (await keyUse(app.db, caller, now)).use,
      updated_at: now.toISOString(),
    },
  };
}

export const get_key: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/key',
  docs: {
    tag: 'Money',
    summary: 'Get the calling key',
    description: 'Its limits and its spending of this month.',
    responses: { 200: { description: 'The key.', schema: key } },
  },
  handle: async (app, { caller }) => {
    await app.holds.flush(caller.account.id);
    const { held, use } = await keyUse(app.db, caller, new Date(app.clock.now()));
    const { settings } = app.catalog.current;
    const { id: account_id, currency } = caller.account;
    const limits = {
      generate_per_minute: limitOfKey(settings, caller, 'generate'),
      chat_per_minute: limitOfKey(settings, caller, 'chat'),
      failed_per_24h: settings.limits.failed_per_24h,
    };
    const { id, name } = caller.key;
    const rules = await rulesOf(app.db, id);
    return { status: 200, body: { object: 'api_key', id, name, account_id, currency, ...use, held, limits, ...rules } };
  },
};

/** Until when, for what, from where, for which models and how often the key may be used; null: no rule. */
async function rulesOf(db: Db, key_id: string) {
  const { expires_at, scopes, addresses, models, requests_per_minute } = (await findKey(db, key_id)) ?? no_rules;
  return { expires_at: expires_at?.toISOString() ?? null, scopes, addresses, models, requests_per_minute };
}

/** Types of the API's movements → types of the ledger's entries. */
export const entry_types = {
  topup: 'topup',
  hold: 'hold',
  release: 'release',
  charge: 'settle',
  adjustment: 'adjustment',
} as const;

export const list_transactions: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/balance/transactions',
  docs: {
    tag: 'Money',
    summary: 'List the movements of the balance',
    description: 'The ledger, newest first. Adding up `amount` by `direction` gives the balance, held money included.',
    query: {
      limit: {
        description: 'Number of movements.',
        schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
      },
      after: { description: 'Movements older than this one.', schema: { type: 'string' } },
      before: { description: 'Movements newer than this one.', schema: { type: 'string' } },
      type: { description: 'Only this type.', schema: { enum: Object.keys(entry_types) } },
    },
    responses: { 200: { description: 'A page of movements.', schema: listOf(transaction) }, 504: too_slow },
  },
  handle: handleTransactions,
};

async function handleTransactions(app: Parts, { caller, query, gone }: Call): Promise<Answer> {
  const after = readEntryCursor(query, 'after');
  const before = readEntryCursor(query, 'before');
  if (after !== undefined && before !== undefined) {
    throw new ApiError('invalid_request', 'after and before cannot be given together.', { param: 'before' });
  }
  const type = oneOf(query, 'type', ['topup', 'hold', 'release', 'charge', 'adjustment']);
  const filter: EntryFilter = {
    account_id: caller.account.id,
    limit: wholeNumber(query, 'limit', { min: 1, max: 100 }) ?? 20,
    ...(after !== undefined && { after }),
    ...(before !== undefined && { before }),
    ...(type && { type: entry_types[type] }),
  };
  await app.holds.flush(caller.account.id);
  const { entries, has_more } = await listEntries(reading(app, { key: caller.account.id, gone }), filter);
  const data = entries.map((entry) => renderEntry(entry, caller.account.currency));
  return {
    status: 200,
    body: { object: 'list', data, has_more, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null },
  };
}

const entry_prefix = 'txn_';

/** The number in a transaction's id; undefined if absent. Throws ApiError 400 naming it. */
export function readEntryCursor(query: Call['query'], name: string): bigint | undefined {
  const text = query.get(name);
  if (text === undefined) return undefined;
  if (new RegExp(`^${entry_prefix}[1-9]\\d{0,17}$`).test(text)) return BigInt(text.slice(entry_prefix.length));
  throw new ApiError('invalid_request', `${name} must be the id of a transaction.`, { param: name });
}

/** A movement of the balance as the API tells it. */
export type Transaction = {
  id: string;
  object: 'transaction';
  type: keyof typeof entry_types;
  direction: 'in' | 'out' | 'none';
  amount: Cost;
  available_after: Cost;
  held_after: Cost;
  reference_id: string;
  key_id: string | null;
  model: string | null;
  reason: string | null;
  created_at: string;
};

/** A settle is shown as the charge it is: the hold's end is told by held_after. */
export function renderEntry(entry: Entry, currency: string): Transaction {
  const type = entry.type === 'settle' ? 'charge' : entry.type;
  const change = type === 'charge' ? -entry.charged : entry.available;
  const set_aside = type === 'hold' || type === 'release' || change === 0n;
  return {
    id: `${entry_prefix}${entry.number}`,
    object: 'transaction',
    type,
    direction: set_aside ? 'none' : change > 0n ? 'in' : 'out',
    amount: costView(change < 0n ? -change : change, currency),
    available_after: balanceView(entry.available_after, currency),
    held_after: balanceView(entry.held_after, currency),
    reference_id: entry.ref,
    key_id: entry.key_id,
    model: entry.model,
    reason: entry.reason,
    created_at: entry.created_at.toISOString(),
  };
}

const group_names = 'day, hour, model, key, project, modality, user, tag, metadata.NAME';

export const get_usage: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/usage',
  docs: {
    tag: 'Money',
    summary: 'Get usage',
    description:
      'Charges, grouped. Days are in UTC. Default: this month by day. `project` is the one that the key was in when the work began; `default` is that of keys in no other. `user` is the end user whom a chat call names ' +
      '(`user`, `safety_identifier`, `metadata.user_id`) or a task (`metadata.user`); `tag` is each part of ' +
      '`metadata.tags`, a text with commas; `metadata.NAME` is a pair of the metadata. They are null where a charge has ' +
      'none, and where its record is no longer kept. A charge with several tags counts in each, and once in `total`. ' +
      limited_key_docs,
    query: {
      ...range_query,
      ...groupQuery(group_names, 'day,model'),
    },
    responses: { 200: { description: 'The groups and their sum.', schema: usage }, 504: too_slow },
  },
  handle: handleUsage,
};

async function handleUsage(app: Parts, { caller, query, gone }: Call): Promise<Answer> {
  const now = new Date(app.clock.now());
  const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1));
  const { from, to } = timeRange(query, { from: () => month, to: nextMonth(now) });
  const group_by = readGroups(query.get('group_by') ?? 'day', groupNamed, group_names);
  const db = reading(app, { key: caller.account.id, gone });
  const only = { projects: (await scopeOfKey(db, caller))?.project_ids };
  const range = { account_id: caller.account.id, from, to, only };
  const rows = await usageOf(db, { ...range, group_by });
  const summed = group_by.some(isLabel) ? await usageOf(db, { ...range, group_by: [] }) : rows;
  const { currency } = caller.account;
  const total = costView(
    summed.reduce((sum, row) => sum + row.cost, 0n),
    currency,
  );
  return {
    status: 200,
    body: {
      object: 'usage',
      from: from.toISOString(),
      to: to.toISOString(),
      group_by,
      data: rows.map((row) => ({
        ...rowNames(group_by, (group) => row[group]),
        count: Number(row.charges),
        cost: costView(row.cost, currency),
        units: row.units,
      })),
      has_more: rows.length === labelled_rows_max && group_by.some(isLabel),
      total,
    },
  };
}
