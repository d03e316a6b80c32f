import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** Needs nothing but the sources: no database, no port, no child process. `npm run check` runs these. */
const unit = ['test/tidy.test.ts', 'test/**/*.unit.test.ts'];

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  cacheDir: fileURLToPath(new URL('node_modules/.cache', import.meta.url)),
  test: {
    pool: 'forks',
    // Tests with a database mostly wait for it: on two cores a third worker would only make signals late.
    maxWorkers: Math.max(2, Math.floor(availableParallelism() / 2)),
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ['default'],
    projects: [
      { extends: true, test: { name: 'unit', include: unit } },
      {
        extends: true,
        test: {
          name: 'full',
          include: ['test/**/*.test.ts'],
          exclude: [...unit, '**/node_modules/**'],
          globalSetup: [fileURLToPath(new URL('helpers/global-setup.ts', import.meta.url))],
        },
      },
    ],
  },
});
