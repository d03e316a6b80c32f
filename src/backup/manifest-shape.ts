import { Type, type Static } from 'typebox';
import { Value } from 'typebox/value';

/** Raised when a version writes what those before it would read wrongly. */
const format = 1;

const part = {
  file: Type.String(),
  size_bytes: Type.Integer({ minimum: 0 }),
  /** The hash of the file as it is stored: `sha256sum` shows the same. */
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
};
const Part = Type.Object(part);

const Manifest = Type.Object({
  format: Type.Literal(format),
  product: Type.Object({ name: Type.Literal('medley'), version: Type.String() }),
  /** Time of the snapshot. */
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
  /** The place of the files where that is a bucket, of which nothing is copied; and a line for each key. */
  bucket: Type.Optional(Type.Object({ place: Type.String(), list: Part, count: Type.Integer({ minimum: 0 }) })),
});

export type Part = Static<typeof Part>;
export type Manifest = Static<typeof Manifest>;

/** Is this what `writeManifest` of this version has written? */
export function isManifest(value: unknown): value is Manifest {
  return Value.Check(Manifest, value);
}

const Newer = Type.Object({ format: Type.Integer({ exclusiveMinimum: format }) });

/** The format of a later version's manifest; undefined if it is none. */
export function newerFormat(value: unknown): number | undefined {
  return Value.Check(Newer, value) ? value.format : undefined;
}
