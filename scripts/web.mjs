// Builds the dashboard when it is stale. Plain JavaScript for Node 20, without packages.
import { createHash } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const stamp = (root) => join(root, 'web', 'dist', '.stamp');

/** Tells whether the built dashboard differs from the sources. Also true when there is none. */
export function isStale(root) {
  try {
    return readFileSync(stamp(root), 'utf8') !== hashOfSources(root);
  } catch {
    return true;
  }
}

/** Of everything in web/ that is not made there. */
export function hashOfSources(root) {
  const web = join(root, 'web');
  const hash = createHash('sha256');
  for (const path of filesBelow(web))
    hash
      .update(path)
      .update('\0')
      .update(readFileSync(join(web, path)));
  return hash.digest('hex');
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

/**
 * Builds it, with `run` (a script and its words → exit code), into a folder of its own; then the files go where
 * they are served from, the page last. Names of scripts tell their content, so a running service, and a second
 * one that builds at the same time, find what they look for at every moment.
 */
export async function buildWeb(root, run) {
  const hash = hashOfSources(root);
  const made = join(root, 'web', `dist.${process.pid}`);
  const dist = join(root, 'web', 'dist');
  try {
    const words = ['build', 'web', '--config', 'web/vite.config.ts', '--logLevel', 'warn', '--outDir', made];
    const code = await run('web/node_modules/vite/bin/vite.js', words);
    if (code !== 0) return code;
    cpSync(made, dist, { recursive: true, filter: (path) => !path.endsWith('index.html') });
    cpSync(join(made, 'index.html'), join(dist, 'index.html'));
    writeFileSync(stamp(root), hash);
    return 0;
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}
