import type { Command } from 'commander';
import { listBackups, type ScheduledBackup } from '../backup/history.ts';
import { megabytes } from '../backup/progress.ts';
import { says, table, withApp } from './command.ts';

/** Lists the scheduled backups, the newest first. */
export function backupsCommand(backups: Command): void {
  says(backups, () =>
    withApp(async (app) => {
      const all = await listBackups(app.db);
      const text = all.length === 0 ? 'No backup was made by schedule yet.' : table(all.map(lineOf));
      return { json: { data: all.map(viewOf) }, text };
    }),
  );
}

function viewOf({ started_at, ended_at, size_bytes, ...backup }: ScheduledBackup) {
  return {
    ...backup,
    started_at: started_at.toISOString(),
    ended_at: ended_at?.toISOString() ?? null,
    size_bytes: size_bytes === null ? null : Number(size_bytes),
  };
}

function lineOf({ id, place, host, started_at, state, size_bytes, error }: ScheduledBackup): string[] {
  const size = size_bytes === null ? '' : megabytes(Number(size_bytes));
  return [started_at.toISOString(), state, size, `${place}/${id}`, host, error ?? ''];
}
