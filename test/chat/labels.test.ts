import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectExactBooks, type Client } from '../helpers/app.ts';
import type { UsageView } from '../../src/dashboard/views/usage.ts';
import { ownerOfNew } from '../dashboard/people.ts';
import { completion, hello, message, setStage, yesterday, type Stage } from './setup.ts';

/** Names that callers put on calls and tasks: in the records, and in the sums of usage. */

let stage: Stage;
let client: Client;
let stranger: Client;

/** 10 tokens in, 5 out. */
const call_cost = '0.000070';

async function chat(body: object, path = '/v1/chat/completions', by = client): Promise<string> {
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  stage.upstream.script('claude-x', { json: message('Hi') });
  const answer = await by.call('POST', path, { model: 'acme/oai', messages: hello, max_tokens: 10, ...body });
  expect(answer.status).toBe(200);
  return answer.headers.get('x-request-id') ?? '';
}

async function generate(metadata: Record<string, string>): Promise<void> {
  const body = { model: 'sandbox/image', input: { prompt: 'A bay' }, metadata };
  const { status, json } = await client.call('POST', '/v1/generate?wait=60', body);
  expect([status, json.status]).toEqual([202, 'succeeded']);
}

beforeAll(async () => {
  stage = await setStage();
  client = await stage.test.client();
  stranger = await stage.test.client();
  await chat({ user: 'ada', metadata: { team: 'red', tags: 'fast, cheap' } });
  await chat({ user: 'ada', metadata: { team: 'blue' } });
  await chat({ model: 'acme/ant', metadata: { user_id: 'bob' } }, '/v1/messages');
  await chat({});
  await chat({ user: 'ada', metadata: { team: 'red', tags: 'fast' } }, undefined, stranger);
  await generate({ user: 'ada', team: 'red', tags: 'fast,fast' });
  await generate({ team: 'half a pair \uD800', path: 'C:\\ud' });
});
afterAll(async () => {
  await expectExactBooks(stage.test.app);
  await stage.stop();
});

async function usage(group_by: string) {
  const { status, json } = await client.call('GET', `/v1/usage?group_by=${group_by}&from=${yesterday}`);
  expect(status).toBe(200);
  return json;
}

test('the record of a call has its end user and its metadata', async () => {
  const id = await chat({ user: 'eve', metadata: { team: 'green' } }, undefined, stranger);
  const { json } = await stranger.call('GET', `/v1/chat/${id}`);
  expect(json).toMatchObject({ request_id: id, user: 'eve', metadata: { team: 'green' } });
  const plain = await chat({}, undefined, stranger);
  const { json: without } = await stranger.call('GET', `/v1/chat/${plain}`);
  expect('user' in without || 'metadata' in without).toBe(false);
});

test('usage is grouped by end users of calls and tasks, and a charge without one is in no user', async () => {
  const { data, total, has_more } = await usage('user');
  expect(data.map(({ user, count }) => [user, count])).toEqual([
    [null, 2],
    ['ada', 3],
    ['bob', 1],
  ]);
  expect(data.find(({ user }) => user === 'bob')?.cost.exact).toBe(call_cost);
  expect(has_more).toBe(false);
  expect(total).toEqual((await usage('day')).total);
});

test('a charge with two tags counts in each, and once in the total', async () => {
  const { data, total } = await usage('tag');
  expect(data.map(({ tag, count }) => [tag, count])).toEqual([
    [null, 4],
    ['cheap', 1],
    ['fast', 2],
  ]);
  expect(total).toEqual((await usage('model')).total);
});

test('usage is grouped by pairs of metadata, several at once and beside other groups', async () => {
  const { data } = await usage('day,metadata.team,user');
  // Of two days, should one end meanwhile.
  const counts: Record<string, number> = {};
  for (const { metadata, user, count } of data) {
    const name = `${metadata?.['team']}, ${user}`;
    counts[name] = (counts[name] ?? 0) + count;
  }
  expect(counts).toEqual({ 'null, null': 2, 'null, bob': 1, 'blue, ada': 1, 'red, ada': 2 });
  expect((await usage('metadata.unknown')).data).toMatchObject([{ metadata: { unknown: null }, count: 6 }]);
});

test.each(['metadata', 'metadata.', `metadata.${'x'.repeat(65)}`, 'metadata.%00', 'user,user', 'users'])(
  'usage by %s is refused',
  async (group_by) => {
    const { status, json } = await client.call('GET', `/v1/usage?group_by=${group_by}`);
    expect([status, json.error?.param]).toEqual([400, 'group_by']);
  },
);

test('the page of usage has the same groups, the names of pairs in use, and a file', async () => {
  const owner = await ownerOfNew(stage.test);
  const own = await stage.test.client({ account_id: owner.account_id });
  await chat({ user: 'ada', metadata: { team: 'red', tags: 'a,b' } }, undefined, own);
  await chat({ metadata: { project: 'x' } }, undefined, own);
  const view = async (group: string) => (await owner.get(`${owner.base}/usage?group=${group}`)).json as UsageView;
  await expect.poll(async () => (await view('user')).pairs).toEqual(['project', 'team']);
  expect((await view('user')).rows.map(({ id, count }) => [id, count])).toEqual([
    ['', 1],
    ['ada', 1],
  ]);
  const tags = await view('tag');
  expect(tags.rows.map(({ id }) => id).toSorted()).toEqual(['', 'a', 'b']);
  expect([tags.total.count, tags.total.cost.exact]).toEqual([2, '0.000140']);
  const file = await owner.get(`${owner.base}/usage/table.csv?group=metadata.team`);
  expect(file.text).toContain('red,1,0.000070');
  expect((await owner.get(`${owner.base}/usage?group=metadata.`)).status).toBe(400);
});
