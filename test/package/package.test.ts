// isolated: it packs the repository and starts the service from the package
import { cpSync, linkSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { beforeAll, describe, expect, it } from 'vitest';
import { repository } from '../docs/document.ts';
import { temporaryFolder } from '../helpers/embedded.ts';
import { makeImage, pack, run, start } from './packed.ts';

const manifest_type = Type.Object({
  name: Type.String(),
  version: Type.String(),
  bin: Type.Record(Type.String(), Type.String()),
  repository: Type.Object({ type: Type.String(), url: Type.String() }),
  publishConfig: Type.Object({ provenance: Type.Boolean(), access: Type.String() }),
  dependencies: Type.Record(Type.String(), Type.String()),
  optionalDependencies: Type.Record(Type.String(), Type.String()),
});

const folder = temporaryFolder(0o755);
const modules = join(folder, 'installed', 'node_modules');
const home = join(modules, '@acme', 'medley');
let tarball = '';

beforeAll(() => {
  tarball = pack(join(folder, 'out'), ['--name', '@acme/medley', '--repository', 'git@example.com:org/medley.git']);
  layPackages(join(repository, 'node_modules'), modules);
  mkdirSync(home, { recursive: true });
  run('tar', ['-xzf', tarball, '--strip-components=1', '-C', home], folder);
  mkdirSync(join(modules, '.bin'), { recursive: true });
  symlinkSync('../@acme/medley/bin/medley.cjs', join(modules, '.bin', 'medley'));
});

/** As an installation has them, without npm and its registry: the same files under names of their own. */
function layPackages(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.name.startsWith('.')) continue;
    if (entry.isDirectory()) layPackages(source, target);
    else if (entry.isFile()) layFile(source, target);
  }
}

function layFile(source: string, target: string): void {
  try {
    linkSync(source, target);
  } catch {
    cpSync(source, target); // on another disk
  }
}

const filesBelow = (path: string): string[] =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

describe('the tarball', () => {
  it('has what runs, its materials and its papers, and nothing of tests, benches or sources', () => {
    const names = filesBelow(home).map((path) => path.slice(home.length + 1));
    const folders = [...new Set(names.map((name) => name.split('/', 1)[0]))].toSorted();
    expect(folders).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'bin',
      'clients',
      'dist',
      'medley.example.yaml',
      'medley.schema.json',
      'npm-shrinkwrap.json',
      'package.json',
      'sbom',
      'scripts',
      'sql',
      'web',
    ]);
    expect(names.filter((name) => /\.(ts|tsx|map|stamp)$|(^|\/)(test|bench|node_modules)\//.test(name))).toEqual([]);
    expect(names).toEqual(
      expect.arrayContaining([
        'web/dist/index.html',
        'web/dist/guide/index.page',
        'web/dist/guide/llms.txt',
        'dist/main.js',
        'dist/cli.js',
        'sbom/medley.cdx.json',
        'sbom/dashboard.cdx.json',
      ]),
    );
    expect(statSync(tarball).size).toBeLessThan(4_000_000); // 3.51 MB with the API reference in English and the dashboard in two languages; sources or maps would double it
  });

  it('has the name and the address that were asked for, and asks npm for provenance', () => {
    const manifest = Value.Parse(manifest_type, JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')));
    const own = Value.Parse(Type.Object({ version: Type.String() }), readJson('package.json'));
    expect(manifest).toMatchObject({
      name: '@acme/medley',
      version: own.version,
      bin: { medley: 'bin/medley.cjs' },
      repository: { type: 'git', url: 'git+https://example.com/org/medley.git' },
      publishConfig: { provenance: true, access: 'public' },
    });
    expect(readFileSync(join(home, 'README.md'), 'utf8')).toContain('`npx @acme/medley`');
  });

  it('names every package that its modules import', () => {
    const { dependencies, optionalDependencies } = Value.Parse(
      manifest_type,
      JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')),
    );
    const named = new Set([...Object.keys(dependencies), ...Object.keys(optionalDependencies)]);
    const missing = modulesOf(home).flatMap((path) =>
      importedBy(path)
        .filter((name) => !/^(\.|node:)/.test(name))
        .map((name) => /^(@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name)
        .filter((name) => !named.has(name))
        .map((name) => `${path}: ${name}`),
    );
    expect(missing).toEqual([]);
  });

  it('has every file that its modules name beside them', () => {
    const missing = modulesOf(home).flatMap((path) =>
      [...importedBy(path).filter((name) => name.startsWith('.')), ...readBeside(path)]
        .filter((name) => !filesOrFolder(join(dirname(path), name)))
        .map((name) => `${path}: ${name}`),
    );
    expect(missing).toEqual([]);
  });

  it('pins the same version of every package as the lock file', () => {
    const versions = Type.Object({
      packages: Type.Record(
        Type.String(),
        Type.Object({ version: Type.Optional(Type.String()), dev: Type.Optional(Type.Boolean()) }),
      ),
    });
    const pinned = Value.Parse(versions, JSON.parse(readFileSync(join(home, 'npm-shrinkwrap.json'), 'utf8'))).packages;
    const locked = Value.Parse(versions, readJson('package-lock.json')).packages;
    const shown = (packages: typeof pinned) =>
      Object.entries(packages).map(([path, { version }]) => `${path} ${version}`);
    expect(shown(pinned)).toEqual(shown(locked));
    expect(Object.values(pinned).filter(({ dev }) => dev)).toEqual([]);
  });
});

const readJson = (path: string): unknown => JSON.parse(readFileSync(join(repository, path), 'utf8'));

const modulesOf = (path: string) => filesBelow(join(path, 'dist')).filter((name) => name.endsWith('.js'));

function importedBy(path: string): string[] {
  const text = readFileSync(path, 'utf8');
  const matches = text.matchAll(
    /^(?:import|export)\b[^'"`;]*?from '([^']+)'|\bimport\('([^']+)'\)|^import '([^']+)'/gm,
  );
  return [...matches].map(([, a, b, c]) => a ?? b ?? c ?? '');
}

/** Files of data. A module for a thread is named as its source and as it is compiled, of which one is there. */
function readBeside(path: string): string[] {
  const text = readFileSync(path, 'utf8');
  const names = [...text.matchAll(/new URL\('([^']+)', import\.meta\.url\)/g)].map(([, name = '']) => name);
  return names.map((name) => name.replace(/\.ts$/, '.js')).filter((name) => !name.endsWith('/.cache/medley'));
}

function filesOrFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

describe('the installed package', () => {
  it('starts by one command, serves API, dashboard and reference, makes an image, and ends by Ctrl-C', async () => {
    const cwd = join(folder, 'installed');
    const service = await start('node_modules/.bin/medley', cwd);
    try {
      expect(await makeImage(service, cwd)).toMatchObject({ format: 'png', width: 768 });
      const page = await (await fetch(`${service.url}/sign-in`)).text();
      const [, script = ''] = /<script[^>]+src="([^"]+)"/.exec(page.replace(/<script[^>]+theme\.js[^>]*>/, '')) ?? [];
      expect((await fetch(new URL(script, `${service.url}/`))).status).toBe(200);
      const reference = await (await fetch(`${service.url}/docs`)).text();
      const [, scalar = ''] = /src="([^"]*\.js[^"]*)"/.exec(reference) ?? [];
      expect((await fetch(new URL(scalar, service.url))).status).toBe(200);
      const { code, output } = run('npx', ['medley', 'doctor', '--json'], cwd);
      expect({ code, ...Value.Parse(Type.Object({ ok: Type.Boolean() }), JSON.parse(output)) }).toMatchObject({
        code: 0,
        ok: true,
      });
    } finally {
      expect(await service.stop()).toBe(0);
    }
  });

  it('names itself in its help, and answers what it does not take with a sentence and 2', () => {
    const cwd = join(folder, 'installed');
    const help = run('npx', ['medley', '--help'], cwd);
    expect(help.output).toMatch(/^Usage: medley \[options\] \[command\]/);
    expect(help.output.replaceAll(/\s+/g, ' ')).toContain('Alone, or with start, it starts the service.');
    expect(run('npx', ['medley', 'start', '--port', '1'], cwd)).toEqual({
      code: 2,
      output: 'medley start takes no arguments, but got --port 1. Settings are environment variables.\n',
    });
    expect(run('npx', ['medley', 'strat'], cwd)).toMatchObject({ code: 2 });
  });

  it('has the commands of callers with their client', () => {
    const at_nobody = ['medley', 'login', 'http://127.0.0.1:9', '--json'];
    const { code, output } = run('npx', at_nobody, join(folder, 'installed'));
    expect([code, output]).toEqual([5, expect.stringContaining('http://127.0.0.1:9 gave no answer')]);
  });

  it('says which Node is needed where none came along and the own one is too old', () => {
    const bare = join(folder, 'bare');
    cpSync(home, bare, { recursive: true });
    const old = `Object.defineProperty(process.versions, 'node', { value: '22.1.0' });`;
    const words = ['--import', `data:text/javascript,${encodeURIComponent(old)}`, join(bare, 'bin/medley.cjs')];
    const { code, output } = run(process.execPath, words, folder);
    expect(code).toBe(1);
    expect(output).toMatch(/^Medley needs Node 24 or newer, this is Node 22\.1\.0 .*--include=optional\)\.\n$/);
  });
});

describe('npm run package', () => {
  const refusals = [
    ['--name', 'Medley', /^--name must be a name for npm, such as @org\/medley/],
    [
      '--repository',
      'https://user:secret@example.com/x.git',
      /^--repository must be an https address without a password/,
    ],
    ['--repository', '/srv/medley', /^--repository must be an https address/],
    ['--no-such', 'x', /^Unknown option '--no-such'/],
  ] as const;
  it.each(refusals)('answers %s %s with a sentence, and 2', (option, value, message) => {
    const { code, output } = run('node', ['scripts/package.mjs', option, value], repository);
    expect(code).toBe(2);
    expect(output).toMatch(message);
  });

  it('is the way to pack: npm pack says so', () => {
    const { code, output } = run('npm', ['pack', '--pack-destination', folder], repository);
    expect(code).not.toBe(0);
    expect(output).toContain('npm run package');
  });
});
