/** As much of pg-copy-streams as backups need; it comes without types. */
declare module 'pg-copy-streams' {
  import type { Readable, Writable } from 'node:stream';
  import type { Submittable } from 'pg';

  /** `rowCount` is known once the statement after it has been answered. */
  type Copy = Submittable & { rowCount: number };

  export function to(statement: string): Copy & Readable;
  export function from(statement: string): Copy & Writable;
}
