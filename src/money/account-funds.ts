import { ageOf, isStillLeased, type LeaseTime } from '../leases/liveness.ts';
import type { Funds, HoldRequest, KeyName, LeaseAnswer, LeaseOwner, LeaseRequest } from './holds.ts';
import type { Money } from './money.ts';

/** The last answer of the database, the end of its validity, and the epoch of its account in which it was asked for. */
type Cached<T> = { value: T; until_ms: number; epoch: number };

/** Money that this node may reserve without asking the database, until the lease ends. */
export type Lease = {
  amount: Money;
  /** Reserved of it since it was leased, including the amount that was in use then. */
  used: Money;
  /** The amount that was in use when it was leased: if this node dies, the database keeps it for 10 minutes. */
  marked: Money;
  leased_at: LeaseTime;
};

/** Money of an account, or the limit of a key, that nodes lease. */
export type Leasable = {
  lease: Lease | undefined;
  /** The amount that the database may have taken since its last answer: reservations, and requests under way. */
  reserved: Money;
  /** The part of `reserved` that the database does not have yet. */
  unwritten: Money;
  /** Number of recalls: an answer to a request from before a recall is not used. */
  recalls: number;
  /** No lease is asked for before this time. */
  recalled_until_ms: number;
};

/** The money of an account as this node knows it, with the reservations out of its lease. */
export type AccountFunds = Leasable & {
  available: Cached<Money>;
  /** By the id of the budget: keys that share one have one entry. */
  keys: Map<string, KeyFunds>;
  /** Grows whenever the database may have changed: answers of an earlier epoch are not used. */
  epoch: number;
  /** Reservations that are not booked, by ref. */
  open: Map<string, Reservation>;
  /** Time of the last hold: an account that calls again soon gets a lease. */
  held_at_ms: number;
  /** The request for leases under way; one at a time, since each begins with what the one before has left. */
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
  /** Set while its hold or its end is being written, and after its hold was refused. */
  busy: Promise<unknown> | undefined;
  /** The database had no money for its hold, since its lease had ended: its end takes what there is. */
  is_refused: boolean;
  /** Its end could not be booked, and may not be tried again. */
  has_failed: boolean;
  /** The error of the last write, which is tried again. */
  failure: { error: unknown } | undefined;
};

/** Time of a lease of a living node. The node counts it from before its request, the database from the arrival of that. */
export const lease_ms = 300_000;

/** Age at which a lease is renewed, together with the end of a call: a statement of its own cost as much as the call. */
const renew_after_ms = 240_000;

/** Age at which a lease that was marked as in use is corrected, if nothing is in use any more. */
const stale_mark_ms = 4_000;

const never = { until_ms: Number.NEGATIVE_INFINITY, epoch: -1 };

/** Returns an account without cached answers. */
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

/** Returns the funds of a key, which may have no cached answer yet. */
export function keyFundsOf(account: AccountFunds, name: KeyName): KeyFunds {
  const id = budgetOf(name);
  const existing = account.keys.get(id);
  if (existing) return existing;
  const key: KeyFunds = { ...newLeasable(), remaining: { value: null, ...never }, is_unlimited: false };
  account.keys.set(id, key);
  return key;
}

function budgetOf({ key_id, budget_id = key_id }: KeyName): string {
  return budget_id;
}

/** Drops the oldest account that has no reservation and no request under way. */
export function dropIdleAccount(accounts: Map<string, AccountFunds>): void {
  for (const [id, { open, reserved, leasing }] of accounts) {
    if (open.size > 0 || reserved > 0n || leasing) continue;
    accounts.delete(id);
    return;
  }
}

/** Returns the last answer of the database, less what was reserved since; undefined if it may be out of date. */
export function cachedFunds(account: AccountFunds, name: KeyName, now_ms: number): Funds | undefined {
  const key = account.keys.get(budgetOf(name));
  if (!key || !isFresh(account, account.available, now_ms) || !isFresh(account, key.remaining, now_ms))
    return undefined;
  return fundsLeft(account, key, { available: account.available.value, remaining: key.remaining.value });
}

/** Returns what an answer of the database leaves for one more hold. */
export function fundsLeft(account: AccountFunds, key: KeyFunds, { available, remaining }: Funds): Funds {
  return {
    available: available - account.reserved,
    remaining: remaining === null ? null : remaining - key.reserved,
  };
}

/** Caches an answer of the database, unless something may have changed since it was asked. */
export function cacheAnswer(
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

/** Returns true until a lease ends. */
export function isLive({ leased_at }: Lease, now: LeaseTime): boolean {
  return isStillLeased(leased_at, now, lease_ms);
}

/** Returns true if a lease is missing, or more than half of it is used: the next call may not fit into it. */
export function isScarce(account: AccountFunds, key: KeyFunds): boolean {
  return isAnyLease(account, key, (lease) => !lease || lease.used * 2n > lease.amount);
}

/** Returns true if a lease is missing or will end soon. */
export function isRenewalDue(account: AccountFunds, key: KeyFunds, now: LeaseTime): boolean {
  return isAnyLease(account, key, (lease) => !lease || ageOf(lease.leased_at, now) > renew_after_ms);
}

/** Returns true if nothing is in use, but a lease is marked as in use. */
export function hasStaleMark(account: AccountFunds, key: KeyFunds, now: LeaseTime): boolean {
  if (account.unwritten > 0n) return false;
  return isAnyLease(
    account,
    key,
    (lease) => !!lease && lease.marked > 0n && ageOf(lease.leased_at, now) > stale_mark_ms,
  );
}

function isAnyLease(account: AccountFunds, key: KeyFunds, test: (lease: Lease | undefined) => boolean): boolean {
  return test(account.lease) || (!key.is_unlimited && test(key.lease));
}

/** Reserves the highest cost of a call; undefined if that does not fit into the leases of the account and of the key. */
export function reserve(account: AccountFunds, request: HoldRequest, now: LeaseTime): Reservation | undefined {
  const { ref } = request;
  const key = account.keys.get(budgetOf(request));
  const { lease } = account;
  if (!key || !lease || account.open.has(ref)) return undefined;
  const leases = key.is_unlimited ? [lease] : [lease, key.lease];
  const most = highestCostOf(request);
  if (!leases.every((each) => each && isLive(each, now) && each.amount - each.used >= most)) return undefined;
  for (const each of leases) if (each) each.used += most;
  addReserved(account, key, most);
  account.unwritten += most;
  key.unwritten += most;
  const state = { busy: undefined, is_refused: false, has_failed: false, failure: undefined };
  const reservation: Reservation = { request, account, lease, made_at_ms: now.elapsed_ms, ...state };
  account.open.set(ref, reservation);
  return reservation;
}

/** Returns the highest cost of a call, which is kept free for it. */
export function highestCostOf({ amount, cost_max = amount }: HoldRequest): Money {
  return cost_max > amount ? cost_max : amount;
}

/** Ends a reservation, which is booked, or never will be. */
export function endReservation({ account, request }: Reservation): void {
  if (!account.open.delete(request.ref)) return;
  const key = keyFundsOf(account, request);
  const most = highestCostOf(request);
  addReserved(account, key, -most);
  account.unwritten -= most;
  key.unwritten -= most;
}

/** Adds to what is reserved; a negative amount takes away from it. */
export function addReserved(account: AccountFunds, key: KeyFunds | undefined, amount: Money): void {
  account.reserved += amount;
  if (key) key.reserved += amount;
}

/** A request for leases, and the function that takes its answer. */
export type PendingLease = { request: LeaseRequest; take(answer: LeaseAnswer): void };

/**
 * Begins a request for leases in place of the present ones. Half of what is left of them stays usable meanwhile, and will
 * be leased in any case; the database decides about the other half, so that a node that has much leaves some to others.
 */
export function beginLease(account: AccountFunds, key: KeyFunds, owner: LeaseOwner, at: LeaseTime): PendingLease {
  const own = promiseHalf(account, at);
  const of_key = promiseHalf(key, at);
  return {
    request: { ...owner, in_use: own.in_use, least: own.least, key_in_use: of_key.in_use, key_least: of_key.least },
    take({ amount, key_amount }) {
      own.take(amount, at);
      key.is_unlimited = key_amount === null;
      if (key_amount !== null) of_key.take(key_amount, at);
    },
  };
}

function promiseHalf(
  leasable: Leasable,
  at: LeaseTime,
): { in_use: Money; least: Money; take: (amount: Money, leased_at: LeaseTime) => void } {
  if (leasable.lease && !isLive(leasable.lease, at)) leasable.lease = undefined; // others may have it by now
  const { lease, unwritten: in_use, recalls } = leasable;
  const used_before = lease?.used ?? 0n;
  const left = lease ? (lease.amount - lease.used) / 2n : 0n;
  if (lease) lease.amount = lease.used + left;
  return {
    in_use,
    least: in_use + left,
    take(amount, leased_at) {
      if (leasable.recalls !== recalls) return; // it is being returned
      leasable.lease = { amount, used: in_use + (lease?.used ?? 0n) - used_before, marked: in_use, leased_at };
    },
  };
}

/** Drops a lease. No other one is asked for until `recalled_until_ms`. */
export function dropLease(leasable: Leasable, recalled_until_ms: number): void {
  leasable.recalls += 1;
  leasable.lease = undefined;
  leasable.recalled_until_ms = recalled_until_ms;
}

/** Returns true if leases of the account and of the key may be asked for now. */
export function mayLease(account: AccountFunds, key: KeyFunds, now: LeaseTime): boolean {
  return (
    now.session !== undefined && account.recalled_until_ms <= now.elapsed_ms && key.recalled_until_ms <= now.elapsed_ms
  );
}
