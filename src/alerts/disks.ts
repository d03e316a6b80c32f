import { statfs } from 'node:fs/promises';
import { hostname } from 'node:os';
import { isAbsolute } from 'node:path';
import type { Settings } from '../catalog/model.ts';
import type { Config } from '../config.ts';
import type { Db, Queryable } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';

/** The parts of the app that a report of disks takes. */
export type DiskParts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly config: Pick<Config, 'data_dir'>;
  readonly catalog: { readonly current: { readonly settings: Settings } };
  readonly log: { warn(details: object, message: string): void };
  onStop(close: () => void): void;
};

const report_every_ms = 5 * 60_000;

/** A report that is older is that of a process that is gone. */
const fresh_ms = 3 * report_every_ms;

/** Reports the room of this machine's disks now and every five minutes, until the service stops. */
export function watchDisks(app: DiskParts): void {
  const report = () =>
    void reportDisks(app).catch((error: unknown) => app.log.warn({ err: error }, 'the disks cannot be reported'));
  const timer = setInterval(report, report_every_ms).unref();
  app.onStop(() => clearInterval(timer));
  report();
}

/** Writes down how much room the data folder has, and the folder of scheduled backups if it is on this machine. */
export async function reportDisks({
  db,
  clock,
  config,
  catalog,
}: Pick<DiskParts, 'db' | 'clock' | 'config' | 'catalog'>): Promise<void> {
  const { backup } = catalog.current.settings;
  const paths = [config.data_dir, ...(backup && isAbsolute(backup.to) ? [backup.to] : [])];
  for (const path of paths) {
    const stats = await statfs(path).catch(() => undefined); // a folder that is not there yet
    if (!stats || stats.blocks === 0) continue;
    await db.query(
      `insert into disks (host, path, free_bytes, size_bytes, seen_at) values ($1, $2, $3, $4, $5)
       on conflict (host, path) do update set free_bytes = excluded.free_bytes, size_bytes = excluded.size_bytes,
         seen_at = excluded.seen_at`,
      [hostname(), path, stats.bavail * stats.bsize, stats.blocks * stats.bsize, new Date(clock.now())],
    );
  }
}

/** A disk, as a process reported it lately. */
export type Disk = { host: string; path: string; free_bytes: number; size_bytes: number };

export async function disksOf(db: Queryable, now: Date): Promise<Disk[]> {
  const rows = await db.query<Record<'free_bytes' | 'size_bytes', bigint> & { host: string; path: string }>(
    'select host, path, free_bytes, size_bytes from disks where seen_at > $1 order by host, path',
    [new Date(now.getTime() - fresh_ms)],
  );
  return rows.map((row) => ({ ...row, free_bytes: Number(row.free_bytes), size_bytes: Number(row.size_bytes) }));
}
