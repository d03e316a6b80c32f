import pg from 'pg';
import type { Db } from './database.ts';
import { refusePooler } from './pooler.ts';
import { UnreachableError } from './servers.ts';

/**
 * Connects once, to tell a wrong address from whatever fails later. Not under a name of ours: to a restore, which
 * refuses company, it would look like a command that uses the database.
 */
export async function reach({ connection }: Pick<Db, 'connection'>): Promise<void> {
  const settings = { ...connection, application_name: 'look', connectionTimeoutMillis: 15_000, query_timeout: 15_000 };
  const open = async () => {
    const other = openClient(settings);
    await other.connect();
    return other;
  };
  const client = openClient(settings);
  try {
    await client.connect();
    await checkServer(client);
    await refusePooler(client, open);
  } catch (error) {
    throw error instanceof UnreachableError ? error : new UnreachableError(explain(error, client));
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** The oldest that has everything which the migrations use; releases before it get no repairs any more. */
const oldest_major = 14;

/** Refuses a server that would fail later with an unclear error: too old, another encoding, or a standby. */
async function checkServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: number; encoding: string; standby: boolean }>(
    `select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding,
            pg_is_in_recovery() or current_setting('default_transaction_read_only')::bool as standby`,
  );
  const { version = 0, encoding = 'UTF8', standby = false } = rows[0] ?? {};
  const name = client.database ?? '';
  const major = Math.floor(version / 10_000);
  if (major < oldest_major) {
    throw new UnreachableError(
      `The server of DATABASE_URL is PostgreSQL ${major}, and Medley needs ${oldest_major} or newer. Name a newer one, or leave DATABASE_URL out: Medley brings one.`,
    );
  }
  if (encoding !== 'UTF8') {
    throw new UnreachableError(
      `The database "${name}" has the encoding ${encoding}, which cannot hold every text; Medley needs UTF8. Make one with: ` +
        `create database medley encoding 'UTF8' template template0. Then name that one in DATABASE_URL.`,
    );
  }
  if (standby) {
    throw new UnreachableError(`The database "${name}" is read-only, like a standby. Set DATABASE_URL to the primary.`);
  }
}

function openClient({ Client = pg.Client, ...connection }: Db['connection']): pg.Client {
  try {
    const client = new Client(connection);
    client.on('error', () => undefined); // one without a listener would end the process
    return client;
  } catch {
    throw new UnreachableError(
      'DATABASE_URL is not an address. Its form is postgres://USER:PASSWORD@HOST:PORT/NAME, and in the password % # / ? : @ are written as %25 %23 %2F %3F %3A %40.',
    );
  }
}

/** PostgreSQL's codes: 28P01 invalid_password, 28000 invalid_authorization_specification, 3D000 invalid_catalog_name. */
function explain(error: unknown, { host, port, database }: pg.Client): string {
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
