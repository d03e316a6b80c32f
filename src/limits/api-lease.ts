import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { ConfigError } from '../config.ts';
import { openConnection, type Db } from '../db/database.ts';

/** The one API node of its database. */
export type ApiLease = {
  /**
   * Waits for the node before this one to leave, as in a rolling restart; true if this is the one now,
   * false if it has left while it waited. Throws ConfigError if the other one stays.
   */
  take(): Promise<boolean>;
  /** The next one may take its place. */
  leave(): Promise<void>;
};

export type ApiLeaseOptions = {
  patience_ms?: number;
  /** Told once, in a sentence, that it has to wait. */
  say?: (line: string) => void;
  /** The connection was lost, and another node has come meanwhile: this one must accept nothing more. */
  onReplaced: () => void;
};

/** Any number will do, as long as it is ours and not that of another lock (grep for 7_633_529). */
const advisory_lock = 7_633_529_004;

const patience_default_ms = 20_000;
const retry_ms = 100;

/** A connection that died without a word is found by these: at its own end by the check, at the server's by its keepalive. */
const check_every_ms = 5_000;
const check_limit_ms = 5_000;
const session_settings = `set idle_session_timeout = 0; set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2;
  set tcp_keepalives_count = 3`;

const waiting = 'Another API node runs on this database; waiting for it to stop';
const refusal =
  `Another API node runs on this database, and each counts requests for itself: two would let a key make twice its
limit. Stop the other one first, or start this one with MEDLEY_ROLE=worker (workers may be many).`.replace('\n', ' ');

/**
 * Windows in memory are exact for one node only, and so is what it knows of accounts (money/reservations.ts), so there
 * may be one: it holds an advisory lock of a session of its own, which ends with the process, however that dies.
 */
export function openApiLease(db: Db, options: ApiLeaseOptions): ApiLease {
  return new AdvisoryLockLease(db, options);
}

class AdvisoryLockLease implements ApiLease {
  readonly #db: Db;
  readonly #options: ApiLeaseOptions;
  readonly #name = `medley api ${randomUUID()}`;
  #client: pg.Client | undefined;
  #check: NodeJS.Timeout | undefined;
  #left = false;

  constructor(db: Db, options: ApiLeaseOptions) {
    this.#db = db;
    this.#options = options;
  }

  async take(): Promise<boolean> {
    const { patience_ms = patience_default_ms, say } = this.#options;
    const give_up_at_ms = performance.now() + patience_ms;
    for (let is_announced = false; !this.#left; is_announced = true) {
      if ((await this.#tryOnce()) === 'taken') return !this.#left;
      if (performance.now() > give_up_at_ms) {
        await this.leave();
        throw new ConfigError(refusal);
      }
      if (!is_announced) say?.(`${waiting} (at most ${Math.ceil(patience_ms / 1000)} s).`);
      await sleep(retry_ms);
    }
    return false;
  }

  async leave(): Promise<void> {
    this.#left = true;
    clearInterval(this.#check);
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => undefined);
  }

  /** `own`: held by a session of this node that the server does not know to be dead yet. */
  async #tryOnce(): Promise<'taken' | 'own' | 'others'> {
    const client = (this.#client ??= await this.#connect());
    const { rows } = await client.query<{ taken: boolean; own: boolean }>(
      `select pg_try_advisory_lock($1) as taken, exists (
         select from pg_stat_activity where application_name = $2 and pid <> pg_backend_pid()) as own`,
      [advisory_lock, this.#name],
    );
    const [answer] = rows;
    if (!answer?.taken) return answer?.own ? 'own' : 'others';
    const lost = () => void this.#lost(client);
    client.on('error', lost).on('end', lost);
    this.#check = setInterval(() => void answers(client).then((alive) => alive || lost()), check_every_ms);
    return 'taken';
  }

  async #connect(): Promise<pg.Client> {
    const client = await openConnection(this.#db, this.#name, { limit_ms: check_limit_ms });
    await client.query(session_settings);
    return client;
  }

  async #lost(client: pg.Client): Promise<void> {
    if (this.#client !== client) return;
    this.#client = undefined;
    clearInterval(this.#check);
    client.end().catch(() => undefined);
    while (!this.#left) {
      const answer = await this.#tryOnce().catch(() => (this.#client = undefined));
      if (answer === 'taken') return;
      if (answer === 'others') {
        await this.leave();
        return this.#options.onReplaced();
      }
      await sleep(retry_ms);
    }
  }
}

/** Within the limit. */
async function answers(client: pg.Client): Promise<boolean> {
  const limit = new AbortController();
  const late = sleep(check_limit_ms, false, { signal: limit.signal }).catch(() => false);
  const answered = client.query('select 1').then(
    () => true,
    () => false,
  );
  const alive = await Promise.race([answered, late]);
  limit.abort();
  return alive;
}
