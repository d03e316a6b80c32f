import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { readCommandConfig } from '../app/running.ts';
import { checkCatalogFile } from '../catalog/catalog.ts';
import { CatalogText } from '../catalog/lists/edit.ts';
import { adapterFacts } from '../providers/facts.ts';
import { adapters } from '../providers/index.ts';
import { CommandError } from './command.ts';

/** A `medley.yaml` that a command changes. */
export type EditedFile = {
  readonly path: string;
  readonly text: CatalogText;
  /** Checks what came of it, and puts it in the place of the file at once. Throws CommandError with the mistakes. */
  save(): Promise<{ warnings: string[] }>;
};

/** Opens the file of this name, else the one of MEDLEY_CONFIG, else `medley.yaml` here; one that is not there is empty. */
export async function editFile(name: string | undefined): Promise<EditedFile> {
  const path = resolve(name ?? readCommandConfig().config_file ?? 'medley.yaml');
  const before = await readFile(path, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw new CommandError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  });
  const text = open(path, before);
  return { path, text, save: () => save(path, text.toString()) };
}

function open(path: string, text: string): CatalogText {
  try {
    return new CatalogText(text);
  } catch (error) {
    throw new CommandError(`${path} is no YAML: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Beside the file, and then renamed: whoever reads it meanwhile sees the old one or the new one. */
async function save(path: string, text: string): Promise<{ warnings: string[] }> {
  const beside = join(dirname(path), `.medley-${process.pid}.yaml`);
  const mode = await stat(path).then(
    (file) => file.mode,
    () => 0o644,
  );
  /** Problems stand in the file that will be there. */
  const inFile = (lines: string[]) => lines.map((line) => line.replace(/^\S*\.medley-\d+\.yaml/, path));
  try {
    await writeFile(beside, text, { mode, flag: 'wx' });
    const check = await checkCatalogFile(beside, adapterFacts(adapters));
    if (check.errors.length > 0) {
      throw new CommandError(
        `${path} stays as it is, since it would have mistakes:\n${inFile(check.errors).join('\n')}`,
      );
    }
    await rename(beside, path);
    return { warnings: inFile(check.warnings) };
  } catch (error) {
    await rm(beside, { force: true });
    if (error instanceof CommandError) throw error;
    throw new CommandError(`${path} cannot be written: ${error instanceof Error ? error.message : String(error)}`);
  }
}
