import { spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { defaultProviders, keyName } from '../../src/catalog/default.ts';
import { startEmbedded } from '../../src/embedded-postgres/embedded.ts';
import { clusterFolder, removeFolder, temporaryFolder } from './embedded.ts';
import { makeTemplates } from './templates.ts';

/**
 * One PostgreSQL for the whole run, as the service itself starts it; only it need not survive a power
 * cut. MEDLEY_TEST_CLUSTER names a running one instead. Keys of whoever runs the tests stay out of them.
 */
export default async function setUp(): Promise<() => Promise<void>> {
  if (process.env['MEDLEY_TEST_TEMPLATES'] !== undefined) return () => Promise.resolve(); // by another project of the run
  for (const provider of Object.values(defaultProviders())) delete process.env[keyName(provider)];
  // As main.ts and cli.ts do for themselves: each file of tests is a process that loads what the service loads.
  process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, '../../node_modules/.cache/medley');
  const stopCluster = process.env['MEDLEY_TEST_CLUSTER'] ? undefined : await startCluster();
  const dropTemplates = await makeTemplates();
  const browser_folder = temporaryFolder(0o755);
  process.env['MEDLEY_TEST_BROWSER'] = browser_folder;
  return async () => {
    removeFolder(browser_folder);
    await dropTemplates();
    await stopCluster?.();
  };
}

/** Autovacuum would look into one of some sixty databases each second, all of which are soon gone. */
const settings = {
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: '300',
  shared_buffers: '256MB',
  autovacuum_naptime: '10min',
};

/**
 * A shell that waits for the end of this process, however it ends, then ends the PostgreSQL in the folder if it still
 * runs, and removes the folder. It is no part of the terminal's group: Ctrl-C does not reach it.
 */
function guardCluster(folder: string): void {
  const script = `cat; kill -QUIT "$(head -n 1 "$1/data/postgres/data/postmaster.pid")" && sleep 1; rm -rf "$1"`;
  const shell = spawn('sh', ['-c', script, 'sh', folder], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  shell.unref();
  if (shell.stdin instanceof Socket) shell.stdin.unref();
}

async function startCluster(): Promise<() => Promise<void>> {
  const folder = clusterFolder();
  guardCluster(folder);
  const embedded = await startEmbedded({
    data_dir: `${folder}/data`,
    settings,
  });
  process.env['MEDLEY_TEST_CLUSTER'] = embedded.url;
  return async () => {
    await embedded.stop();
    removeFolder(folder);
  };
}
