// isolated: ids never go back in a process, and the clock here does
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Endpoint } from '../../src/http/endpoint.ts';
import type { App } from '../../src/app.ts';
import { newId } from '../../src/lib/ids.ts';
import { listEndpoints } from '../../src/server.ts';
import { sweepTasks } from '../../src/tasks/sweep.ts';
import { expectExactBooks, startTestApp, type Answered, type Client, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';
import { testClock } from '../helpers/clock.ts';

/** Specification 4.2 and 4.5: tasks after their creation: get, list, output, links, and how long they are kept. */

const yaml = `
version: 1
${limits({ failed_per_24h: 100_000 })}
`;

const clock = testClock();
let service: TestApp;
let client: Client;

beforeAll(async () => {
  service = await startTestApp({ yaml, clock });
});
afterAll(() => service.stop());
beforeEach(async () => {
  client = await service.client();
});
afterEach(async () => {
  clock.run(Date.now());
  await expectExactBooks(service.app);
});

type TaskOptions = { model?: string; prompt?: string; metadata?: Record<string, string>; wait?: number };

function generate({
  model = 'sandbox/image',
  prompt = 'x',
  metadata,
  wait = 120,
}: TaskOptions = {}): Promise<Answered> {
  const body = { model, input: { prompt, width: 16, height: 16 }, metadata };
  return client.call('POST', `/v1/generate?wait=${wait}`, body);
}

const get = (id: string): Promise<Answered> => client.call('GET', `/v1/tasks/${id}`);
const list = (query = ''): Promise<Answered> => client.call('GET', `/v1/tasks${query}`);
const idsOf = async (query = '') => (await list(query)).json.data.map(({ id }) => id);

/** Ids of new tasks, newest first, as a list shows them. */
async function several(count: number, options: TaskOptions = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.unshift((await generate({ wait: 0, ...options })).json.id);
  return ids;
}

const refusal = (status: number, type: string, param?: string) => ({
  status,
  json: { error: { type, message: expect.any(String), ...(param !== undefined && { param }) } },
});

it('S4.2-1 GET /v1/tasks/{id} returns the task', async () => {
  const { json: created } = await generate();
  expect(await get(created.id)).toMatchObject({ status: 200, json: created });
});

it('S4.2-2 GET /v1/tasks/{id} of an unknown id gets 404 not_found', async () => {
  for (const id of [newId('task'), 'task_1', 'x', '%00', 'task_', `${newId('task')}/`]) {
    expect(await get(id)).toMatchObject({ status: 404, json: { error: { type: 'not_found' } } });
  }
});

it('S4.2-3 finished tasks stay retrievable', async () => {
  const { json, text } = await generate();
  for (const days of [8, 30, 51]) {
    clock.pass(days * 86_400_000);
    await sweepTasks(service.app);
    expect((await get(json.id)).text).toBe(text);
  }
});

it('S4.2-4 a task of another account is as unknown as one that never existed, on every path', async () => {
  const { json: mine } = await generate();
  const other = await service.client();
  const paths = listEndpoints().filter((endpoint) => endpoint.path.startsWith('/v1/tasks/{id}'));
  expect(paths.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual([
    'DELETE /v1/tasks/{id}/output',
    'GET /v1/tasks/{id}',
    'POST /v1/tasks/{id}/cancel',
    'POST /v1/tasks/{id}/links',
  ]);
  for (const { method, path } of paths) {
    const [foreign, absent] = await Promise.all(
      [mine.id, newId('task')].map(async (id) => {
        const { status, json } = await other.call(method, path.replace('{id}', id));
        return { status, error: { ...json.error, request_id: '', message: json.error.message.replace(id, 'ID') } };
      }),
    );
    expect(foreign).toMatchObject({ status: 404, error: { type: 'not_found' } });
    expect(foreign).toEqual(absent);
  }
});

it('S4.2-5 no path shows anything of another account', async () => {
  const { json: mine } = await generate({ metadata: { secret: 'told to nobody' } });
  const other = await service.client({ credit: '7' });
  for (const name of ['after', 'before']) {
    expect(await other.call('GET', `/v1/tasks?${name}=${mine.id}`)).toMatchObject(
      refusal(400, 'invalid_request', name),
    );
  }
  const reading = listEndpoints().filter((one) => isRead(one) && !one.path.includes('{') && !one.docs.hidden);
  expect(reading.length).toBeGreaterThanOrEqual(6);
  for (const { path } of reading) {
    const { status, text } = await other.call('GET', path);
    expect(status).toBe(200);
    for (const secret of [mine.id, client.account_id, client.key_id, 'told to nobody']) {
      expect(text, path).not.toContain(secret);
    }
  }
  expect((await other.call('GET', '/v1/balance')).json.balance.exact).toBe('7.000000');
});

function isRead(endpoint: Endpoint<App>): boolean {
  return endpoint.method === 'GET' && endpoint.path.startsWith('/v1/');
}

it('S4.5-1 /v1/tasks, /v1/models and /v1/balance exist, with the errors of 7.1', async () => {
  for (const [path, param] of [
    ['/v1/tasks', 'no_such'],
    ['/v1/models', 'limit'],
    ['/v1/balance', 'no_such'],
  ] as const) {
    expect((await client.call('GET', path)).status).toBe(200);
    const refused = await client.call('GET', `${path}?${param}=x`);
    expect(refused).toMatchObject(refusal(400, 'invalid_request', param));
    expect(Object.keys(refused.json)).toEqual(['error']);
  }
});

it('D-list-1 a list is an object with data, has_more, first_id and last_id', async () => {
  const { json: empty } = await list();
  expect(empty).toEqual({ object: 'list', data: [], has_more: false, first_id: null, last_id: null });
  const { json: task } = await generate();
  expect((await list()).json).toEqual({
    object: 'list',
    data: [task],
    has_more: false,
    first_id: task.id,
    last_id: task.id,
  });
});

it('D-list-2 a list of tasks begins with the newest', async () => {
  const ids = await several(3);
  expect(await idsOf()).toEqual(ids);
});

it('D-list-3 a list has 20 tasks by default', async () => {
  const ids = await several(21);
  expect(await idsOf()).toEqual(ids.slice(0, 20));
  expect(await idsOf('?limit=21')).toEqual(ids);
});

it('D-list-4 limit is a whole number from 1 to 100', async () => {
  const ids = await several(2);
  expect(await idsOf('?limit=1')).toEqual(ids.slice(0, 1));
  expect(await idsOf('?limit=100')).toEqual(ids);
  for (const limit of ['0', '101', '-1', '1.5', 'x', '']) {
    expect(await list(`?limit=${limit}`)).toMatchObject(refusal(400, 'invalid_request', 'limit'));
  }
});

it('D-list-5 after lists the tasks further down', async () => {
  const ids = await several(4);
  expect(await idsOf(`?after=${ids[1]}`)).toEqual(ids.slice(2));
  expect(await idsOf(`?limit=1&after=${ids[1]}`)).toEqual(ids.slice(2, 3));
});

it('D-list-6 before lists the tasks right above, in the same order', async () => {
  const ids = await several(4);
  expect(await idsOf(`?before=${ids[3]}`)).toEqual(ids.slice(0, 3));
  expect(await idsOf(`?limit=2&before=${ids[3]}`)).toEqual(ids.slice(1, 3));
});

it('D-list-7 after_id and before_id are aliases of after and before', async () => {
  const ids = await several(3);
  expect(await idsOf(`?after_id=${ids[0]}`)).toEqual(ids.slice(1));
  expect(await idsOf(`?before_id=${ids[2]}`)).toEqual(ids.slice(0, 2));
});

it('D-list-8 status lists only tasks in this state', async () => {
  const { json: failed } = await generate({ prompt: '[[fail]] x' });
  const { json: succeeded } = await generate();
  expect(await idsOf('?status=failed')).toEqual([failed.id]);
  expect(await idsOf('?status=succeeded')).toEqual([succeeded.id]);
  expect(await idsOf('?status=queued')).toEqual([]);
  expect(await list('?status=done')).toMatchObject(refusal(400, 'invalid_request', 'status'));
});

it('D-list-9 model lists only tasks of this model', async () => {
  const [failover] = await several(1, { model: 'sandbox/failover' });
  const [image] = await several(1);
  expect(await idsOf('?model=sandbox/failover')).toEqual([failover]);
  expect(await idsOf('?model=sandbox%2Fimage')).toEqual([image]);
  expect(await idsOf('?model=x%00')).toEqual([]);
});

it('D-list-10 created_after lists only tasks that were created later', async () => {
  const [first, second] = await twoAnHourApart();
  expect(await idsOf('?created_after=2031-03-01T11:59:59.999Z')).toEqual([second, first]);
  expect(await idsOf('?created_after=2031-03-01T12:00:00Z')).toEqual([second]);
  expect(await idsOf('?created_after=2031-03-01T13:30:00%2B01:00')).toEqual([second]);
  expect(await list('?created_after=noon')).toMatchObject(refusal(400, 'invalid_request', 'created_after'));
});

it('D-list-11 created_before lists only tasks that were created earlier', async () => {
  const [first, second] = await twoAnHourApart();
  expect(await idsOf('?created_before=2031-03-01T13:00:00.001Z')).toEqual([second, first]);
  expect(await idsOf('?created_before=2031-03-01T13:00:00Z')).toEqual([first]);
  expect(await list('?created_before=2031-02-30')).toMatchObject(refusal(400, 'invalid_request', 'created_before'));
});

async function twoAnHourApart(): Promise<string[]> {
  clock.stop('2031-03-01T12:00:00Z');
  const [first = ''] = await several(1);
  clock.pass(3_600_000);
  return [first, ...(await several(1))];
}

it('D-list-12 metadata[key] lists only tasks that carry these pairs', async () => {
  const [plain] = await several(1, { metadata: { 'size,"color': 'red', note: '{"color":"red",' } });
  const [red] = await several(1, { metadata: { color: 'red', size: 'l' } });
  const [odd] = await several(1, { metadata: { color: 'red\ud800' } }); // what a database would refuse as JSON
  expect(await idsOf('?metadata[color]=red')).toEqual([red]);
  expect(await idsOf('?metadata[color]=red&metadata[size]=l')).toEqual([red]);
  expect(await idsOf('?metadata%5Bcolor%5D=red&metadata%5Bsize%5D=m')).toEqual([]);
  expect(await idsOf('?metadata[color]=red%00')).toEqual([]);
  expect(await idsOf('?metadata[color]=l')).toEqual([]);
  expect(await idsOf()).toEqual([odd, red, plain]);
});

it('D-list-13 an unknown list parameter gets a 400 that names it', async () => {
  expect(await list('?stauts=failed')).toMatchObject(refusal(400, 'invalid_request', 'stauts'));
  expect(await list('?metadata=x')).toMatchObject(refusal(400, 'invalid_request', 'metadata'));
});

it('D-list-14 an invalid cursor gets a 400 that names it', async () => {
  for (const name of ['after', 'before', 'after_id', 'before_id']) {
    for (const cursor of [newId('task'), 'task_1', '']) {
      expect(await list(`?${name}=${cursor}`)).toMatchObject(refusal(400, 'invalid_request', name));
    }
  }
});

it('D-list-15 has_more says whether there are more tasks in this direction', async () => {
  const ids = await several(3);
  const more = async (query: string) => (await list(query)).json.has_more;
  expect([await more('?limit=2'), await more('?limit=3')]).toEqual([true, false]);
  expect([await more(`?limit=1&before=${ids[2]}`), await more(`?limit=2&before=${ids[2]}`)]).toEqual([true, false]);
});

it('D-list-16 first_id and last_id are the cursors of the page', async () => {
  const ids = await several(3);
  const { json } = await list('?limit=2');
  expect([json.first_id, json.last_id]).toEqual([ids[0], ids[1]]);
});

it('D-output-1 DELETE /v1/tasks/{id}/output removes the files, and their URLs get 404 not_found', async () => {
  const { json: task } = await generate();
  const url = task.output[0]?.url ?? '';
  expect((await fetch(url)).status).toBe(200);
  const removed = await client.call('DELETE', `/v1/tasks/${task.id}/output`);
  expect([removed.status, removed.text]).toEqual([204, '']);
  const response = await fetch(url);
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ error: { type: 'not_found' } });
  expect((await client.call('DELETE', `/v1/tasks/${task.id}/output`)).status).toBe(204);
});

it('D-output-2 the body of a final task never changes', async () => {
  const { json, text } = await generate({ metadata: { a: '1' } });
  const seen = [(await get(json.id)).text];
  await client.call('POST', `/v1/tasks/${json.id}/links`);
  seen.push((await get(json.id)).text);
  await client.call('POST', `/v1/tasks/${json.id}/cancel`);
  await client.call('DELETE', `/v1/tasks/${json.id}/output`);
  seen.push((await get(json.id)).text);
  clock.pass(30 * 86_400_000);
  await service.configure(`${yaml}outputs: { link_ttl: 1h }\nserver: { base_url: "https://elsewhere.example" }\n`);
  seen.push(
    (await get(json.id)).text,
    (await list()).text.slice('{"object":"list","data":['.length).slice(0, text.length),
  );
  await service.configure(yaml);
  expect(new Set(seen)).toEqual(new Set([text]));
});

it('D-links-1 POST /v1/tasks/{id}/links returns fresh links while the files are stored', async () => {
  const { json: task } = await generate();
  clock.pass(25 * 3_600_000);
  expect((await fetch(task.output[0]?.url ?? '')).status).toBe(404);
  const answer = await client.call('POST', `/v1/tasks/${task.id}/links`);
  expect(answer).toMatchObject({ status: 200, json: { object: 'list' } });
  const { output } = task;
  const { data } = answer.json;
  expect(data).toEqual(output.map((item) => ({ ...item, url: expect.any(String), expires_at: expect.any(String) })));
  expect((await fetch(data[0]?.url ?? '')).status).toBe(200);
});

it('D-links-2 POST /v1/tasks/{id}/links changes nothing else', async () => {
  const { json: task, text } = await generate();
  const before = (await client.call('GET', '/v1/balance/transactions')).text;
  await client.call('POST', `/v1/tasks/${task.id}/links`);
  expect((await get(task.id)).text).toBe(text);
  expect((await client.call('GET', '/v1/balance/transactions')).text).toBe(before);
  expect((await fetch(task.output[0]?.url ?? '')).status).toBe(200);
});

it('D-links-3 POST /v1/tasks/{id}/links gets 404 when the files are removed and 409 before there are any', async () => {
  const { json: task } = await generate();
  await client.call('DELETE', `/v1/tasks/${task.id}/output`);
  expect(await client.call('POST', `/v1/tasks/${task.id}/links`)).toMatchObject(refusal(404, 'not_found'));
  const { json: early } = await generate({ prompt: '[[delay 1h]] x', wait: 0 });
  for (const [method, path] of [['POST', 'links'] as const, ['DELETE', 'output'] as const]) {
    const refused = await client.call(method, `/v1/tasks/${early.id}/${path}`);
    expect(refused).toMatchObject({ status: 409, json: { error: { code: 'conflict' } } });
  }
});

it('D-kept-1 finished tasks are deleted after 90 days', async () => {
  clock.stop('2031-01-01T00:00:00Z');
  const { json } = await generate();
  clock.stop(Date.parse(json.completed_at ?? '') + 90 * 86_400_000);
  await sweepTasks(service.app);
  expect((await get(json.id)).status).toBe(200);
  clock.pass(1);
  await sweepTasks(service.app);
  expect((await get(json.id)).status).toBe(404);
});

it('D-kept-2 the lifetime of finished tasks can be configured', async () => {
  await service.configure(`${yaml}tasks: { keep: 2d }\noutputs: { keep: 1d }\n`);
  clock.stop('2031-06-01T00:00:00Z');
  const { json } = await generate();
  clock.pass(2 * 86_400_000 + 1);
  await sweepTasks(service.app);
  await service.configure(yaml);
  expect((await get(json.id)).status).toBe(404);
});

it('D-kept-3 files of tasks are deleted after 7 days', async () => {
  clock.stop('2031-09-01T00:00:00Z');
  const { json } = await generate();
  const links = () => client.call('POST', `/v1/tasks/${json.id}/links`);
  clock.stop(Date.parse(json.completed_at ?? '') + 7 * 86_400_000);
  await sweepTasks(service.app);
  const { json: task } = await links();
  expect((await fetch(task.data[0]?.url ?? '')).status).toBe(200);
  clock.pass(1);
  await sweepTasks(service.app);
  expect((await links()).status).toBe(404);
  expect((await fetch(task.data[0]?.url ?? '')).status).toBe(404);
});
