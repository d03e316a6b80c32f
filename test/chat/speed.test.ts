// isolated: ids never go back in time within a process, and the clocks of other tests are ahead of this one
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SpeedView } from '../../src/dashboard/views/speed.ts';
import { firstIdSince } from '../../src/lib/ids.ts';
import { expectExactBooks, type Client } from '../helpers/app.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { completion, hello, setStage, type Stage } from './setup.ts';

/** Reports of speed, over records of which every number is known, and over real calls and tasks. */

let stage: Stage;
let owner: Someone;
let client: Client;
let stranger: Client;

const hour_ms = 3_600_000;
const begin_ms = Math.floor(Date.now() / hour_ms) * hour_ms - 5 * hour_ms;

type Call = { at_ms?: number; model?: string; status?: number; first?: number | null; total?: number; output?: number };
type Names = { route?: string; end_user?: string; metadata?: Record<string, string> };

let written = 0;

/** Writes the record of a call as it is stored. */
async function record(by: Client, { at_ms = begin_ms, model = 'a/one', ...call }: Call & Names): Promise<void> {
  const { status = 200, first = 100, total = 1_100, output = 50, route = `${model}#oai`, end_user, metadata } = call;
  await stage.test.app.db.query(
    `insert into chat_calls (account_id, id, key_id, model, style, stream, status, attempts, input_tokens,
       cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, counted_here, cost, currency,
       first_content_ms, total_ms, created_at, end_user, metadata)
     values ($1, $2, $3, $4, 'completions', true, $5, $6, 1, 0, 0, $7, 0, false, 0, 'USD', $8, $9, $10, $11, $12)`,
    [
      by.account_id,
      firstIdSince('req', at_ms).slice(0, -4) + String((written += 1)).padStart(4, '0'),
      by.key_id,
      model,
      status,
      JSON.stringify([
        { route: 'a/other#gone', outcome: 'failed' },
        { route, outcome: 'answered' },
      ]),
      output,
      first,
      total,
      new Date(at_ms),
      end_user ?? null,
      metadata ? JSON.stringify(metadata) : null,
    ],
  );
}

beforeAll(async () => {
  stage = await setStage();
  owner = await ownerOfNew(stage.test);
  client = await stage.test.client({ account_id: owner.account_id });
  stranger = await stage.test.client();
  for (let each = 1; each <= 100; each += 1) await record(client, { first: each * 10, total: each * 10 + 1_000 });
  for (const status of [500, 502, 429]) await record(client, { status, first: null, total: 90_000 });
  for (const status of [400, 404, 499]) await record(client, { status, first: 1, total: 90_000 });
  await record(client, {
    at_ms: begin_ms + hour_ms,
    model: 'b/two',
    route: 'b/two#ant',
    end_user: 'ada',
    metadata: { team: 'red', tags: 'x,y' },
  });
  await record(stranger, { first: 99_999, total: 99_999 });
});
afterAll(async () => {
  await stage.test.app.db.query("delete from chat_calls where model in ('a/one', 'b/two')");
  await expectExactBooks(stage.test.app);
  await stage.stop();
});

const range = `from=${new Date(begin_ms).toISOString()}&to=${new Date(begin_ms + 3 * hour_ms).toISOString()}`;

async function speed(query: string) {
  const { status, json } = await client.call('GET', `/v1/speed?${range}&${query}`);
  expect(status).toBe(200);
  return json;
}

test('times are the median and the 95th percentile of what succeeded, and failures are counted', async () => {
  const { data, has_more } = await speed('group_by=model');
  expect(data).toEqual([
    {
      model: 'a/one',
      count: 103,
      failed: 3,
      first_p50_ms: 505,
      first_p95_ms: 951,
      total_p50_ms: 1_505,
      total_p95_ms: 1_951,
      tokens_per_second: 50,
      feedback_count: 0,
      feedback_score: null,
    },
    expect.objectContaining({ model: 'b/two', count: 1, failed: 0, first_p50_ms: 100, total_p95_ms: 1_100 }),
  ]);
  expect(has_more).toBe(false);
});

test.each([
  ['hour', [{ hour: new Date(begin_ms).toISOString().replace('.000Z', 'Z') }, expect.anything()]],
  ['key', [{ key: expect.stringMatching(/^key_/) }]],
  ['route', [{ route: 'a/one#oai' }, { route: 'b/two#ant' }]],
  ['user', [{ user: null }, { user: 'ada' }]],
  ['tag', [{ tag: null }, { tag: 'x' }, { tag: 'y' }]],
  ['metadata.team', [{ metadata: { team: null } }, { metadata: { team: 'red' } }]],
  [
    'user,model',
    [
      { user: null, model: 'a/one' },
      { user: 'ada', model: 'b/two' },
    ],
  ],
])('they are grouped by %s, the most calls first', async (group_by, rows) => {
  expect((await speed(`group_by=${group_by}`)).data).toMatchObject(rows);
});

test('they are of one model or key', async () => {
  expect((await speed('model=b/two')).data).toMatchObject([{ model: 'b/two', count: 1 }]);
  expect((await speed(`key=${stranger.key_id}`)).data).toEqual([]);
});

test.each([
  ['group_by=color', 'group_by'],
  ['group_by=model,model', 'group_by'],
  ['group_by=metadata.', 'group_by'],
  ['from=2026-01-01&to=2025-01-01', 'to'],
  ['from=2020-01-01&to=2026-01-01', 'from'],
  ['from=yesterday', 'from'],
])('%s is refused', async (query, param) => {
  const { status, json } = await client.call('GET', `/v1/speed?${query}`);
  expect([status, json.error.param]).toEqual([400, param]);
});

test('real calls and tasks are in it within their time', async () => {
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  const by = await stage.test.client();
  expect((await by.call('POST', '/v1/chat/completions', { model: 'acme/oai', messages: hello })).status).toBe(200);
  const generated = { model: 'sandbox/image', input: { prompt: 'A bay' }, metadata: { team: 'half a pair \uD800' } };
  expect((await by.call('POST', '/v1/generate?wait=60', generated)).json.status).toBe('succeeded');
  await expect
    .poll(async () => (await by.call('GET', '/v1/speed?group_by=model,metadata.team')).json.data)
    .toEqual([
      expect.objectContaining({ model: 'acme/oai', count: 1, failed: 0 }),
      expect.objectContaining({ model: 'sandbox/image', count: 1, failed: 0, first_p50_ms: null }),
    ]);
});

test('pages have the same numbers: of an account without routes, and of all accounts for operators', async () => {
  const viewer = await memberOf(stage.test, owner, 'viewer');
  const view = okBody<SpeedView>(await viewer.get(`${viewer.base}/speed?${range}`));
  expect(view).toMatchObject({ step: 'hour', group: 'model', total: { count: 104, failed: 3 }, pairs: ['team'] });
  expect(view.points.map(({ count }) => count)).toEqual([103, 1]);
  expect(view.rows.map(({ id, name }) => [id, name])).toEqual([
    ['a/one', 'a/one'],
    ['b/two', 'b/two'],
  ]);
  const by_key = okBody<SpeedView>(await viewer.get(`${viewer.base}/speed?${range}&group=key`));
  expect(by_key.rows[0]?.name).not.toMatch(/^key_/);
  expect((await viewer.get(`${viewer.base}/speed?${range}&group=route`)).status).toBe(400);
  const operator = await ownerOfNew(stage.test, 'Operating');
  await stage.test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
  const all = okBody<SpeedView>(await operator.get(`/dash/admin/speed?${range}&group=route`));
  expect(all.rows.map(({ id, count }) => [id, count])).toEqual([
    ['a/one#oai', 104],
    ['b/two#ant', 1],
  ]);
  expect((await viewer.get('/dash/admin/speed')).status).toBe(404);
});
