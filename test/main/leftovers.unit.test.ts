import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { watchLeftovers } from '../../src/main/leftovers.ts';

let data_dir: string;
beforeEach(() => {
  data_dir = mkdtempSync(join(tmpdir(), 'medley-leftovers-'));
});
afterEach(() => rmSync(data_dir, { recursive: true, force: true }));

/** Writes a file; the path `of` above it is that old. */
function leave(name: string, age_hours: number, of = name): string {
  const path = join(data_dir, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, 'x');
  const then = new Date(Date.now() - age_hours * 3_600_000);
  utimesSync(join(data_dir, of), then, then);
  return path;
}

it('a process that begins removes what killed ones left on its disk, whatever its role, and spares what is in use', async () => {
  const backup = (id: string, age_hours: number) =>
    leave(`backup-being-sent/${id}/tables/public.tasks.copy.gz`, age_hours, `backup-being-sent/${id}`);
  const old = [leave('spool/old.part', 4), backup('medley-1', 26)];
  const fresh = [leave('spool/new.part', 2), backup('medley-2', 23), leave('files/aa/bb/old.png', 1_000)];
  const closers: (() => void)[] = [];
  watchLeftovers({ config: { data_dir }, log: { warn: () => undefined }, onStop: (close) => closers.push(close) });
  await expect.poll(() => old.filter((path) => existsSync(path))).toEqual([]);
  expect(fresh.filter((path) => !existsSync(path))).toEqual([]);
  for (const close of closers) close();
});
