import { defaultProviders, keyName } from '../../src/catalog/default.ts';
import { startEmbedded } from '../../src/db/embedded.ts';
import { removeFolder, temporaryFolder } from './embedded.ts';

/**
 * One PostgreSQL for the whole run, as the service itself starts it; only it need not survive a power
 * cut. MEDLEY_TEST_CLUSTER names a running one instead. Keys of whoever runs the tests stay out of them.
 */
export default async function setUp(): Promise<(() => Promise<void>) | undefined> {
  for (const provider of Object.values(defaultProviders())) delete process.env[keyName(provider)];
  if (process.env['MEDLEY_TEST_CLUSTER']) return undefined;
  const folder = temporaryFolder(0o755);
  const embedded = await startEmbedded({
    data_dir: `${folder}/data`,
    settings: { fsync: 'off', max_connections: '300', shared_buffers: '256MB' },
  });
  process.env['MEDLEY_TEST_CLUSTER'] = embedded.url;
  return async () => {
    await embedded.stop();
    removeFolder(folder);
  };
}
