import { globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const root = fileURLToPath(new URL('..', import.meta.url));
const helper = (name: string) => fileURLToPath(new URL(`helpers/${name}`, import.meta.url));
const globalSetup = [helper('global-setup.ts')];
const shared = { isolate: false, setupFiles: [helper('shared-process.ts')] };

/** Needs nothing but the sources: no database, no port, no child process. `npm run check` runs these. */
const unit = ['test/tidy.test.ts', 'test/**/*.unit.test.ts'];

/**
 * A file says at its beginning how it is run: `// isolated: WHY` in a process of its own, `// nightly: WHY` only by
 * `npm run test:nightly`. All others share a few processes, since loading the service takes 1.2 s of a core.
 */
function filesMarked(mark: 'isolated' | 'nightly'): string[] {
  const files = globSync('test/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**', ...unit] });
  return files.filter((file) => {
    const first_lines = readFileSync(join(root, file), 'utf8').split('\n', 2);
    return first_lines.some((line) => line.startsWith(`// ${mark}: `));
  });
}

const left_out = process.env['MEDLEY_TEST_DEPTH'] === 'nightly' ? [] : filesMarked('nightly');
const alone = filesMarked('isolated').filter((file) => !left_out.includes(file));

/** Begun last, they would be waited for alone. Those that wait stand beside those that compute. */
const begun_first = [
  'test/browser/pages.test.ts',
  'test/chat/unsettled.test.ts',
  'test/lifecycle/failpoints.test.ts',
  'test/chaos/chaos.test.ts',
  'test/providers/two-routes.test.ts',
  'test/docs/examples.test.ts',
  'test/browser/sign-in.test.ts',
  'test/chat/review.test.ts',
  'test/browser/media.test.ts',
  'test/storage/probe.test.ts',
  'test/providers/sandbox/chat.test.ts',
  'test/browser/keys.test.ts',
  'test/chat/left.test.ts',
  'test/sdk/calls.test.ts',
  'test/queue/hung.test.ts',
  'test/browser/money.test.ts',
  'test/queue/takeover.test.ts',
  'test/backup/backup.test.ts',
  'test/tasks/flow.test.ts',
  'test/lifecycle/surroundings.test.ts',
  'test/chat/clocks.test.ts',
  'test/chat/gemini.test.ts',
  'test/browser/walks.test.ts',
];

const { sort: sortAsUsual } = BaseSequencer.prototype;

/** Those that share processes one after another: a process ends when the next file may not share it. */
class LongOnesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await sortAsUsual.call(this, files);
    const placeOf = ({ moduleId }: TestSpecification) => begun_first.findIndex((name) => moduleId.endsWith(name));
    const long = sorted.filter((file) => placeOf(file) >= 0).toSorted((a, b) => placeOf(a) - placeOf(b));
    const others = sorted.filter((file) => placeOf(file) < 0);
    const isShared = ({ project }: TestSpecification) => project.name === 'full';
    return [...long, ...others.filter((file) => !isShared(file)), ...others.filter(isShared)];
  }
}

export default defineConfig({
  root,
  cacheDir: fileURLToPath(new URL('node_modules/.cache', import.meta.url)),
  test: {
    pool: 'forks',
    // Four more than two cores: two thirds of what a file takes it waits, mostly for its services and their times.
    // With four workers, 30 % of two cores were idle.
    maxWorkers: Math.max(6, Math.floor(availableParallelism() / 2)),
    // What takes two seconds alone took a minute beside eight busy loops and a second run. Who waits in vain fails late.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    reporters: ['default'],
    // Node reads the sources itself, as in the service: 0.3 s of a core less for each process of tests.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    sequence: { sequencer: LongOnesFirst },
    projects: [
      { extends: true, test: { name: 'unit', include: unit, ...shared } },
      { extends: true, test: { name: 'alone', include: alone, globalSetup } },
      {
        extends: true,
        test: {
          name: 'full',
          include: ['test/**/*.test.ts'],
          exclude: [...unit, ...alone, ...left_out, '**/node_modules/**'],
          globalSetup,
          ...shared,
        },
      },
    ],
  },
});
