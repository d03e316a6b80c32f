// Copies of the sources with a fault in them, for the scripts that expect somebody to notice. Plain
// JavaScript for Node 20.
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const left_out = ['node_modules', '.git', '.setup', 'dist', 'bench', 'web', 'docs'];

/** A copy of the sources and the tests; packages are linked, since nothing in them is changed. */
export function copySources(root, prefix) {
  const tree = mkdtempSync(join(tmpdir(), prefix));
  const filter = (path) => !path.endsWith('node_modules');
  for (const name of readdirSync(root)) {
    if (left_out.includes(name) || name.startsWith('.medley')) continue;
    cpSync(join(root, name), join(tree, name), { recursive: true, filter });
  }
  for (const packages of ['node_modules', join('test', 'node_modules')]) {
    symlinkSync(join(root, packages), join(tree, packages), 'junction');
  }
  return tree;
}

/** Returns the problem with the place of a fault; undefined if its text is in its file exactly once. */
export function misplacement(root, { file, find }) {
  if (!existsSync(join(root, file))) return `there is no ${file}`;
  const times = readFileSync(join(root, file), 'utf8').split(find).length - 1;
  return times === 1 ? undefined : `the text to replace is in ${file} ${times} times, not once: ${find}`;
}

/** Plants a fault in a copy; answers what takes it out again. Throws if its text is not there exactly once. */
export function plantFault(tree, { file, find, replace }) {
  const problem = misplacement(tree, { file, find });
  if (problem) throw new Error(problem);
  const path = join(tree, file);
  const whole = readFileSync(path, 'utf8');
  writeFileSync(
    path,
    whole.replace(find, () => replace),
  );
  return () => writeFileSync(path, whole);
}
