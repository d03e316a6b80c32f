// Builds the dashboard and the guide when they are stale. Plain JavaScript for Node 20, without packages.
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** Pages of the guide that are not in docs/; web/guide/contents.mjs names them. */
const documents_elsewhere = [
  'openapi.json',
  'medley.example.yaml',
  'CHANGELOG.md',
  'SECURITY.md',
  'deploy/README.md',
  'clients/typescript/README.md',
  'clients/python/README.md',
  'clients/ai-sdk/README.md',
];

const stamp = (root) => join(root, 'web', 'dist', '.stamp');

/** Tells whether the built dashboard differs from the sources. Also true when there is none. */
export function isStale(root) {
  try {
    return readFileSync(stamp(root), 'utf8') !== hashOfSources(root);
  } catch {
    return true;
  }
}

/** Returns the hash of everything in web/ that is not built there, and of the documents that the guide is made of. */
export function hashOfSources(root) {
  const hash = createHash('sha256');
  const paths = [...filesBelow(join(root, 'web')).map((path) => join('web', path)), ...documents(root)];
  for (const path of paths)
    hash
      .update(path)
      .update('\0')
      .update(readFileSync(join(root, path)));
  return hash.digest('hex');
}

/** None of them need be there: a repository without documents has a guide without pages. */
function documents(root) {
  const folder = join(root, 'docs');
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => /\.(md|png)$/.test(name)) : [];
  const all = [...names.map((name) => join('docs', name)), ...documents_elsewhere];
  return all.filter((path) => existsSync(join(root, path))).toSorted();
}

function filesBelow(web) {
  const entries = readdirSync(web, { withFileTypes: true }).filter(
    ({ name }) => !/^(node_modules|dist(\.\d+)?)$/.test(name),
  );
  return entries
    .flatMap((entry) =>
      entry.isDirectory()
        ? readdirSync(join(web, entry.name), { recursive: true, withFileTypes: true })
            .filter((each) => each.isFile())
            .map((each) => join(each.parentPath, each.name).slice(web.length + 1))
        : [entry.name],
    )
    .toSorted();
}

/** Languages of the dashboard beside English: each has a catalogue of messages. */
function languagesIn(root) {
  const folder = join(root, 'web', 'messages');
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.filter((name) => name.endsWith('.po')).map((name) => name.slice(0, -'.po'.length));
}

const page_pattern = /^index(\.[\w-]+)?\.html$/;

/** Builds it where it is served from, with `run` (a script and its words → exit code). */
export async function buildWeb(root, run) {
  const hash = hashOfSources(root);
  const code = await buildInto(root, join(root, 'web', 'dist'), run);
  if (code === 0) writeFileSync(stamp(root), hash);
  return code;
}

/**
 * Builds it in each language, into folders of their own; then the files go to `dist`, the pages last. Names of scripts tell their content,
 * so a running service, and a second one that builds at the same time, find what they look for at every moment.
 */
export async function buildInto(root, dist, run) {
  const built = join(root, 'web', `dist.${process.pid}`);
  const modes = ['production', ...languagesIn(root)];
  const config = ['--config', 'web/vite.config.ts', '--logLevel', 'warn'];
  try {
    const codes = await Promise.all(
      modes.map((mode) => {
        const words = ['build', 'web', ...config, '--mode', mode, '--outDir', join(built, mode)];
        return run('web/node_modules/vite/bin/vite.js', words);
      }),
    );
    const failed = codes.find((code) => code !== 0);
    if (failed !== undefined) return failed;
    publish(
      modes.map((mode) => join(built, mode)),
      dist,
    );
    return 0;
  } finally {
    rmSync(built, { recursive: true, force: true });
  }
}

/** Copies the files, then the pages, and removes those of languages that are gone. */
function publish(folders, dist) {
  for (const folder of folders)
    cpSync(folder, dist, { recursive: true, filter: (path) => !page_pattern.test(basename(path)) });
  const pages = folders.flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => page_pattern.test(name))
      .map((name) => ({ folder, name })),
  );
  for (const { folder, name } of pages) cpSync(join(folder, name), join(dist, name));
  const old = readdirSync(dist).filter((name) => page_pattern.test(name) && !pages.some((page) => page.name === name));
  for (const name of old) rmSync(join(dist, name));
}
