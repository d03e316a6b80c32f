import { ageOf, isStillLeased, type LeaseTime } from '../leases/liveness.ts';
import type { Funds, HoldRequest, KeyName, LeaseAnswer, LeaseOwner, LeaseRequest } from './holds.ts';
import type { Money } from './money.ts';

/** The last answer of the database, until when it is believed, and the epoch of its account in which it was asked for. */
type Cached<T> = { value: T; until_ms: number; epoch: number };

/** Money that this node may reserve without asking, until its end. */
export type Lease = {
  amount: Money;
  /** Reserved of it since it was leased, with the amount that was in use then. */
  used: Money;
  /** The amount that was in use then: if this node dies, it is kept for 10 minutes. */
  marked: Money;
  leased_at: LeaseTime;
};

/** An account, or a key with a limit: money that nodes lease. */
export type Leasable = {
  lease: Lease | undefined;
  /** The amount that the database may take without our knowing yet: reservations, and requests under way. */
  reserved: Money;
  /** Of that, reservations that the database does not have yet. */
  unwritten: Money;
  /** One more at each recall: an answer to what was asked before it is not used. */
  recalls: number;
  /** Until then no lease is asked for. */
  recalled_until_ms: number;
};

/** The money of an account as far as this node knows it, and what has been answered out of its lease. */
export type AccountFunds = Leasable & {
  available: Cached<Money>;
  /** By the key whose budget it is: keys that share one are one here. */
  keys: Map<string, KeyFunds>;
  /** One more whenever something may have changed: what was cached or asked before counts no longer. */
  epoch: number;
  /** Reservations that are not booked, by ref. */
  open: Map<string, Reservation>;
  /** Time of the last hold: who calls again soon gets a lease. */
  held_at_ms: number;
  /** A request for leases under way; never two, since each begins with what the one before has left. */
  leasing: Promise<void> | undefined;
};

/** The amount that a key may spend this month, null without a limit. */
export type KeyFunds = Leasable & {
  remaining: Cached<Money | null>;
  /** The last answer to a request for leases said that the key has no limit. */
  is_unlimited: boolean;
};

/** A hold that was answered out of a lease, until the database has booked it. */
export type Reservation = {
  request: HoldRequest;
  account: AccountFunds;
  made_at_ms: number;
  /** The lease that it was answered out of. */
  lease: Lease;
  /** Its hold or its end is being written; or its hold was refused, and it waits for its end. */
  busy: Promise<unknown> | undefined;
  /** The database had no money for its hold, since its lease had ended: its end takes what there is. */
  is_refused: boolean;
  /** Its end could not be booked, and may not come again. */
  has_failed: boolean;
  /** The reason why it was put off, if it was. */
  failure: { error: unknown } | undefined;
};

/**
 * For so long a node may spend of a lease, from before it asked for it, while it is alive. The database counts from when
 * it heard.
 */
export const lease_ms = 300_000;

/** A lease that is older is renewed with the end of a call: in a statement of its own it cost as much as the call. */
const renewed_after_ms = 240_000;

/** A lease that has marked something as in use is corrected when it is older and nothing is in use. */
const marked_ms = 4_000;

const never = { until_ms: Number.NEGATIVE_INFINITY, epoch: -1 };

/** Makes an account of which nothing is cached. */
export function newAccount(): AccountFunds {
  return {
    ...newLeasable(),
    available: { value: 0n, ...never },
    keys: new Map(),
    epoch: 0,
    open: new Map(),
    held_at_ms: Number.NEGATIVE_INFINITY,
    leasing: undefined,
  };
}

function newLeasable(): Leasable {
  return { lease: undefined, reserved: 0n, unwritten: 0n, recalls: 0, recalled_until_ms: Number.NEGATIVE_INFINITY };
}

/** Returns the key of an account, of which perhaps nothing is cached. */
export function keyOf(account: AccountFunds, whose: KeyName): KeyFunds {
  const id = budgetOf(whose);
  const existing = account.keys.get(id);
  if (existing) return existing;
  const key: KeyFunds = { ...newLeasable(), remaining: { value: null, ...never }, is_unlimited: false };
  account.keys.set(id, key);
  return key;
}

function budgetOf({ key_id, budget_id = key_id }: KeyName): string {
  return budget_id;
}

/** Drops the oldest account with nothing under way. */
export function dropIdle(accounts: Map<string, AccountFunds>): void {
  for (const [id, { open, reserved, leasing }] of accounts) {
    if (open.size > 0 || reserved > 0n || leasing) continue;
    accounts.delete(id);
    return;
  }
}

/** Returns what the database said last, less all that was answered since; undefined if it may no longer be true. */
export function cachedFunds(account: AccountFunds, whose: KeyName, now_ms: number): Funds | undefined {
  const key = account.keys.get(budgetOf(whose));
  if (!key || !isFresh(account, account.available, now_ms) || !isFresh(account, key.remaining, now_ms))
    return undefined;
  return leftOf(account, key, { available: account.available.value, remaining: key.remaining.value });
}

/** Returns what is left for one more hold of what the database said. */
export function leftOf(account: AccountFunds, key: KeyFunds, { available, remaining }: Funds): Funds {
  return {
    available: available - account.reserved,
    remaining: remaining === null ? null : remaining - key.reserved,
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

function isFresh({ epoch }: AccountFunds, cached: Cached<unknown>, now_ms: number): boolean {
  return cached.epoch === epoch && cached.until_ms > now_ms;
}

/** Returns whether a lease has not ended. */
export function isLive({ leased_at }: Lease, now: LeaseTime): boolean {
  return isStillLeased(leased_at, now, lease_ms);
}

/** Returns whether there is no lease, or half of its amount is gone: the next call may not fit into it. */
export function isScarce(account: AccountFunds, key: KeyFunds): boolean {
  return isEither(account, key, (lease) => !lease || lease.used * 2n > lease.amount);
}

/** Returns whether a lease will soon have ended. */
export function isOld(account: AccountFunds, key: KeyFunds, now: LeaseTime): boolean {
  return isEither(account, key, (lease) => !lease || ageOf(lease.leased_at, now) > renewed_after_ms);
}

/** Returns whether nothing is in use, and a lease says otherwise. */
export function isMarkedInVain(account: AccountFunds, key: KeyFunds, now: LeaseTime): boolean {
  if (account.unwritten > 0n) return false;
  return isEither(account, key, (lease) => !!lease && lease.marked > 0n && ageOf(lease.leased_at, now) > marked_ms);
}

function isEither(account: AccountFunds, key: KeyFunds, test: (lease: Lease | undefined) => boolean): boolean {
  return test(account.lease) || (!key.is_unlimited && test(key.lease));
}

/** Reserves the highest cost of a call, if that fits into the leases of the account and of the key. */
export function reserve(account: AccountFunds, request: HoldRequest, now: LeaseTime): Reservation | undefined {
  const { ref } = request;
  const key = account.keys.get(budgetOf(request));
  const { lease } = account;
  if (!key || !lease || account.open.has(ref)) return undefined;
  const leases = key.is_unlimited ? [lease] : [lease, key.lease];
  const most = mostOf(request);
  if (!leases.every((each) => each && isLive(each, now) && each.amount - each.used >= most)) return undefined;
  for (const each of leases) if (each) each.used += most;
  count(account, key, most);
  account.unwritten += most;
  key.unwritten += most;
  const state = { busy: undefined, is_refused: false, has_failed: false, failure: undefined };
  const reservation: Reservation = { request, account, lease, made_at_ms: now.elapsed_ms, ...state };
  account.open.set(ref, reservation);
  return reservation;
}

/** Returns the highest cost of a call: what is kept free for it. */
export function mostOf({ amount, cost_max = amount }: HoldRequest): Money {
  return cost_max > amount ? cost_max : amount;
}

/** Ends a reservation: it is booked, and the database counts it from now on; or it never will be. */
export function endReservation({ account, request }: Reservation): void {
  if (!account.open.delete(request.ref)) return;
  const key = keyOf(account, request);
  const most = mostOf(request);
  count(account, key, -most);
  account.unwritten -= most;
  key.unwritten -= most;
}

/** Counts `amount` as taken, or as no longer taken if it is negative. */
export function count(account: AccountFunds, key: KeyFunds | undefined, amount: Money): void {
  account.reserved += amount;
  if (key) key.reserved += amount;
}

/** A request for leases, and what is done with its answer. */
export type PendingLease = { request: LeaseRequest; take(answer: LeaseAnswer): void };

/**
 * Asks for leases in place of those that there are. Half of what is left of them stays usable while the database is asked,
 * and is promised; the database decides about the rest, so that a node that has much leaves some to others.
 */
export function beginLease(account: AccountFunds, key: KeyFunds, whose: LeaseOwner, at: LeaseTime): PendingLease {
  const own = promiseHalf(account, at);
  const of_key = promiseHalf(key, at);
  return {
    request: { ...whose, in_use: own.in_use, least: own.least, key_in_use: of_key.in_use, key_least: of_key.least },
    take({ amount, key_amount }) {
      own.take(amount, at);
      key.is_unlimited = key_amount === null;
      if (key_amount !== null) of_key.take(key_amount, at);
    },
  };
}

function promiseHalf(
  whose: Leasable,
  at: LeaseTime,
): { in_use: Money; least: Money; take: (amount: Money, leased_at: LeaseTime) => void } {
  if (whose.lease && !isLive(whose.lease, at)) whose.lease = undefined; // others may have it: nothing of it is promised
  const { lease, unwritten: in_use, recalls } = whose;
  const used_before = lease?.used ?? 0n;
  const left = lease ? (lease.amount - lease.used) / 2n : 0n;
  if (lease) lease.amount = lease.used + left;
  return {
    in_use,
    least: in_use + left,
    take(amount, leased_at) {
      if (whose.recalls !== recalls) return; // it is being given back
      whose.lease = { amount, used: in_use + (lease?.used ?? 0n) - used_before, marked: in_use, leased_at };
    },
  };
}

/** Drops a lease: nothing is reserved out of it any more, and none is asked for until `recalled_until_ms`. */
export function dropLease(whose: Leasable, recalled_until_ms: number): void {
  whose.recalls += 1;
  whose.lease = undefined;
  whose.recalled_until_ms = recalled_until_ms;
}

/** Returns whether leases of both may be asked for now. */
export function mayLease(account: AccountFunds, key: KeyFunds, now: LeaseTime): boolean {
  return (
    now.session !== undefined && account.recalled_until_ms <= now.elapsed_ms && key.recalled_until_ms <= now.elapsed_ms
  );
}
