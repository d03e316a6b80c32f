// The package.json of the published package, and the versions of all packages that come with it. Plain JavaScript for
// Node 20.
import { spawnSync } from 'node:child_process';

/** A value that cannot be used; the message names it and says what to do. */
function refuse(message) {
  throw Object.assign(new Error(message), { exit_code: 2 });
}

/** Checks a name of a package, by npm's rules for new ones (npm 11's documentation of package.json, 2026-11-27). */
export function readName(name) {
  if (
    name === undefined ||
    (/^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/.test(name) && name.length <= 214)
  )
    return name;
  return refuse(`--name must be a name for npm, such as @org/medley, in small letters, not "${name}".`);
}

/** The address of the repository as npm writes it. Without an option that of Git, if others can reach it; else undefined. */
export async function readRepository(root, option) {
  const url =
    option ??
    spawnSync('git', ['config', '--get', 'remote.origin.url'], { cwd: root, encoding: 'utf8' }).stdout?.trim();
  const [, host, path] = /^git@([\w.-]+):([\w./~-]+)$/.exec(url ?? '') ?? [];
  const address = host === undefined ? url?.replace(/^git\+/, '') : `https://${host}/${path}`;
  const parsed = address && URL.canParse(address) ? new URL(address) : undefined;
  if (parsed?.protocol === 'https:' && !parsed.username && !parsed.password)
    return { type: 'git', url: `git+${parsed.href}` };
  if (option === undefined) return undefined; // a folder, or an address with a password: nobody's concern
  return refuse('--repository must be an https address without a password, such as https://github.com/org/medley.git.');
}

/**
 * The package.json of the package. Our `devDependencies` have packages that the service imports for a plugin: what only
 * tests need is a package of its own. `engines` says what can start it: the service runs on the Node that comes along.
 */
export function makeManifest(own, { name, repository }) {
  const { description, license, version, bin, files, publishConfig, optionalDependencies } = own;
  return {
    name: name ?? own.name,
    version,
    description,
    license,
    ...(repository && { repository, homepage: repository.url.replace(/^git\+/, '').replace(/\.git$/, '') }),
    type: own.type,
    engines: { node: '>=20' },
    bin,
    files,
    publishConfig,
    dependencies: { ...own.dependencies, ...own.devDependencies },
    optionalDependencies,
  };
}

/** The lock file of the repository as the package's own: npm installs exactly these versions, with their checksums. */
export function makeShrinkwrap(lock, { name, version, license, bin, engines, dependencies, optionalDependencies }) {
  const packages = structuredClone(lock.packages);
  for (const entry of Object.values(packages)) {
    if (entry.devOptional) entry.optional = true;
    delete entry.dev;
    delete entry.devOptional;
  }
  packages[''] = { name, version, license, dependencies, bin, engines, optionalDependencies };
  return { name, version, lockfileVersion: lock.lockfileVersion, requires: true, packages };
}
