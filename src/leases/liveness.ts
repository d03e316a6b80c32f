import type pg from 'pg';
import { openConnection, type Db } from '../db/database.ts';
import { oneRow } from '../db/one-row.ts';

/**
 * The time by two clocks: the monotonic one stands still while the machine sleeps, the other one may be set. `session`:
 * of the node's leases, undefined while none of them counts.
 */
export type LeaseTime = { elapsed_ms: number; wall_ms: number; session: number | undefined };

/** The node's own word that it is alive, on which all its leases depend. */
export type Liveness = {
  /** Returns the time, with the session in which what is leased now counts. */
  now(): LeaseTime;
  /** Says that the node is alive, if nobody has heard that lately. Rejects if PostgreSQL does not hear it. */
  ensure(): Promise<void>;
  close(): Promise<void>;
};

/** A node that said nothing for longer uses none of its leases. PostgreSQL gives them to others 2 s later. */
const live_ms = 6_000;
const beat_ms = 2_000;

/** A connection that is mute for longer is given up. */
const mute_ms = 1_500;

/**
 * Says every 2 s that the node is alive (table `lessees`), on a connection of its own, on which nothing else waits: one
 * statement of a node instead of one for each of its leases. A node that was frozen, asleep or cut off for so long that
 * others may have what it had leased begins a new session, and has leased nothing in it.
 */
export function openLiveness(db: Db, node_id: string): Liveness {
  return new Beats(db, node_id);
}

type Clocks = Omit<LeaseTime, 'session'>;

class Beats implements Liveness {
  readonly #db: Db;
  readonly #node_id: string;
  #client: pg.Client | undefined;
  #session = 0;
  #heard_at: Clocks | undefined;
  #beating: Promise<void> | undefined;
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
    this.#timer ??= setInterval(() => void this.#beat().catch(() => undefined), beat_ms).unref(); // the next one may be heard
    while (!this.#isLive(readClocks())) await this.#beat();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#beating?.catch(() => undefined);
    await this.#client?.end();
  }

  #isLive(clocks: Clocks): boolean {
    return this.#heard_at !== undefined && ageOf(this.#heard_at, clocks) < live_ms;
  }

  #beat(): Promise<void> {
    return (this.#beating ??= this.#say().finally(() => (this.#beating = undefined)));
  }

  async #say(): Promise<void> {
    try {
      this.#client ??= await openConnection(this.#db, 'medley leases', { limit_ms: mute_ms });
      const begun = readClocks();
      // The first column is of the moment before. PostgreSQL's clock may have gone further than the node's own.
      const { rows } = await this.#client.query<{ was_silent: boolean }>(
        `select exists (select from lessees where node_id = $1 and seen_at <= now() - interval '8 s') as was_silent,
                keep_leases($1)`,
        [this.#node_id],
      );
      // Its leases counted without a gap if it is heard before the time of the last beat is over.
      if (oneRow(rows).was_silent || !this.#isLive(readClocks())) this.#session += 1;
      this.#heard_at = begun;
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

/** Returns whether something that was leased then counts now, if it ends after `lasts_ms`. */
export function isStillLeased(then: LeaseTime, now: LeaseTime, lasts_ms: number): boolean {
  return now.session !== undefined && then.session === now.session && ageOf(then, now) < lasts_ms;
}

/** Returns the time between two times, by the clock that went further. */
export function ageOf(then: Clocks, now: Clocks): number {
  const [by_elapsed, by_wall] = [now.elapsed_ms - then.elapsed_ms, now.wall_ms - then.wall_ms];
  return by_elapsed > by_wall ? by_elapsed : by_wall;
}
