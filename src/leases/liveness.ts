import type pg from 'pg';
import { openConnection, type Db } from '../db/database.ts';
import { oneRow } from '../db/one-row.ts';

/**
 * The time by two clocks: the monotonic one stands still while the machine sleeps, the other one may be set. `session`:
 * that of the node's leases; undefined while none of them is valid.
 */
export type LeaseTime = { elapsed_ms: number; wall_ms: number; session: number | undefined };

/** The heartbeat of this node, on which all its leases depend. */
export type Liveness = {
  /** Returns the time, with the session of leases that are taken now. */
  now(): LeaseTime;
  /** Sends a heartbeat, unless PostgreSQL has confirmed one lately. Rejects if it does not confirm this one. */
  ensure(): Promise<void>;
  close(): Promise<void>;
};

/** Time after its last confirmed heartbeat for which a node uses its leases. PostgreSQL gives them to others 2 s later. */
const alive_ms = 6_000;
const heartbeat_ms = 2_000;

/** Time after which a connection without an answer is replaced. */
const silence_max_ms = 1_500;

/**
 * Says every 2 s that the node is alive (table `lessees`), on a connection of its own, on which nothing else waits: one
 * statement of a node instead of one for each of its leases. A node that was frozen, asleep or cut off for so long that
 * others may have what it had leased begins a new session, and has leased nothing in it.
 */
export function openLiveness(db: Db, node_id: string): Liveness {
  return new Heartbeat(db, node_id);
}

type Clocks = Omit<LeaseTime, 'session'>;

class Heartbeat implements Liveness {
  readonly #db: Db;
  readonly #node_id: string;
  #client: pg.Client | undefined;
  #session = 0;
  #confirmed_at: Clocks | undefined;
  #sending: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(db: Db, node_id: string) {
    this.#db = db;
    this.#node_id = node_id;
  }

  now(): LeaseTime {
    const clocks = readClocks();
    return { ...clocks, session: this.#isLive(clocks) ? this.#session : undefined };
  }

  async ensure(): Promise<void> {
    this.#timer ??= setInterval(() => void this.#heartbeat().catch(() => undefined), heartbeat_ms).unref(); // the next one may be confirmed
    while (!this.#isLive(readClocks())) await this.#heartbeat();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sending?.catch(() => undefined);
    await this.#client?.end();
  }

  #isLive(clocks: Clocks): boolean {
    return this.#confirmed_at !== undefined && ageOf(this.#confirmed_at, clocks) < alive_ms;
  }

  #heartbeat(): Promise<void> {
    return (this.#sending ??= this.#sendHeartbeat().finally(() => (this.#sending = undefined)));
  }

  async #sendHeartbeat(): Promise<void> {
    try {
      this.#client ??= await openConnection(this.#db, 'medley leases', { limit_ms: silence_max_ms });
      const begun = readClocks();
      // The first column is of the moment before. PostgreSQL's clock may have gone further than the node's own.
      const { rows } = await this.#client.query<{ was_silent: boolean }>(
        `select exists (select from lessees where node_id = $1 and seen_at <= now() - interval '8 s') as was_silent,
                keep_leases($1)`,
        [this.#node_id],
      );
      // Its leases were valid without a gap if this is confirmed before the last heartbeat has expired.
      if (oneRow(rows).was_silent || !this.#isLive(readClocks())) this.#session += 1;
      this.#confirmed_at = begun;
    } catch (error) {
      const broken = this.#client;
      this.#client = undefined;
      await broken?.end().catch(() => undefined);
      throw error;
    }
  }
}

function readClocks(): Clocks {
  return { elapsed_ms: performance.now(), wall_ms: Date.now() };
}

/** Returns true if a lease from then, which ends after `lasts_ms`, is valid now. */
export function isStillLeased(then: LeaseTime, now: LeaseTime, lasts_ms: number): boolean {
  return now.session !== undefined && then.session === now.session && ageOf(then, now) < lasts_ms;
}

/** Returns the time between two times, by the clock that went further. */
export function ageOf(then: Clocks, now: Clocks): number {
  const [by_elapsed, by_wall] = [now.elapsed_ms - then.elapsed_ms, now.wall_ms - then.wall_ms];
  return by_elapsed > by_wall ? by_elapsed : by_wall;
}
