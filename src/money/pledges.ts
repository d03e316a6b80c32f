import type { CloseAnswer, CloseRequest, HoldAnswer, HoldBatcher, HoldRequest } from './holds.ts';
import type { Money } from './money.ts';

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
  /** Settles or releases; on the disk when it resolves. */
  close(request: CloseRequest): Promise<CloseAnswer>;
  /** Resolves when all pledges to an account's calls are booked: for whoever reads its money. */
  written(account_id: string): Promise<void>;
  /** Runs what takes money of an account in another way: all pledges are booked before, none is made meanwhile. */
  aside<T>(account_id: string, work: () => Promise<T>): Promise<T>;
  /** What is known of the account, or of all, may no longer be true. */
  forget(account_id?: string): void;
  /** Writes no more by itself. */
  stop(): void;
};

/** On which migrations/0040_pledges.sql tells the account whose money an operator took out or limited. */
export const money_channel = 'money_changed';

/** A call that lasts longer has its hold written: for the balance that people see, and should this process die. */
const unwritten_ms = 250;

/** Should the NOTIFY about a withdrawal or a new limit be lost, it may go unnoticed for so long. */
const known_ms = 10_000;

const accounts_max = 20_000;

/** `elapsed_ms` is a monotonic clock. */
export function makePledges(batcher: HoldBatcher, elapsed_ms: () => number = () => performance.now()): Pledges {
  return new HoldPledges(batcher, elapsed_ms);
}

/** What the database said last, until when it is believed, and the epoch of its account in which it was asked. */
type Known<T> = { value: T; until_ms: number; epoch: number };

type Account = {
  available: Known<Money>;
  pledged: Money;
  keys: Map<string, Key>;
  /** One more whenever something may have changed: what was known or asked before counts no longer. */
  epoch: number;
  /** While above zero, the database decides about something that it has to weigh without pledges. */
  deciding: number;
  /** What is pledged and not booked, by its ref. */
  open: Map<string, Pledge>;
};

/** What a key may spend this month, null without a limit; and what of it is pledged. */
type Key = { remaining: Known<Money | null>; pledged: Money };

type Pledge = {
  request: HoldRequest;
  account: Account;
  key: Key;
  made_at_ms: number;
  /** Its hold is being written or it is being kept; or the database refused the hold, and it waits for its end. */
  busy: Promise<unknown> | undefined;
};

/** What an answer tells of the account, and that of a hold also of the key. */
type Answered = { available: Money; remaining?: Money | null };

class HoldPledges implements Pledges {
  readonly #batcher: HoldBatcher;
  readonly #elapsed_ms: () => number;
  readonly #accounts = new Map<string, Account>(); // oldest first
  readonly #unwritten = new Set<Pledge>(); // oldest first
  #timer: NodeJS.Timeout | undefined;
  #is_stopped = false;
  /** The last call got no answer: until there is one, calls shall fail at their hold, before they cost. */
  #is_away = false;

  constructor(batcher: HoldBatcher, elapsed_ms: () => number) {
    this.#batcher = batcher;
    this.#elapsed_ms = elapsed_ms;
  }

  async hold(request: HoldRequest): Promise<HoldAnswer> {
    const account = this.#find(request.account_id);
    const pledge = this.#is_away ? undefined : pledgeOf(account, request, this.#elapsed_ms());
    if (pledge) {
      this.#queue(pledge);
      return { outcome: 'held', ...leftOf(account, pledge.key) };
    }
    account.deciding++;
    try {
      // First what was pledged, so that the database knows of it when it comes to this one.
      for (const each of account.open.values()) if (!each.busy) void this.#write(each);
      return await this.#ask(account, request.key_id, this.#batcher.hold(request));
    } finally {
      account.deciding--;
    }
  }

  async close(end: CloseRequest): Promise<CloseAnswer> {
    const account = this.#find(end.account_id);
    const pledge = account.open.get(end.ref);
    if (!pledge) return this.#ask(account, undefined, this.#batcher.close(end));
    this.#unwritten.delete(pledge);
    const { request } = pledge;
    const keeping = this.#ask(account, request.key_id, this.#batcher.keep({ pledge: request, end }));
    pledge.busy = keeping;
    try {
      const { remaining: _, ...answer } = await keeping;
      dropPledge(pledge);
      return answer;
    } catch (error) {
      this.#putOff(pledge, keeping);
      throw error;
    }
  }

  async written(account_id: string): Promise<void> {
    const account = this.#accounts.get(account_id);
    if (account) await this.#writeAll(account);
  }

  async aside<T>(account_id: string, work: () => Promise<T>): Promise<T> {
    const account = this.#find(account_id);
    account.deciding++;
    try {
      await this.#writeAll(account);
      return await work();
    } finally {
      account.epoch++;
      account.deciding--;
    }
  }

  forget(account_id?: string): void {
    const chosen = account_id === undefined ? this.#accounts.values() : [this.#accounts.get(account_id)];
    for (const account of chosen) if (account) account.epoch++;
  }

  stop(): void {
    this.#is_stopped = true;
    clearTimeout(this.#timer);
  }

  #find(account_id: string): Account {
    const found = this.#accounts.get(account_id);
    if (found) return found;
    const made = newAccount();
    this.#accounts.set(account_id, made);
    if (this.#accounts.size > accounts_max) dropIdle(this.#accounts, made);
    return made;
  }

  async #ask<A extends Answered>(account: Account, key_id: string | undefined, asking: Promise<A>): Promise<A> {
    const { epoch } = account;
    try {
      const answer = await asking;
      this.#is_away = false;
      learn(account, key_id, answer, { until_ms: this.#elapsed_ms() + known_ms, epoch });
      return answer;
    } catch (error) {
      this.#is_away = true;
      account.epoch++;
      throw error;
    }
  }

  /** Has the hold of a pledge written. Never rejects. */
  #write(pledge: Pledge): Promise<void> {
    this.#unwritten.delete(pledge);
    const { request, account } = pledge;
    const writing: Promise<void> = this.#ask(account, request.key_id, this.#batcher.hold(request)).then(
      ({ outcome }) => {
        if (outcome === 'held' || outcome === 'exists') dropPledge(pledge);
      },
      () => this.#putOff(pledge, writing),
    );
    pledge.busy = writing;
    return writing;
  }

  async #writeAll({ open }: Account): Promise<void> {
    if (open.size === 0) return;
    await Promise.allSettled([...open.values()].map((pledge) => pledge.busy ?? this.#write(pledge)));
  }

  /** What could not be written or kept is written later, so that it has an end even if its call never comes back. */
  #putOff(pledge: Pledge, work: Promise<unknown>): void {
    const is_open = pledge.account.open.get(pledge.request.ref) === pledge;
    if (pledge.busy !== work || !is_open) return; // it is being kept, or was written meanwhile
    pledge.busy = undefined;
    pledge.made_at_ms = this.#elapsed_ms();
    this.#queue(pledge);
  }

  #queue(pledge: Pledge): void {
    this.#unwritten.add(pledge);
    this.#arm(unwritten_ms);
  }

  #arm(wait_ms: number): void {
    if (!this.#is_stopped) this.#timer ??= setTimeout(() => this.#writeOld(), wait_ms).unref();
  }

  #writeOld(): void {
    this.#timer = undefined;
    const before_ms = this.#elapsed_ms() - unwritten_ms;
    for (const pledge of this.#unwritten) {
      if (pledge.made_at_ms > before_ms) break;
      void this.#write(pledge);
    }
    if (this.#unwritten.size > 0) this.#arm(unwritten_ms / 2);
  }
}

function newAccount(): Account {
  return {
    available: { value: 0n, until_ms: Number.NEGATIVE_INFINITY, epoch: 0 },
    pledged: 0n,
    keys: new Map(),
    epoch: 0,
    deciding: 0,
    open: new Map(),
  };
}

/** Forgets the oldest account with nothing under way; not `made`, which somebody is about to use. */
function dropIdle(accounts: Map<string, Account>, made: Account): void {
  for (const [id, account] of accounts) {
    if (account.open.size > 0 || account.deciding > 0 || account === made) continue;
    accounts.delete(id);
    return;
  }
}

/**
 * A pledge, if with it no more than half of what the account and the key are known to have is pledged: beyond that
 * the database decides, so that who has money for exactly a hundred calls gets exactly a hundred.
 */
function pledgeOf(account: Account, request: HoldRequest, now_ms: number): Pledge | undefined {
  const key = account.keys.get(request.key_id);
  const is_known = key && isKnown(account, account.available, now_ms) && isKnown(account, key.remaining, now_ms);
  if (!is_known || account.deciding > 0 || account.open.has(request.ref)) return undefined;
  const { amount } = request;
  const { value: remaining } = key.remaining;
  if ((account.pledged + amount) * 2n > account.available.value) return undefined;
  if (remaining !== null && (key.pledged + amount) * 2n > remaining) return undefined;
  account.pledged += amount;
  key.pledged += amount;
  const pledge = { request, account, key, made_at_ms: now_ms, busy: undefined };
  account.open.set(request.ref, pledge);
  return pledge;
}

/** It is booked: the database counts it from now on. */
function dropPledge({ account, key, request }: Pledge): void {
  if (!account.open.delete(request.ref)) return;
  account.pledged -= request.amount;
  key.pledged -= request.amount;
}

function isKnown({ epoch }: Account, known: Known<unknown>, now_ms: number): boolean {
  return known.epoch === epoch && known.until_ms > now_ms;
}

function leftOf(account: Account, key: Key): Pick<HoldAnswer, 'available' | 'remaining'> {
  const { value: remaining } = key.remaining;
  return {
    available: account.available.value - account.pledged,
    remaining: remaining === null ? null : remaining - key.pledged,
  };
}

function learn(
  account: Account,
  key_id: string | undefined,
  answer: Answered,
  since: Omit<Known<unknown>, 'value'>,
): void {
  if (account.epoch !== since.epoch) return;
  account.available = { value: answer.available, ...since };
  if (key_id === undefined || answer.remaining === undefined) return;
  const remaining = { value: answer.remaining, ...since };
  const key = account.keys.get(key_id);
  if (key) key.remaining = remaining;
  else account.keys.set(key_id, { remaining, pledged: 0n });
}
