import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** For npm run test:s3, which starts the servers. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  cacheDir: fileURLToPath(new URL('node_modules/.cache', import.meta.url)),
  test: {
    include: ['test/storage/s3/servers.ts'],
    pool: 'forks',
    testTimeout: 60_000,
    experimental: { viteModuleRunner: false, nodeLoader: false },
  },
});
