import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { delimiter, join } from 'node:path';
import type { Readable } from 'node:stream';
import { vi } from 'vitest';
import { hashOfSources } from '../../scripts/web.mjs';
import { temporaryFolder } from './embedded.ts';

const repository = join(import.meta.dirname, '../..');

/**
 * A small repository with our set-up scripts, whose packages are folders of its own. What stands in for npm installs
 * them as npm does, at a tenth of its cost; `useRealNpm` has npm itself do it, in a second and without a registry.
 */
export class SetupRepository {
  readonly folder = temporaryFolder(0o755);

  constructor() {
    mkdirSync(join(this.folder, 'scripts/programs'), { recursive: true });
    for (const name of [
      'node-version.cjs',
      'start.mjs',
      'test.mjs',
      'medley.mjs',
      'programs/start.mjs',
      'programs/test.mjs',
      'programs/medley.mjs',
      'setup.mjs',
      'setup-lock.mjs',
      'setup-process.mjs',
      'web.mjs',
      'service-flags.mjs',
    ]) {
      copyFileSync(join(repository, 'scripts', name), join(this.folder, 'scripts', name));
    }
    this.writeProgram('pinned-node/node', `#!/bin/sh\nPINNED=yes exec '${process.execPath}' "$@"\n`);
    this.writePackage('.', 'pinned-node', { node: 'node' });
    this.write('src/main.ts', main_text);
    this.writeWeb();
    this.write('stand-in/npm-cli.mjs', npm_text);
  }

  /** A dashboard that is built already; building it again takes a program that writes one page. */
  writeWeb(): void {
    this.write('web/vite/bin/vite.js', vite_text);
    this.writePackage('web', 'vite', {});
    this.write('web/dist/.stamp', hashOfSources(this.folder));
  }

  /** Adds the test package, with a vitest that says what it was called with. */
  addTests(): void {
    this.write(
      'test/vitest/vitest.mjs',
      "console.log('vitest', process.env.PINNED, ...process.argv.slice(2)); process.exit(3);\n",
    );
    this.writePackage('test', 'vitest', {});
  }

  write(path: string, text: string): void {
    mkdirSync(join(this.folder, path, '..'), { recursive: true });
    writeFileSync(join(this.folder, path), text);
  }

  /** One package whose only dependency is the folder `name` inside it. */
  writePackage(part: string, name: string, bin: Record<string, string>, version = '1.0.0'): void {
    const dependencies = { [name]: `file:${name}` };
    this.write(join(part, name, 'package.json'), JSON.stringify({ name, version, bin }));
    this.write(join(part, 'package.json'), JSON.stringify({ name: 'small', type: 'module', dependencies }));
    const packages = {
      '': { name: 'small', dependencies },
      [name]: { version, bin },
      [`node_modules/${name}`]: { resolved: name, link: true },
    };
    this.write(
      join(part, 'package-lock.json'),
      JSON.stringify({ name: 'small', lockfileVersion: 3, requires: true, packages }),
    );
  }

  /** Returns the number of installations that npm was asked for. */
  installations(): number {
    const path = join(this.folder, 'installations');
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0; // whole lines: it may be there before they are
  }

  useRealNpm(): void {
    this.write('real', '');
  }

  /** Lets npm wait before it installs, until `letInstall`. */
  holdInstall(): void {
    this.write('hold', '');
  }

  letInstall(): void {
    this.write('go', '');
  }

  run(
    script: 'start' | 'test' | 'medley',
    options: { args?: string[]; node?: string; flags?: string[]; uid?: number; gid?: number; shell?: boolean } = {},
  ): Run {
    const { uid, gid, node = process.execPath, flags = [], args = [] } = options;
    const words = [node, ...flags, join(this.folder, 'scripts', `${script}.mjs`), ...args];
    const env = {
      PATH: process.env['PATH'],
      HOME: this.folder,
      npm_execpath: join(this.folder, 'stand-in/npm-cli.mjs'),
      npm_node_execpath: process.execPath,
      REAL_NPM: realNpm(),
      ...(options.shell && { npm_lifecycle_event: 'start' }),
    };
    const command = options.shell ? ['sh', '-c', `'${words.join("' '")}'; exit`] : words;
    return new Run(
      spawn(command[0] ?? '', command.slice(1), {
        stdio: ['ignore', 'pipe', 'pipe'],
        cwd: this.folder,
        env,
        ...(uid !== undefined && gid !== undefined && { uid, gid }),
      }),
    );
  }

  private writeProgram(path: string, text: string): void {
    this.write(path, text);
    chmodSync(join(this.folder, path), 0o755);
  }
}

/** A script of the set-up that runs, and the stand-in of the service that it has started. */
export class Run {
  readonly process: ChildProcessByStdio<null, Readable, Readable>;
  readonly pid: number;
  out = '';
  error = '';
  #may_end = false;
  readonly #closed: Promise<unknown[]>;

  constructor(child: ChildProcessByStdio<null, Readable, Readable>) {
    this.process = child;
    this.pid = child.pid ?? 0;
    this.#closed = once(child, 'close');
    child.stdout.on('data', (chunk: Buffer) => {
      this.out += chunk.toString();
      this.#endService();
    });
    child.stderr.on('data', (chunk: Buffer) => (this.error += chunk.toString()));
  }

  /** Resolves when it has said something that fits, on standard output or error. */
  waitForOutput(pattern: RegExp): Promise<RegExpExecArray> {
    return vi.waitFor(
      () => {
        const match = pattern.exec(this.out + this.error);
        if (match) return match;
        throw new Error(`waited for ${pattern}, and it only said: ${this.out}${this.error}`);
      },
      { timeout: 120_000, interval: 10 },
    );
  }

  /** Lets the service end as soon as it runs; resolves with the exit code when nothing of the run is left. */
  async ended(): Promise<number | string> {
    this.#may_end = true;
    this.#endService();
    const [code, signal] = (await this.#closed) as [number | null, string | null];
    return code ?? signal ?? '';
  }

  #endService(): void {
    const service = /^up (\d+)/m.exec(this.out);
    if (!this.#may_end || !service) return;
    this.#may_end = false;
    process.kill(Number(service[1]), 'SIGUSR2');
  }
}

/** Told `--outDir FOLDER`. */
const vite_text = `
import { mkdirSync, writeFileSync } from 'node:fs';
const folder = process.argv[process.argv.indexOf('--outDir') + 1];
mkdirSync(folder, { recursive: true });
writeFileSync(folder + '/index.html', 'built');
`;

const main_text = `
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => console.log('got', signal));
process.on('SIGUSR2', () => process.exit(7));
setInterval(() => undefined, 1000);
console.log('up', process.pid, process.env['PINNED'], ...process.argv.slice(2));
`;

/** Notes each call, waits where a test says so, and installs the packages, or hands over to the real npm. */
const npm_text = `
import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
const file = (name) => fileURLToPath(new URL('../' + name, import.meta.url));
appendFileSync(file('installations'), process.pid + '\\n');
while (existsSync(file('hold')) && !existsSync(file('go'))) await new Promise((resolve) => setTimeout(resolve, 10));
if (existsSync(file('fail'))) {
  console.error('npm error code E404: no such package');
  process.exit(9);
}
if (existsSync(file('real'))) {
  process.argv[1] = process.env.REAL_NPM;
  createRequire(import.meta.url)(process.env.REAL_NPM);
} else {
  const { '': _, ...packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages;
  rmSync('node_modules', { recursive: true, force: true });
  mkdirSync('node_modules/.bin', { recursive: true });
  for (const [path, { link, resolved }] of Object.entries(packages)) {
    if (!link) continue;
    symlinkSync('../' + resolved, path);
    for (const [name, program] of Object.entries(packages[resolved].bin ?? {})) {
      chmodSync(resolved + '/' + program, 0o755);
      symlinkSync('../' + resolved + '/' + program, 'node_modules/.bin/' + name);
    }
  }
  writeFileSync('node_modules/.package-lock.json', JSON.stringify({ lockfileVersion: 3, packages }));
}
`;

function realNpm(): string {
  const npm_path = process.env['npm_execpath'];
  if (npm_path?.endsWith('npm-cli.js')) return npm_path;
  const folder = (process.env['PATH'] ?? '').split(delimiter).find((place) => existsSync(join(place, 'npm')));
  if (folder === undefined) throw new Error('There is no npm on the PATH.');
  return realpathSync(join(folder, 'npm'));
}
