import pg from 'pg';
import type { Db } from './database.ts';

/** DATABASE_URL leads to no database that can be used; the message tells the operator what to do, without the password. */
export class UnreachableError extends Error {
  override name = 'UnreachableError';
}

/** Makes the pool's first connection, which the first query takes, to tell a wrong address from whatever fails later. */
export async function reach(db: Db): Promise<void> {
  const target = targetOf(db.connection);
  try {
    (await db.pool.connect()).release();
  } catch (error) {
    throw new UnreachableError(explain(error, target));
  }
}

type Target = Pick<pg.Client, 'host' | 'port' | 'database'>;

/** As pg reads it, with what it adds by default. */
function targetOf(connection: pg.ClientConfig): Target {
  try {
    return new pg.Client(connection);
  } catch {
    throw new UnreachableError(
      'DATABASE_URL is no address: it is postgres://USER:PASSWORD@HOST:PORT/NAME, and in the password % # / ? : @ are written as %25 %23 %2F %3F %3A %40.',
    );
  }
}

/** PostgreSQL's codes: 28P01 invalid_password, 28000 invalid_authorization_specification, 3D000 invalid_catalog_name. */
function explain(error: unknown, { host, port, database }: Target): string {
  const place = host.startsWith('/') ? host : `${host}:${port}`;
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  switch (code) {
    case '28P01':
    case '28000':
      return `The database at ${place} refuses DATABASE_URL: ${message}. Correct the user or the password in it.`;
    case '3D000':
      return `There is no database "${database}" at ${place}. Make it, or name another one in DATABASE_URL.`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `The host of DATABASE_URL, ${host}, is not known (${code}). Correct it, or see why its name is not found.`;
    case 'ECONNREFUSED':
    case 'ENOENT':
      return `No PostgreSQL listens at ${place} (${code}). Start it, or correct DATABASE_URL.`;
    default:
      return `The database at ${place} cannot be used: ${message || code}. Is DATABASE_URL right?`;
  }
}
