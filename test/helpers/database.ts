import { randomBytes } from 'node:crypto';
import { openDatabase, type Db } from '../../src/db/database.ts';
import pg from 'pg';

/** The cluster of this test run: made by global-setup.ts. */
function clusterUrl(): string {
  const url = process.env['MEDLEY_TEST_CLUSTER'];
  if (!url) throw new Error('No test cluster: run the tests by npm test, or set MEDLEY_TEST_CLUSTER.');
  return url;
}

/** Runs one statement that belongs to no database. */
export async function admin(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: clusterUrl() });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

const drop_tries_max = 50;

/** An autovacuum that has just begun belongs to the cluster's superuser, whom a test's role may not end: it is over soon. */
export async function dropDatabase(name: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await admin(`drop database ${name} with (force)`);
    } catch (error) {
      const is_busy = error instanceof Error && /permission denied to terminate process/.test(error.message);
      if (!is_busy || tries >= drop_tries_max) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

export type TestDatabase = { db: Db; url: string; name: string; drop(): Promise<void> };

export type TestDatabaseOptions = {
  connections_max?: number;
  /** Nothing in it, `migrated` (the default), or `engine`: with the engine's schema too, as a first start leaves it. */
  state?: 'empty' | TemplateState;
};

export type TemplateState = 'migrated' | 'engine';

/** A fresh database; drop it at the end of the file. */
export async function testDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const { state = 'migrated' } = options;
  const name = `t_${randomBytes(6).toString('hex')}`;
  // Copied as files: the copy through the log, which is the default, takes six times as long.
  const from = state === 'empty' ? '' : ` template ${templateOf(state)} strategy file_copy`;
  await admin(`create database ${name}${from}`);
  const url = urlOf(name);
  const db = openDatabase({
    connection: { connectionString: url },
    connections_max: options.connections_max ?? 10,
    is_patient: true, // what a test prepares may take long where many run at once
  });
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

/** The address of one of the cluster's databases. */
export function urlOf(name: string): string {
  return clusterUrl().replace(/^(postgres(?:ql)?:\/\/[^/]*\/)[^?]*/, `$1${name}`);
}

/** The database that new ones of this state are copies of: made by global-setup.ts, once for the whole run. */
export function templateOf(state: TemplateState): string {
  const name = process.env['MEDLEY_TEST_TEMPLATES'];
  if (!name) throw new Error('No templates: run the tests by npm test.');
  return `${name}_${state}`;
}
