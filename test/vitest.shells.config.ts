import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** For npm run test:shells. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  cacheDir: fileURLToPath(new URL('node_modules/.cache', import.meta.url)),
  test: {
    include: ['test/cli/shells.ts'],
    globalSetup: [fileURLToPath(new URL('helpers/global-setup.ts', import.meta.url))],
    pool: 'forks',
    testTimeout: 60_000,
    experimental: { viteModuleRunner: false, nodeLoader: false },
  },
});
