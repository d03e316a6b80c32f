import { isLocked, isUnavailable } from '../db/database.ts';
import type { CloseAnswer, CloseRequest, HoldAnswer, HoldBatcher, HoldRequest } from './holds.ts';
import { money_max, type Money } from './money.ts';

/**
 * Holds and closes, of which most holds are pledged: answered out of what this process knows of the account, and
 * booked together with their end (decision 24). PostgreSQL remains the only truth: it never books what is not there.
 */
export type Pledges = {
  /**
   * Reserves; at once, if what is known of the account leaves no doubt. Everybody else sees it 250 ms later. Each ref
   * is asked for once: that it had a hold before is not noticed until its end, which happens once in any case.
   */
  hold(request: HoldRequest): Promise<HoldAnswer>;
  /**
   * Returns the amount that a hold may take: from memory if known, or read from the database. Possible costs
   * of running calls beyond their holds are left out.
   */
  funds(account_id: string, whose: KeyName): Funds | undefined;
  readFunds(whose: Omit<HoldRequest, 'amount'>): Promise<Funds>;
  /** A hold that can be answered at once, which is nearly always; else undefined, and nothing is held. */
  pledge(request: HoldRequest): HoldAnswer | undefined;
  /**
   * Settles or releases; on the disk when it resolves. `pledge` is what was held, for an end whose call was of another
   * process: its hold may never have been written.
   */
  close(request: CloseRequest, pledge?: HoldRequest): Promise<CloseAnswer>;
  /** Returns the hold of a running call, as far as this process knows. */
  heldFor(account_id: string, ref: string): HoldRequest | undefined;
  /** Resolves when all pledges to an account's calls are booked: for whoever reads its money. */
  written(account_id: string): Promise<void>;
  /** Runs what takes money of an account in another way: all pledges are booked before, none is made meanwhile. */
  aside<T>(account_id: string, work: () => Promise<T>): Promise<T>;
  /** Invalidates the cached amounts of the account, or of all. */
  forget(account_id?: string): void;
  /** For how long the oldest call of the database under way has had no answer; 0 without one. */
  oldest_ms(): number;
  /** Writes no more by itself. */
  stop(): void;
};

/** The account's available money and the rest of its key's monthly limit: null without a limit. */
export type Funds = Pick<HoldAnswer, 'available' | 'remaining'>;

/** A key, by what has its limit. */
type KeyName = Pick<HoldRequest, 'key_id' | 'budget_id'>;

/** On which money_credit and money_limit name the account whose money an operator took out or limited. */
export const money_channel = 'money_changed';

/** A call that lasts longer has its hold written: for the balance that people see, and should this process die. */
const unwritten_ms = 250;

/** Should the NOTIFY about a withdrawal or a new limit be lost, it may go unnoticed for so long. */
const known_ms = 60_000;

/** Silence of the database after which its answer is awaited, though it was asked. */
const silent_ms = 1_000;

const accounts_max = 20_000;

/** `elapsed_ms` is a monotonic clock. */
export function makePledges(batcher: HoldBatcher, elapsed_ms: () => number = () => performance.now()): Pledges {
  return new HoldPledges(batcher, elapsed_ms);
}

/** The last answer of the database, its expiry, and the epoch of its account at the question. */
type Known<T> = { value: T; until_ms: number; epoch: number };

type Account = {
  available: Known<Money>;
  /**
   * Money that the database may take from `available` without our knowing yet: pledges, and holds that it is
   * being asked for.
   */
  pledged: Money;
  /** By the key whose budget it is: keys that share one are one here. */
  keys: Map<string, Key>;
  /** One more whenever something may have changed: what was known or asked before counts no longer. */
  epoch: number;
  /** While above zero, others take money; no pledge is made. */
  asides: number;
  /** Pledges that are not booked yet, by ref. */
  open: Map<string, Pledge>;
  /** Of each call under way whose hold is booked, what was asked for. */
  booked: Map<string, HoldRequest>;
  /** Possible costs of running calls beyond their holds: the sum, and each by its ref. */
  exposed: Money;
  exposures: Map<string, { key: Key; amount: Money }>;
};

/**
 * The rest of a key's monthly limit, null without one; the pledged part of it, and the possible costs of its
 * calls beyond their holds.
 */
type Key = { remaining: Known<Money | null>; pledged: Money; exposed: Money };

type Pledge = {
  request: HoldRequest;
  account: Account;
  made_at_ms: number;
  /** Its hold is being written or it is being kept; or it was refused, and waits for its end. */
  busy: Promise<unknown> | undefined;
  /** The database had no money for its hold, since an operator took it out: its end takes what there is. */
  is_refused: boolean;
  /** Its end could not be booked, and may not come again. */
  has_failed: boolean;
  /** The error for which it was deferred, if it was. */
  failure: { error: unknown } | undefined;
};

/** The amounts of an answer: the account's, and the key's if there is one. */
type Answered = { available: Money; remaining?: Money | null };

class HoldPledges implements Pledges {
  readonly #batcher: HoldBatcher;
  readonly #elapsed_ms: () => number;
  readonly #accounts = new Map<string, Account>(); // oldest first
  #timer: NodeJS.Timeout | undefined;
  #is_stopped = false;
  /** The error of the last unanswered call: until an answer comes, calls fail at their hold, before they cost. */
  #outage: { error: unknown } | undefined;
  #asked = 0;
  #heard_at_ms = 0;

  constructor(batcher: HoldBatcher, elapsed_ms: () => number) {
    this.#batcher = batcher;
    this.#elapsed_ms = elapsed_ms;
  }

  funds(account_id: string, whose: KeyName): Funds | undefined {
    const account = this.#accounts.get(account_id);
    const key = account?.keys.get(budgetOf(whose));
    const is_known = account && key && !this.#is_silent() && isAllKnown(account, key, this.#elapsed_ms());
    return is_known ? leftOf(account, key, lastAnswer(account, key)) : undefined;
  }

  /** By a hold that nobody can have: it is answered in its turn, like all that takes money, and changes nothing. */
  async readFunds(whose: Omit<HoldRequest, 'amount'>): Promise<Funds> {
    const account = this.#find(whose.account_id);
    const request = { ...whose, amount: money_max + 1n };
    const { available, remaining } = await this.#ask(account, request, 0n, this.#batcher.hold(request));
    return leftOf(account, keyOf(account, whose), { available, remaining });
  }

  pledge(request: HoldRequest): HoldAnswer | undefined {
    const account = this.#find(request.account_id);
    if (this.#is_silent() || !pledgeOf(account, request, this.#elapsed_ms())) return undefined;
    this.#arm(unwritten_ms);
    const key = keyOf(account, request);
    return { outcome: 'held', ...leftOf(account, key, lastAnswer(account, key)) };
  }

  async hold(request: HoldRequest): Promise<HoldAnswer> {
    const pledged = this.pledge(request);
    if (pledged) return pledged;
    const account = this.#find(request.account_id);
    this.#writeUnwritten(account); // so that the database knows of it when it comes to this one
    expose(account, request);
    let is_held = false;
    try {
      const answer = await this.#ask(account, request, request.amount, this.#batcher.hold(request));
      is_held = answer.outcome === 'held' || answer.outcome === 'exists';
      if (!is_held) return { outcome: answer.outcome, ...leftOf(account, keyOf(account, request), answer) };
      account.booked.set(request.ref, request);
      return answer;
    } finally {
      if (!is_held) cover(account, request.ref);
    }
  }

  heldFor(account_id: string, ref: string): HoldRequest | undefined {
    const account = this.#accounts.get(account_id);
    return account?.open.get(ref)?.request ?? account?.booked.get(ref);
  }

  close(end: CloseRequest, other?: HoldRequest): Promise<CloseAnswer> {
    const account = this.#find(end.account_id);
    const pledge = account.open.get(end.ref);
    const request = pledge?.request ?? account.booked.get(end.ref) ?? other;
    if (!request) return this.#ask(account, undefined, 0n, this.#batcher.close(end));
    const beyond = end.beyond_hold && end.cost !== null && end.cost > request.amount ? end.cost - request.amount : 0n;
    if (beyond > 0n) this.#writeUnwritten(account, pledge); // so that it takes nothing that others are pledged
    const keeping = this.#ask(account, request, beyond, this.#batcher.keep({ pledge: request, end }));
    if (pledge) pledge.busy = keeping;
    return keeping.then(
      (kept) => {
        if (pledge) endPledge(pledge);
        account.booked.delete(end.ref);
        cover(account, end.ref);
        const { remaining: _, ...answer } = kept;
        return answer;
      },
      (error: unknown) => {
        if (pledge) this.#failed(pledge, keeping, error);
        throw error;
      },
    );
  }

  async written(account_id: string): Promise<void> {
    const account = this.#accounts.get(account_id);
    if (account) await this.#writeAll(account);
  }

  async aside<T>(account_id: string, work: () => Promise<T>): Promise<T> {
    const account = this.#find(account_id);
    account.asides++;
    try {
      await this.#writeAll(account);
      const put_off = [...account.open.values()].find(({ busy }) => !busy);
      if (put_off?.failure) throw put_off.failure.error;
      return await work();
    } finally {
      account.epoch++;
      account.asides--;
    }
  }

  forget(account_id?: string): void {
    const chosen = account_id === undefined ? this.#accounts.values() : [this.#accounts.get(account_id)];
    for (const account of chosen) if (account) account.epoch++;
  }

  oldest_ms(): number {
    return this.#batcher.oldest_ms();
  }

  stop(): void {
    this.#is_stopped = true;
    clearTimeout(this.#timer);
  }

  #find(account_id: string): Account {
    const existing = this.#accounts.get(account_id);
    if (existing) return existing;
    if (this.#accounts.size >= accounts_max) dropIdle(this.#accounts);
    const account = newAccount();
    this.#accounts.set(account_id, account);
    return account;
  }

  /** Asks the database for `amount` of what is available; counted as pledged until it has answered. */
  #ask<A extends Answered>(
    account: Account,
    whose: HoldRequest | undefined,
    amount: Money,
    asking: Promise<A>,
  ): Promise<A> {
    const { epoch } = account;
    const key = whose && keyOf(account, whose);
    if (this.#asked++ === 0) this.#heard_at_ms = this.#elapsed_ms();
    count(account, key, amount);
    const answered = () => {
      this.#asked--;
      count(account, key, -amount);
    };
    return asking.then(
      (answer) => {
        answered();
        this.#heard_at_ms = this.#elapsed_ms();
        this.#outage = undefined;
        learn(account, key, answer, { until_ms: this.#heard_at_ms + known_ms, epoch });
        return answer;
      },
      (error: unknown) => {
        answered();
        if (isUnavailable(error) && !isLocked(error)) this.#outage = { error };
        account.epoch++;
        throw error;
      },
    );
  }

  #is_silent(): boolean {
    if (this.#outage) return true;
    return this.#asked > 0 && this.#elapsed_ms() - this.#heard_at_ms > silent_ms;
  }

  /** Has the hold of a pledge written. Never rejects. */
  #write(pledge: Pledge): Promise<void> {
    const { request, account } = pledge;
    // It is counted already, as what it is: a pledge.
    const writing: Promise<void> = this.#ask(account, request, 0n, this.#batcher.hold(request)).then(
      ({ outcome }) => {
        if (outcome !== 'held' && outcome !== 'exists') this.#refused(pledge);
        else if (!endPledge(pledge)) return;
        else if (pledge.has_failed) cover(account, request.ref);
        else account.booked.set(request.ref, request);
      },
      (error: unknown) => (isUnavailable(error) ? this.#putOff(pledge, writing, error) : this.#refused(pledge)),
    );
    pledge.busy = writing;
    return writing;
  }

  async #writeAll(account: Account): Promise<void> {
    if (account.open.size === 0) return;
    this.#writeUnwritten(account);
    await Promise.allSettled([...account.open.values()].map(({ busy }) => busy));
  }

  #writeUnwritten(account: Account, but?: Pledge): void {
    for (const pledge of account.open.values()) if (!pledge.busy && pledge !== but) void this.#write(pledge);
  }

  #refused(pledge: Pledge): void {
    pledge.is_refused = true;
    if (pledge.has_failed) giveUp(pledge);
  }

  /** Its end was not booked. What can be written is, for the sweep to find should the end not come again. */
  #failed(pledge: Pledge, keeping: Promise<unknown>, error: unknown): void {
    pledge.has_failed = true;
    if (pledge.is_refused) giveUp(pledge);
    else this.#putOff(pledge, keeping, error);
  }

  /** Defers the booking until the database is back. */
  #putOff(pledge: Pledge, work: Promise<unknown>, error: unknown): void {
    const is_open = pledge.account.open.get(pledge.request.ref) === pledge;
    if (pledge.busy !== work || !is_open) return; // it is being kept, or was written meanwhile
    pledge.busy = undefined;
    pledge.failure = { error };
    pledge.made_at_ms = this.#elapsed_ms();
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
      for (const pledge of open.values()) {
        if (pledge.busy) continue;
        if (pledge.made_at_ms <= before_ms) void this.#write(pledge);
        else is_any_left = true;
      }
    }
    if (is_any_left) this.#arm(unwritten_ms / 2);
  }
}

const unknown = { until_ms: Number.NEGATIVE_INFINITY, epoch: -1 };

function newAccount(): Account {
  return {
    available: { value: 0n, ...unknown },
    pledged: 0n,
    keys: new Map(),
    epoch: 0,
    asides: 0,
    open: new Map(),
    booked: new Map(),
    exposed: 0n,
    exposures: new Map(),
  };
}

function budgetOf({ key_id, budget_id = key_id }: KeyName): string {
  return budget_id;
}

function keyOf(account: Account, whose: KeyName): Key {
  const id = budgetOf(whose);
  const existing = account.keys.get(id);
  if (existing) return existing;
  const key: Key = { remaining: { value: null, ...unknown }, pledged: 0n, exposed: 0n };
  account.keys.set(id, key);
  return key;
}

/** Forgets the oldest account with nothing under way. */
function dropIdle(accounts: Map<string, Account>): void {
  for (const [id, { open, booked, asides, pledged }] of accounts) {
    if (open.size + booked.size + asides > 0 || pledged > 0n) continue;
    accounts.delete(id);
    return;
  }
}

/**
 * A pledge, if with it no more than half of what the account and the key are known to have is pledged or may be taken
 * beyond holds: beyond that the database decides, so that who has money for exactly a hundred calls gets exactly a hundred.
 */
function pledgeOf(account: Account, request: HoldRequest, made_at_ms: number): Pledge | undefined {
  const key = account.keys.get(budgetOf(request));
  if (!key || !isAllKnown(account, key, made_at_ms)) return undefined;
  const { amount, cost_max = amount, ref } = request;
  const { value: remaining } = key.remaining;
  if ((account.pledged + account.exposed + cost_max) * 2n > account.available.value) return undefined;
  if (remaining !== null && (key.pledged + key.exposed + cost_max) * 2n > remaining) return undefined;
  if (account.open.has(ref) || account.booked.has(ref)) return undefined;
  count(account, key, amount);
  expose(account, request);
  const pledge = {
    request,
    account,
    made_at_ms,
    busy: undefined,
    is_refused: false,
    has_failed: false,
    failure: undefined,
  };
  account.open.set(ref, pledge);
  return pledge;
}

/** It is booked, and the database counts it from now on; or it never will be. True if it was a pledge until now. */
function endPledge({ account, request }: Pledge): boolean {
  const was_open = account.open.delete(request.ref);
  if (was_open) count(account, keyOf(account, request), -request.amount);
  return was_open;
}

function count(account: Account, key: Key | undefined, amount: Money): void {
  account.pledged += amount;
  if (key) key.pledged += amount;
}

function isKnown({ epoch }: Account, known: Known<unknown>, now_ms: number): boolean {
  return known.epoch === epoch && known.until_ms > now_ms;
}

function isAllKnown(account: Account, key: Key, now_ms: number): boolean {
  return account.asides === 0 && isKnown(account, account.available, now_ms) && isKnown(account, key.remaining, now_ms);
}

/** Returns the last amounts from the database. */
function lastAnswer(account: Account, key: Key): Funds {
  return { available: account.available.value, remaining: key.remaining.value };
}

/** Returns the part of the last amounts that is left for one more hold. */
function leftOf(account: Account, key: Key, { available, remaining }: Funds): Funds {
  return {
    available: available - account.pledged - account.exposed,
    remaining: remaining === null ? null : remaining - key.pledged - key.exposed,
  };
}

/** Reserves the possible cost of a call beyond its hold until the call has ended. */
function expose(account: Account, request: HoldRequest): void {
  const { ref, amount, cost_max = amount } = request;
  if (cost_max <= amount || account.exposures.has(ref)) return;
  const key = keyOf(account, request);
  const beyond = cost_max - amount;
  account.exposures.set(ref, { key, amount: beyond });
  account.exposed += beyond;
  key.exposed += beyond;
}

function cover(account: Account, ref: string): void {
  const exposure = account.exposures.get(ref);
  if (!exposure) return;
  account.exposures.delete(ref);
  account.exposed -= exposure.amount;
  exposure.key.exposed -= exposure.amount;
}

/** Nothing of it was booked, and nothing will be. */
function giveUp(pledge: Pledge): void {
  endPledge(pledge);
  cover(pledge.account, pledge.request.ref);
}

function learn(account: Account, key: Key | undefined, answer: Answered, since: Omit<Known<unknown>, 'value'>): void {
  if (account.epoch !== since.epoch) return;
  account.available = { value: answer.available, ...since };
  if (key && answer.remaining !== undefined) key.remaining = { value: answer.remaining, ...since };
}
