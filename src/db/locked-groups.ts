import { setTimeout as sleep } from 'node:timers/promises';
import { takeBatch, type Names, type Waiter } from './take-batch.ts';

/** The locks that the members of a batcher share. */
export type Groups<Member> = {
  groupOf(member: Member): string;
  /** Returns those of `groups` whose locks are free now, without waiting for any. */
  findFree(groups: readonly string[]): Promise<readonly string[]>;
  /** Time after which a member that waits for the locks of its group fails with 55P03; by default 5 s. */
  locked_max_ms?: number;
};

type Unreachable = { error: unknown } | undefined;
type OnLocked<Member, Answer> = (batch: readonly Waiter<Member, Answer>[], error: unknown) => Promise<Unreachable>;
type TimedWaiter<Member, Answer> = Waiter<Member, Answer> & { since_ms: number };
type Sizes<Member> = { names: Names<Member> | undefined; batch_max: number };
type Group<Member, Answer> = { waiters: TimedWaiter<Member, Answer>[]; error: unknown };

const locked_default_ms = 5_000;

/** Interval at which blocked groups look for free locks. One small statement asks for all groups. */
const look_every_ms = 50;

/**
 * Members whose locks somebody else holds. They wait here, without a connection, until those are free; then they go on
 * in their order, and their group is like all others again.
 */
export class LockedGroups<Member, Answer> {
  readonly #groups: Groups<Member>;
  readonly #sizes: Sizes<Member>;
  readonly #deliver: (
    batch: readonly Waiter<Member, Answer>[],
    onLocked: OnLocked<Member, Answer>,
  ) => Promise<Unreachable>;
  readonly #locked = new Map<string, Group<Member, Answer>>();
  #is_running = false;

  constructor(
    groups: Groups<Member>,
    sizes: Sizes<Member>,
    deliver: (batch: readonly Waiter<Member, Answer>[], onLocked: OnLocked<Member, Answer>) => Promise<Unreachable>,
  ) {
    this.#groups = groups;
    this.#sizes = sizes;
    this.#deliver = deliver;
  }

  /** Adds a waiter to its group, if that waits here. Returns false if it does not. */
  add(waiter: Waiter<Member, Answer>): boolean {
    if (this.#locked.size === 0) return false;
    const group = this.#locked.get(this.#groups.groupOf(waiter.member));
    group?.waiters.push({ ...waiter, since_ms: performance.now() });
    return group !== undefined;
  }

  /** Has the groups of these waiters wait here until their locks are free. */
  setAside(waiters: readonly Waiter<Member, Answer>[], error: unknown): void {
    const since_ms = performance.now();
    for (const waiter of waiters) {
      const name = this.#groups.groupOf(waiter.member);
      const group = this.#locked.get(name) ?? { waiters: [], error };
      this.#locked.set(name, group);
      group.waiters.push({ ...waiter, since_ms });
    }
    if (!this.#is_running) void this.#deliverUnlocked();
  }

  async #deliverUnlocked(): Promise<void> {
    this.#is_running = true;
    while (this.#locked.size > 0) {
      await sleep(look_every_ms);
      this.#rejectLate();
      // A database that is away has no free groups either: then the members fail when their time is over.
      const free = await this.#groups.findFree([...this.#locked.keys()]).catch(() => []);
      for (const name of free) await this.#deliverGroup(name);
    }
    this.#is_running = false;
  }

  #rejectLate(): void {
    const before_ms = performance.now() - (this.#groups.locked_max_ms ?? locked_default_ms);
    for (const [name, group] of this.#locked) {
      const late = group.waiters.filter(({ since_ms }) => since_ms < before_ms);
      group.waiters = group.waiters.filter(({ since_ms }) => since_ms >= before_ms);
      for (const waiter of late) waiter.reject(group.error);
      if (group.waiters.length === 0) this.#locked.delete(name);
    }
  }

  /** Sends all members of a group whose locks were free a moment ago, in their order. */
  async #deliverGroup(name: string): Promise<void> {
    for (let group; (group = this.#locked.get(name)) && group.waiters.length > 0;) {
      const sent = group;
      const { batch, rest } = takeBatch(sent.waiters, this.#sizes.batch_max, this.#sizes.names);
      sent.waiters = rest;
      const still_locked = new Set<Waiter<Member, Answer>>();
      const unreachable = await this.#deliver(batch, async (locked) => {
        for (const waiter of locked) still_locked.add(waiter);
        return undefined;
      });
      sent.waiters.unshift(...batch.filter((waiter) => still_locked.has(waiter)));
      if (unreachable) for (const waiter of sent.waiters.splice(0)) waiter.reject(unreachable.error);
      if (still_locked.size > 0) return;
    }
    this.#locked.delete(name);
  }
}
