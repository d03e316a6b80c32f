import { isLocked, isUnavailable } from '../db/database.ts';
import type { LeaseTime } from '../leases/liveness.ts';
import {
  beginLease,
  cachedFunds,
  addReserved,
  dropIdleAccount,
  dropLease,
  endReservation,
  isLive,
  hasStaleMark,
  isRenewalDue,
  isScarce,
  keyFundsOf,
  cacheAnswer,
  lease_ms,
  fundsLeft,
  mayLease,
  highestCostOf,
  newAccount,
  reserve,
  type AccountFunds,
  type KeyFunds,
  type Reservation,
} from './account-funds.ts';
import type { RefusedKey, RefusingBudget } from './account-budgets.ts';
import type {
  CloseAnswer,
  CloseRequest,
  Funds,
  HoldAnswer,
  HoldRequest,
  Holds,
  KeyName,
  LeaseAnswer,
  LeaseOwner,
  LeaseRequest,
} from './holds.ts';
import type { Money } from './money.ts';

/** Time after which the hold of a call is written: the balance that people see has it, and it outlives this process. */
const write_after_ms = 250;

/** Validity of a cached answer: a withdrawal or a new limit whose NOTIFY was lost is seen after this. */
const cache_ms = 60_000;

/** Silence of the database after which calls wait for its answer, instead of using cached ones. */
const silence_max_ms = 1_000;

/** Time after a recall in which the database grants no new lease. */
const recall_pause_ms = 2_000;

const accounts_max = 20_000;

/**
 * Returns holds of which most are answered from the leases of this node, and booked together with their end (decision
 * 75). PostgreSQL stays the only truth: it never books money that is not there, and never leases the same money to two
 * nodes. Others see a hold up to 250 ms later. A second hold of the same ref is noticed only at its end, which happens
 * once in any case. `time`: the time for the leases of this node.
 */
export function reserveInMemory(holds: Holds, time: () => LeaseTime): Holds {
  return new LeasedHolds(holds, time);
}

/** The part of an answer that says what is left of the account, and of the key if it is about one. */
type FundsAnswer = { available: Money; remaining?: Money | null };

class LeasedHolds implements Holds {
  readonly #holds: Holds;
  readonly #time: () => LeaseTime;
  readonly #accounts = new Map<string, AccountFunds>(); // oldest first
  /** Accounts that are not in `#accounts` and whose leases are being returned: a lease granted meanwhile would go too. */
  readonly #ending = new Map<string, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #is_stopped = false;
  /** The error of the last request to the database. While it is set, holds ask the database: calls fail there, before they cost. */
  #outage: { error: unknown } | undefined;
  #pending_calls = 0;
  #answered_at_ms = 0;

  constructor(holds: Holds, time: () => LeaseTime) {
    this.#holds = holds;
    this.#time = time;
  }

  funds(account_id: string, key_name: KeyName): Funds | undefined {
    const account = this.#accounts.get(account_id);
    return account && !this.#isSilent() ? cachedFunds(account, key_name, this.#time().elapsed_ms) : undefined;
  }

  async readFunds(request: Omit<HoldRequest, 'amount'>): Promise<Funds> {
    const account = this.#accountOf(request.account_id);
    const key = keyFundsOf(account, request);
    return fundsLeft(account, key, await this.#askDatabase(account, key, 0n, this.#holds.readFunds(request)));
  }

  refusedBy(key: RefusedKey): Promise<RefusingBudget | undefined> {
    return this.#holds.refusedBy(key);
  }

  async hold(request: HoldRequest): Promise<HoldAnswer> {
    const account = this.#accountOf(request.account_id);
    const key = keyFundsOf(account, request);
    const now = this.#time();
    const is_silent = this.#isSilent();
    const is_reserved = !is_silent && reserve(account, request, now) !== undefined;
    const is_busy = now.elapsed_ms - account.held_at_ms < lease_ms;
    account.held_at_ms = now.elapsed_ms;
    const holding = is_reserved ? undefined : this.#holdInDatabase(account, request);
    // After the hold, so that both are in one call of the database.
    if (is_busy && !is_silent && (!is_reserved || isScarce(account, key))) this.#renew(account, key, request, now);
    if (holding) return holding;
    this.#startTimer(write_after_ms);
    const { value: available } = account.available;
    const { value: remaining } = key.remaining;
    return { outcome: 'held', ...fundsLeft(account, key, { available, remaining }) };
  }

  async #holdInDatabase(account: AccountFunds, request: HoldRequest): Promise<HoldAnswer> {
    const key = keyFundsOf(account, request);
    const answer = await this.#askDatabase(account, key, highestCostOf(request), this.#holds.hold(request));
    const { outcome } = answer;
    return outcome === 'held' || outcome === 'exists' ? answer : { outcome, ...fundsLeft(account, key, answer) };
  }

  lease(request: LeaseRequest): Promise<LeaseAnswer> {
    return this.#holds.lease(request);
  }

  #noteBooked(reservation: Reservation): void {
    const { account, request } = reservation;
    endReservation(reservation);
    const key = keyFundsOf(account, request);
    const now = this.#time();
    if (hasStaleMark(account, key, now)) this.#renew(account, key, request, now);
  }

  /** Renews old leases after the end of a call, in the same call of the database. */
  #renewOld({ account, request }: Reservation): void {
    const key = keyFundsOf(account, request);
    const now = this.#time();
    if (isRenewalDue(account, key, now)) this.#renew(account, key, request, now);
  }

  /** Asks for new leases, unless a request is under way or they are recalled. */
  #renew(account: AccountFunds, key: KeyFunds, owner: LeaseOwner, now: LeaseTime): void {
    if (account.leasing || this.#ending.has(owner.account_id) || !mayLease(account, key, now)) return;
    this.#lease(account, key, owner, now).catch(() => undefined); // then holds ask the database
  }

  async #lease(account: AccountFunds, key: KeyFunds, owner: LeaseOwner, now: LeaseTime): Promise<void> {
    const { account_id, key_id, budget_id } = owner;
    const { request, take } = beginLease(account, key, { account_id, key_id, budget_id }, now);
    account.leasing = this.#holds.lease(request).then(take);
    try {
      await account.leasing;
    } finally {
      account.leasing = undefined;
    }
  }

  async confirm(request: HoldRequest): Promise<boolean> {
    const reservation = this.#accounts.get(request.account_id)?.open.get(request.ref);
    if (!reservation || isLive(reservation.lease, this.#time())) return true;
    if (!reservation.busy) this.#write(reservation);
    await reservation.busy;
    if (reservation.failure) throw reservation.failure.error;
    return !reservation.is_refused;
  }

  async settle(end: CloseRequest, held?: HoldRequest): Promise<CloseAnswer> {
    const account = this.#accountOf(end.account_id);
    const reservation = account.open.get(end.ref);
    const request = reservation?.request ?? held;
    const beyond = request && end.beyond_hold && end.cost !== null ? end.cost - highestCostOf(request) : 0n;
    if (beyond > 0n) this.#makeRoom(account, request && keyFundsOf(account, request), reservation);
    const asking = this.#holds.settle(end, request);
    const settling = this.#askDatabase(
      account,
      request && keyFundsOf(account, request),
      beyond > 0n ? beyond : 0n,
      asking,
    );
    if (reservation) {
      reservation.busy = settling;
      this.#renewOld(reservation);
    }
    try {
      const answer = await settling;
      if (reservation) this.#noteBooked(reservation);
      return answer;
    } catch (error) {
      if (reservation) this.#noteFailure(reservation, settling, error);
      throw error;
    }
  }

  /** Drops the leases, so that a cost above what was kept free is paid from them; what other calls have reserved is written first. */
  #makeRoom(account: AccountFunds, key: KeyFunds | undefined, reservation: Reservation | undefined): void {
    for (const each of key ? [account, key] : [account]) dropLease(each, this.#time().elapsed_ms);
    this.#writeUnwritten(account, reservation);
  }

  async flush(account_id: string): Promise<void> {
    const account = this.#accounts.get(account_id);
    if (account) await this.#writeAll(account);
  }

  invalidate(account_id?: string): void {
    const chosen = account_id === undefined ? this.#accounts.values() : [this.#accounts.get(account_id)];
    for (const account of chosen) if (account) account.epoch++;
    if (account_id === undefined) this.#dropLeases();
  }

  /** Drops all leases, since a recall for a lower limit may have been missed. The next calls lease again. */
  #dropLeases(): void {
    for (const account of this.#accounts.values())
      for (const each of [account, ...account.keys.values()]) dropLease(each, each.recalled_until_ms);
  }

  async returnLeases(account_id: string, resource: string): Promise<void> {
    const account = this.#accounts.get(account_id);
    const budget_id = resource === 'money' ? account?.keys.keys().next().value : /^limit (.+)$/.exec(resource)?.[1];
    const key = budget_id === undefined ? undefined : account?.keys.get(budget_id);
    if (!account || budget_id === undefined || !key) return this.#endLease(account_id, resource);
    dropLease(resource === 'money' ? account : key, this.#time().elapsed_ms + recall_pause_ms);
    await this.#writeAll(account);
    await this.#ending.get(account_id)?.catch(() => undefined);
    while (account.leasing) await account.leasing.catch(() => undefined); // another one may begin when one ends
    await this.#lease(account, key, { account_id, key_id: budget_id }, this.#time());
  }

  /** Ends the lease of an account that was dropped here, or was never here. */
  async #endLease(account_id: string, resource: string): Promise<void> {
    const before = this.#ending.get(account_id)?.catch(() => undefined);
    const ending = Promise.all([before, this.#holds.returnLeases(account_id, resource)]).then(() => undefined);
    this.#ending.set(account_id, ending);
    try {
      await ending;
    } finally {
      if (this.#ending.get(account_id) === ending) this.#ending.delete(account_id);
    }
  }

  oldest_ms(): number {
    return this.#holds.oldest_ms();
  }

  stop(): void {
    this.#is_stopped = true;
    clearTimeout(this.#timer);
    this.#holds.stop();
  }

  #accountOf(account_id: string): AccountFunds {
    const existing = this.#accounts.get(account_id);
    if (existing) return existing;
    if (this.#accounts.size >= accounts_max) dropIdleAccount(this.#accounts);
    const account = newAccount();
    this.#accounts.set(account_id, account);
    return account;
  }

  /** Waits for an answer of the database about `amount`, which counts as reserved until then. */
  async #askDatabase<A extends FundsAnswer>(
    account: AccountFunds,
    key: KeyFunds | undefined,
    amount: Money,
    asking: Promise<A>,
  ): Promise<A> {
    const { epoch } = account;
    if (this.#pending_calls++ === 0) this.#answered_at_ms = this.#time().elapsed_ms;
    addReserved(account, key, amount);
    try {
      const answer = await asking;
      this.#answered_at_ms = this.#time().elapsed_ms;
      this.#outage = undefined;
      cacheAnswer(account, key, answer, { until_ms: this.#answered_at_ms + cache_ms, epoch });
      return answer;
    } catch (error) {
      if (isUnavailable(error) && !isLocked(error)) this.#outage = { error };
      account.epoch++;
      throw error;
    } finally {
      this.#pending_calls--;
      addReserved(account, key, -amount);
    }
  }

  #isSilent(): boolean {
    if (this.#outage) return true;
    return this.#pending_calls > 0 && this.#time().elapsed_ms - this.#answered_at_ms > silence_max_ms;
  }

  /** Writes the hold of a reservation. */
  #write(reservation: Reservation): void {
    const { request, account } = reservation;
    // It counts as a reservation already, so nothing is added.
    const holding = this.#holds.hold({ ...request, is_leased: true });
    const asking = this.#askDatabase(account, keyFundsOf(account, request), 0n, holding);
    const writing: Promise<void> = asking.then(
      ({ outcome }) => {
        if (outcome !== 'held' && outcome !== 'exists') this.#noteRefusal(reservation);
        else endReservation(reservation);
      },
      (error: unknown) => {
        if (isUnavailable(error)) this.#writeLater(reservation, writing, error);
        else this.#noteRefusal(reservation);
      },
    );
    reservation.busy = writing;
  }

  async #writeAll(account: AccountFunds): Promise<void> {
    if (account.open.size === 0) return;
    this.#writeUnwritten(account);
    await Promise.allSettled([...account.open.values()].map(({ busy }) => busy));
  }

  #writeUnwritten(account: AccountFunds, except?: Reservation): void {
    for (const reservation of account.open.values())
      if (!reservation.busy && reservation !== except) this.#write(reservation);
  }

  #noteRefusal(reservation: Reservation): void {
    reservation.is_refused = true;
    if (reservation.has_failed) endReservation(reservation);
  }

  /** Writes the hold of a call whose end was not booked: the sweep finds it if the end is not tried again. */
  #noteFailure(reservation: Reservation, settling: Promise<unknown>, error: unknown): void {
    reservation.has_failed = true;
    if (reservation.is_refused) endReservation(reservation);
    else this.#writeLater(reservation, settling, error);
  }

  /** Has a hold written again when the database is back. */
  #writeLater(reservation: Reservation, work: Promise<unknown>, error: unknown): void {
    const is_open = reservation.account.open.get(reservation.request.ref) === reservation;
    if (reservation.busy !== work || !is_open) return; // it is being settled, or is written
    reservation.busy = undefined;
    reservation.failure = { error };
    reservation.made_at_ms = this.#time().elapsed_ms;
    this.#startTimer(write_after_ms);
  }

  #startTimer(wait_ms: number): void {
    if (!this.#is_stopped) this.#timer ??= setTimeout(() => this.#writeOld(), wait_ms).unref();
  }

  /** Writes the holds that are old enough. Runs eight times a second at most: 0.2 ms for 20,000 accounts. */
  #writeOld(): void {
    this.#timer = undefined;
    const before_ms = this.#time().elapsed_ms - write_after_ms;
    let is_any_left = false;
    for (const { open } of this.#accounts.values()) {
      for (const reservation of open.values()) {
        if (reservation.busy) continue;
        if (reservation.made_at_ms <= before_ms) this.#write(reservation);
        else is_any_left = true;
      }
    }
    if (is_any_left) this.#startTimer(write_after_ms / 2);
  }
}
