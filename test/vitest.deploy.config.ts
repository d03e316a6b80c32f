import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** For npm run test:deploy. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  cacheDir: fileURLToPath(new URL('node_modules/.cache', import.meta.url)),
  test: {
    include: ['test/deploy/steps.ts'],
    pool: 'forks',
    testTimeout: 600_000,
    hookTimeout: 600_000,
    experimental: { viteModuleRunner: false, nodeLoader: false },
  },
});
