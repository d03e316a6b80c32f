import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encryptAgain } from '../../src/conversations/removal.ts';
import { contentKeys } from '../../src/db/content.ts';
import type { Db } from '../../src/db/database.ts';
import { startWorker } from '../../src/worker.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';

/** Contents of responses in the background whose worker has not come yet, and whose secret is rotated meanwhile. */

const secret = 'the first secret of this service';
const second = 'the second secret of this service';
const rotated = contentKeys({ secret: second, secret_before: secret });
const rotated_back = contentKeys({ secret, secret_before: second });

let service: TestApp;
let client: Client;

beforeAll(async () => {
  service = await startTestApp({ worker: false, env: { MEDLEY_SECRET: secret } });
  client = await service.client();
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
});

const keys = async () =>
  (await service.app.db.query<{ key_id: string | null }>('select distinct key_id from background_contents')).map(
    ({ key_id }) => key_id,
  );

/** Text of so many characters that compression makes no smaller than half. */
const incompressible = (length: number) => randomBytes(length / 2).toString('hex');

const ask = async (input: string) => {
  const { json } = await client.call('POST', '/v1/responses', {
    model: 'sandbox/chat',
    input,
    background: true,
    stream: false,
  });
  return String(json.id);
};

/** The database with what each query brought of contents, in bytes. */
function counting(db: Db): { db: Db; read: number[] } {
  const read: number[] = [];
  const query = async <T = Record<string, unknown>>(...args: Parameters<Db['query']>): Promise<T[]> => {
    const rows = await db.query<T>(...args);
    let bytes = 0;
    for (const row of rows) {
      if (typeof row === 'object' && row !== null && 'content' in row && Buffer.isBuffer(row.content))
        bytes += row.content.length;
    }
    if (bytes > 0) read.push(bytes);
    return rows;
  };
  return { db: { ...db, query }, read };
}

test('of many that are asked for at once, an account gets no more than a hundred that have not ended', async () => {
  const { db } = service.app;
  const other = await service.client();
  const make = () => other.call('POST', '/v1/responses', { model: 'sandbox/chat', input: 'Hi', background: true });
  expect((await make()).status).toBe(200);
  const filled = await db.query(
    `insert into background_responses
     select (jsonb_populate_record(r, jsonb_build_object('id', 'filled ' || n, 'request_id', 'filled ' || n))).*
       from background_responses r, generate_series(1, 98) n where r.account_id = $1 returning id`,
    [other.account_id],
  );
  expect(filled).toHaveLength(98);
  const answers = await Promise.all(Array.from({ length: 12 }, make));
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, ...Array<number>(11).fill(429)]);
  await db.query("delete from background_responses where id like 'filled %'");
  await expectExactBooks(service.app); // a refused one has held nothing
});

test('one that is written again, since its answer was lost, does not count itself among the hundred', async () => {
  const other = await service.client();
  const body = { model: 'sandbox/chat', input: 'Hi', background: true };
  expect((await other.call('POST', '/v1/responses', body)).status).toBe(200);
  const again = await service.app.db.query(
    `select i.outcome from background_responses r
       join open_holds h on h.account_id = r.account_id and h.ref = r.request_id
       cross join lateral insert_background_response(to_jsonb(r), to_jsonb(h), 1, '[]', '{}') i
      where r.account_id = $1`,
    [other.account_id],
  );
  expect(again).toEqual([{ outcome: 'exists' }]);
});

// Before there is a worker, whose upkeep of each minute encrypts what has no key.
test('a content of tens of megabytes is read alone, and one that is damaged keeps no other from its new key', async () => {
  const { db, log } = service.app;
  await ask('one that has contents');
  await db.query(
    `insert into background_contents (account_id, response_id, id, key_id, content, json_bytes)
     select account_id, id, 'a large one', null, convert_to(repeat('x', 30000000), 'UTF8'), 30000000
       from background_responses order by id limit 1`,
    [],
    'long', // it compresses 30 MB, where the usual patience is one of small statements
  );
  await db.query(
    `insert into background_contents (account_id, response_id, id, key_id, content, json_bytes)
     select account_id, id, 'a damaged one', $1, '\\x00010203040506070809101112131415161718192021222324252627282930', 3
       from background_responses order by id limit 1`,
    [service.app.content_keys.current?.id],
  );
  const counted = counting(db);
  await encryptAgain({ db: counted.db, log, content_keys: rotated });
  expect(await keys()).toEqual([rotated.current?.id]);
  const large = counted.read.filter((bytes) => bytes > 4_000_000);
  expect(large).toEqual([30_000_000]);
  const named = await db.query("select id from background_contents where id in ('a large one', 'a damaged one')");
  expect(named).toEqual([{ id: 'a large one' }]);
  await db.query("delete from background_contents where id = 'a large one'");
  await encryptAgain({ db, log, content_keys: rotated_back });
});

test('a change of the secret encrypts waiting responses again, a few megabytes at a time, and a worker makes them', async () => {
  const { db, log } = service.app;
  const ids: string[] = [];
  for (let each = 0; each < 5; each += 1) ids.push(await ask(`${each} ${incompressible(2_000_000)}`));
  for (let each = 0; each < 5; each += 1) ids.push(await ask(`a small one, ${each}`));
  expect(await keys()).toEqual([service.app.content_keys.current?.id]);

  const counted = counting(db);
  expect(await encryptAgain({ db: counted.db, log, content_keys: rotated })).toBeGreaterThanOrEqual(10);
  expect(await keys()).toEqual([rotated.current?.id]);
  const total = counted.read.reduce((sum, bytes) => sum + bytes, 0);
  expect(total).toBeGreaterThan(10_000_000);
  expect(Math.max(...counted.read)).toBeLessThanOrEqual(4_000_000);
  expect(await encryptAgain({ db, log, content_keys: rotated })).toBe(0);

  await encryptAgain({ db, log, content_keys: rotated_back });
  expect(await keys()).toEqual([service.app.content_keys.current?.id]);
  await startWorker(service.app);
  for (const id of ids) {
    const state = async () => String((await client.call('GET', `/v1/responses/${id}`)).json.status);
    await expect.poll(state, { timeout: 120_000, interval: 100 }).toBe('completed');
  }
});
