import { setTimeout as sleep } from 'node:timers/promises';
import { takeBatch, type Names, type Waiter } from './take-batch.ts';

/** The locks that the members of a batcher share. */
export type Groups<Member> = {
  groupOf(member: Member): string;
  /** Those of `groups` whose locks nobody holds now. It waits for none. */
  findFree(groups: readonly string[]): Promise<readonly string[]>;
  /** So long a member waits for its group's locks before it fails with 55P03; by default 5 s. */
  locked_max_ms?: number;
};

type Unreachable = { error: unknown } | undefined;
type OnLocked<M, A> = (batch: readonly Waiter<M, A>[], error: unknown) => Promise<Unreachable>;
type Late<M, A> = Waiter<M, A> & { since_ms: number };
type Sizes<M> = { names: Names<M> | undefined; batch_max: number };
type Group<M, A> = { waiters: Late<M, A>[]; error: unknown };

const locked_default_ms = 5_000;

/** Interval at which blocked groups look for free locks. One small statement asks for all groups. */
const look_every_ms = 50;

/**
 * Members whose locks somebody else holds. They wait here, without a connection, until those are free; then they go on
 * in their order, and their group is like all others again.
 */
export class LockedGroups<M, A> {
  readonly #groups: Groups<M>;
  readonly #sizes: Sizes<M>;
  readonly #deliver: (batch: readonly Waiter<M, A>[], onLocked: OnLocked<M, A>) => Promise<Unreachable>;
  readonly #locked = new Map<string, Group<M, A>>();
  #is_looking = false;

  constructor(
    groups: Groups<M>,
    sizes: Sizes<M>,
    deliver: (batch: readonly Waiter<M, A>[], onLocked: OnLocked<M, A>) => Promise<Unreachable>,
  ) {
    this.#groups = groups;
    this.#sizes = sizes;
    this.#deliver = deliver;
  }

  /** Returns true if its group waits here: so does this one then, after the others. */
  add(waiter: Waiter<M, A>): boolean {
    if (this.#locked.size === 0) return false;
    const group = this.#locked.get(this.#groups.groupOf(waiter.member));
    group?.waiters.push({ ...waiter, since_ms: performance.now() });
    return group !== undefined;
  }

  /** From now on the groups of these wait here. */
  setAside(waiters: readonly Waiter<M, A>[], error: unknown): void {
    const since_ms = performance.now();
    for (const waiter of waiters) {
      const name = this.#groups.groupOf(waiter.member);
      const group = this.#locked.get(name) ?? { waiters: [], error };
      this.#locked.set(name, group);
      group.waiters.push({ ...waiter, since_ms });
    }
    if (!this.#is_looking) void this.#look();
  }

  async #look(): Promise<void> {
    this.#is_looking = true;
    while (this.#locked.size > 0) {
      await sleep(look_every_ms);
      this.#rejectLate();
      // A database that is away has no free groups either; who waits learns in time that it did so in vain.
      const free = await this.#groups.findFree([...this.#locked.keys()]).catch(() => []);
      for (const name of free) await this.#goOn(name);
    }
    this.#is_looking = false;
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

  /** Its locks were free a moment ago: all its members are sent, in their order. */
  async #goOn(name: string): Promise<void> {
    for (let group; (group = this.#locked.get(name)) && group.waiters.length > 0;) {
      const sent = group;
      const { batch, rest } = takeBatch(sent.waiters, this.#sizes.batch_max, this.#sizes.names);
      sent.waiters = rest;
      const still_locked = new Set<Waiter<M, A>>();
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
