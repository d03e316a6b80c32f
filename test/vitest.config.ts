import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Needs nothing but the sources: no database, no port, no child process. `npm run check` runs these. */
const unit = ['test/tidy.test.ts', 'test/**/*.unit.test.ts'];

/** Long, and mostly waiting: begun last, they would be waited for alone. */
const begun_first = [
  'test/lifecycle/failpoints.test.ts',
  'test/webhooks/real-time.test.ts',
  'test/chaos/chaos.test.ts',
  'test/providers/two-routes.test.ts',
];

const { sort: sortAsUsual } = BaseSequencer.prototype;

class LongOnesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await sortAsUsual.call(this, files);
    const isLong = ({ moduleId }: TestSpecification) => begun_first.some((name) => moduleId.endsWith(name));
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

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
    sequence: { sequencer: LongOnesFirst },
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
