import type { Config } from '../config.ts';
import type { Db } from '../db/database.ts';
import type { Settings } from '../catalog/model.ts';
import type { Clock } from '../lib/clock.ts';
import { randomBase62 } from '../lib/ids.ts';
import { placeOf } from '../storage/settings.ts';
import type { Storage } from '../storage/storage.ts';
import { makeBackup } from './backup.ts';
import { backupsIn, forgetOld, lastBackups, noteBegin, noteDone, noteFailure, noteRemoval } from './history.ts';
import type { Manifest } from './manifest.ts';
import { openPlace, type BackupPlace } from './places.ts';
import type { Progress } from './progress.ts';

/** The parts of the app that a scheduled backup takes. */
export type ScheduledParts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly storage: Storage;
  readonly config: Pick<Config, 'data_dir' | 'secret'>;
  readonly catalog: { readonly current: { readonly settings: Settings } };
  readonly log: { info(details: object, message: string): void; error(details: object, message: string): void };
};

const retry_first_ms = 60_000;
const retry_max_ms = 3_600_000;
const history_ms = 90 * 86_400_000;

/**
 * Makes the backup that is due, if one is, and removes those that are no longer kept. Called every minute on one node at
 * a time. Times of backups are multiples of `every`; however many of them went by, one backup makes up for them. One that
 * failed is tried again after a minute, then after longer, at most an hour.
 */
export async function runScheduledBackup(app: ScheduledParts, version: string, stopped: AbortSignal): Promise<void> {
  const { backup, storage } = app.catalog.current.settings;
  if (!backup) return;
  const open = () => openPlace(backup.to, storage, app.config.data_dir);
  await endBroken(app, open, backup.to);
  if (await isDue(app, backup.every_ms)) await makeOne(app, open, backup, version, stopped);
}

type Open = () => Promise<BackupPlace>;

async function withPlace(open: Open, work: (place: BackupPlace) => Promise<void>): Promise<void> {
  const place = await open();
  try {
    await work(place);
  } finally {
    place.close();
  }
}

/** No other node makes one now: what still runs by its row was broken off with its process. */
async function endBroken({ db, clock, log }: ScheduledParts, open: Open, to: string): Promise<void> {
  for (const { id, place: its_place } of await backupsIn(db, 'running')) {
    try {
      if (its_place === to) await withPlace(open, (place) => place.remove(id));
    } catch (error) {
      log.error({ err: error, backup: id, place: to }, 'what is left of a broken backup could not be removed');
    }
    await noteFailure(db, id, 'The process that made it ended before it was complete.', new Date(clock.now()));
  }
}

async function isDue({ db, clock }: ScheduledParts, every_ms: number): Promise<boolean> {
  const now_ms = clock.now();
  const { done, failures } = await lastBackups(db);
  if (done && done.started_at.getTime() >= Math.floor(now_ms / every_ms) * every_ms) return false;
  const [last] = failures;
  const wait_ms = Math.min(retry_first_ms * 2 ** (failures.length - 1), retry_max_ms, every_ms);
  return !last || now_ms >= (last.ended_at ?? last.started_at).getTime() + wait_ms;
}

async function makeOne(
  app: ScheduledParts,
  open: Open,
  { to, keep }: NonNullable<Settings['backup']>,
  version: string,
  stopped: AbortSignal,
): Promise<void> {
  const { db, clock } = app;
  const begun = new Date(clock.now());
  const id = `medley-${begun.toISOString().replaceAll(/[-:]|\.\d+/g, '')}-${randomBase62(6)}`;
  const { done } = await lastBackups(db);
  await noteBegin(db, id, to, begun);
  try {
    await withPlace(open, async (place) => {
      await place.expectRoom(Number(done?.size_bytes ?? 0));
      const manifest = await place.make(id, (folder) => write(app, folder, version, stopped));
      await noteDone(db, id, sizeOf(manifest), new Date(clock.now()));
      app.log.info({ backup: id, place: to }, 'a backup was made');
      await removeOldOnes(app, place, to, keep);
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    await noteFailure(db, id, reason, new Date(clock.now())); // nothing, where it is done
    if (stopped.aborted) throw error;
    app.log.error({ err: error, backup: id, place: to }, 'a backup failed, and is tried again');
  }
}

/** Ends with the service: every step of it tells of its progress. */
function write(app: ScheduledParts, folder: string, version: string, stopped: AbortSignal): Promise<Manifest> {
  const { storage: settings } = app.catalog.current.settings;
  const progress: Progress = { say: () => stopped.throwIfAborted(), add: () => stopped.throwIfAborted() };
  const files = settings.type === 's3' ? { bucket: placeOf(settings) } : { storage: app.storage };
  const secret_in_environment = app.config.secret !== undefined;
  return makeBackup({ db: app.db, files, product_version: version, secret_in_environment, progress }, folder);
}

function sizeOf({ tables, files }: Manifest): number {
  return tables.reduce((sum, { size_bytes }) => sum + size_bytes, files.list.size_bytes + files.size_bytes);
}

/**
 * Removes complete backups of its own in this place, the oldest first, until `keep` are left. Those that somebody else has
 * removed do not count, so that the last good one never goes.
 */
async function removeOldOnes(app: ScheduledParts, place: BackupPlace, to: string, keep: number): Promise<void> {
  const own = (await backupsIn(app.db, 'done')).filter((each) => each.place === to);
  let good = 0;
  for (const { id } of own) {
    try {
      if (good < keep && (await place.has(id))) {
        good += 1;
        continue;
      }
      if (good >= keep) await place.remove(id);
      await noteRemoval(app.db, id);
    } catch (error) {
      app.log.error({ err: error, backup: id, place: to }, 'an old backup could not be removed');
    }
  }
  await forgetOld(app.db, new Date(app.clock.now() - history_ms));
}

/** The state of scheduled backups. `is_late`: two are missing, or the first ones failed. */
export type BackupHealth = {
  last: { id: string; place: string; started_at: Date; size_bytes: bigint | null } | undefined;
  /** Since then, one after the other. */
  failures: number;
  error: string | undefined;
  is_late: boolean;
};

/** Returns how scheduled backups are doing; undefined where none are scheduled. */
export async function backupHealth(
  db: Db,
  { backup }: Pick<Settings, 'backup'>,
  now_ms: number,
): Promise<BackupHealth | undefined> {
  if (!backup) return undefined;
  const { done, failures } = await lastBackups(db);
  const [failure] = failures;
  return {
    last: done,
    failures: failures.length,
    error: failure?.error ?? undefined,
    is_late: done ? now_ms - done.started_at.getTime() > 2 * backup.every_ms : failures.length > 0,
  };
}

/** The same in words, for `doctor` and the page of operators. */
export function healthText({ last, failures, error }: BackupHealth, now_ms: number): string {
  const age_ms = last ? Math.max(0, now_ms - last.started_at.getTime()) : 0;
  const age = age_ms < 7_200_000 ? `${Math.floor(age_ms / 60_000)} min` : `${Math.floor(age_ms / 3_600_000)} h`;
  const last_text = last ? `the last is ${age} old, ${last.id} in ${last.place}` : 'none yet';
  return failures === 0 ? last_text : `${last_text}; ${failures} failed since: ${error}`;
}
