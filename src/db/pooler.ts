import type pg from 'pg';
import { UnreachableError } from './servers.ts';

/** Between two looks others may take what the first connection has left. */
const looks = 5;

/**
 * Throws UnreachableError if there is a pooler before the server that gives its connections away between transactions or
 * statements, as PgBouncer does with another pool_mode than session. `client` is connected, `open` connects another one.
 */
export async function refusePooler(client: pg.Client, open: () => Promise<pg.Client>): Promise<void> {
  // A pooler has numbers of its own for what it hands out. Without one, this is all that it costs.
  if ('processID' in client && client.processID === (await serverOf(client))) return;
  const other = await open();
  try {
    for (let i = 0; i < looks; i++) {
      if (await sharesServer(client, other)) throw new UnreachableError(sentence);
    }
  } catch (error) {
    const is_refused = error instanceof Error && /statement pooling/.test(error.message);
    throw is_refused ? new UnreachableError(sentence) : error;
  } finally {
    await other.end().catch(() => undefined);
  }
}

const sentence =
  'The pooler that DATABASE_URL leads to gives its connections away between transactions, and Medley needs them for whole ' +
  'sessions: for LISTEN, prepared statements and settings of its own. In PgBouncer set pool_mode = session for this ' +
  'database, with 50 server connections for each process of Medley; or name PostgreSQL itself in DATABASE_URL.';

/**
 * Returns true if `other` is served by the process that served `client` a moment ago, or `client` is by another one
 * meanwhile.
 */
async function sharesServer(client: pg.Client, other: pg.Client): Promise<boolean> {
  const before = await serverOf(client);
  await other.query('begin');
  const beside = await serverOf(other);
  const after = await serverOf(client);
  await other.query('commit');
  return beside === before || after !== before;
}

/** Returns the process of PostgreSQL behind it. */
async function serverOf(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]?.pid;
}
