import type { Db, Queryable } from '../db/database.ts';
import type { Money } from './money.ts';

/** What is to be reserved, and for what. `ref` (a task or a chat call) has one hold, ever. */
export type HoldRequest = {
  account_id: string;
  key_id: string;
  ref: string;
  amount: Money;
  model: string;
  kind: string;
  /** A chat hold whose node died is released after this; a task's hold has none. */
  expires_at?: Date;
};

/**
 * `held`: reserved. `exists`: this ref was reserved before, nothing new happened. `insufficient`:
 * the available money is less than the amount (402). `over_limit`: the key's monthly limit (403).
 */
export type HoldAnswer = {
  outcome: 'held' | 'exists' | 'insufficient' | 'over_limit';
  available: Money;
  /** What the key may still spend this month; null without a limit. */
  remaining: Money | null;
};

/** How a hold ends: with a cost (settled) or with null (released, everything goes back). */
export type CloseRequest = {
  account_id: string;
  ref: string;
  cost: Money | null;
  /** Charge what exceeds the hold to the available money (chat), instead of losing it (tasks). */
  beyond_hold?: boolean;
  /** What was used, unit → decimal text; kept with the entry. */
  units?: Record<string, string>;
};

/** `closed`: it was settled or released before, or never made; nothing happened now. */
export type CloseAnswer = {
  outcome: 'settled' | 'released' | 'closed';
  charged: Money;
  available: Money;
};

/** Reserves within the caller's transaction. `now` decides the month. */
export async function hold(db: Queryable, request: HoldRequest, now: Date): Promise<HoldAnswer> {
  const rows = await db.query<HoldAnswer>('select * from money_hold($1, $2, $3, $4, $5, $6, $7, $8)', [
    now,
    request.account_id,
    request.key_id,
    request.ref,
    request.amount,
    request.model,
    request.kind,
    request.expires_at ?? null,
  ]);
  return one(rows);
}

/** Settles or releases within the caller's transaction: whoever comes first, once. */
export async function close(db: Queryable, request: CloseRequest, now: Date): Promise<CloseAnswer> {
  const rows = await db.query<CloseAnswer>('select * from money_close($1, $2, $3, $4, $5, $6)', [
    now,
    request.account_id,
    request.ref,
    request.cost,
    request.beyond_hold ?? false,
    request.units === undefined ? null : JSON.stringify(request.units),
  ]);
  const answer = one(rows);
  return { ...answer, charged: answer.charged ?? 0n };
}

function one<T>(rows: T[]): T {
  const row = rows[0];
  if (rows.length !== 1 || row === undefined) throw new Error(`expected one row, got ${rows.length}`);
  return row;
}

type Member =
  | {
      verb: 'hold';
      request: HoldRequest;
      resolve: (answer: HoldAnswer) => void;
      reject: (error: unknown) => void;
    }
  | {
      verb: 'close';
      request: CloseRequest;
      resolve: (answer: CloseAnswer) => void;
      reject: (error: unknown) => void;
    };

/** Holds and closes of many concurrent callers, sent to the database in one call per round trip. */
export type HoldBatcher = {
  hold(request: HoldRequest): Promise<HoldAnswer>;
  close(request: CloseRequest): Promise<CloseAnswer>;
};

/**
 * Collects what arrives while `lanes` calls are under way and sends it as one money_batch; a member
 * alone is sent as the plain call, which is quicker (figures: bench/results/money.md). One lane,
 * because a second one makes batches smaller and lets two calls wait for each other's rows.
 */
export function makeHoldBatcher(
  db: Db,
  now: () => Date,
  options: { batch_max?: number; lanes?: number } = {},
): HoldBatcher {
  const batch_max = options.batch_max ?? 256;
  const lanes_max = options.lanes ?? 1;
  let waiting: Member[] = [];
  let under_way = 0;

  const pump = () => {
    while (under_way < lanes_max && waiting.length > 0) {
      const { batch, rest } = takeBatch(waiting, batch_max);
      waiting = rest;
      under_way += 1;
      void send(db, batch, now()).finally(() => {
        under_way -= 1;
        pump();
      });
    }
  };
  const add = (member: Member) => {
    waiting.push(member);
    // The next microtask turn: requests read in the same tick of the event loop share a call.
    if (waiting.length === 1 && under_way < lanes_max) queueMicrotask(pump);
    else if (under_way < lanes_max) pump();
  };
  return {
    hold: (request) => new Promise((resolve, reject) => add({ verb: 'hold', request, resolve, reject })),
    close: (request) => new Promise((resolve, reject) => add({ verb: 'close', request, resolve, reject })),
  };
}

/** The first members in order, but of one account and ref only the first: the rest wait a turn. */
function takeBatch(waiting: Member[], batch_max: number): { batch: Member[]; rest: Member[] } {
  const seen = new Set<string>();
  const batch: Member[] = [];
  const rest: Member[] = [];
  for (const member of waiting) {
    const name = `${member.request.account_id} ${member.request.ref}`;
    if (batch.length >= batch_max || seen.has(name)) rest.push(member);
    else batch.push(member);
    seen.add(name);
  }
  return { batch, rest };
}

/** Answers every member, one way or the other; never rejects. */
async function send(db: Db, batch: Member[], now: Date): Promise<void> {
  const [first] = batch;
  if (batch.length === 1 && first !== undefined) return sendOne(db, first, now);
  try {
    await sendMany(db, batch, now);
  } catch {
    // One member may have broken a constraint, or the connection went: each is tried alone, so that
    // it gets its own answer. Both verbs happen once per ref, so a batch that did commit before its
    // answer was lost is answered by `exists` and `closed` here.
    for (const member of batch) await sendOne(db, member, now);
  }
}

async function sendOne(db: Db, member: Member, now: Date): Promise<void> {
  try {
    if (member.verb === 'hold') member.resolve(await hold(db, member.request, now));
    else member.resolve(await close(db, member.request, now));
  } catch (error) {
    member.reject(error);
  }
}

type BatchRow = {
  outcome: string[];
  charged: (bigint | null)[];
  available: bigint[];
  remaining: (bigint | null)[];
};

async function sendMany(db: Db, batch: Member[], now: Date): Promise<void> {
  const holds = batch.map((member) => (member.verb === 'hold' ? member.request : undefined));
  const closes = batch.map((member) => (member.verb === 'close' ? member.request : undefined));
  const rows = await db.query<BatchRow>(
    `select outcome, charged::text[], available::text[], remaining::text[]
       from money_batch($1, $2, $3, $4, $5, $6::bigint[], $7, $8, $9::timestamptz[], $10::boolean[], $11::jsonb[])`,
    [
      now,
      batch.map((member) => member.verb),
      batch.map((member) => member.request.account_id),
      holds.map((request) => request?.key_id ?? null),
      batch.map((member) => member.request.ref),
      batch.map((_, i) => (holds[i] ? holds[i].amount : (closes[i]?.cost ?? null))),
      holds.map((request) => request?.model ?? null),
      holds.map((request) => request?.kind ?? null),
      holds.map((request) => request?.expires_at ?? null),
      closes.map((request) => request?.beyond_hold ?? false),
      closes.map((request) => (request?.units ? JSON.stringify(request.units) : null)),
    ],
  );
  const answer = one(rows);
  batch.forEach((member, i) => answerMember(member, answer, i));
}

function answerMember(member: Member, answer: BatchRow, i: number): void {
  const outcome = answer.outcome[i];
  const available = BigInt(answer.available[i] ?? 0n);
  if (outcome === undefined || outcome === 'missing') {
    return member.reject(new Error(`no such account or key for ${member.request.ref}`));
  }
  if (member.verb === 'hold') {
    const remaining = answer.remaining[i] ?? null;
    member.resolve({
      outcome: outcome as HoldAnswer['outcome'],
      available,
      remaining: remaining === null ? null : BigInt(remaining),
    });
  } else {
    member.resolve({
      outcome: outcome as CloseAnswer['outcome'],
      charged: BigInt(answer.charged[i] ?? 0n),
      available,
    });
  }
}
