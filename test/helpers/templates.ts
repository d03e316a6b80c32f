import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { openDatabase, type Db } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { openEngine } from '../../src/queue/queue.ts';
import { admin, dropDatabase, templateOf, urlOf, type TemplateState } from './database.ts';

/**
 * Makes the databases that those of the tests are copies of, and returns what drops them: migrations and
 * the engine's schema take 0.4 s of a core, and a run wants hundreds. Nothing stays connected to them.
 */
export async function makeTemplates(): Promise<() => Promise<void>> {
  process.env['MEDLEY_TEST_TEMPLATES'] = `t_${randomBytes(6).toString('hex')}`;
  await makeTemplate('migrated', '', migrate);
  await makeTemplate('engine', ` template ${templateOf('migrated')}`, startEngineOnce);
  return async () => {
    for (const state of ['engine', 'migrated'] as const) await dropDatabase(templateOf(state));
  };
}

async function makeTemplate(state: TemplateState, from: string, fill: (db: Db) => Promise<unknown>): Promise<void> {
  await admin(`create database ${templateOf(state)}${from}`);
  const db = openDatabase({ connection: { connectionString: urlOf(templateOf(state)) }, connections_max: 2 });
  await fill(db);
  await db.close();
}

async function startEngineOnce(db: Db): Promise<void> {
  const engine = await openEngine({ db, log: pino({ level: 'warn' }), queues: [] });
  await engine.stop();
}
