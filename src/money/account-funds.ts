import type { Funds, HoldRequest, KeyName } from './holds.ts';
import type { Money } from './money.ts';

/** The last answer of the database, until when it is believed, and the epoch of its account in which it was asked for. */
type Snapshot<T> = { value: T; until_ms: number; epoch: number };

/** The money of an account as far as this process knows it, and what has been answered out of it. */
export type AccountFunds = {
  available: Snapshot<Money>;
  /** The amount that the database may take of `available` without our knowing yet: reservations, and requests under way. */
  reserved: Money;
  /** By the key whose budget it is: keys that share one are one here. */
  keys: Map<string, KeyFunds>;
  /** One more whenever something may have changed: what was known or asked before counts no longer. */
  epoch: number;
  /** While above zero, others take money; nothing is reserved. */
  exclusive: number;
  /** Reservations that are not booked, by ref. */
  open: Map<string, Reservation>;
  /** The cost of calls under way beyond their holds, at the most: of all together, and of each by its ref. */
  exposed: Money;
  exposures: Map<string, { key: KeyFunds; amount: Money }>;
};

/** The amount that a key may spend this month, null without a limit; what of it is reserved, and what its calls may cost beyond their holds. */
export type KeyFunds = { remaining: Snapshot<Money | null>; reserved: Money; exposed: Money };

/** A hold that was answered out of memory, until the database has booked it. */
export type Reservation = {
  request: HoldRequest;
  account: AccountFunds;
  made_at_ms: number;
  /** Its hold or its end is being written; or its hold was refused, and it waits for its end. */
  busy: Promise<unknown> | undefined;
  /** The database had no money for its hold, since an operator took it out: its end takes what there is. */
  is_refused: boolean;
  /** Its end could not be booked, and may not come again. */
  has_failed: boolean;
  /** The reason why it was put off, if it was. */
  failure: { error: unknown } | undefined;
};

const unknown = { until_ms: Number.NEGATIVE_INFINITY, epoch: -1 };

/** Makes an account of which nothing is known. */
export function newAccount(): AccountFunds {
  return {
    available: { value: 0n, ...unknown },
    reserved: 0n,
    keys: new Map(),
    epoch: 0,
    exclusive: 0,
    open: new Map(),
    exposed: 0n,
    exposures: new Map(),
  };
}

/** Returns the key of an account, of which perhaps nothing is known. */
export function keyOf(account: AccountFunds, whose: KeyName): KeyFunds {
  const id = budgetOf(whose);
  const existing = account.keys.get(id);
  if (existing) return existing;
  const key: KeyFunds = { remaining: { value: null, ...unknown }, reserved: 0n, exposed: 0n };
  account.keys.set(id, key);
  return key;
}

function budgetOf({ key_id, budget_id = key_id }: KeyName): string {
  return budget_id;
}

/** Forgets the oldest account with nothing under way. */
export function dropIdle(accounts: Map<string, AccountFunds>): void {
  for (const [id, { open, exposures, exclusive, reserved }] of accounts) {
    if (open.size + exposures.size + exclusive > 0 || reserved > 0n) continue;
    accounts.delete(id);
    return;
  }
}

/** Returns what the database said last, less all that was answered since; undefined if it may no longer be true. */
export function knownFunds(account: AccountFunds, whose: KeyName, now_ms: number): Funds | undefined {
  const key = account.keys.get(budgetOf(whose));
  if (!key || !areAllCurrent(account, key, now_ms)) return undefined;
  return leftOf(account, key, { available: account.available.value, remaining: key.remaining.value });
}

/** Returns what is left for one more hold of what the database said. */
export function leftOf(account: AccountFunds, key: KeyFunds, { available, remaining }: Funds): Funds {
  return {
    available: available - account.reserved - account.exposed,
    remaining: remaining === null ? null : remaining - key.reserved - key.exposed,
  };
}

/** Keeps what the database said, if nothing may have changed since it was asked. */
export function learn(
  account: AccountFunds,
  key: KeyFunds | undefined,
  answer: { available: Money; remaining?: Money | null },
  since: { until_ms: number; epoch: number },
): void {
  if (account.epoch !== since.epoch) return;
  account.available = { value: answer.available, ...since };
  if (key && answer.remaining !== undefined) key.remaining = { value: answer.remaining, ...since };
}

function areAllCurrent(account: AccountFunds, key: KeyFunds, now_ms: number): boolean {
  return (
    account.exclusive === 0 &&
    [account.available, key.remaining].every((snapshot) => isCurrent(account, snapshot, now_ms))
  );
}

function isCurrent({ epoch }: AccountFunds, snapshot: Snapshot<unknown>, now_ms: number): boolean {
  return snapshot.epoch === epoch && snapshot.until_ms > now_ms;
}

/**
 * Reserves, if with it no more than half of what the account and the key are known to have is reserved or may be taken
 * beyond holds: beyond that the database decides, so that who has money for exactly a hundred calls gets exactly a hundred.
 */
export function reserve(account: AccountFunds, request: HoldRequest, now_ms: number): Reservation | undefined {
  const { amount, cost_max = amount, ref } = request;
  const key = account.keys.get(budgetOf(request));
  if (!key || !areAllCurrent(account, key, now_ms) || account.open.has(ref)) return undefined;
  const { value: remaining } = key.remaining;
  if ((account.reserved + account.exposed + cost_max) * 2n > account.available.value) return undefined;
  if (remaining !== null && (key.reserved + key.exposed + cost_max) * 2n > remaining) return undefined;
  count(account, key, amount);
  expose(account, request);
  const state = { busy: undefined, is_refused: false, has_failed: false, failure: undefined };
  const reservation: Reservation = { request, account, made_at_ms: now_ms, ...state };
  account.open.set(ref, reservation);
  return reservation;
}

/** Ends a reservation: it is booked, and the database counts it from now on; or it never will be. True if it was one until now. */
export function endReservation({ account, request }: Reservation): boolean {
  const was_open = account.open.delete(request.ref);
  if (was_open) count(account, keyOf(account, request), -request.amount);
  return was_open;
}

/** Ends a reservation of which nothing was booked, and nothing will be. */
export function giveUp(reservation: Reservation): void {
  endReservation(reservation);
  cover(reservation.account, reservation.request.ref);
}

/** Counts `amount` as taken, or as no longer taken if it is negative. */
export function count(account: AccountFunds, key: KeyFunds | undefined, amount: Money): void {
  account.reserved += amount;
  if (key) key.reserved += amount;
}

/** Keeps what a call may cost beyond its hold from other holds, until the call has ended. */
export function expose(account: AccountFunds, request: HoldRequest): void {
  const { ref, amount, cost_max = amount } = request;
  if (cost_max <= amount || account.exposures.has(ref)) return;
  const key = keyOf(account, request);
  const beyond = cost_max - amount;
  account.exposures.set(ref, { key, amount: beyond });
  account.exposed += beyond;
  key.exposed += beyond;
}

/** The opposite of `expose`: the call has ended. */
export function cover(account: AccountFunds, ref: string): void {
  const exposure = account.exposures.get(ref);
  if (!exposure) return;
  account.exposures.delete(ref);
  account.exposed -= exposure.amount;
  exposure.key.exposed -= exposure.amount;
}
