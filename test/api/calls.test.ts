import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { AdminCalls } from '../../src/dashboard/views/admin.ts';
import { newId } from '../../src/lib/ids.ts';
import { ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';

/** Chat calls and tasks in one list: of an account by its key, and of all accounts for operators. */

let test: TestApp;
let owner: Someone;
let operator: Someone;
let client: Client;
let second: Client;
let other: Client;
/** In the order in which they were made. */
const created: string[] = [];
let foreign: string;

const yaml = (by_caller: boolean) => `version: 1\nrouting: { by_caller: ${by_caller} }\n`;

beforeAll(async () => {
  test = await startTestApp({ yaml: yaml(true) });
  owner = await ownerOfNew(test, 'Acme');
  operator = await ownerOfNew(test, 'Operating');
  await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
  const { account_id } = owner;
  client = await test.client({ account_id });
  second = await test.client({ account_id });
  other = await test.client({ account_id: (await ownerOfNew(test, 'Other')).account_id });
  created.push(
    await generate(client, 'A bay', { user: 'ada', team: 'red', tags: 'night, day' }),
    await chat(client, 'Hello', { user: 'ada', metadata: { team: 'red', tags: 'day' } }),
    await generate(client, '[[fail]]', { team: 'blue' }),
    await chat(client, '[[fail]]', { metadata: { team: 'blue', place: 'x' } }),
    await generate(client, '[[delay 3600s]]', {}, ''),
    await chat(second, 'Hello', {}),
  );
  foreign = await chat(other, 'A secret of others', { user: 'ada' });
  const isThere = async () =>
    (await list()).data.length === created.length && (await list('', other)).data.length === 1;
  await vi.waitUntil(isThere, { timeout: 120_000 });
});

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

async function generate(by: Client, prompt: string, metadata: Record<string, string>, wait = '?wait=60') {
  const body = { model: 'sandbox/image', input: { prompt, width: 16, height: 16 }, metadata };
  return (await by.call('POST', `/v1/generate${wait}`, body)).json.id;
}

async function chat(by: Client, content: string, labels: object): Promise<string> {
  const body = { model: 'sandbox/chat', messages: [{ role: 'user', content }], ...labels };
  const { headers } = await by.call('POST', '/v1/chat/completions', body);
  return headers.get('x-request-id') ?? '';
}

const list = async (query = '', by = client) => (await by.call('GET', `/v1/calls${query}`)).json;
const idsOf = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id);

describe('GET /v1/calls', () => {
  it('has chat calls and tasks, newest first, each with its numbers and the path of its details', async () => {
    const page = await list();
    expect(idsOf(page)).toEqual(created.toReversed());
    expect(page).toMatchObject({ object: 'list', has_more: false, first_id: created[5], last_id: created[0] });
    expect(page.data[2]).toMatchObject({
      id: created[3],
      status: 'failed',
      http_status: 502,
      error_type: 'upstream_error',
    });
    expect(page.data[4]).toEqual({
      object: 'call',
      id: created[1],
      kind: 'chat',
      model: 'sandbox/chat',
      route: 'sandbox/chat#sandbox',
      style: 'completions',
      modality: null,
      status: 'succeeded',
      http_status: 200,
      error_type: null,
      first_content_ms: expect.any(Number),
      total_ms: expect.any(Number),
      usage: {
        input_tokens: expect.any(Number),
        cached_input_tokens: expect.any(Number),
        output_tokens: expect.any(Number),
      },
      cost: { amount: expect.any(String), currency: 'USD', exact: expect.any(String) },
      key: client.key_id,
      user: 'ada',
      metadata: { team: 'red', tags: 'day' },
      tags: ['day'],
      created_at: expect.any(String),
      path: `/v1/chat/${created[1]}`,
    });
    expect(page.data[5]).toMatchObject({
      id: created[0],
      kind: 'task',
      route: 'sandbox/image#sandbox',
      style: null,
      modality: 'image',
      status: 'succeeded',
      http_status: null,
      first_content_ms: null,
      total_ms: expect.any(Number),
      usage: null,
      user: 'ada',
      tags: ['night', 'day'],
      path: `/v1/tasks/${created[0]}`,
    });
    for (const { id, cost, ...call } of page.data) {
      const details = await client.call('GET', 'path' in call ? String(call.path) : '');
      expect([details.status, details.json.cost], id).toEqual([200, cost]);
    }
    expect(JSON.stringify(page)).not.toContain('A bay');
  });

  it.each([
    ['?kind=chat', [5, 3, 1]],
    ['?kind=task', [4, 2, 0]],
    ['?model=sandbox/chat', [5, 3, 1]],
    ['?status=succeeded', [5, 1, 0]],
    ['?status=failed', [3, 2]],
    ['?status=failed&kind=chat', [3]],
    ['?error=upstream_error', [3, 2]],
    ['?error=upstream_error&status=succeeded', []],
    ['?error=timeout', []],
    ['?http_status=502', [3]],
    ['?http_status=502&error=upstream_error', [3]],
    ['?http_status=502&status=succeeded', []],
    ['?http_status=502&kind=task', []],
    ['?http_status=200', [5, 1]],
    ['?http_status=200&user=ada', [1]],
    ['?http_status=429', []],
    ['?http_status=204', []],
    ['?user=ada', [1, 0]],
    ['?user=ada&kind=task', [0]],
    ['?user=ada&metadata[user]=bob', []],
    ['?tag=day', [1, 0]],
    ['?tag=night', [0]],
    ['?tag=nigh', []],
    ['?tag=red', []],
    ['?metadata[team]=blue', [3, 2]],
    ['?metadata[team]=blue&metadata[place]=x', [3]],
    ['?metadata[team]=red&tag=day&user=ada&model=sandbox/image', [0]],
    ['?created_before=2020-01-01', []],
    ['?created_after=2020-01-01', [5, 4, 3, 2, 1, 0]],
    ...['model', 'key', 'error', 'user', 'tag', 'metadata[team]'].map((name): [string, number[]] => [
      `?${name}=%00`,
      [],
    ]),
  ])('with %s has what fits', async (query, places) => {
    expect(idsOf(await list(query))).toEqual(places.map((place) => created[place]));
  });

  it('has the calls of one key, and those that have not ended', async () => {
    expect(idsOf(await list(`?key=${second.key_id}`))).toEqual([created[5]]);
    await expect.poll(async () => idsOf(await list('?status=running'))).toEqual([created[4]]);
    expect(idsOf(await list('?status=queued'))).toEqual([]);
    const [running] = (await list('?kind=task&limit=1')).data;
    expect(running).toMatchObject({ id: created[4], total_ms: null, cost: { exact: '0.000000' } });
  });

  it.each([
    '',
    '&kind=task',
    '&kind=chat',
    '&tag=day',
    '&metadata[team]=red',
    '&user=ada',
    '&status=failed',
    '&http_status=200',
  ])('is read page by page without a gap or a call twice, down and up again (%s)', async (filter) => {
    const all = idsOf(await list(`?limit=100${filter}`));
    const down: string[] = [];
    for (let after = ''; down.length < 10;) {
      const page = await list(`?limit=1${filter}${after && `&after=${after}`}`);
      down.push(...idsOf(page));
      if (!page.has_more) break;
      after = page.last_id ?? '';
    }
    expect(down).toEqual(all);
    const up: string[] = [];
    for (let before = all.at(-1) ?? ''; up.length < 10;) {
      const page = await list(`?limit=2${filter}&before_id=${before}`);
      up.unshift(...idsOf(page));
      if (!page.has_more) break;
      before = page.first_id ?? '';
    }
    expect(up).toEqual(all.slice(0, -1));
  });

  it('has nothing of another account, whatever is asked for', async () => {
    for (const query of ['', '?user=ada', `?after=${newId('req')}`, `?key=${other.key_id}`, `?after=${foreign}`]) {
      expect(idsOf(await list(query)), query).not.toContain(foreign);
    }
    expect(idsOf(await list('', other))).toEqual([foreign]);
  });

  it.each([
    ['limit', '?limit=101'],
    ['after', '?after=key_1'],
    ['before_id', '?before_id=1'],
    ['after', `?after=${newId('req')}&after_id=${newId('req')}`],
    ['before', `?after=${newId('req')}&before=${newId('task')}`],
    ['kind', '?kind=image'],
    ['status', '?status=ok'],
    ['http_status', '?http_status=4xx'],
    ['http_status', '?http_status=600'],
    ['http_status', '?http_status='],
    ['http_status', '?http_status=502&http_status=429'],
    ['created_after', '?created_after=yesterday'],
    ['modle', '?modle=sandbox/chat'],
  ])('refuses a wrong %s (%s)', async (param, query) => {
    const { status, json } = await client.call('GET', `/v1/calls${query}`);
    expect([status, json.error]).toMatchObject([400, { type: 'invalid_request', param }]);
  });

  it('names no routes where callers do not choose among them', async () => {
    await test.configure(yaml(false));
    expect((await list()).data.map((call) => 'route' in call && call.route)).toEqual(created.map(() => null));
    const record = await client.call('GET', `/v1/chat/${created[1]}`);
    expect(record.json).toMatchObject({ object: 'chat.call', attempts: [{ route: null, outcome: 'answered' }] });
    await test.configure(yaml(true));
    expect(Object.keys((await client.call('GET', `/v1/chat/${created[1]}`)).json)).not.toContain('price_id');
  });
});

describe('the list of operators', () => {
  const all = async (query = '', who = operator) => okBody<AdminCalls>(await who.get(`/dash/admin/calls${query}`));

  it('has the calls of all accounts with their names and routes, and no words', async () => {
    const { data, has_more, from } = await all();
    expect(data.map(({ id }) => id)).toEqual([foreign, ...created.toReversed()]);
    expect(data.map(({ account_name }) => account_name)).toEqual(['Other', ...created.map(() => 'Acme')]);
    expect(data[5]).toMatchObject({ id: created[1], route: 'sandbox/chat#sandbox', status: 'succeeded', kind: 'chat' });
    expect([has_more, Date.now() - Date.parse(from) > 86_000_000]).toEqual([false, true]);
    expect(JSON.stringify(data)).not.toMatch(/secret|A bay|"ada"/);
  });

  it.each([
    ['?of=chats&status=failed', [3]],
    ['?of=tasks&status=succeeded', [0]],
    ['?route=sandbox/image%23sandbox', [4, 2, 0]],
    ['?route=sandbox/chat%23sandbox&error=upstream_error', [3]],
    ['?model=sandbox/image&status=failed', [2]],
    ['?model=%00', []],
    ['?error=%00', []],
    ['?account=%00', []],
    ['?to=2020-01-02', []],
    ['?error=upstream_error', [3, 2]],
    ['?error=upstream_error&of=tasks', [2]],
    ['?error=upstream_error&status=succeeded', []],
    ['?http_status=502', [3]],
    ['?http_status=502&error=upstream_error&model=sandbox/chat', [3]],
    ['?http_status=502&of=tasks', []],
    ['?http_status=502&status=running', []],
    ['?http_status=429', []],
    ['?http_status=204', []],
  ])('with %s has what fits', async (query, places) => {
    const { data } = await all(query);
    expect(data.map(({ id }) => id)).toEqual(places.map((place) => created[place]));
  });

  it.each([
    ['', [5, 4, 3, 2, 1, 0]],
    ['&tag=day', [1, 0]],
    ['&tag=night&of=tasks', [0]],
    ['&user=ada', [1, 0]],
    ['&user=ada&of=chats', [1]],
    ['&metadata[team]=blue', [3, 2]],
    ['&metadata[team]=blue&metadata[place]=x', [3]],
    ['&metadata[team]=blue&status=failed&model=sandbox/image', [2]],
    ['&metadata[team]=red&route=sandbox/image%23sandbox', [0]],
    ['&route=sandbox/chat%23sandbox', [5, 3, 1]],
    ['&route=none', []],
    ['&route=%00', []],
    ['&error=upstream_error', [3, 2]],
    ['&http_status=502', [3]],
    ['&http_status=200', [5, 1]],
    ['&status=succeeded', [5, 1, 0]],
    ['&status=failed', [3, 2]],
    ['&status=running', [4]],
    ['&status=running&of=chats', []],
    ['&tag=%00', []],
    ['&tag=day&to=2020-01-02', []],
  ])('with an account and %s has what fits of that account', async (query, places) => {
    const { data } = await all(`?account=${owner.account_id}${query}`);
    expect(data.map(({ id }) => id)).toEqual(places.map((place) => created[place]));
    expect(data.map(({ account_name }) => account_name)).toEqual(places.map(() => 'Acme'));
    expect(JSON.stringify(data)).not.toMatch(/A bay|"ada"|blue/);
  });

  it('has the route that each call of an account tried last', async () => {
    const { data } = await all(`?account=${owner.account_id}`);
    const routes = ['sandbox/chat#sandbox', 'sandbox/image#sandbox'];
    expect(data.map(({ route }) => route)).toEqual([0, 1, 0, 1, 0, 1].map((at) => routes[at]));
  });

  it.each(['tag', 'user', 'metadata[team]'])('says that %s needs an account', async (name) => {
    const { status, json } = await operator.get(`/dash/admin/calls?${name}=day`);
    const error = { param: name.replace('[team]', ''), message: expect.stringContaining('needs account') };
    expect([status, json]).toMatchObject([400, { error }]);
  });

  it('has the calls of one account, page by page', async () => {
    const { data } = await all(`?account=${owner.account_id}`);
    expect(data.map(({ id }) => id)).toEqual(created.toReversed());
    const { id = '', created_at = '' } = data[1] ?? {};
    const rest = await all(`?account=${owner.account_id}&after=${id}&after_time=${created_at}`);
    expect(rest.data.map((call) => call.id)).toEqual(created.toReversed().slice(2));
  });

  it.each([
    ['from', '?from=2026-01-01&to=2026-03-01'],
    ['after_time', `?after=${newId('req')}`],
    ['after', '?after=x&after_time=2026-01-01'],
    ['of', '?of=images'],
    ['http_status', '?http_status=4xx'],
  ])('refuses a wrong %s (%s)', async (param, query) => {
    const { status, json } = await operator.get(`/dash/admin/calls${query}`);
    expect([status, json]).toMatchObject([400, { error: { param } }]);
  });

  it('is not there for others', async () => {
    expect((await owner.get('/dash/admin/calls')).status).toBe(404);
  });
});
