import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

/** One file of sql/migrations, in the order of its number. */
export type Migration = { number: number; name: string; sql: string; checksum: string };

/** One file of sql/functions/<module>, which creates the function of its name. */
export type FunctionFile = { path: string; name: string; sql: string; checksum: string };

const folder = new URL('../../sql/', import.meta.url);

/** All migrations of this program, lowest number first. */
export function readMigrations(): Migration[] {
  return readdirSync(new URL('migrations/', folder))
    .filter((name) => /^\d{4}_[a-z0-9_]+\.sql$/.test(name))
    .toSorted()
    .map((name) => ({ number: Number(name.slice(0, 4)), name, ...readText(`migrations/${name}`) }));
}

/** All functions of this program but those that a CHECK calls, which are in the migrations. */
export function readFunctions(): FunctionFile[] {
  const modules = readdirSync(new URL('functions/', folder)).toSorted();
  return modules.flatMap((module) =>
    readdirSync(new URL(`functions/${module}/`, folder))
      .filter((name) => /^\w+\.sql$/.test(name))
      .toSorted()
      .map((name) => {
        const path = `functions/${module}/${name}`;
        return { path: `sql/${path}`, name: name.slice(0, -'.sql'.length), ...readText(path) };
      }),
  );
}

function readText(path: string): { sql: string; checksum: string } {
  const sql = readFileSync(new URL(path, folder), 'utf8');
  return { sql, checksum: createHash('sha256').update(sql).digest('hex') };
}
