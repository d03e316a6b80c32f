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

async function startCluster(): Promise<() => Promise<void>> {
  const folder = clusterFolder();
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
