import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Needs nothing but the sources: no database, no port, no child process. `npm run check` runs these. */
const unit = ['test/tidy.test.ts', 'test/**/*.unit.test.ts'];

/** Begun last, they would be waited for alone. Those that wait stand beside those that compute. */
const begun_first = [
  'test/lifecycle/failpoints.test.ts',
  'test/webhooks/real-time.test.ts',
  'test/browser/pages.test.ts',
  'test/chaos/chaos.test.ts',
  'test/chat/whole.test.ts',
  'test/db/embedded.test.ts',
  'test/providers/two-routes.test.ts',
  'test/lifecycle/kill.test.ts',
  'test/docs/examples.test.ts',
];

const { sort: sortAsUsual } = BaseSequencer.prototype;

class LongOnesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await sortAsUsual.call(this, files);
    const placeOf = ({ moduleId }: TestSpecification) => begun_first.findIndex((name) => moduleId.endsWith(name));
    const long = sorted.filter((file) => placeOf(file) >= 0).toSorted((a, b) => placeOf(a) - placeOf(b));
    return [...long, ...sorted.filter((file) => placeOf(file) < 0)];
  }
}

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  cacheDir: fileURLToPath(new URL('node_modules/.cache', import.meta.url)),
  test: {
    pool: 'forks',
    // One more than two cores have: many files wait for a time that has to pass, as real-time.test.ts does for
    // 71 s with 3 s of a core.
    maxWorkers: Math.max(3, Math.floor(availableParallelism() / 2)),
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
