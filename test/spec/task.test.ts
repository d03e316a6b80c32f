import sharp from 'sharp';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { testClock } from '../helpers/clock.ts';
import { expectExactBooks, startTestApp, type Answered, type Body, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel } from '../helpers/catalog.ts';
import { bytesAdapter } from '../helpers/bytes-adapter.ts';

/** Specification 2: the task and its parts, as POST /v1/generate and GET /v1/tasks/{id} answer them. */

const yaml = `
version: 1
${limits({ failed_per_24h: 100_000 })}
providers: { bytes: { adapter: bytes } }
models:${mediaModel({
  id: 'test/bytes',
  schema: '{ type: object, required: [width], properties: { width: { type: integer } } }',
  price: '0.01',
  routes: ['{ provider: bytes }'],
})}
`;

const task_keys = [
  'id',
  'status',
  'model',
  'output',
  'cost',
  'estimated_cost',
  'error',
  'created_at',
  'started_at',
  'completed_at',
  'metadata',
].toSorted();
const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const clock = testClock();
let service: TestApp;
let client: Client;

beforeAll(async () => {
  const files = [await imageIn('png'), await imageIn('avif')];
  service = await startTestApp({ yaml, clock, adapters: { bytes: bytesAdapter(files) } });
  client = await service.client();
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
});

function imageIn(format: 'png' | 'avif'): Promise<Buffer> {
  const shape = { width: 64, height: 48, channels: 3, background: '#3c3' } as const;
  return sharp({ create: shape }).toFormat(format).toBuffer();
}

const generate = (model: string, input: object, query = '?wait=120'): Promise<Answered> =>
  client.call('POST', `/v1/generate${query}`, { model, input });
const get = (id: string): Promise<Answered> => client.call('GET', `/v1/tasks/${id}`);
const image = () => generate('test/bytes', { width: 1 });

/** Made once for the whole file. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => (result ??= make());
}

const drawing = once(() => generate('sandbox/image', { prompt: 'x', width: 64, height: 32 }));
const video = once(() => generate('sandbox/video', { prompt: 'x', duration: 1.5, aspect_ratio: '9:16' }));
const audio = once(() => generate('sandbox/audio', { prompt: 'x', duration: 1 }));
const failure = once(() => generate('sandbox/image', { prompt: '[[fail]] x' }));

/** A task in each of its four states, as GET shows it then. */
const inEveryState = once(async (): Promise<Record<'queued' | 'running' | 'succeeded' | 'failed', Body>> => {
  const { json: queued } = await generate('sandbox/image', { prompt: '[[delay 1h]] x', width: 64, height: 32 }, '');
  await vi.waitUntil(async () => (await get(queued.id)).json.status === 'running', { interval: 20, timeout: 120_000 });
  const { json: running } = await get(queued.id);
  const { json: succeeded } = await drawing();
  const { json: failed } = await failure();
  return { queued, running, succeeded, failed };
});

it('S2.1-1 POST /v1/generate and GET /v1/tasks/{id} return the same task object', async () => {
  const { json: created } = await image();
  const { json: read } = await get(created.id);
  expect(Object.keys(created).toSorted()).toEqual(task_keys);
  expect(read).toEqual(created);
});

it('S2.1-2 id begins with task_ and is used in the path of the task', async () => {
  const { json } = await image();
  expect(json.id).toMatch(/^task_[0-9a-z]+$/);
  expect((await get(json.id)).json.id).toBe(json.id);
});

it('S2.1-3 status is queued, running, succeeded or failed', async () => {
  const tasks = await inEveryState();
  for (const [status, task] of Object.entries(tasks)) expect(task.status).toBe(status);
});

it('S2.1-4 model is the id that the task was created with', async () => {
  expect((await drawing()).json.model).toBe('sandbox/image');
  expect((await image()).json.model).toBe('test/bytes');
});

it('S2.1-5 output is an array of items, empty when there is none', async () => {
  const { queued, running, succeeded, failed } = await inEveryState();
  expect([queued.output, running.output, failed.output]).toEqual([[], [], []]);
  expect(succeeded.output).toHaveLength(1);
  const { json: two } = await generate('sandbox/image', { prompt: 'x', width: 16, height: 16, n: 2 });
  expect(two.output).toHaveLength(2);
});

it('S2.1-6 cost is the amount that was charged, 0.00 for a failed task', async () => {
  const payer = await service.client({ credit: '1' });
  const order = { model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16, n: 3 } };
  const { json: task } = await payer.call('POST', '/v1/generate?wait=120', order);
  expect(task.cost).toEqual({ amount: '0.03', currency: 'USD', exact: '0.030000' });
  expect((await payer.call('GET', '/v1/balance')).json.balance.exact).toBe('0.970000');
  expect((await failure()).json.cost).toEqual({ amount: '0.00', currency: 'USD', exact: '0.000000' });
});

it('S2.1-7 estimated_cost is on every task and is the estimate held at its creation', async () => {
  const tasks = await inEveryState();
  for (const task of Object.values(tasks)) {
    expect(task.estimated_cost).toEqual({ amount: '0.01', currency: 'USD', exact: '0.010000' });
  }
});

it('S2.1-8 error is null unless the task failed', async () => {
  const { queued, running, succeeded, failed } = await inEveryState();
  expect([queued.error, running.error, succeeded.error]).toEqual([null, null, null]);
  expect(failed.error).toEqual({ type: expect.any(String), message: expect.any(String) });
});

it('S2.1-9 created_at is the creation time in ISO 8601, UTC', async () => {
  const before = new Date().toISOString();
  const { json } = await image();
  expect(json.created_at).toMatch(iso);
  expect(before <= json.created_at && json.created_at <= new Date().toISOString()).toBe(true);
});

it('S2.1-10 completed_at is the completion time and is set on every final task', async () => {
  const { json } = await generate('sandbox/image', { prompt: '[[delay 300ms]] x', width: 16, height: 16 });
  expect(json.completed_at).toMatch(iso);
  expect(Date.parse(json.completed_at ?? '') - Date.parse(json.created_at)).toBeGreaterThanOrEqual(300);
  expect((await failure()).json.completed_at).toMatch(iso);
});

it('S2.2-1 type of an output item is video, image or audio, by the kind of model', async () => {
  for (const [make, type] of [[video, 'video'] as const, [audio, 'audio'] as const, [drawing, 'image'] as const]) {
    expect((await make()).json.output.map((item) => item.type)).toEqual([type]);
  }
});

it('S2.2-2 url of an output item is a link that downloads the file', async () => {
  const [item] = (await image()).json.output;
  const response = await fetch(item?.url ?? '');
  expect(response.status).toBe(200);
  expect((await response.arrayBuffer()).byteLength).toBe(item?.size_bytes);
});

it('S2.2-3 duration of a video is a number of seconds', async () => {
  const { json } = await video();
  expect(json.output[0]?.duration).toBeCloseTo(1.5, 1);
});

it('S2.2-4 width of a video is a whole number of pixels', async () => {
  const { json } = await video();
  expect(json.output[0]?.width).toBe(480);
});

it('S2.2-5 height of a video is a whole number of pixels', async () => {
  const { json } = await video();
  expect(json.output[0]?.height).toBe(854);
});

it('S2.3-1 amount is a decimal text with two fraction digits', async () => {
  const tasks = await inEveryState();
  for (const { cost, estimated_cost } of Object.values(tasks)) {
    expect(cost.amount).toMatch(/^\d+\.\d\d$/);
    expect(estimated_cost.amount).toMatch(/^\d+\.\d\d$/);
  }
});

it("S2.3-2 currency is the code of the account's billing currency, dollar or zloty", async () => {
  const zloty = await service.client({ currency: 'PLN' });
  const { json: created } = await zloty.call('POST', '/v1/generate', {
    model: 'sandbox/image',
    input: { prompt: 'x' },
  });
  expect([created.cost.currency, created.estimated_cost.currency]).toEqual(['PLN', 'PLN']);
  expect((await image()).json.cost.currency).toBe('USD');
});

it('S2.4-1 error.type is the kind of failure, for example upstream_error', async () => {
  expect((await failure()).json.error.type).toBe('upstream_error');
});

it('S2.4-2 error.message is a sentence for people', async () => {
  expect((await failure()).json.error.message).toMatch(/^[A-Z].{10,}\.$/);
});

it('D-task-1 a task always has every field', async () => {
  const tasks = await inEveryState();
  for (const task of Object.values(tasks)) expect(Object.keys(task).toSorted()).toEqual(task_keys);
});

it('D-task-2 an unfinished task has no output, no error, no completed_at and a cost of 0.00', async () => {
  const { queued, running } = await inEveryState();
  const unfinished = { output: [], error: null, completed_at: null, cost: { amount: '0.00', exact: '0.000000' } };
  expect([queued, running]).toMatchObject([unfinished, unfinished]);
});

it('D-task-3 estimated_cost has the form of a Cost', async () => {
  const { json } = await image();
  expect(Object.keys(json.estimated_cost).toSorted()).toEqual(['amount', 'currency', 'exact']);
  expect(json.estimated_cost.exact).toMatch(/^\d+\.\d{6}$/);
});

it('D-task-6 started_at is the time when the run started', async () => {
  const { queued, running, succeeded } = await inEveryState();
  expect(queued.started_at).toBeNull();
  for (const task of [running, succeeded]) {
    expect(task.started_at).toMatch(iso);
    expect((task.started_at ?? '') >= task.created_at).toBe(true);
  }
});

it('D-task-13 task ids are task_ and 26 characters, and sort by time', async () => {
  const ids: string[] = [];
  for (let i = 0; i < 8; i++) {
    ids.push((await generate('test/bytes', { width: 1 }, '')).json.id);
    await new Promise((resolve) => setTimeout(resolve, 2)); // ids tell milliseconds
  }
  for (const id of ids) expect(id).toMatch(/^task_[0-9a-hjkmnp-tv-z]{26}$/);
  expect(ids).toEqual(ids.toSorted());
});

it('D-item-1 an output item has type, url, content_type, size_bytes and expires_at', async () => {
  const [item] = (await image()).json.output;
  expect(item).toMatchObject({
    type: 'image',
    url: expect.stringMatching(/^http/),
    content_type: 'image/png',
    size_bytes: expect.any(Number),
    expires_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/),
  });
});

it('D-item-2 a video item has duration, width and height', async () => {
  const [item] = (await video()).json.output;
  expect(measures(item)).toEqual(['duration', 'height', 'width']);
});

it('D-item-3 an image item has width and height', async () => {
  const [item] = (await drawing()).json.output;
  expect(item).toMatchObject({ width: 64, height: 32 });
  expect(measures(item)).toEqual(['height', 'width']);
});

it('D-item-4 an audio item has a duration', async () => {
  const [item] = (await audio()).json.output;
  expect(item?.duration).toBeCloseTo(1, 1);
  expect(measures(item)).toEqual(['duration']);
});

it('D-item-5 duration, width and height are measured from the file, not copied from the request', async () => {
  const [item] = (await generate('test/bytes', { width: 4096 })).json.output;
  expect(item).toMatchObject({ width: 64, height: 48 });
});

it('D-item-6 links are signed, and a changed link opens nothing', async () => {
  const url = (await image()).json.output[0]?.url ?? '';
  const later = url.replace(/exp=(\d+)/, (_, exp: string) => `exp=${Number(exp) + 1}`);
  const other = url.replace(/sig=(.)/, (_, first: string) => `sig=${first === 'A' ? 'B' : 'A'}`);
  const statuses = await Promise.all([url, later, other].map(async (link) => (await fetch(link)).status));
  expect(statuses).toEqual([200, 404, 404]);
});

it('D-item-7 links are made once at completion and stored', async () => {
  const { json, text } = await image();
  const [item] = json.output;
  clock.pass(60_000);
  expect((await get(json.id)).text).toBe(text);
  const [row] = await service.app.db.query<{ body: string }>('select body from tasks where id = $1', [json.id]);
  expect(row?.body).toBe(text);
  expect((await fetch(item?.url ?? '')).status).toBe(200);
  await expectExactBooks(service.app);
});

it('D-item-8 links are valid for 24 hours', async () => {
  const { json } = await image();
  const [item] = json.output;
  const valid_s = Math.floor(Date.parse(json.completed_at ?? '') / 1000) + 86_400;
  expect(Date.parse(item?.expires_at ?? '')).toBe(valid_s * 1000);
  expect(await statusAt(item?.url, valid_s * 1000 - 1)).toBe(200);
});

it('D-item-9 an expired link gets 404 not_found', async () => {
  const [item] = (await image()).json.output;
  const expires_ms = Date.parse(item?.expires_at ?? '');
  expect(await statusAt(item?.url, expires_ms)).toBe(404);
  clock.stop(expires_ms + 3_600_000);
  const answer = await (await fetch(item?.url ?? '')).json();
  clock.run(new Date().getTime());
  expect(answer).toMatchObject({ error: { type: 'not_found' } });
});

it('D-item-10 the lifetime of links can be configured', async () => {
  await service.configure(`${yaml}outputs: { link_ttl: 1h }\n`);
  const { json } = await image();
  await service.configure(yaml);
  const valid_ms = Date.parse(json.output[0]?.expires_at ?? '') - Date.parse(json.completed_at ?? '');
  expect(valid_ms).toBeGreaterThan(3_598_999);
  expect(valid_ms).toBeLessThanOrEqual(3_600_000);
});

it('D-item-11 links begin with server.base_url', async () => {
  await service.configure(`${yaml}server: { base_url: "https://media.example.com/medley/" }\n`);
  const { json } = await image();
  await service.configure(yaml);
  expect(json.output[0]?.url).toMatch(/^https:\/\/media\.example\.com\/medley\/files\/acct_/);
});

it('D-item-12 files are served with Range', async () => {
  const [item] = (await image()).json.output;
  const response = await fetch(item?.url ?? '', { headers: { range: 'bytes=1-3' } });
  expect(response.status).toBe(206);
  expect(response.headers.get('content-range')).toBe(`bytes 1-3/${item?.size_bytes}`);
  expect(await response.text()).toBe('PNG');
});

it('D-item-13 files are served with nosniff', async () => {
  const [item] = (await image()).json.output;
  expect((await fetch(item?.url ?? '')).headers.get('x-content-type-options')).toBe('nosniff');
});

it('D-item-14 files are served with a sandboxing content security policy', async () => {
  const [item] = (await image()).json.output;
  const policy = (await fetch(item?.url ?? '')).headers.get('content-security-policy');
  expect(policy?.split('; ')).toEqual(expect.arrayContaining(['sandbox', "default-src 'none'"]));
});

it('D-item-15 files other than images, videos and audio are served as attachments', async () => {
  const [item] = (await generate('test/bytes', { width: 1 })).json.output;
  const [other] = (await generate('test/bytes', { width: 2 })).json.output;
  expect([item?.content_type, other?.content_type]).toEqual(['image/png', 'image/avif']);
  expect((await fetch(item?.url ?? '')).headers.get('content-disposition')).toMatch(/^inline/);
  expect((await fetch(other?.url ?? '')).headers.get('content-disposition')).toMatch(/^attachment/);
});

function measures(item: object | undefined): string[] {
  const names = Object.keys(item ?? {});
  return names.filter((name) => ['width', 'height', 'duration'].includes(name)).toSorted();
}

/** The status of a link at another time of the service. */
async function statusAt(url: string | undefined, time_ms: number): Promise<number> {
  clock.stop(time_ms);
  const response = await fetch(url ?? '');
  await response.arrayBuffer();
  clock.run(Date.now());
  return response.status;
}
