import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { assert } from '../lib/assert.ts';
import { isLocked } from './database.ts';
import { LockedGroups, type Groups } from './locked-groups.ts';
import { isMute } from './pool.ts';
import { divideByGroups, takeBatch, type Names, type Waiter } from './take-batch.ts';

export type BatcherOptions<Member, Answer> = {
  /** One call for several members; answer i is member i's. */
  together(members: readonly Member[]): Promise<readonly Answer[]>;
  /** The call for a member without company; if there is none, that is a batch of one. */
  alone?(member: Member): Promise<Answer>;
  /** Members of the same name never share a call: the later one waits for the next call, and with it all later ones of its group. */
  names?: Names<Member>;
  /**
   * Members of a group wait for the same locks. No two calls under way have members of one group, and a group whose
   * locks somebody else holds waits by itself: `together` must fail soon with 55P03 then.
   */
  groups?: Groups<Member>;
  /** By default 256: larger ones were hardly cheaper (bench/results/money.md) and hold their locks longer. */
  batch_max?: number;
  /** The time that a call waits for company, for writes that nobody waits for; a full batch goes at once. */
  linger_ms?: number;
  /** One call is under way at a time, and one more for each that has become slow, so many at most; by default 1. */
  calls_max?: number;
  /** Duration after which a call counts as slow: 0 for calls that need not wait for each other. */
  slow_ms?: number;
};

/** Sends a member. Resolves or rejects with its own answer. */
export type Batcher<Member, Answer> = ((member: Member) => Promise<Answer>) & {
  /** Returns the age of the oldest call without an answer; 0 without one. */
  oldest_ms(): number;
};

/** Thirty times the usual duration of a full call: a slower one waits for something that others need not wait for. */
const slow_default_ms = 150;

const batch_default = 256;

/**
 * Collects what arrives while a call is under way and sends it as the next one: many callers cost one
 * round trip, one commit and one lock per row. A member that breaks a rule of the database fails alone;
 * a database that cannot be reached fails all who wait. A call whose answer was lost is repeated,
 * although it may have happened: both calls must be safe to repeat.
 */
export function makeBatcher<Member, Answer>(options: BatcherOptions<Member, Answer>): Batcher<Member, Answer> {
  const queue = new BatchQueue(options);
  const send = (member: Member) => new Promise<Answer>((resolve, reject) => queue.add({ member, resolve, reject }));
  return Object.assign(send, { oldest_ms: () => queue.oldest_ms() });
}

type Call<Member, Answer> = { batch: readonly Waiter<Member, Answer>[]; begun_at_ms: number };

/** The error if the database was unreachable; undefined if every member got its own answer or waits for its locks. */
type Unreachable = { error: unknown } | undefined;

class BatchQueue<Member, Answer> {
  readonly #options: BatcherOptions<Member, Answer>;
  readonly #batch_max: number;
  readonly #calls = new Set<Call<Member, Answer>>(); // oldest first
  readonly #locked: LockedGroups<Member, Answer> | undefined;
  #waiting: Waiter<Member, Answer>[] = [];
  /** The loop that sends new members; none while all calls under way are slow. */
  #sender: object | undefined;

  constructor(options: BatcherOptions<Member, Answer>) {
    const { groups, names, batch_max = batch_default } = options;
    this.#options = options;
    this.#batch_max = batch_max;
    this.#locked =
      groups && new LockedGroups(groups, { names, batch_max }, (batch, onLocked) => this.#deliver(batch, onLocked));
  }

  add(waiter: Waiter<Member, Answer>): void {
    if (this.#locked?.add(waiter)) return;
    this.#waiting.push(waiter);
    this.#startSender();
  }

  oldest_ms(): number {
    const [oldest] = this.#calls;
    return oldest ? performance.now() - oldest.begun_at_ms : 0;
  }

  #startSender(): void {
    if (this.#sender || this.#calls.size >= (this.#options.calls_max ?? 1)) return;
    const sender = {};
    this.#sender = sender;
    // Not at once: requests read in the same turn of the event loop share a call.
    setImmediate(() => void this.#run(sender));
  }

  async #run(sender: object): Promise<void> {
    const { linger_ms } = this.#options;
    while (this.#waiting.length > 0) {
      if (linger_ms !== undefined && this.#waiting.length < this.#batch_max) await sleep(linger_ms);
      const batch = this.#take();
      if (batch.length === 0) break; // all are of groups with a call under way, whose sender sends them next
      const call = { batch, begun_at_ms: performance.now() };
      this.#calls.add(call);
      const timer = setTimeout(() => this.#leave(sender), this.#options.slow_ms ?? slow_default_ms);
      const unreachable = await this.#deliver(batch);
      clearTimeout(timer);
      this.#calls.delete(call);
      // Whoever waits behind would learn the same, each batch a timeout later.
      if (unreachable) for (const waiter of this.#waiting.splice(0)) waiter.reject(unreachable.error);
      if (this.#sender && this.#sender !== sender) return; // it was slow, and another has taken its place
      this.#sender = sender;
    }
    if (this.#sender === sender) this.#sender = undefined;
  }

  /** Its call is slow: what comes now need not wait for it. */
  #leave(sender: object): void {
    if (this.#sender !== sender) return;
    this.#sender = undefined;
    if (this.#waiting.length > 0) this.#startSender();
  }

  #take(): Waiter<Member, Answer>[] {
    const { groups, names } = this.#options;
    let others: Waiter<Member, Answer>[] = this.#waiting;
    let in_groups: Waiter<Member, Answer>[] = [];
    if (groups && this.#calls.size > 0) {
      const busy = new Set([...this.#calls].flatMap(({ batch }) => batch.map(({ member }) => groups.groupOf(member))));
      ({ others, in_groups } = divideByGroups(this.#waiting, busy, groups.groupOf));
    }
    const { batch, rest } = takeBatch(others, this.#batch_max, names);
    this.#waiting = in_groups.length === 0 ? rest : [...in_groups, ...rest];
    return batch;
  }

  /** Answers every waiter, one way or the other, or has it wait for its locks; never rejects. */
  async #deliver(
    batch: readonly Waiter<Member, Answer>[],
    onLocked = (locked: readonly Waiter<Member, Answer>[], error: unknown) => this.#separate(locked, error),
  ): Promise<Unreachable> {
    try {
      const answers = await repeated(() => ask(this.#options, batch));
      for (const [i, answer] of answers.entries()) batch[i]?.resolve(answer);
      return undefined;
    } catch (error) {
      if (this.#locked && isLocked(error)) return onLocked(batch, error);
      // One member breaks a rule, and with it all: each is tried alone, in their order, so that only that one fails.
      if (isRefusal(error) && batch.length > 1) {
        const parts = batch.map((waiter) => [waiter]);
        return inTurn(parts, (part) => this.#deliver(part, onLocked));
      }
      for (const waiter of batch) waiter.reject(error);
      return isRefusal(error) ? undefined : { error };
    }
  }

  /** Some group's locks are held by somebody else, and with it all waited in vain: the others go on without it. */
  async #separate(batch: readonly Waiter<Member, Answer>[], error: unknown): Promise<Unreachable> {
    const { groups } = this.#options;
    assert(groups && this.#locked, 'only groups have locks of their own');
    const parts = Map.groupBy(batch, ({ member }) => groups.groupOf(member));
    if (parts.size === 1) return this.#setAside([...parts.keys()], batch, error);
    let free: ReadonlySet<string>;
    try {
      free = new Set(await groups.findFree([...parts.keys()]));
    } catch (reason) {
      for (const waiter of batch) waiter.reject(reason);
      return { error: reason };
    }
    const held = [...parts.keys()].filter((group) => !free.has(group));
    const { others, in_groups } = divideByGroups(batch, new Set(held), groups.groupOf);
    this.#setAside(held, in_groups, error);
    // If it was none of those, the lock is gone, or of another kind.
    if (held.length > 0) return others.length > 0 ? this.#deliver(others) : undefined;
    return inTurn([...parts.values()], (part) => this.#deliver(part));
  }

  #setAside(groups: readonly string[], batch: readonly Waiter<Member, Answer>[], error: unknown): undefined {
    const groupOf = this.#options.groups?.groupOf;
    if (!groupOf || groups.length === 0) return;
    const { others, in_groups } = divideByGroups(this.#waiting, new Set(groups), groupOf);
    this.#waiting = others;
    this.#locked?.setAside([...batch, ...in_groups], error);
  }
}

/** Stops at the first part that could not be delivered: those after it learn the same. */
async function inTurn<Waiting extends { reject(error: unknown): void }>(
  parts: readonly (readonly Waiting[])[],
  deliver: (part: readonly Waiting[]) => Promise<Unreachable>,
): Promise<Unreachable> {
  for (const [i, part] of parts.entries()) {
    const unreachable = await deliver(part);
    if (!unreachable) continue;
    for (const waiter of parts.slice(i + 1).flat()) waiter.reject(unreachable.error);
    return unreachable;
  }
  return undefined;
}

async function ask<Member, Answer>(
  options: BatcherOptions<Member, Answer>,
  batch: readonly Waiter<Member, Answer>[],
): Promise<readonly Answer[]> {
  const [first] = batch;
  if (options.alone && first && batch.length === 1) return [await options.alone(first.member)];
  const answers = await options.together(batch.map((waiter) => waiter.member));
  assert(answers.length === batch.length, 'a call answers each of its members');
  return answers;
}

const tries_max = 3;

/** A server that said nothing is asked once more, on another connection: callers do not wait for a third time. */
const mute_tries_max = 2;

/**
 * Calls again what may have failed on the way: a lost connection, a deadlock with other statements. Not what has
 * waited for a lock as long as it may.
 */
async function repeated<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      const enough = isMute(error) ? mute_tries_max : tries_max;
      if (tries >= enough || isRefusal(error) || isLocked(error)) throw error;
    }
  }
}

/** Returns true if the database refused the values themselves: classes 22 (data), 23 (constraints), 54 (too large). */
function isRefusal(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(22|23|54)/.test(error.code ?? '');
}
