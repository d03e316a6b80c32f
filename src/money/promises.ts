import type { CloseAnswer, CloseRequest, HoldAnswer, HoldBatcher, HoldRequest } from './holds.ts';
import type { Money } from './money.ts';

/**
 * Holds and closes, of which most holds are promised: answered out of what this process knows of the account, and
 * booked together with their end (decision 24). PostgreSQL remains the only truth: it never books what is not there.
 */
export type Promises = {
  /**
   * Reserves; at once, if what is known of the account leaves no doubt. Everybody else sees it 250 ms later. Each ref
   * is asked for once: that it had a hold before is not noticed until its end, which happens once in any case.
   */
  hold(request: HoldRequest): Promise<HoldAnswer>;
  /** Settles or releases; on the disk when it resolves. */
  close(request: CloseRequest): Promise<CloseAnswer>;
  /** Resolves when all that is promised to an account's calls is written: for whoever reads its money. */
  written(account_id: string): Promise<void>;
  /** Runs what takes money of an account in another way: all promises are written before, none is made meanwhile. */
  aside<T>(account_id: string, work: () => Promise<T>): Promise<T>;
  /** What is known of the account, or of all, may no longer be true. */
  forget(account_id?: string): void;
  /** Writes no more. */
  stop(): void;
};

/** On which migrations/0040_promises.sql tells the account whose money an operator took out or limited. */
export const money_channel = 'money_changed';

/** A call that lasts longer has its hold written: for the balance that people see, and should this process die. */
const unwritten_ms = 250;

/** Should the NOTIFY about a withdrawal or a new limit be lost, it may go unnoticed for so long. */
const known_ms = 10_000;

const accounts_max = 20_000;

/** What the database said last, until when it is believed, and the epoch of its account in which it was asked. */
type Known<T> = { value: T; until_ms: number; epoch: number };

type Account = {
  available: Known<Money>;
  promised: Money;
  keys: Map<string, Key>;
  /** One more whenever something may have changed: what was known or asked before counts no longer. */
  epoch: number;
  /** While above zero, the database decides about something that it has to weigh without promises. */
  deciding: number;
  /** What is promised and not booked, by its ref. */
  open: Map<string, Promised>;
};

/** What a key may spend this month, null without a limit; and what of it is promised. */
type Key = { remaining: Known<Money | null>; promised: Money };

type Promised = {
  request: HoldRequest;
  account: Account;
  key: Key;
  made_at_ms: number;
  /** Its hold is being written or it is being kept; or the database refused the hold, and it waits for its end. */
  busy: Promise<unknown> | undefined;
};

/** `elapsed_ms` is a monotonic clock. */
export function makePromises(batcher: HoldBatcher, elapsed_ms: () => number = () => performance.now()): Promises {
  const accounts = new Map<string, Account>(); // oldest first
  const unwritten = new Set<Promised>(); // oldest first
  let timer: NodeJS.Timeout | undefined;
  let is_stopped = false;
  /** The last answer was that there is none: calls shall fail at their hold, before they cost. */
  let is_away = false;

  const find = (account_id: string): Account => {
    const found = accounts.get(account_id);
    if (found) return found;
    const made = newAccount();
    accounts.set(account_id, made);
    if (accounts.size > accounts_max) dropIdle(accounts);
    return made;
  };

  const ask = async <A extends Answered>(
    account: Account,
    key_id: string | undefined,
    asking: Promise<A>,
  ): Promise<A> => {
    const { epoch } = account;
    try {
      const answer = await asking;
      is_away = false;
      learn(account, key_id, answer, { until_ms: elapsed_ms() + known_ms, epoch });
      return answer;
    } catch (error) {
      is_away = true;
      account.epoch++;
      throw error;
    }
  };

  const write = (promised: Promised): Promise<void> => {
    unwritten.delete(promised);
    const { request, account } = promised;
    const writing: Promise<void> = ask(account, request.key_id, batcher.hold(request)).then(
      ({ outcome }) => {
        if (outcome === 'held' || outcome === 'exists') settleUp(promised);
      },
      () => putOff(promised, writing),
    );
    promised.busy = writing;
    return writing;
  };

  /** What could not be written or kept is written later, so that it has an end even if its call never comes back. */
  const putOff = (promised: Promised, work: Promise<unknown>) => {
    if (promised.busy !== work || !isOpen(promised)) return; // it is being kept, or was written meanwhile
    promised.busy = undefined;
    promised.made_at_ms = elapsed_ms();
    queue(promised);
  };

  const queue = (promised: Promised) => {
    unwritten.add(promised);
    if (!is_stopped) timer ??= setTimeout(writeOld, unwritten_ms).unref();
  };

  const writeOld = () => {
    timer = undefined;
    const before_ms = elapsed_ms() - unwritten_ms;
    for (const promised of unwritten) {
      if (promised.made_at_ms > before_ms) break;
      void write(promised);
    }
    if (unwritten.size > 0 && !is_stopped) timer = setTimeout(writeOld, unwritten_ms / 2).unref();
  };

  const writeAll = async (account: Account) => {
    await Promise.allSettled([...account.open.values()].map((promised) => promised.busy ?? write(promised)));
  };

  return {
    hold: async (request) => {
      const account = find(request.account_id);
      const promised = is_away ? undefined : promiseOf(account, request, elapsed_ms());
      if (promised) {
        queue(promised);
        return { outcome: 'held', ...leftOf(account, promised.key) };
      }
      account.deciding++;
      try {
        // First what was promised, so that the database knows of it when it comes to this one.
        for (const each of account.open.values()) if (!each.busy) void write(each);
        return await ask(account, request.key_id, batcher.hold(request));
      } finally {
        account.deciding--;
      }
    },
    close: async (end) => {
      const account = find(end.account_id);
      const promised = account.open.get(end.ref);
      if (!promised) return ask(account, undefined, batcher.close(end));
      unwritten.delete(promised);
      const { request } = promised;
      const keeping = ask(account, request.key_id, batcher.keep({ promise: request, end }));
      promised.busy = keeping;
      try {
        const { remaining: _, ...answer } = await keeping;
        settleUp(promised);
        return answer;
      } catch (error) {
        putOff(promised, keeping);
        throw error;
      }
    },
    written: async (account_id) => {
      const account = accounts.get(account_id);
      if (account && account.open.size > 0) await writeAll(account);
    },
    aside: async (account_id, work) => {
      const account = find(account_id);
      account.deciding++;
      try {
        if (account.open.size > 0) await writeAll(account);
        return await work();
      } finally {
        account.epoch++;
        account.deciding--;
      }
    },
    forget: (account_id) => {
      const chosen = account_id === undefined ? accounts.values() : [accounts.get(account_id)];
      for (const account of chosen) if (account) account.epoch++;
    },
    stop: () => {
      is_stopped = true;
      clearTimeout(timer);
    },
  };
}

function newAccount(): Account {
  return {
    available: { value: 0n, until_ms: Number.NEGATIVE_INFINITY, epoch: 0 },
    promised: 0n,
    keys: new Map(),
    epoch: 0,
    deciding: 0,
    open: new Map(),
  };
}

function dropIdle(accounts: Map<string, Account>): void {
  for (const [id, account] of accounts) {
    if (account.open.size === 0 && account.deciding === 0) {
      accounts.delete(id);
      return;
    }
  }
}

/**
 * A promise, if with it no more than half of what the account and the key are known to have is promised: beyond
 * that the database decides, so that who has money for exactly a hundred calls gets exactly a hundred.
 */
function promiseOf(account: Account, request: HoldRequest, now_ms: number): Promised | undefined {
  const key = account.keys.get(request.key_id);
  const is_known = key && isKnown(account, account.available, now_ms) && isKnown(account, key.remaining, now_ms);
  if (!is_known || account.deciding > 0 || account.open.has(request.ref)) return undefined;
  const { amount } = request;
  const { value: remaining } = key.remaining;
  if ((account.promised + amount) * 2n > account.available.value) return undefined;
  if (remaining !== null && (key.promised + amount) * 2n > remaining) return undefined;
  account.promised += amount;
  key.promised += amount;
  const promised = { request, account, key, made_at_ms: now_ms, busy: undefined };
  account.open.set(request.ref, promised);
  return promised;
}

function isKnown({ epoch }: Account, known: Known<unknown>, now_ms: number): boolean {
  return known.epoch === epoch && known.until_ms > now_ms;
}

function isOpen({ account, request }: Promised): boolean {
  return account.open.has(request.ref);
}

/** It is booked: the database counts it from now on. */
function settleUp({ account, key, request }: Promised): void {
  if (!account.open.delete(request.ref)) return;
  account.promised -= request.amount;
  key.promised -= request.amount;
}

function leftOf(account: Account, key: Key): Pick<HoldAnswer, 'available' | 'remaining'> {
  const { value: remaining } = key.remaining;
  return {
    available: account.available.value - account.promised,
    remaining: remaining === null ? null : remaining - key.promised,
  };
}

/** What an answer tells of the account, and that of a hold also of the key. */
type Answered = { available: Money; remaining?: Money | null };

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
  else account.keys.set(key_id, { remaining, promised: 0n });
}
