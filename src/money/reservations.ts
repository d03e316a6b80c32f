import { isLocked, isUnavailable } from '../db/database.ts';
import type { LeaseTime } from '../leases/liveness.ts';
import {
  beginLease,
  cachedFunds,
  count,
  dropIdle,
  dropLease,
  endReservation,
  isLive,
  isMarkedInVain,
  isOld,
  isScarce,
  keyOf,
  learn,
  lease_ms,
  leftOf,
  mayLease,
  mostOf,
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

/** A call that lasts longer has its hold written: for the balance that people see, and should this process die. */
const unwritten_ms = 250;

/** Should the NOTIFY about a withdrawal or a new limit be lost, it may go unnoticed for so long. */
const trusted_ms = 60_000;

/** A database that says nothing for so long although it was asked is waited for. */
const silent_ms = 1_000;

/** The database leases nothing of what it has recalled for so long. */
const recalled_ms = 2_000;

const accounts_max = 20_000;

/**
 * Makes holds of which most are answered out of what this node has leased of the account and of the key's limit, and
 * booked together with their end (decision 75). PostgreSQL remains the only truth: it never books what is not there, and
 * gives what is leased to one node to no other. Everybody else sees a hold 250 ms later. That a ref had a hold before is
 * not noticed until its end, which happens once in any case. `time`: of the leases of this node.
 */
export function reserveInMemory(holds: Holds, time: () => LeaseTime): Holds {
  return new LeasedHolds(holds, time);
}

/** The part of an answer about the account, and about the key if it says anything of one. */
type Answered = { available: Money; remaining?: Money | null };

class LeasedHolds implements Holds {
  readonly #holds: Holds;
  readonly #time: () => LeaseTime;
  readonly #accounts = new Map<string, AccountFunds>(); // oldest first
  /** Accounts that are not known here, and whose leases are being given back: one that is granted meanwhile would go too. */
  readonly #ending = new Map<string, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #is_stopped = false;
  /** The reason why the last call got no answer: until there is one, calls shall fail at their hold, before they cost. */
  #outage: { error: unknown } | undefined;
  #pending_calls = 0;
  #heard_at_ms = 0;

  constructor(holds: Holds, time: () => LeaseTime) {
    this.#holds = holds;
    this.#time = time;
  }

  funds(account_id: string, whose: KeyName): Funds | undefined {
    const account = this.#accounts.get(account_id);
    return account && !this.#isSilent() ? cachedFunds(account, whose, this.#time().elapsed_ms) : undefined;
  }

  async readFunds(whose: Omit<HoldRequest, 'amount'>): Promise<Funds> {
    const account = this.#find(whose.account_id);
    const key = keyOf(account, whose);
    return leftOf(account, key, await this.#ask(account, key, 0n, this.#holds.readFunds(whose)));
  }

  refusedBy(whose: RefusedKey): Promise<RefusingBudget | undefined> {
    return this.#holds.refusedBy(whose);
  }

  async hold(request: HoldRequest): Promise<HoldAnswer> {
    const account = this.#find(request.account_id);
    const key = keyOf(account, request);
    const now = this.#time();
    const is_silent = this.#isSilent();
    const is_reserved = !is_silent && reserve(account, request, now) !== undefined;
    const is_busy = now.elapsed_ms - account.held_at_ms < lease_ms;
    account.held_at_ms = now.elapsed_ms;
    const holding = is_reserved ? undefined : this.#holdInDatabase(account, request);
    // Behind the hold, in the same call of the database.
    if (is_busy && !is_silent && (!is_reserved || isScarce(account, key))) this.#renew(account, key, request, now);
    if (holding) return holding;
    this.#arm(unwritten_ms);
    const { value: available } = account.available;
    const { value: remaining } = key.remaining;
    return { outcome: 'held', ...leftOf(account, key, { available, remaining }) };
  }

  async #holdInDatabase(account: AccountFunds, request: HoldRequest): Promise<HoldAnswer> {
    const key = keyOf(account, request);
    const answer = await this.#ask(account, key, mostOf(request), this.#holds.hold(request));
    const { outcome } = answer;
    return outcome === 'held' || outcome === 'exists' ? answer : { outcome, ...leftOf(account, key, answer) };
  }

  lease(request: LeaseRequest): Promise<LeaseAnswer> {
    return this.#holds.lease(request);
  }

  #booked(reservation: Reservation): void {
    const { account, request } = reservation;
    endReservation(reservation);
    const key = keyOf(account, request);
    const now = this.#time();
    if (isMarkedInVain(account, key, now)) this.#renew(account, key, request, now);
  }

  /** Behind an end, in the same call of the database. */
  #renewOld({ account, request }: Reservation): void {
    const key = keyOf(account, request);
    const now = this.#time();
    if (isOld(account, key, now)) this.#renew(account, key, request, now);
  }

  /** Asks for new leases, unless that is being done, or they are recalled. */
  #renew(account: AccountFunds, key: KeyFunds, whose: LeaseOwner, now: LeaseTime): void {
    if (account.leasing || this.#ending.has(whose.account_id) || !mayLease(account, key, now)) return;
    this.#lease(account, key, whose, now).catch(() => undefined); // calls ask the database themselves
  }

  async #lease(account: AccountFunds, key: KeyFunds, whose: LeaseOwner, now: LeaseTime): Promise<void> {
    const { account_id, key_id, budget_id } = whose;
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
    const account = this.#find(end.account_id);
    const reservation = account.open.get(end.ref);
    const request = reservation?.request ?? held;
    const beyond = request && end.beyond_hold && end.cost !== null ? end.cost - mostOf(request) : 0n;
    if (beyond > 0n) this.#makeRoom(account, request && keyOf(account, request), reservation);
    const asking = this.#holds.settle(end, request);
    const settling = this.#ask(account, request && keyOf(account, request), beyond > 0n ? beyond : 0n, asking);
    if (reservation) {
      reservation.busy = settling;
      this.#renewOld(reservation);
    }
    try {
      const answer = await settling;
      if (reservation) this.#booked(reservation);
      return answer;
    } catch (error) {
      if (reservation) this.#failed(reservation, settling, error);
      throw error;
    }
  }

  /** Makes room for a cost above all that was kept free: what is leased here is charged for it, but nothing that others have reserved. */
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

  /** A recall may have been missed, of a limit that is lower now, and a lease lasts for minutes. The next calls lease anew. */
  #dropLeases(): void {
    for (const account of this.#accounts.values())
      for (const each of [account, ...account.keys.values()]) dropLease(each, each.recalled_until_ms);
  }

  async returnLeases(account_id: string, resource: string): Promise<void> {
    const account = this.#accounts.get(account_id);
    const budget_id = resource === 'money' ? account?.keys.keys().next().value : /^limit (.+)$/.exec(resource)?.[1];
    const key = budget_id === undefined ? undefined : account?.keys.get(budget_id);
    if (!account || budget_id === undefined || !key) return this.#endLease(account_id, resource);
    dropLease(resource === 'money' ? account : key, this.#time().elapsed_ms + recalled_ms);
    await this.#writeAll(account);
    await this.#ending.get(account_id)?.catch(() => undefined);
    while (account.leasing) await account.leasing.catch(() => undefined); // one begins where the one before ended
    await this.#lease(account, key, { account_id, key_id: budget_id }, this.#time());
  }

  /** Ends the lease of a dropped account, or of one that was never here. */
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

  #find(account_id: string): AccountFunds {
    const existing = this.#accounts.get(account_id);
    if (existing) return existing;
    if (this.#accounts.size >= accounts_max) dropIdle(this.#accounts);
    const account = newAccount();
    this.#accounts.set(account_id, account);
    return account;
  }

  /** Asks the database for `amount` of what is available; counted as reserved until it has answered. */
  async #ask<A extends Answered>(
    account: AccountFunds,
    key: KeyFunds | undefined,
    amount: Money,
    asking: Promise<A>,
  ): Promise<A> {
    const { epoch } = account;
    if (this.#pending_calls++ === 0) this.#heard_at_ms = this.#time().elapsed_ms;
    count(account, key, amount);
    try {
      const answer = await asking;
      this.#heard_at_ms = this.#time().elapsed_ms;
      this.#outage = undefined;
      learn(account, key, answer, { until_ms: this.#heard_at_ms + trusted_ms, epoch });
      return answer;
    } catch (error) {
      if (isUnavailable(error) && !isLocked(error)) this.#outage = { error };
      account.epoch++;
      throw error;
    } finally {
      this.#pending_calls--;
      count(account, key, -amount);
    }
  }

  #isSilent(): boolean {
    if (this.#outage) return true;
    return this.#pending_calls > 0 && this.#time().elapsed_ms - this.#heard_at_ms > silent_ms;
  }

  /** Writes the hold of a reservation. */
  #write(reservation: Reservation): void {
    const { request, account } = reservation;
    // It is counted already, as what it is: a reservation.
    const holding = this.#holds.hold({ ...request, is_leased: true });
    const asking = this.#ask(account, keyOf(account, request), 0n, holding);
    const writing: Promise<void> = asking.then(
      ({ outcome }) => {
        if (outcome !== 'held' && outcome !== 'exists') this.#refused(reservation);
        else endReservation(reservation);
      },
      (error: unknown) => {
        if (isUnavailable(error)) this.#putOff(reservation, writing, error);
        else this.#refused(reservation);
      },
    );
    reservation.busy = writing;
  }

  async #writeAll(account: AccountFunds): Promise<void> {
    if (account.open.size === 0) return;
    this.#writeUnwritten(account);
    await Promise.allSettled([...account.open.values()].map(({ busy }) => busy));
  }

  #writeUnwritten(account: AccountFunds, but?: Reservation): void {
    for (const reservation of account.open.values())
      if (!reservation.busy && reservation !== but) this.#write(reservation);
  }

  #refused(reservation: Reservation): void {
    reservation.is_refused = true;
    if (reservation.has_failed) endReservation(reservation);
  }

  /** Its end was not booked. What can be written is, for the sweep to find should the end not come again. */
  #failed(reservation: Reservation, settling: Promise<unknown>, error: unknown): void {
    reservation.has_failed = true;
    if (reservation.is_refused) endReservation(reservation);
    else this.#putOff(reservation, settling, error);
  }

  /** Waits for the database to be back, and writes then. */
  #putOff(reservation: Reservation, work: Promise<unknown>, error: unknown): void {
    const is_open = reservation.account.open.get(reservation.request.ref) === reservation;
    if (reservation.busy !== work || !is_open) return; // it is being settled, or was written meanwhile
    reservation.busy = undefined;
    reservation.failure = { error };
    reservation.made_at_ms = this.#time().elapsed_ms;
    this.#arm(unwritten_ms);
  }

  #arm(wait_ms: number): void {
    if (!this.#is_stopped) this.#timer ??= setTimeout(() => this.#writeOld(), wait_ms).unref();
  }

  /** Looks at all accounts, eight times a second at most, which is 0.2 ms for 20,000 of them. */
  #writeOld(): void {
    this.#timer = undefined;
    const before_ms = this.#time().elapsed_ms - unwritten_ms;
    let is_any_left = false;
    for (const { open } of this.#accounts.values()) {
      for (const reservation of open.values()) {
        if (reservation.busy) continue;
        if (reservation.made_at_ms <= before_ms) this.#write(reservation);
        else is_any_left = true;
      }
    }
    if (is_any_left) this.#arm(unwritten_ms / 2);
  }
}
