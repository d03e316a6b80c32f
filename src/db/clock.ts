import type { Clock } from '../lib/clock.ts';
import type { Queryable } from './database.ts';

/** The earlier of two clocks, that of this node and that of the database: what is over by both is over. */
export async function earlierClock(db: Queryable, node: Date): Promise<Date> {
  const rows = await db.query<{ now: Date }>('select now() as now');
  const database = rows[0]?.now ?? node;
  return database < node ? database : node;
}

/**
 * Returns by how much a clock is beside that of the database, which is read between two looks at it: an answer that is
 * late says nothing of either.
 */
export async function clockSkew(db: Queryable, clock: Clock): Promise<number> {
  const before_ms = clock.now();
  const rows = await db.query<{ now: Date }>('select clock_timestamp() as now');
  const now_ms = rows[0]?.now.getTime() ?? 0;
  return Math.max(0, before_ms - now_ms, now_ms - clock.now());
}

const look_every_ms = 5_000;

/** The fastest of some answers says the most. */
const first_looks = 3;

/** It never steps, whatever becomes of the system's clock. */
const monotonic_ms = () => Number(process.hrtime.bigint()) / 1e6;

/**
 * The time of the database, as nearly as a node can know it: all nodes write times into the same rows, and what one of
 * them writes another one compares with its own time. The system's clock may be wrong, or step, without any effect.
 * Between two looks, and while the database is away, the time goes on by the monotonic clock. Rejects if the database
 * cannot be asked at first.
 */
export async function openDatabaseClock(db: Queryable): Promise<Clock & { close(): void }> {
  let ahead_ms = 0; // of the monotonic clock
  const look = async (is_first: boolean) => {
    const asked_at_ms = monotonic_ms();
    const rows = await db.query<{ now_ms: number }>(
      `select (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms`,
    );
    const answered_at_ms = monotonic_ms();
    const now_ms = rows[0]?.now_ms;
    if (now_ms === undefined) return;
    // The database read its clock between the two: what is known already may be more exact than that.
    const [least_ms, most_ms] = [now_ms - answered_at_ms, now_ms - asked_at_ms];
    ahead_ms = is_first ? (least_ms + most_ms) / 2 : Math.min(Math.max(ahead_ms, least_ms), most_ms);
  };
  await look(true);
  for (let looks = 1; looks < first_looks; looks++) await look(false);
  let is_looking = false;
  const timer = setInterval(() => {
    if (is_looking) return;
    is_looking = true;
    void look(false)
      .catch(() => undefined) // it is away: the next look is soon enough
      .finally(() => (is_looking = false));
  }, look_every_ms).unref();
  return { now: () => Math.floor(monotonic_ms() + ahead_ms), close: () => clearInterval(timer) };
}
