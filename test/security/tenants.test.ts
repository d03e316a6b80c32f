import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Endpoint } from '../../src/http/endpoint.ts';
import type { App } from '../../src/app.ts';
import { newId } from '../../src/lib/ids.ts';
import { listEndpoints } from '../../src/server.ts';
import { sampleImage } from '../storage/samples.ts';
import { expectExactBooks, startTestApp, type Answered, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel } from '../helpers/catalog.ts';
import { testClock } from '../helpers/clock.ts';

/** Nothing of one account is there for another: every route × method, ids in path, query, headers and body. */

/** The run of the last one goes on for longer than all tests of this file. */
const yaml = `
version: 1
${limits({ chat_per_minute: 100_000 })}
models:${mediaModel({
  id: 'test/long',
  routes: ['{ provider: sandbox, upstream_model: image, timeout: { total: 24h } }'],
})}
`;

/** Stands in whatever the victim has; no answer to anybody else may show it. */
const note = 'note-of-the-victim';

let service: TestApp;
let attacker: Client;
let victim: Client;
let own_task: string;
/** Of the victim: a task with a file, a failed one, one that runs. */
let tasks: string[];
let link: string;
/** An upload of the victim, and its record. */
let upload: string;
/** The victim's view of it all, which nothing below may change. */
let before: string;

beforeAll(async () => {
  const clock = testClock();
  clock.run('2031-05-10T12:00:00.000Z'); // what a key has spent is that of a month
  service = await startTestApp({ yaml, clock });
  attacker = await service.client();
  victim = await service.client({ limit: '76543.21' }); // no time of day has these digits
  own_task = (await create(attacker, 'x')).json.id;
  const done = await create(victim, 'x', { 'idempotency-key': 'of-the-victim' });
  const failed = await create(victim, '[[fail]]');
  const running = await victim.call('POST', '/v1/generate', { ...order('[[delay 24h]]'), model: 'test/long' });
  const status = async () => (await victim.call('GET', `/v1/tasks/${running.json.id}`)).json.status;
  await vi.waitUntil(async () => (await status()) === 'running', { timeout: 120_000 });
  tasks = [done, failed, running].map(({ json }) => json.id);
  link = done.json.output[0]?.url ?? '';
  upload = await uploadOf(victim);
  before = await stateOfVictim();
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
});

const order = (prompt: string) => ({
  model: 'sandbox/image',
  input: { prompt, width: 16, height: 16 },
  metadata: { note },
});

async function uploadOf(client: Client): Promise<string> {
  const form = new FormData();
  form.set('file', new Blob([new Uint8Array(await sampleImage('png', 8, 8))]), `${note}.png`);
  const headers = { authorization: `Bearer ${client.key}` };
  const response = await fetch(`${service.url}/v1/files`, { method: 'POST', headers, body: form });
  const body = (await response.json()) as { id: string }; // it is a picture
  return body.id;
}

function create(client: Client, prompt: string, headers: Record<string, string> = {}): Promise<Answered> {
  const body = client === victim ? order(prompt) : { ...order(prompt), metadata: {} };
  return client.call('POST', '/v1/generate?wait=120', body, headers);
}

const keyed = listEndpoints().filter((endpoint) => !endpoint.public && endpoint.session === undefined);
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const paths = [...new Set(keyed.map(({ path }) => path))];
const matrix = paths.flatMap((path) => methods.map((method) => ({ method, path })));

/** Everything that names something of the victim, and may be known to others. */
const ids = () => [...tasks, victim.account_id, victim.key_id, upload];

const filled = (path: string, id: string) => path.replace(/\{\+?\w+\}/, id);

function endpointAt(method: string, path: string): Endpoint<App> | undefined {
  return keyed.find((endpoint) => endpoint.method === method && endpoint.path === path);
}

/** Returns an answer without what is different in every answer. */
function answerWithout({ status, text }: Answered, id: string): [number, string] {
  return [status, text.replaceAll(id, 'ID').replaceAll(/req_\w+/g, 'REQ')];
}

async function stateOfVictim(): Promise<string> {
  const of_files = ['/v1/files', `/v1/files/${upload}`, `/v1/files/${upload}/content`];
  const reads = [
    '/v1/balance/transactions?limit=100',
    '/v1/key',
    '/v1/usage',
    ...of_files,
    ...tasks.map((id) => `/v1/tasks/${id}`),
  ];
  const answers = await Promise.all(reads.map((path) => victim.call('GET', path)));
  const file = await fetch(link);
  return JSON.stringify([answers.map(({ text }) => text), file.status, (await file.bytes()).length]);
}

describe.each(matrix)('$method $path', ({ method, path }) => {
  test('answers for the ids of another account as for unknown ids, and shows nothing of it', async () => {
    const body = method === 'GET' ? undefined : {};
    for (const id of path.includes('{') ? ids() : []) {
      const nobody = newId((['acct', 'key', 'file'] as const).find((prefix) => id.startsWith(prefix)) ?? 'task');
      const [foreign, unknown] = [
        await attacker.call(method, filled(path, id), body),
        await attacker.call(method, filled(path, nobody), body),
      ];
      expect(answerWithout(foreign, id)).toEqual(answerWithout(unknown, nobody));
      expect(foreign.status).toBeGreaterThanOrEqual(400);
    }
    for (const answer of await askAround(method, path)) expectNothingOf(answer);
    expect(await stateOfVictim()).toBe(before);
  });
});

/** Ids of the victim wherever a caller can put one: each query parameter, each header, each member of a body. */
async function askAround(method: string, path: string): Promise<Answered[]> {
  const at = filled(path, own_task);
  const declared = Object.keys(endpointAt(method, path)?.docs.query ?? {}).filter((name) => name !== 'wait');
  const answers: Answered[] = [];
  for (const id of ids()) {
    const body = method === 'GET' ? undefined : mixedIn(path, id);
    const headers = { 'idempotency-key': 'of-the-victim', 'x-account-id': id, 'openai-organization': id };
    answers.push(await attacker.call(method, at, body, headers));
    for (const name of [...declared, 'account_id', 'account', 'key_id']) {
      answers.push(await attacker.call(method, `${at}?${name}=${id}`, body));
    }
  }
  return answers;
}

function mixedIn(path: string, id: string): object {
  const foreign = { account_id: id, account: id, key_id: id, task_id: id, id };
  return path === '/v1/generate' || path === '/v1/estimate'
    ? { model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 }, ...foreign, file: id }
    : { model: 'sandbox/image', messages: [], ...foreign };
}

function expectNothingOf({ text, headers }: Answered): void {
  expect(text).not.toContain(note);
  expect(text).not.toContain('of-the-victim');
  expect(text).not.toContain(link);
  expect(text).not.toContain('76543.21');
  expect(headers.get('location') ?? '').not.toContain(tasks[0] ?? '');
}

describe('one account', () => {
  test('has nothing of another in its lists', async () => {
    for (const path of [
      '/v1/tasks?limit=100',
      '/v1/calls?limit=100',
      `/v1/calls?metadata[note]=${note}`,
      '/v1/balance/transactions?limit=100',
      '/v1/files',
      `/v1/tasks?metadata[note]=${note}`,
    ]) {
      const { status, text } = await attacker.call('GET', path);
      expect(status).toBe(200);
      for (const id of ids()) expect(text).not.toContain(id);
      expect(text).not.toContain(note);
    }
  });

  test('has its own Idempotency-Keys', async () => {
    const answer = await create(attacker, 'x', { 'idempotency-key': 'of-the-victim' });
    expect([answer.status, answer.headers.get('idempotency-replayed')]).toEqual([202, 'false']);
    expect(tasks).not.toContain(answer.json.id);
  });
});

describe('files of one account', () => {
  test('are not opened by the signature of another link, wherever it is used', async () => {
    const mine = new URL((await attacker.call('GET', `/v1/tasks/${own_task}`)).json.output[0]?.url ?? '');
    const theirs = new URL(link);
    expect((await fetch(theirs)).status).toBe(200);
    const mixed = [
      theirs.pathname + mine.search,
      theirs.pathname,
      `${mine.pathname}/../../../${theirs.pathname.slice('/files/'.length)}${mine.search}`,
      `${mine.pathname.replace(attacker.account_id, victim.account_id)}${mine.search}`,
      `${theirs.pathname}${theirs.search}&${mine.search.slice(1)}`,
    ];
    for (const path of mixed) expect((await fetch(service.url + path)).status, path).toBe(404);
  });
});

describe('the functions of the operator', () => {
  test.each([
    ...'/v1/admin /v1/accounts /v1/keys /v1/users /v1/config /v1/reload /v1/webhooks /v1/deliveries'.split(' '),
    ...'/metrics /debug /debug/pprof /.env /.git/config /server-status /v1/invoices /graphql'.split(' '),
  ])('are not served at %s', async (path) => {
    for (const method of methods) {
      const { status, text } = await attacker.call(method, path, method === 'GET' ? undefined : {});
      expect([status, text.includes('not_found')]).toEqual([404, true]);
    }
  });

  test("no field of a body makes a task cheaper, older, finished or somebody else's", async () => {
    const members = [
      'account_id',
      'key_id',
      'id',
      'status',
      'cost',
      'estimated_cost',
      'price',
      'pricing',
      'created_at',
    ];
    for (const name of [...members, 'route', 'provider', 'api_base', 'role', 'limit_month', 'allowed_routes']) {
      const answer = await attacker.call('POST', '/v1/generate', { ...order('x'), [name]: '0' });
      expect([answer.status, answer.json.error.param]).toEqual([400, name]);
    }
  });
});
