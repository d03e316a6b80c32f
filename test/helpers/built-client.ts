import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const repository = join(import.meta.dirname, '../..');
const packages = join(repository, 'test/node_modules');
const compiler = join(packages, 'typescript/bin/tsc');

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

/**
 * Builds the provider of the AI SDK into a folder `node_modules`, beside the client and the packages that it needs.
 * Returns its own folder.
 */
export function installProvider(node_modules: string): string {
  const client = installClient(node_modules);
  const folder = join(node_modules, '@medley/ai-sdk');
  mkdirSync(folder, { recursive: true });
  const source = join(repository, 'clients/ai-sdk');
  const work = mkdtempSync(join(tmpdir(), 'medley-build-'));
  try {
    const config = {
      extends: join(source, 'tsconfig.json'),
      compilerOptions: {
        rootDir: join(source, 'src'),
        outDir: join(folder, 'dist'),
        paths: {
          '@ai-sdk/*': [join(packages, '@ai-sdk/*/dist/index.d.ts')],
          '@medley/client': [join(client, 'dist/index.d.ts')],
        },
      },
      include: [join(source, 'src/**/*.ts')],
    };
    writeFileSync(join(work, 'tsconfig.json'), JSON.stringify(config));
    compile('-p', work);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  copyFileSync(join(source, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(packages, '@ai-sdk'), join(node_modules, '@ai-sdk'));
  for (const name of ['ai', 'zod']) symlinkSync(join(packages, name), join(node_modules, name));
  return folder;
}
