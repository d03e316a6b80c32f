import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { repository } from '../docs/document.ts';
import { temporaryFolder } from '../helpers/embedded.ts';
import { makeImage, pack, run, start } from './packed.ts';

/** For npm run test:package: npm itself installs the tarball, with all that it needs, from its registry. */
const folder = temporaryFolder(0o755);
let tarball = '';

beforeAll(() => {
  tarball = pack(join(folder, 'out'), []);
});

/** The commands of the README, as a reader types them. */
const readme = readFileSync(join(repository, 'README.md'), 'utf8');

function install(words: string[], cwd: string): void {
  const { code, output } = run('npm', ['install', '--no-fund', '--no-audit', ...words, tarball], cwd);
  if (code !== 0) throw new Error(`npm install failed: ${output}`);
}

describe('a folder with nothing in it', () => {
  it('has a picture after npm install and the two commands of the README', async () => {
    const cwd = join(folder, 'empty');
    run('mkdir', [cwd], folder);
    install([], cwd);
    expect(readme).toContain('`npx @org/medley`'); // the tarball of this test has the name medley
    const service = await start('npx medley', cwd);
    try {
      expect(await makeImage(service, cwd)).toEqual({ format: 'png', width: 768, height: 768 });
      expect(run('npx', ['medley', 'books', '--json'], cwd).output).toContain('"ok":true');
    } finally {
      await service.stop();
    }
    // Whoever is asked to end by Ctrl-C has its PostgreSQL end, too.
    expect(run('ls', [join(cwd, '.medley/postgres/data')], cwd).output).not.toContain('postmaster.pid');
  });

  it('takes npm install --global, the same: the command is there for every folder', async () => {
    const prefix = join(folder, 'global');
    const cwd = join(folder, 'somewhere');
    run('mkdir', [prefix, cwd], folder);
    install(['--global', '--prefix', prefix], cwd);
    expect(readme).toContain('`npm install --global @org/medley`');
    const service = await start(join(prefix, 'bin', 'medley'), cwd);
    try {
      expect(await makeImage(service, cwd)).toEqual({ format: 'png', width: 768, height: 768 });
    } finally {
      expect(await service.stop()).toBe(0);
    }
  });

  it('runs no script of a package while it is installed', () => {
    const cwd = join(folder, 'scriptless');
    run('mkdir', [cwd], folder);
    install(['--ignore-scripts'], cwd);
    const { code, output } = run('npx', ['medley', 'doctor'], cwd);
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(output).toContain('ok    database: PostgreSQL');
  });
});
