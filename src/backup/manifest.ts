import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { Type, type Static } from 'typebox';
import { Value } from 'typebox/value';

/** What is wrong with a backup or with the place it is to go, in words for an operator. */
export class BackupError extends Error {
  override name = 'BackupError';
}

/** Raised when a version writes what those before it would read wrongly. */
const format = 1;

const part = {
  file: Type.String(),
  size_bytes: Type.Integer({ minimum: 0 }),
  /** Of the file as it lies there: `sha256sum` tells the same. */
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
};
const Part = Type.Object(part);

const Manifest = Type.Object({
  format: Type.Literal(format),
  product: Type.Object({ name: Type.Literal('medley'), version: Type.String() }),
  /** When the snapshot was taken. */
  created_at: Type.String(),
  schema: Type.Object({
    migrations: Type.Array(Type.Object({ name: Type.String(), checksum: Type.String() })),
    /** The version of pg-boss's own tables; null if there were none. */
    engine: Type.Union([Type.Integer(), Type.Null()]),
  }),
  /** True where MEDLEY_SECRET was set: links and sessions work on only with the same one. */
  secret_in_environment: Type.Boolean(),
  tables: Type.Array(
    Type.Object({
      name: Type.String(),
      columns: Type.Array(Type.String()),
      rows: Type.Integer({ minimum: 0 }),
      ...part,
    }),
  ),
  files: Type.Object({
    /** A line for each file, as sha256sum writes it. */
    list: Part,
    count: Type.Integer({ minimum: 0 }),
    size_bytes: Type.Integer({ minimum: 0 }),
    /** Those that the rows tell of and the storage had no more. */
    missing: Type.Integer({ minimum: 0 }),
  }),
});

export type Part = Static<typeof Part>;
export type Manifest = Static<typeof Manifest>;

const file_name = 'manifest.json';

/** The last file of a backup: without it, a backup is not one. Whole or not at all. */
export async function writeManifest(folder: string, manifest: Omit<Manifest, 'format'>): Promise<Manifest> {
  const whole: Manifest = { format, ...manifest };
  const draft = join(folder, `${file_name}.part`);
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(whole, undefined, 2)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, join(folder, file_name));
  await syncFolder(folder);
  return whole;
}

async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return; // cannot, and need not
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Throws BackupError if there is no complete backup, or one that this version cannot read. */
export async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, file_name), 'utf8').catch(() => undefined);
  if (text === undefined) {
    throw new BackupError(
      `${folder} is no complete backup: it has no ${file_name}, which is written last. Take another backup.`,
    );
  }
  const value = parse(text);
  if (Value.Check(Manifest, value)) return value;
  if (Value.Check(Type.Object({ format: Type.Integer({ exclusiveMinimum: format }) }), value)) {
    throw new BackupError(
      `The backup in ${folder} has format ${value.format}, and this version reads ${format}: restore it with a newer Medley.`,
    );
  }
  throw new BackupError(`${join(folder, file_name)} is damaged: it is not what a backup writes there.`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
