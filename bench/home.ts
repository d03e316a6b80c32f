import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbedded, type EmbeddedPostgres } from '../src/embedded-postgres/embedded.ts';
import { makeLeash, type Leash } from './leash.ts';

/** Folder of a bench's files and its PostgreSQL. */
export type Home = {
  folder: string;
  embedded: EmbeddedPostgres;
  leash: Leash;
  /** Once all that uses it has ended. */
  close(): Promise<void>;
};

/** A folder and a PostgreSQL, with `settings` of its own, for one run: they go with the bench, however it ends. */
export async function openHome(settings: Record<string, string> = {}, leash: Leash = makeLeash()): Promise<Home> {
  const folder = mkdtempSync(join(tmpdir(), 'medley-bench-'));
  leash.remove(folder);
  chmodSync(folder, 0o755); // PostgreSQL's user must be able to enter
  const embedded = await startEmbedded({ data_dir: join(folder, 'data'), settings });
  leash.holdServer(embedded.pid);
  const close = async () => {
    await embedded.stop();
    rmSync(folder, { recursive: true, force: true });
    leash.letGo();
  };
  return { folder, embedded, leash, close };
}
