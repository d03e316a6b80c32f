import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { withConnection, type Db } from '../../src/db/database.ts';

/** The files that the baseline replaces, as they were. */
function earlierFiles(): { number: number; name: string; sql: string; checksum: string }[] {
  const text = gunzipSync(readFileSync(join(import.meta.dirname, 'before-baseline.sql.gz'))).toString();
  return text
    .split(/^-- file: (?=\d{4}_\w+\.sql\n)/m)
    .slice(1)
    .map((part) => {
      const name = part.slice(0, part.indexOf('\n'));
      const sql = part.slice(name.length + 1);
      const checksum = createHash('sha256').update(sql).digest('hex');
      return { number: Number(name.slice(0, 4)), name, sql, checksum };
    });
}

/** Makes an empty database what the version before the baseline left, or what its first `count` migrations made. */
export async function applyEarlier(db: Db, count?: number): Promise<void> {
  await withConnection(db, async (client) => {
    await client.query(`create table migrations (
      number int primary key, name text not null, checksum text not null, applied_at timestamptz not null default now())`);
    for (const { sql, number, name, checksum } of earlierFiles().slice(0, count)) {
      await client.query(sql);
      await client.query('insert into migrations (number, name, checksum) values ($1, $2, $3)', [
        number,
        name,
        checksum,
      ]);
    }
  });
}
