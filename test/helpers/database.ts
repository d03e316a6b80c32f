import { randomBytes } from 'node:crypto';
import { openDatabase, type Db } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import pg from 'pg';

/** The cluster of this test run: made by global-setup.ts. */
function clusterUrl(): string {
  const url = process.env['MEDLEY_TEST_CLUSTER'];
  if (!url) throw new Error('No test cluster: run the tests by npm test, or set MEDLEY_TEST_CLUSTER.');
  return url;
}

async function admin(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: clusterUrl() });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

const drop_tries_max = 20;

/** An autovacuum that has just begun belongs to the cluster's superuser, whom a test's role may not end: it is over soon. */
async function dropDatabase(name: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await admin(`drop database ${name} with (force)`);
    } catch (error) {
      const is_busy = error instanceof Error && /permission denied to terminate process/.test(error.message);
      if (!is_busy || tries >= drop_tries_max) throw error;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }
}

export type TestDatabase = { db: Db; url: string; name: string; drop(): Promise<void> };

/** A fresh database with all migrations; drop it at the end of the file. */
export async function testDatabase(options: { connections_max?: number; empty?: boolean } = {}): Promise<TestDatabase> {
  const name = `t_${randomBytes(6).toString('hex')}`;
  await admin(`create database ${name}`);
  const url = clusterUrl().replace(/^(postgres(?:ql)?:\/\/[^/]*\/)[^?]*/, `$1${name}`);
  const db = openDatabase({
    connection: { connectionString: url },
    connections_max: options.connections_max ?? 10,
  });
  if (!options.empty) await migrate(db);
  return {
    db,
    url,
    name,
    drop: async () => {
      await db.close();
      await dropDatabase(name);
    },
  };
}
