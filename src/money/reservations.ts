import { isLocked, isUnavailable } from '../db/database.ts';
import {
  count,
  cover,
  dropIdle,
  endReservation,
  expose,
  giveUp,
  keyOf,
  knownFunds,
  learn,
  leftOf,
  newAccount,
  reserve,
  type AccountFunds,
  type KeyFunds,
  type Reservation,
} from './account-funds.ts';
import type { CloseAnswer, CloseRequest, Funds, HoldAnswer, HoldRequest, Holds, KeyName } from './holds.ts';
import type { Money } from './money.ts';

/** A call that lasts longer has its hold written: for the balance that people see, and should this process die. */
const unwritten_ms = 250;

/** Should the NOTIFY about a withdrawal or a new limit be lost, it may go unnoticed for so long. */
const trusted_ms = 60_000;

/** A database that says nothing for so long although it was asked is waited for. */
const silent_ms = 1_000;

const accounts_max = 20_000;

/**
 * Makes holds of which most are answered out of what this process knows of the account, and booked together with their end
 * (decision 24). PostgreSQL remains the only truth: it never books what is not there. Everybody else sees a hold
 * 250 ms later. That a ref had a hold before is not noticed until its end, which happens once in any case. `elapsed_ms`
 * is a monotonic clock.
 */
export function reserveInMemory(holds: Holds, elapsed_ms: () => number = () => performance.now()): Holds {
  return new MemoryHolds(holds, elapsed_ms);
}

/** The part of an answer about the account, and about the key if it says anything of one. */
type Answered = { available: Money; remaining?: Money | null };

class MemoryHolds implements Holds {
  readonly #holds: Holds;
  readonly #elapsed_ms: () => number;
  readonly #accounts = new Map<string, AccountFunds>(); // oldest first
  #timer: NodeJS.Timeout | undefined;
  #is_stopped = false;
  /** The reason why the last call got no answer: until there is one, calls shall fail at their hold, before they cost. */
  #outage: { error: unknown } | undefined;
  #pending_calls = 0;
  #heard_at_ms = 0;

  constructor(holds: Holds, elapsed_ms: () => number) {
    this.#holds = holds;
    this.#elapsed_ms = elapsed_ms;
  }

  funds(account_id: string, whose: KeyName): Funds | undefined {
    const account = this.#accounts.get(account_id);
    return account && !this.#isSilent() ? knownFunds(account, whose, this.#elapsed_ms()) : undefined;
  }

  async readFunds(whose: Omit<HoldRequest, 'amount'>): Promise<Funds> {
    const account = this.#find(whose.account_id);
    const key = keyOf(account, whose);
    return leftOf(account, key, await this.#ask(account, key, 0n, this.#holds.readFunds(whose)));
  }

  async hold(request: HoldRequest): Promise<HoldAnswer> {
    const account = this.#find(request.account_id);
    const now_ms = this.#elapsed_ms();
    if (this.#isSilent() || !reserve(account, request, now_ms)) return this.#holdInDatabase(account, request);
    this.#arm(unwritten_ms);
    const { value: available } = account.available;
    const { value: remaining } = keyOf(account, request).remaining;
    return { outcome: 'held', ...leftOf(account, keyOf(account, request), { available, remaining }) };
  }

  async #holdInDatabase(account: AccountFunds, request: HoldRequest): Promise<HoldAnswer> {
    this.#writeUnwritten(account); // so that the database knows of it when it comes to this one
    const key = keyOf(account, request);
    expose(account, request);
    let is_held = false;
    try {
      const answer = await this.#ask(account, key, request.amount, this.#holds.hold(asWritten(request)));
      is_held = answer.outcome === 'held' || answer.outcome === 'exists';
      return is_held ? answer : { outcome: answer.outcome, ...leftOf(account, key, answer) };
    } finally {
      if (!is_held) cover(account, request.ref);
    }
  }

  async settle(end: CloseRequest, held?: HoldRequest): Promise<CloseAnswer> {
    const account = this.#find(end.account_id);
    const reservation = account.open.get(end.ref);
    const request = reservation?.request ?? held;
    const beyond = request && end.beyond_hold && end.cost !== null ? beyondOf(end.cost, request.amount) : 0n;
    if (beyond > 0n) this.#writeUnwritten(account, reservation); // so that it takes nothing that others have reserved
    const asking = this.#holds.settle(end, request && asWritten(request));
    const settling = this.#ask(account, request && keyOf(account, request), beyond, asking);
    if (reservation) reservation.busy = settling;
    try {
      const answer = await settling;
      if (reservation) endReservation(reservation);
      cover(account, end.ref);
      return answer;
    } catch (error) {
      if (reservation) this.#failed(reservation, settling, error);
      throw error;
    }
  }

  async flush(account_id: string): Promise<void> {
    const account = this.#accounts.get(account_id);
    if (account) await this.#writeAll(account);
  }

  async withExclusiveAccess<T>(account_id: string, work: () => Promise<T>): Promise<T> {
    const account = this.#find(account_id);
    account.exclusive++;
    try {
      await this.#writeAll(account);
      const put_off = [...account.open.values()].find(({ busy }) => !busy);
      if (put_off?.failure) throw put_off.failure.error;
      return await work();
    } finally {
      account.epoch++;
      account.exclusive--;
    }
  }

  invalidate(account_id?: string): void {
    const chosen = account_id === undefined ? this.#accounts.values() : [this.#accounts.get(account_id)];
    for (const account of chosen) if (account) account.epoch++;
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
    if (this.#pending_calls++ === 0) this.#heard_at_ms = this.#elapsed_ms();
    count(account, key, amount);
    try {
      const answer = await asking;
      this.#heard_at_ms = this.#elapsed_ms();
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
    return this.#pending_calls > 0 && this.#elapsed_ms() - this.#heard_at_ms > silent_ms;
  }

  /** Has the hold of a reservation written. */
  #write(reservation: Reservation): void {
    const { request, account } = reservation;
    // It is counted already, as what it is: a reservation.
    const asking = this.#ask(account, keyOf(account, request), 0n, this.#holds.hold(asWritten(request)));
    const writing: Promise<void> = asking.then(
      ({ outcome }) => {
        if (outcome !== 'held' && outcome !== 'exists') this.#refused(reservation);
        else if (endReservation(reservation) && reservation.has_failed) cover(account, request.ref);
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
    if (reservation.has_failed) giveUp(reservation);
  }

  /** Its end was not booked. What can be written is, for the sweep to find should the end not come again. */
  #failed(reservation: Reservation, settling: Promise<unknown>, error: unknown): void {
    reservation.has_failed = true;
    if (reservation.is_refused) giveUp(reservation);
    else this.#putOff(reservation, settling, error);
  }

  /** Waits for the database to be back, and writes then. */
  #putOff(reservation: Reservation, work: Promise<unknown>, error: unknown): void {
    const is_open = reservation.account.open.get(reservation.request.ref) === reservation;
    if (reservation.busy !== work || !is_open) return; // it is being settled, or was written meanwhile
    reservation.busy = undefined;
    reservation.failure = { error };
    reservation.made_at_ms = this.#elapsed_ms();
    this.#arm(unwritten_ms);
  }

  #arm(wait_ms: number): void {
    if (!this.#is_stopped) this.#timer ??= setTimeout(() => this.#writeOld(), wait_ms).unref();
  }

  /** Looks at all accounts, eight times a second at most, which is 0.2 ms for 20,000 of them. */
  #writeOld(): void {
    this.#timer = undefined;
    const before_ms = this.#elapsed_ms() - unwritten_ms;
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

/** The hold as the database has it: what its call may cost beyond it is kept free here. */
function asWritten(request: HoldRequest): HoldRequest {
  return { ...request, cost_max: request.amount };
}

function beyondOf(cost: Money, amount: Money): Money {
  return cost > amount ? cost - amount : 0n;
}
