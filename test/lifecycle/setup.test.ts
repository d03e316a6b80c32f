import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findUser } from '../../src/embedded-postgres/process.ts';
import { is_root, removeFolder } from '../helpers/embedded.ts';
import { SetupRepository } from '../helpers/setup-repository.ts';

let repository: SetupRepository;

beforeEach(() => {
  repository = new SetupRepository();
});

afterEach(() => removeFolder(repository.folder));

const notes = (): string[] => readdirSync(join(repository.folder, '.setup/running'));

async function installed(): Promise<void> {
  expect(await repository.run('start').ended()).toBe(7);
}

describe('packages', () => {
  test('are installed by the first start, which then runs the service on the pinned Node', async () => {
    repository.useRealNpm();
    const first = repository.run('start', { args: ['--some', 'words'] });
    expect(await first.ended()).toBe(7);
    expect(first.out).toMatch(/^up \d+ yes --some words$/m);
    expect(first.error).toMatch(/^Installing packages … \d+ s\n[^]*Packages installed in \d+ s\.$/m);
    expect(notes()).toEqual([]);

    const second = repository.run('start');
    expect(await second.ended()).toBe(7);
    expect(second.error).toBe('');
    expect(repository.installations()).toBe(1);
  });

  test('are installed again when the lock file has changed or when they are gone', async () => {
    await installed();
    repository.writePackage('.', 'pinned-node', { node: 'node' }, '1.0.1');
    await installed();
    expect(repository.installations()).toBe(2);
    rmSync(join(repository.folder, 'node_modules'), { recursive: true });
    await installed();
    expect(repository.installations()).toBe(3);
  });

  test('that somebody installed by hand are used as they are', async () => {
    repository.useRealNpm();
    await installed();
    rmSync(join(repository.folder, 'node_modules/.medley-stamp'));
    await installed();
    expect(repository.installations()).toBe(1);
    expect(existsSync(join(repository.folder, 'node_modules/.medley-stamp'))).toBe(true);
  });

  test("that cannot be installed are reported with npm's words and what to do, and the next start tries again", async () => {
    repository.write('fail', '');
    const failing = repository.run('start');
    expect(await failing.ended()).toBe(1);
    expect(failing.error).toMatch(/npm error code E404: no such package[^]*could not be installed[^]*npm ping/);
    expect(failing.out).toBe('');
    rmSync(join(repository.folder, 'fail'));
    await installed();
  });
});

describe('simultaneous first starts', () => {
  test('install once: the second waits and says so, and both run', async () => {
    repository.holdInstall();
    const first = repository.run('start');
    await first.waitForOutput(/Installing packages/);
    const second = repository.run('start');
    await second.waitForOutput(new RegExp(`Process ${first.pid} is installing the packages; waiting`));
    repository.letInstall();
    await Promise.all([first.waitForOutput(/^up /m), second.waitForOutput(/^up /m)]);
    expect(notes()).toHaveLength(2);
    expect(await Promise.all([first.ended(), second.ended()])).toEqual([7, 7]);
    expect(repository.installations()).toBe(1);
  });

  test('install once when there are eight on an empty folder', async () => {
    const runs = Array.from({ length: 8 }, () => repository.run('start'));
    expect(await Promise.all(runs.map((run) => run.ended()))).toEqual(runs.map(() => 7));
    expect(repository.installations()).toBe(1);
  });

  test('are not delayed by one that was killed -9 with its npm', async () => {
    repository.holdInstall();
    const first = repository.run('start');
    await expect.poll(() => repository.installations(), { timeout: 120_000, interval: 10 }).toBe(1);
    process.kill(first.pid, 'SIGKILL');
    process.kill(Number(readFileSync(join(repository.folder, 'installations'), 'utf8')), 'SIGKILL');
    repository.letInstall();
    await installed();
    expect(repository.installations()).toBe(2);
  });

  test('wait for an npm that survived its start, and use its work', async () => {
    repository.holdInstall();
    const first = repository.run('start');
    await expect.poll(() => repository.installations(), { timeout: 120_000, interval: 10 }).toBe(1);
    process.kill(first.pid, 'SIGKILL');
    const npm = readFileSync(join(repository.folder, 'installations'), 'utf8').trim();
    const second = repository.run('start');
    await second.waitForOutput(new RegExp(`Process ${npm} is installing`));
    repository.letInstall();
    expect(await second.ended()).toBe(7);
    expect(repository.installations()).toBe(1);
  });
});

describe('the packages under a running instance', () => {
  test('are not replaced: the second start names the process to stop', async () => {
    const running = repository.run('start');
    const [, service] = await running.waitForOutput(/^up (\d+)/m);
    repository.writePackage('.', 'pinned-node', { node: 'node' }, '1.0.1');
    const second = repository.run('start');
    expect(await second.ended()).toBe(1);
    expect(second.error).toMatch(new RegExp(`have changed.*Medley runs from this folder \\(process ${service}\\)`));
    expect(repository.installations()).toBe(1);
    expect(await running.ended()).toBe(7);
    await installed();
    expect(repository.installations()).toBe(2);
  });

  test('are not replaced even when only the service itself is left of it', async () => {
    const running = repository.run('start');
    const [, service] = await running.waitForOutput(/^up (\d+)/m);
    process.kill(running.pid, 'SIGKILL');
    repository.writePackage('.', 'pinned-node', { node: 'node' }, '1.0.1');
    const second = repository.run('start');
    expect(await second.ended()).toBe(1);
    expect(second.error).toContain(`(process ${service})`);
    await running.ended();
  });

  test('may be joined by the packages of the tests', async () => {
    const running = repository.run('start');
    await running.waitForOutput(/^up /m);
    repository.addTests();
    expect(await repository.run('test').ended()).toBe(3);
    expect(repository.installations()).toBe(3);
    expect(await running.ended()).toBe(7);
  });
});

describe('signals to the start', () => {
  test.for(['SIGINT', 'SIGTERM'] as const)(
    'reach the service once as %s, and the start ends after it with its exit code',
    async (signal) => {
      const run = repository.run('start');
      await run.waitForOutput(/^up /m);
      for (let count = 0; count < 3; count++) run.process.kill(signal);
      await run.waitForOutput(new RegExp(`got ${signal}`));
      // A reload tells that everything sent before has arrived.
      run.process.kill('SIGHUP');
      await run.waitForOutput(/got SIGHUP/);
      expect(run.out.match(new RegExp(`got ${signal}`, 'g'))).toHaveLength(1);
      expect(run.process.exitCode).toBe(null);
      expect(await run.ended()).toBe(7);
      expect(notes()).toEqual([]);
    },
  );

  test('end it during the installation and free the lock', async () => {
    repository.holdInstall();
    const run = repository.run('start');
    await expect.poll(() => repository.installations(), { timeout: 120_000, interval: 10 }).toBe(1);
    run.process.kill('SIGINT');
    expect(await run.ended()).toBe(130);
    expect(run.out).toBe('');
    repository.letInstall();
    await installed();
  });

  test('stop the service even if they only kill the shell between npm and the start', async () => {
    await installed();
    const run = repository.run('start', { shell: true });
    await run.waitForOutput(/^up /m);
    run.process.kill('SIGTERM');
    await run.waitForOutput(/got SIGTERM/);
    expect(await run.ended()).toBe('SIGTERM'); // the shell's end; the close of its output was the service's
    expect(notes()).toEqual([]);
  });
});

describe('npm test', () => {
  beforeEach(() => repository.addTests());

  test('installs all packages, passes its arguments to vitest and ends with its code', async () => {
    const run = repository.run('test', { args: ['test/db', '--reporter=dot'] });
    expect(await run.ended()).toBe(3);
    expect(run.out).toBe('vitest yes run --config test/vitest.config.ts test/db --reporter=dot\n');
    expect(repository.installations()).toBe(3);
  });

  test('runs the checks first, and fails with them even if all tests pass', async () => {
    repository.write('scripts/check.mjs', "console.log('checks'); process.exit(1);\n");
    repository.write('test/vitest/vitest.mjs', "console.log('vitest');\n");
    const run = repository.run('test');
    expect(await run.ended()).toBe(1);
    expect(run.out).toMatch(/^checks\nNot run here, .*test:nightly.*\nvitest\n$/);
  });
});

describe.runIf(is_root)("an ordinary user in root's folder", () => {
  const nobody = findUser('nobody');

  test('runs what is installed, counts as running, and is told who has to install the rest', async () => {
    const node = join(repository.folder, 'node-copy');
    cpSync(process.execPath, node);
    repository.write('pinned-node/node', `#!/bin/sh\nPINNED=yes exec '${node}' "$@"\n`);
    await installed();
    const run = repository.run('start', { node, ...nobody });
    const [, service] = await run.waitForOutput(/^up (\d+) yes/m);
    repository.writePackage('.', 'pinned-node', { node: 'node' }, '1.0.1');
    const as_root = repository.run('start');
    expect(await as_root.ended()).toBe(1);
    expect(as_root.error).toContain(`(process ${service})`);
    expect(await run.ended()).toBe(7);
    const again = repository.run('start', { node, ...nobody });
    expect(await again.ended()).toBe(1);
    expect(again.error).toContain('this user cannot write to');
  });
});

describe('a Node of another version', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  /** `test` for npm run test and npm run test:nightly. */
  const names = [...new Set(Object.keys(scripts).map((name) => name.split(':')[0] ?? ''))];

  /** Words for Node that make it say another version of itself. */
  function asVersion(version: string): string[] {
    repository.write(
      'version.cjs',
      `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });\n`,
    );
    return ['-r', join(repository.folder, 'version.cjs')];
  }

  test.each(names)('too old for npm run %s gets a message and nothing else', (name) => {
    const script = join(root, 'scripts', `${name}.mjs`);
    const { status, stdout, stderr } = spawnSync(process.execPath, [...asVersion('18.20.8'), script], {
      encoding: 'utf8',
    });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(
      /^Medley needs Node 20 or newer to start, and this is Node 18\.20\.8 \(.*run this command again\.\n$/,
    );
  });

  test.each(names)('too old for npm run %s reads nothing before the message that it cannot read', (name) => {
    expect(scripts[name]).toContain(`node -r ./scripts/node-version.cjs scripts/${name}.mjs`);
    const code = readFileSync(join(root, 'scripts', `${name}.mjs`), 'utf8').replaceAll(/^\/\/.*\n/gm, '');
    expect(code).toBe(`import './node-version.cjs';\n\nimport('./programs/${name}.mjs');\n`);
    const first = readFileSync(join(root, 'scripts/node-version.cjs'), 'utf8').replaceAll(/^\/\/.*\n/gm, '');
    expect(first).not.toMatch(/=>|`|\b(const|let|import|async|await)\b|\?\?|\?\./);
  });

  test('a command in a fresh clone installs what is missing and runs on the pinned Node', async () => {
    repository.write('src/cli.ts', "console.log(process.env['PINNED'], ...process.argv.slice(2)); process.exit(4);\n");
    const run = repository.run('medley', { flags: asVersion('20.20.2'), args: ['account', 'list', '--json'] });
    expect(await run.ended()).toBe(4);
    expect(run.out).toBe('yes account list --json\n');
    expect(run.error).toMatch(/Packages installed in \d+ s\.$/m);
  });

  test('a command whose packages cannot be installed says so, with --json also as an object', async () => {
    repository.write('fail', '');
    const run = repository.run('medley', { args: ['account', 'list', '--json'] });
    expect(await run.ended()).toBe(1);
    expect(run.error).toMatch(/The packages could not be installed/);
    expect(JSON.parse(run.out)).toEqual({ error: { message: expect.stringMatching(/could not be installed/) } });
  });
});
