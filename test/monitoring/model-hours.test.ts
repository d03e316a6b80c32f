import { request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ModelStatusView, StatusView } from '../../src/dashboard/views/status.ts';
import { addUpModelHours } from '../../src/monitoring/model-hours.ts';
import { ownerOfNew, okBody } from '../dashboard/people.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel, optional_prompt } from '../helpers/catalog.ts';
import { testClock } from '../helpers/clock.ts';
import { makeMediaTaker } from '../helpers/media-taker.ts';
import { sampleFile } from '../providers/imitations/imitation.ts';

/** The status of models: what is added up, and who sees it. */

const yaml = (is_public: boolean) => `version: 1
${limits()}
status_page: { public: ${is_public} }
providers: { held: { adapter: held } }
models:${mediaModel({ id: 'test/image', schema: optional_prompt, routes: ['{ provider: held, timeout: { start: 10m, total: 30m } }'] })}
`;

const clock = testClock();
let open: TestApp;
let closed: TestApp;
let client: Client;
/** Opened when the run of the prompt `slow` is to end. */
const slow = Promise.withResolvers<void>();

beforeAll(async () => {
  const bytes = await sampleFile('image');
  const taker = makeMediaTaker('data', { bytes });
  taker.answer = async ({ input }) => {
    if (input['prompt'] === 'slow') await slow.promise;
    if (input['prompt'] === 'fail') return { phase: 'failed', type: 'upstream_error', message: 'It failed.' };
    return { phase: 'done', files: [{ bytes }] };
  };
  const adapters = { held: taker.adapter };
  open = await startTestApp({ yaml: yaml(true), clock, adapters });
  closed = await startTestApp({ yaml: yaml(false), worker: false, adapters });
  client = await open.client({ credit: '5' });
});
afterAll(async () => {
  await open?.stop();
  await closed?.stop();
});

const generate = async (prompt: string, query = '?wait=60'): Promise<{ id: string; status: string }> => {
  return (await client.call('POST', `/v1/generate${query}`, { model: 'test/image', input: { prompt } })).json;
};

/** As somebody sees it who has not signed in, and is not answered from the look before. */
async function statusOf(model: string): Promise<ModelStatusView> {
  clock.pass(15_000);
  const { statusCode, body } = await request(`${open.url}/status.json`);
  expect(statusCode).toBe(200);
  const { models }: StatusView = JSON.parse(await body.text());
  const row = models.find(({ id }) => id === model);
  if (!row) throw new Error(`${model} is not among ${models.length} models`);
  return row;
}

it('hours are added up from calls and tasks, once however often, and with work that ended since', async () => {
  expect(await statusOf('test/image')).toMatchObject({ status: 'available', served: null });
  const last = await generate('slow', '');
  for (const prompt of ['one', 'two']) expect(await generate(prompt)).toMatchObject({ status: 'succeeded' });
  expect(await generate('fail')).toMatchObject({ status: 'failed' });
  for (let times = 0; times < 2; times++) await addUpModelHours(open.app);
  const before = await statusOf('test/image');
  expect(before.served).toBeCloseTo(2 / 3);
  expect(before.total_p50_ms).toBeGreaterThanOrEqual(0);
  expect(before.days).toHaveLength(90);
  expect(before.days.flatMap(({ served }) => served ?? [])).toEqual([before.served]);

  slow.resolve();
  await expect.poll(async () => (await client.call('GET', `/v1/tasks/${last.id}`)).json.status).toBe('succeeded');
  await addUpModelHours(open.app);
  expect((await statusOf('test/image')).served).toBeCloseTo(3 / 4);
});

it('a chat model has the time to its first word', async () => {
  const messages = [{ role: 'user', content: 'Hello' }];
  const { status } = await client.call('POST', '/v1/chat/completions', { model: 'sandbox/chat', messages });
  expect(status).toBe(200);
  await expect
    .poll(async () => {
      await addUpModelHours(open.app);
      return (await statusOf('sandbox/chat')).first_p50_ms;
    })
    .not.toBeNull();
});

it('days stay for ninety days, and a day without its records keeps what it had', async () => {
  const { db } = open.app;
  const now_ms = clock.now();
  const at = (days: number) => new Date(now_ms - days * 86_400_000);
  await db.query(
    `insert into model_hours (model, start, calls, failed) values ('sandbox/video', $1, 10, 1), ('sandbox/video', $2, 10, 10)`,
    [at(88), at(91)], // a day later the first one still counts
  );
  await db.query(`update model_hours set calls = 8, failed = 4 where model = 'test/image'`);
  await addUpModelHours(open.app);
  const rows = await db.query(`select calls from model_hours where model = 'sandbox/video'`);
  expect(rows).toHaveLength(1);
  expect((await statusOf('sandbox/video')).days.filter(({ served }) => served !== null)).toEqual([
    { day: at(88).toISOString().slice(0, 10), served: 0.9 },
  ]);
  expect((await statusOf('test/image')).served).toBeCloseTo(1 / 2);
});

it('a public status says nothing of how many calls there were, of hidden models, or of who called', async () => {
  clock.pass(15_000);
  const { body } = await request(`${open.url}/status.json`);
  const view: StatusView = JSON.parse(await body.text());
  expect(view.is_public).toBe(true);
  const names = ['id', 'name', 'kind', 'status', 'days', 'served', 'first_p50_ms', 'total_p50_ms'];
  for (const model of view.models) expect(Object.keys(model).toSorted()).toEqual(names.toSorted());
  expect(view.models.map(({ id }) => id)).toEqual(
    [...open.app.catalog.current.models.values()].filter(({ hidden }) => !hidden).map(({ id }) => id),
  );
});

it('a status that is not public is for people who have signed in', async () => {
  const { statusCode, body } = await request(`${closed.url}/status.json`);
  expect(statusCode).toBe(401);
  expect(JSON.parse(await body.text()).error.message).toContain('Sign in');
  const owner = await ownerOfNew(closed);
  const view = okBody<StatusView>(await owner.get('/status.json'));
  expect(view.is_public).toBe(false);
  expect(view.models.length).toBeGreaterThan(3);
});
