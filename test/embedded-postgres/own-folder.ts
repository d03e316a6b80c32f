import { join } from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';
import { startEmbedded, type EmbeddedPostgres } from '../../src/embedded-postgres/embedded.ts';
import { clusterFolder, quick, removeFolder } from '../helpers/embedded.ts';

/** The folder of the test that runs, the data folder in it, and what its clusters have logged. */
export let folder: string;
export let data_dir: string;
export let log: string[];

/** Gives each test of the file a folder of its own, and removes it afterwards. */
export function useOwnFolders(): void {
  beforeEach(() => {
    folder = clusterFolder();
    data_dir = join(folder, 'data');
    log = [];
  });
  afterEach(() => removeFolder(folder));
}

/** Starts a cluster in the data folder of the test, or in another one. */
export function start(in_folder = data_dir): Promise<EmbeddedPostgres> {
  return startEmbedded({ data_dir: in_folder, settings: quick, log: (line) => log.push(line) });
}

/** Resolves when the log has a line that fits. */
export async function logged(pattern: RegExp): Promise<void> {
  await expect.poll(() => log.join('\n'), { timeout: 120_000, interval: 20 }).toMatch(pattern);
}
