import { hostname } from 'node:os';
import type { Queryable } from '../db/database.ts';

/** A scheduled backup. `failed`: it is tried again. `removed`: it was there, and is not any more. */
export type ScheduledBackup = {
  id: string;
  place: string;
  host: string;
  started_at: Date;
  ended_at: Date | null;
  state: 'running' | 'done' | 'failed' | 'removed';
  size_bytes: bigint | null;
  error: string | null;
};

const columns = 'id, place, host, started_at, ended_at, state, size_bytes, error';

/** All that is known of, the newest first. */
export async function listBackups(db: Queryable, limit = 100): Promise<ScheduledBackup[]> {
  return db.query<ScheduledBackup>(
    `select ${columns} from scheduled_backups order by started_at desc, id desc limit $1`,
    [limit],
  );
}

/** Lists the backups in one state, the newest first. */
export async function backupsIn(db: Queryable, state: ScheduledBackup['state']): Promise<ScheduledBackup[]> {
  return db.query<ScheduledBackup>(
    `select ${columns} from scheduled_backups where state = $1 order by started_at desc, id desc`,
    [state],
  );
}

/** Returns the last one that succeeded, even if it was removed since, and the failures after it, the newest first. */
export async function lastBackups(
  db: Queryable,
): Promise<{ done: ScheduledBackup | undefined; failures: ScheduledBackup[] }> {
  const [done] = await db.query<ScheduledBackup>(
    `select ${columns} from scheduled_backups where state in ('done', 'removed') order by started_at desc, id desc limit 1`,
  );
  const failures = await db.query<ScheduledBackup>(
    `select ${columns} from scheduled_backups where state = 'failed' and started_at > $1 order by started_at desc limit 100`,
    [done?.started_at ?? new Date(0)],
  );
  return { done, failures };
}

export async function noteBegin(db: Queryable, id: string, place: string, now: Date): Promise<void> {
  await db.query(
    `insert into scheduled_backups (id, place, host, started_at, state) values ($1, $2, $3, $4, 'running')`,
    [id, place, hostname(), now],
  );
}

export async function noteDone(db: Queryable, id: string, size_bytes: number, now: Date): Promise<void> {
  await db.query(
    `update scheduled_backups set state = 'done', ended_at = $3, size_bytes = $2 where id = $1 and state = 'running'`,
    [id, size_bytes, now],
  );
}

/** The error is of our own disk or bucket: it names places, and no secrets. */
export async function noteFailure(db: Queryable, id: string, error: string, now: Date): Promise<void> {
  await db.query(
    `update scheduled_backups set state = 'failed', ended_at = $3, error = left($2, 1000) where id = $1 and state = 'running'`,
    [id, error, now],
  );
}

export async function noteRemoval(db: Queryable, id: string): Promise<void> {
  await db.query(`update scheduled_backups set state = 'removed' where id = $1 and state = 'done'`, [id]);
}

/** Removes rows of what is over and gone. */
export async function forgetOld(db: Queryable, before: Date): Promise<void> {
  await db.query(`delete from scheduled_backups where state in ('failed', 'removed') and started_at < $1`, [before]);
}
