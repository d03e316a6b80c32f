import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

const repository = join(import.meta.dirname, '../..');
const compiler = join(repository, 'test/node_modules/typescript/bin/tsc');

/** Runs the compiler; throws with what it prints if it finds a mistake. */
export function compile(...args: string[]): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, [compiler, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`tsc ${args.join(' ')}\n${stdout}${stderr}`);
}

/** Builds the TypeScript client as its package is built, into a folder `node_modules`. Returns its own folder. */
export function installClient(node_modules: string): string {
  const folder = join(node_modules, '@medley/client');
  mkdirSync(folder, { recursive: true });
  const source = join(repository, 'clients/typescript');
  compile('-p', source, '--outDir', join(folder, 'dist'));
  copyFileSync(join(source, 'package.json'), join(folder, 'package.json'));
  return folder;
}
