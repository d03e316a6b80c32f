import { makeBatcher } from '../db/batcher.ts';
import type { Db, Queryable } from '../db/database.ts';
import { oneRow } from '../db/one-row.ts';
import { assert } from '../lib/assert.ts';
import { endLease } from '../leases/leases.ts';
import { whileLeased } from '../leases/while-leased.ts';
import { refusingBudget, type RefusedKey, type RefusingBudget } from './account-budgets.ts';
import { lockedBy } from './locked.ts';
import { money_max, type Money } from './money.ts';
import { useRecord, type UpstreamUse } from './upstream.ts';

/** A hold to make. `ref` (a task or a chat call) has one hold, ever. */
export type HoldRequest = {
  account_id: string;
  key_id: string;
  /** The budget that the key shares with the key before its rotation. */
  budget_id?: string | undefined;
  ref: string;
  /** Never below zero; a hold of more than money_max is refused. */
  amount: Money;
  /** The highest cost of its end, if above the amount (chat): the difference is kept free. */
  cost_max?: Money;
  /** It was answered from the leases of the node, which may be used for it. */
  is_leased?: boolean;
  model: string;
  kind: string;
  /** A chat hold whose node died is released after this, by the database's clock; a task's hold stays. */
  expires_in_ms?: number;
};

/**
 * `held`: reserved. `exists`: this ref had a hold already, by an earlier call or by this one whose
 * answer was lost; nothing new happened. `insufficient`: the available money is less than what it takes
 * (402). `over_limit`: the key's monthly limit, or a hard budget that it counts in (403): `refusedBy` tells which.
 */
export type HoldAnswer = {
  outcome: 'held' | 'exists' | 'insufficient' | 'over_limit';
  /** The money for one more hold, without all holds and what their calls may cost beyond them. */
  available: Money;
  /**
   * The rest of the key's limit of this month, or of a hard budget that it counts in if that is less; null without any.
   * Below zero after one was lowered.
   */
  remaining: Money | null;
};

/** `leased`: nodes have leased what the hold takes, and are asked for it. */
export type HoldOrLeased = HoldAnswer | (Omit<HoldAnswer, 'outcome'> & { outcome: 'leased' });

/** The end of a hold: a cost (settled) or null (released, everything goes back). */
export type CloseRequest = {
  account_id: string;
  ref: string;
  /** From zero to money_max. */
  cost: Money | null;
  /**
   * Charge what exceeds the hold to the available money, within the key's limit (chat), instead of losing it (tasks).
   * The same for a hold that the sweep has released.
   */
  beyond_hold?: boolean;
  /** Usage, unit → decimal text; stored with the entry. */
  units?: { readonly [unit: string]: string | undefined };
  /** The upstream's charge; absent if no upstream was called. */
  upstream?: UpstreamUse | undefined;
  /** The model of the end, where that may be another than the hold's: a fallback of a chat. */
  model?: string | undefined;
};

/** `closed`: nothing happened now; `state` and `charged` tell what happened before. */
export type CloseAnswer = {
  outcome: 'settled' | 'released' | 'closed';
  /** The state of the hold, whoever closed it; null if this ref never had one. */
  state: 'settled' | 'released' | null;
  /** The charge, now or before. */
  charged: Money;
  available: Money;
  /** The upstream's booked charge, now or before; null if unknown, or if no upstream was called. */
  upstream_cost: Money | null;
};

/** The hold and the end of a call at once, if its hold may not have been written. */
export type CommitRequest = { hold: HoldRequest; end: CloseRequest };

/** The answer to a close, with what the key may still spend this month. */
export type CommitAnswer = CloseAnswer & Pick<HoldAnswer, 'remaining'>;

/** Names of a key and of its budget. */
export type KeyName = Pick<HoldRequest, 'key_id' | 'budget_id'>;

/** The available money of an account, and what its key may still spend this month: null without a limit. */
export type Funds = Pick<HoldAnswer, 'available' | 'remaining'>;

/** The account and the key that leases are for. */
export type LeaseOwner = { account_id: string } & KeyName;

/**
 * Leases of the account's money and of the key's limit, in place of the present ones. `in_use`: what is reserved and not
 * written yet. `least`: what may be reserved in any case, since it is leased now.
 */
export type LeaseRequest = LeaseOwner & { in_use: Money; least: Money; key_in_use: Money; key_least: Money };

/** The amounts that may be reserved without asking, with what is in use; `key_amount` is null without a limit. */
export type LeaseAnswer = { amount: Money; key_amount: Money | null };

/** The channel on which money_credit and money_limit send the account whose money or limit an operator lowered. */
export const money_channel = 'money_changed';

/** The money of calls: held before an upstream is asked, settled or released when the call has ended. */
export type Holds = {
  /** Reserves what the call may cost, once for each ref. Leases of other nodes are recalled before a refusal. */
  hold(request: HoldRequest): Promise<HoldAnswer>;
  /** Leases money to this node. */
  lease(request: LeaseRequest): Promise<LeaseAnswer>;
  /**
   * Resolves when the hold of a call is certain: at once, unless the process was stopped so long that the lease has ended.
   * Resolves to false if the money is gone.
   */
  confirm(request: HoldRequest): Promise<boolean>;
  /** Returns what a hold may take, from cached answers; undefined if the database has to be asked. */
  funds(account_id: string, key_name: KeyName): Funds | undefined;
  /** Returns the hard budget that refused a key's hold; undefined if it was the key's own limit. */
  refusedBy(key: RefusedKey): Promise<RefusingBudget | undefined>;
  /** Reads the same from the database. */
  readFunds(request: Omit<HoldRequest, 'amount'>): Promise<Funds>;
  /**
   * Settles, or releases if the cost is null; on the disk when it resolves. `held` is the request of the hold, where that
   * is known: what was not written of it is booked now.
   */
  settle(end: CloseRequest, held?: HoldRequest): Promise<CloseAnswer & Partial<Pick<HoldAnswer, 'remaining'>>>;
  /** Resolves when all holds of an account are written: for whoever reads its money. */
  flush(account_id: string): Promise<void>;
  /** Drops cached answers about the account; without one those of all accounts, and their leases. */
  invalidate(account_id?: string): void;
  /**
   * Returns what this node has leased and does not use, and asks for no lease for 2 s. `resource`: `money` of the account,
   * or `limit <key>` of one of its keys.
   */
  returnLeases(account_id: string, resource: string): Promise<void>;
  /** Returns the age of the oldest call of the database that has no answer yet; 0 without one. */
  oldest_ms(): number;
  /** Ends the writing by timers. */
  stop(): void;
};

/** Returns holds that are all answered by the database. */
export function databaseHolds(batcher: HoldBatcher): Holds {
  return {
    hold: async (request) => withoutLeased(await whileLeased(() => batcher.hold(request))),
    lease: (request) => batcher.lease(request),
    confirm: () => Promise.resolve(true),
    funds: () => undefined,
    // By a hold that is too large for any account: it waits for those before it, and changes nothing.
    readFunds: async (request) => {
      const { available, remaining } = await batcher.hold({ ...request, amount: money_max + 1n });
      return { available, remaining };
    },
    refusedBy: (key) => batcher.refusedBy(key),
    settle: (end, held) => (held ? batcher.commit({ hold: held, end }) : batcher.close(end)),
    flush: async () => {},
    invalidate: () => {},
    returnLeases: (account_id, resource) => batcher.endLease(account_id, resource),
    oldest_ms: () => batcher.oldest_ms(),
    stop: () => {},
  };
}

/** Refuses a hold whose money is still leased after the time in which every living node returns its leases. */
function withoutLeased({ outcome, ...funds }: HoldOrLeased): HoldAnswer {
  return { outcome: outcome === 'leased' ? 'insufficient' : outcome, ...funds };
}

/** Reserves within the caller's transaction. `now` decides the month. */
export async function hold(db: Queryable, request: HoldRequest, now: Date): Promise<HoldOrLeased> {
  return holdRow(db, rowOfHold(request), now);
}

/** Settles or releases within the caller's transaction, once. */
export async function close(db: Queryable, request: CloseRequest, now: Date): Promise<CloseAnswer> {
  return closeRow(db, rowOfClose(request), now);
}

/** Holds and ends within the caller's transaction; a hold that is written already is ended as it is. */
export async function commit(db: Queryable, request: CommitRequest, now: Date): Promise<CommitAnswer> {
  return commitRow(db, rowOfCommit(request), now);
}

/** Holds and closes of many concurrent callers, sent to the database in one call per round trip. */
export type HoldBatcher = {
  /**
   * Reserves. All see it at once, but it is on the disk only with the next close, at the latest with its own end. A server
   * that crashes before that has lost the hold: its close answers that there never was one.
   */
  hold(request: HoldRequest): Promise<HoldOrLeased>;
  /** Ends the node's lease of a resource. */
  endLease(account_id: string, resource: string): Promise<void>;
  lease(request: LeaseRequest): Promise<LeaseAnswer>;
  /** Settles or releases; on the disk when it resolves, with all that came before. */
  close(request: CloseRequest): Promise<CloseAnswer>;
  /** Holds a reservation, as far as there is money, and settles or releases it; on the disk when it resolves. */
  commit(request: CommitRequest): Promise<CommitAnswer>;
  /** Returns the hard budget that refused a key's hold. */
  refusedBy(key: RefusedKey): Promise<RefusingBudget | undefined>;
  oldest_ms(): number;
};

/**
 * Collects what arrives while a call is under way and sends it as one move_money; a member alone is
 * sent as the plain call. Calls under way at the same time have different accounts, so that they never wait for
 * each other's rows: a slow one is overtaken, and an account whose row somebody else has locked waits by itself. All
 * verbs happen once per ref, so a call whose answer was lost is repeated. `node_id` answers for the holds: the sweep
 * leaves them alone while that node is alive.
 */
export function makeHoldBatcher(
  db: Db,
  now: () => Date,
  options: { batch_max?: number; shards?: number; node_id?: string } = {},
): HoldBatcher {
  const { node_id = null } = options;
  const makeShard = () =>
    makeBatcher<Member, Answer>({
      together: (members) => callBatch(db, members, now(), node_id),
      alone: (member) => callAlone(db, member, now(), node_id),
      // A hold and its end wait for each other; so do repetitions. Refs are unique, so that to name the account as well,
      // in a text of its own that has to be hashed, would be 1 % of a chat call.
      names: { nameOf: ({ row }) => row.ref, groupOf },
      groups: lockedBy(db, groupOf),
      calls_max: calls_at_once_max,
      ...(options.batch_max !== undefined && { batch_max: options.batch_max }),
    });
  const shards = Array.from({ length: options.shards ?? 1 }, makeShard);
  const shardOf = (account_id: string) => {
    const shard = shards[account_id.charCodeAt(account_id.length - 1) % shards.length];
    assert(shard, 'there is a shard for every account');
    return shard;
  };
  const send = (account_id: string, makeMember: () => Member): Promise<Answer> => {
    try {
      return shardOf(account_id)(makeMember());
    } catch (error) {
      return Promise.reject(error); // of what it cannot send, too
    }
  };
  return {
    hold: (request) => send(request.account_id, () => ({ verb: 'hold', row: rowOfHold(request) })).then(asHoldAnswer),
    endLease: async (account_id, resource) => {
      if (node_id !== null) await endLease(db, { account_id, resource, node_id });
    },
    lease: (request) =>
      send(request.account_id, () => ({ verb: 'lease', row: rowOfLease(request) })).then(asLeaseAnswer),
    close: (request) =>
      send(request.account_id, () => ({ verb: 'close', row: rowOfClose(request, node_id) })).then(asCloseAnswer),
    commit: (request) =>
      send(request.end.account_id, () => ({ verb: 'commit', row: rowOfCommit(request, node_id) })).then(asCommitAnswer),
    refusedBy: (key) => refusingBudget(db, key, now()),
    oldest_ms: () => shards.map((shard) => shard.oldest_ms()).reduce((oldest, next) => (next > oldest ? next : oldest)),
  };
}

/** Calls of the database at the same time; each has a connection. */
const calls_at_once_max = 4;

function groupOf({ row }: { row: { account_id: string } }): string {
  return row.account_id;
}

type Member =
  | { verb: 'hold'; row: HoldRow }
  | { verb: 'lease'; row: LeaseRow }
  | { verb: 'close'; row: CloseRow }
  | { verb: 'commit'; row: CommitRow };
type Answer = HoldOrLeased | LeaseAnswer | CloseAnswer | CommitAnswer;

function asHoldAnswer(answer: Answer): HoldOrLeased {
  assert('outcome' in answer && !('state' in answer), 'a hold gets the answer of a hold');
  return answer;
}

function asLeaseAnswer(answer: Answer): LeaseAnswer {
  assert('amount' in answer, 'a lease gets the answer of a lease');
  return answer;
}

function asCloseAnswer(answer: Answer): CloseAnswer {
  assert('state' in answer, 'a close gets the answer of a close');
  return answer;
}

function asCommitAnswer(answer: Answer): CommitAnswer {
  assert('state' in answer && 'remaining' in answer, 'a commit gets the answer of both');
  return answer;
}

async function callAlone(db: Queryable, member: Member, now: Date, node_id: string | null): Promise<Answer> {
  if (member.verb === 'hold') return holdRow(db, member.row, now, { column: no_flush_column, node_id });
  if (member.verb === 'lease') return oneAnswer(await callBatch(db, [member], now, node_id));
  return member.verb === 'close' ? closeRow(db, member.row, now) : commitRow(db, member.row, now);
}

/**
 * A column that makes the statement's commit wait for no disk. The log is one sequence, so a settlement that is
 * flushed has flushed its hold (decision 23): 1.1 to 1.3 times the calls at 32 connections, 0.9 of a lone call's time.
 */
const no_flush_column = `set_config('synchronous_commit', 'off', true), `;

function oneAnswer([answer]: readonly Answer[]): Answer {
  assert(answer, 'a call answers each of its members');
  return answer;
}

async function callBatch(
  db: Queryable,
  members: readonly Member[],
  now: Date,
  node_id: string | null,
): Promise<Answer[]> {
  const answer = await batchRow(db, members, now, node_id);
  return members.map((member, i) => answerOf(member, answer, i));
}

/** A request as the money functions take it: amounts are texts, since a JSON number of sixteen digits would not survive. */
type HoldRow = {
  account_id: string;
  key_id: string;
  ref: string;
  amount: string;
  model: string;
  kind: string;
  expires_in_ms?: number;
  exposed?: string;
  is_leased?: true;
};
type LeaseRow = {
  account_id: string;
  key_id: string;
  ref: string;
  amount: string;
  reserved: string;
  key_in_use: string;
  key_least: string;
};
type CloseRow = {
  account_id: string;
  ref: string;
  cost: string | null;
  beyond_hold: boolean;
  units: CloseRequest['units'];
  upstream: object | null;
  node_id: string | null;
  end_model?: string;
};
type CommitRow = CloseRow & Pick<HoldRow, 'key_id' | 'exposed' | 'model' | 'kind'> & { reserved: string };

/** Returns the parameter of hold_money, for an SQL function. */
export const holdRecord = (request: HoldRequest): string => JSON.stringify(rowOfHold(request));

function rowOfHold(request: HoldRequest): HoldRow {
  const { account_id, key_id, ref, amount, cost_max = amount, model, kind, expires_in_ms, is_leased } = request;
  assert(amount >= 0n, 'a hold is never below zero');
  const row: HoldRow = { account_id, key_id, ref, amount: boundedText(amount), model, kind };
  if (expires_in_ms !== undefined) row.expires_in_ms = expires_in_ms;
  if (cost_max > amount) row.exposed = boundedText(cost_max - amount);
  if (is_leased) row.is_leased = true;
  return row;
}

/** Nobody has more than money_max, so the answer is the same, and the number fits a bigint column. */
function boundedText(amount: Money): string {
  return String(amount > money_max ? money_max + 1n : amount);
}

function rowOfLease({ account_id, key_id, in_use, least, key_in_use, key_least }: LeaseRequest): LeaseRow {
  return {
    account_id,
    key_id,
    ref: `lease ${account_id}`, // two of one account never share a call, so that each renews the one before
    amount: String(in_use),
    reserved: String(least),
    key_in_use: String(key_in_use),
    key_least: String(key_least),
  };
}

function rowOfClose(
  { account_id, ref, cost, beyond_hold = false, units, upstream, model }: CloseRequest,
  node_id: string | null = null,
): CloseRow {
  assert(cost === null || (cost >= 0n && cost <= money_max), 'a cost is from zero to money_max');
  return {
    account_id,
    ref,
    cost: cost === null ? null : String(cost),
    beyond_hold,
    units,
    upstream: useRecord(upstream),
    node_id,
    ...(model !== undefined && { end_model: model }),
  };
}

function rowOfCommit({ hold: held, end }: CommitRequest, node_id: string | null = null): CommitRow {
  const { key_id, amount, exposed, model, kind } = rowOfHold(held);
  assert(held.account_id === end.account_id && held.ref === end.ref, 'a hold is settled for whom it was made');
  return { ...rowOfClose(end, node_id), key_id, reserved: amount, ...(exposed && { exposed }), model, kind };
}

/** `column` is selected in addition to the answer. */
type HoldOptions = { column: string; node_id: string | null };

/** now() is the time from which a hold expires, by the clock of the database: a node's may be wrong. */
async function holdRow(
  db: Queryable,
  row: HoldRow,
  now: Date,
  { column, node_id }: HoldOptions = { column: '', node_id: null },
): Promise<HoldOrLeased> {
  const rows = await db.query<HoldOrLeased>(
    `select ${column}outcome, available, remaining from hold_money($1, now(), $2, $3)`,
    [now, JSON.stringify(row), node_id],
    'brief',
  );
  const { outcome, available, remaining } = oneRow(rows);
  return { outcome, available, remaining };
}

async function closeRow(db: Queryable, row: CloseRow, now: Date): Promise<CloseAnswer> {
  const rows = await db.query<CloseAnswer>(
    `select outcome, state, coalesce(charged, 0) as charged, available, upstream as upstream_cost
       from close_hold($1, $2)`,
    [now, JSON.stringify(row)],
    'brief',
  );
  return oneRow(rows);
}

async function commitRow(db: Queryable, row: CommitRow, now: Date): Promise<CommitAnswer> {
  const rows = await db.query<CommitAnswer>(
    `select outcome, state, coalesce(charged, 0) as charged, available, remaining, upstream as upstream_cost
       from commit_hold($1, $2)`,
    [now, JSON.stringify(row)],
    'brief',
  );
  return oneRow(rows);
}

/** The answer of move_money: member i's answer is at i; empty for none. */
type BatchRow = {
  outcome: string[];
  state: string[];
  charged: string[];
  available: string[];
  remaining: string[];
  upstream: string[];
};
/** The same, with commas between. */
type BatchText = { [name in keyof BatchRow]: string };

async function batchRow(db: Queryable, batch: readonly Member[], now: Date, node_id: string | null): Promise<BatchRow> {
  const column = batch.every((member) => member.verb === 'hold') ? no_flush_column : '';
  const rows = await db.query<BatchText>(
    `select ${column}array_to_string(outcome, ',') as outcome, array_to_string(state, ',', '') as state,
            array_to_string(charged, ',', '') as charged, array_to_string(available, ',') as available,
            array_to_string(remaining, ',', '') as remaining, array_to_string(upstream, ',', '') as upstream
       from move_money($1, now(), $2, $3)`,
    [now, JSON.stringify(batch.map(({ verb, row }) => ({ verb, ...row }))), node_id],
    'brief',
  );
  const { outcome, state, charged, available, remaining, upstream } = oneRow(rows);
  return {
    outcome: outcome.split(','),
    state: state.split(','),
    charged: charged.split(','),
    available: available.split(','),
    remaining: remaining.split(','),
    upstream: upstream.split(','),
  };
}

function answerOf(member: Member, answer: BatchRow, i: number): Answer {
  const outcome = answer.outcome[i];
  const available = BigInt(answer.available[i] ?? 0n);
  const remaining = answer.remaining[i] ? BigInt(answer.remaining[i]) : null;
  if (member.verb === 'lease') return { amount: available, key_amount: remaining };
  if (member.verb === 'hold') return { outcome: outcome as HoldOrLeased['outcome'], available, remaining };
  const end = {
    outcome: outcome as CloseAnswer['outcome'],
    state: (answer.state[i] || null) as CloseAnswer['state'],
    charged: BigInt(answer.charged[i] || 0n),
    available,
    upstream_cost: answer.upstream[i] ? BigInt(answer.upstream[i]) : null,
  };
  return member.verb === 'close' ? end : { ...end, remaining };
}
