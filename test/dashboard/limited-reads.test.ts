import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { contentLines } from '../../src/chat/content-export.ts';
import { highestCostRecords, keyOfCall } from '../../src/chat/record.ts';
import type { HomeView } from '../../src/dashboard/views/home.ts';
import type { NewKeyView } from '../../src/dashboard/views/keys.ts';
import type { RefusalsView } from '../../src/dashboard/views/refusals.ts';
import type { SpeedView } from '../../src/dashboard/views/speed.ts';
import { listFeedback } from '../../src/feedback/feedback.ts';
import { newId } from '../../src/lib/ids.ts';
import { highestCostTaskLines } from '../../src/tasks/list.ts';
import { keyOfTask } from '../../src/tasks/task.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { memberOf, okBody, ownerOfNew, type Someone } from './people.ts';

/** Reads of keys of members of some projects below /v1, and the refusals and the speed that these members see. */
const marker = 'Zanzibar';

let test: TestApp;
let owner: Someone;
let limited: Someone;
let own: Things;
let other: Things;
/** The secret of the limited key, which is of the first project. */
let secret: string;

/** Ids of what a project has, by the name of the thing. */
type Things = { project: string; key: string; secret: string; task: string; chat: string };

beforeAll(async () => {
  test = await startTestApp({ yaml: 'version: 1\nnet: { allow: ["127.0.0.0/8"] }\n' });
  owner = await ownerOfNew(test, 'Agency', 90_000_000n);
  own = await makeThings('Shop');
  other = await makeThings(marker);
  limited = await memberOf(test, owner, 'developer');
  okBody(await owner.send('PATCH', `${owner.base}/team/${limited.user_id}`, { projects: [own.project] }));
  const created = await limited.post(`${limited.base}/keys`, { name: 'Theirs', project: own.project });
  ({ secret } = okBody<NewKeyView>(created));
  await makeRefusals();
}, 240_000);

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

type Seen = { status: number; text: string; id: string };

async function call(key: string, path: string, body?: object, method = body ? 'POST' : 'GET'): Promise<Seen> {
  const response = await fetch(test.url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text, id: response.headers.get('x-request-id') ?? '' };
}

async function read<T>(key: string, path: string): Promise<T> {
  const { status, text } = await call(key, path);
  expect(status, `${path} answered ${text.slice(0, 300)}`).toBe(200);
  return JSON.parse(text) as T;
}

const messages = [{ role: 'user', content: 'Hello' }];

/** A project with a key that stores contents, a task and a call, all with its name in them. */
async function makeThings(name: string): Promise<Things> {
  const project = okBody<{ id: string }>(await owner.post(`${owner.base}/projects`, { name })).id;
  const log_content = { keep_days: 7, redact: [], patterns: [] };
  const models = ['sandbox/image', 'sandbox/chat'];
  const rules = { name: `Key of ${name}`, project, log_content, models };
  const of_key = okBody<NewKeyView>(await owner.post(`${owner.base}/keys`, rules));
  const metadata = { client: name, tags: name };
  const input = { prompt: `A ${name}`, width: 16, height: 16 };
  const task = await call(of_key.secret, '/v1/generate?wait=60', { model: 'sandbox/image', input, metadata });
  expect(task.status, task.text).toBeLessThan(300);
  const chat = { model: 'sandbox/chat', messages, user: name, metadata };
  const answered = await call(of_key.secret, '/v1/chat/completions', chat);
  expect(answered.status, answered.text).toBe(200);
  await test.app.contents.flush();
  const { id } = JSON.parse(task.text) as { id: string };
  return { project, key: of_key.key.id, secret: of_key.secret, task: id, chat: answered.id };
}

/** Both projects have calls that were refused: by the models of the key, and by a budget of the account. */
async function makeRefusals(): Promise<void> {
  for (const key of [own.secret, other.secret]) {
    expect((await call(key, '/v1/rerank', { model: 'sandbox/rerank', query: 'x', documents: ['x'] })).status).toBe(403);
  }
  const budget = { name: marker, scope: 'account', period: 'total', amount: '0', kind: 'hard' };
  const { id } = okBody<{ id: string }>(await owner.post(`${owner.base}/budgets`, budget));
  for (const key of [secret, other.secret, other.secret]) {
    expect((await call(key, '/v1/chat/completions', { model: 'sandbox/chat', messages })).status).toBe(403);
  }
  const written = async () => expect(okBody<RefusalsView>(await owner.get(`${owner.base}/refusals`)).total).toBe(5);
  await vi.waitFor(written, { timeout: 20_000, interval: 100 });
  okBody(await owner.send('DELETE', `${owner.base}/budgets/${id}`));
  account_budget = id;
}

let account_budget: string;

/** Words of the other project, and of the account. */
const hidden = () => [marker, account_budget, ...Object.values(other)];

/** Nothing of the other project is in an answer. */
function expectClean({ text }: { text: string }, name: string): void {
  const leaks = hidden().filter((each) => text.includes(each));
  expect(leaks, `${name} answered ${text.slice(0, 400)}`).toEqual([]);
}

const lists: readonly string[] = [
  '/v1/calls',
  '/v1/calls?kind=chat',
  '/v1/calls?kind=task',
  '/v1/tasks',
  `/v1/usage?group_by=day,project`,
  ...['key', 'user', 'tag', 'metadata.client', 'model'].map((group) => `/v1/usage?group_by=${group}`),
  ...['key', 'user', 'tag', 'metadata.client'].map((group) => `/v1/speed?group_by=${group}`),
  ...['key', 'project', 'budget', 'hour,reason'].map((group) => `/v1/usage/refusals?group_by=${group}`),
];

it('the highest costs of a project are found among its own calls, however many others there are', async () => {
  const filter = { account_id: owner.account_id, project_ids: [own.project], limit: 10 };
  const [chats, tasks] = await Promise.all([
    highestCostRecords(test.app.db, filter, 1),
    highestCostTaskLines(test.app.db, { ...filter, metadata: {} }, 1),
  ]);
  expect([chats.compared, chats.lines.length]).toEqual([1, 1]);
  expect(tasks.lines.map(({ id }) => id)).toEqual([own.task]);
});

describe('a limited key', () => {
  it('reads lists and sums of its project, in which nothing of another project is', async () => {
    let leaked = 0;
    for (const path of lists) {
      const answer = await call(secret, path);
      expect([path, answer.status], answer.text.slice(0, 300)).toEqual([path, 200]);
      expectClean(answer, path);
      const wide = await call(own.secret, path);
      if (hidden().some((each) => wide.text.includes(each))) leaked += 1;
    }
    expect(leaked).toBeGreaterThan(12); // those are lists in which a key of the whole account finds it
  });

  it('reads the calls and tasks of all keys of its project, and counts no others', async () => {
    const ids = async (path: string) =>
      (await read<{ data: { id: string }[]; has_more: boolean }>(secret, path)).data.map(({ id }) => id).toSorted();
    expect(await ids('/v1/calls')).toEqual([own.chat, own.task].toSorted());
    expect(await ids('/v1/tasks')).toEqual([own.task]);
    expect(await read(secret, '/v1/calls?limit=1&kind=task')).toMatchObject({ has_more: false });
    expect(await ids(`/v1/calls?key=${other.key}`)).toEqual([]);
    expect(await ids(`/v1/calls?tag=${marker}`)).toEqual([]);
    expect(await ids(`/v1/calls?user=${marker}`)).toEqual([]);
    expect(await ids(`/v1/tasks?metadata[client]=${marker}`)).toEqual([]);
    expect(await read(secret, `/v1/chat/${own.chat}`)).toMatchObject({ request_id: own.chat, key_id: own.key });
  });

  it('reads the charges, the speed and the refusals of its project alone', async () => {
    type Usage = { data: { count: number; project?: string }[]; total: { exact: string } };
    const usage = await read<Usage>(secret, '/v1/usage?group_by=project');
    const all = await read<Usage>(own.secret, '/v1/usage?group_by=project');
    expect(usage.data.map(({ project, count }) => [project, count])).toEqual([[own.project, 2]]);
    expect(Number(all.total.exact)).toBeGreaterThan(Number(usage.total.exact));
    const speed = await read<{ data: { count: number }[] }>(secret, '/v1/speed?group_by=model');
    expect(speed.data.map(({ count }) => count)).toEqual([1, 1]);
    expect(await read(secret, `/v1/speed?key=${other.key}`)).toMatchObject({ data: [] });
    expect(await read(secret, '/v1/usage/refusals?group_by=reason,budget')).toMatchObject({
      total: 2,
      data: [
        { reason: 'budget_reached', budget: null, count: 1 },
        { reason: 'model_not_allowed', budget: null, count: 1 },
      ],
    });
    expect(await read(secret, `/v1/usage/refusals?key=${other.key}`)).toMatchObject({ total: 0, data: [] });
  });

  it('gets for an id of another project what it gets for one that there never was', async () => {
    const [task, chat] = [newId('task'), newId('req')];
    const pairs: [string, string][] = [
      [`/v1/chat/${other.chat}`, `/v1/chat/${chat}`],
      [`/v1/chat/${other.chat}/content`, `/v1/chat/${chat}/content`],
      [`/v1/tasks/${other.task}`, `/v1/tasks/${task}`],
      [`/v1/tasks?after=${other.task}`, `/v1/tasks?after=${task}`],
      [`/v1/tasks?before=${other.task}`, `/v1/tasks?before=${task}`],
    ];
    for (const [of_other, of_none] of pairs) {
      const refused = await call(secret, of_other);
      expect([of_other, refused.status]).toEqual([of_other, of_other.includes('?') ? 400 : 404]);
      expect(bare(refused)).toEqual(bare(await call(secret, of_none)));
    }
    for (const [of_other, of_none] of [
      [other.chat, chat],
      [other.task, task],
    ]) {
      const refused = await call(secret, '/v1/feedback', { reference_id: of_other, score: 1 });
      expect(refused.status).toBe(404);
      expect(bare(refused)).toEqual(bare(await call(secret, '/v1/feedback', { reference_id: of_none, score: 1 })));
    }
    expect((await call(secret, `/v1/chat/${other.chat}/content`, undefined, 'DELETE')).status).toBe(404);
  });

  it('scores calls and tasks of its project', async () => {
    for (const reference_id of [own.chat, own.task]) {
      const scored = await call(secret, '/v1/feedback', { reference_id, score: true });
      expect(scored.status, scored.text).toBe(200);
    }
  });

  it('reads stored contents as other keys do: those of its own calls, and if it may read alone, of its project', async () => {
    expect((await call(secret, `/v1/chat/${own.chat}/content`)).status).toBe(404);
    const rules = { name: 'Reader', project: own.project, scopes: ['read'] };
    const reader = okBody<NewKeyView>(await limited.post(`${limited.base}/keys`, rules)).secret;
    expect((await call(reader, `/v1/chat/${own.chat}/content`)).text).toContain('Hello');
    expect((await call(reader, `/v1/chat/${other.chat}/content`)).status).toBe(404);
  });
});

/** Returns what an answer says beside the ids in it. */
const bare = ({ status, text }: Seen) => [status, text.replaceAll(/(?:task|req|feedback)_\w+/g, 'ID')];

describe('a member of some projects', () => {
  it('sees the refused calls of these, with the names of their keys and without budgets of the account', async () => {
    const answer = await limited.get(`${limited.base}/refusals`);
    const { total, reasons } = okBody<RefusalsView>(answer);
    expectClean(answer, '/refusals');
    expect(total).toBe(2);
    expect(reasons.map(({ reason, count, parts }) => [reason, count, parts])).toEqual([
      [
        'budget_reached',
        1,
        [{ key: expect.objectContaining({ name: 'Theirs' }), budget: null, model: 'sandbox/chat', count: 1 }],
      ],
      [
        'model_not_allowed',
        1,
        [{ key: { id: own.key, name: 'Key of Shop' }, budget: null, model: 'sandbox/rerank', count: 1 }],
      ],
    ]);
    for (const query of [`?key=${other.key}`, `?project=${other.project}`])
      expect(okBody<RefusalsView>(await limited.get(`${limited.base}/refusals${query}`)).total).toBe(0);
  });

  it('sees the speed of these, and no names of metadata of others', async () => {
    const answer = await limited.get(`${limited.base}/speed?group=key`);
    const { rows, total, pairs } = okBody<SpeedView>(answer);
    expectClean(answer, '/speed');
    expect([rows.map(({ name, count }) => [name, count]), total?.count, pairs]).toEqual([[['Key of Shop', 2]], 2, []]);
  });

  it('has first steps: a key of their own, a call with it, an image', async () => {
    const steps = async (who: Someone) => okBody<HomeView>(await who.get(`${who.base}/home`)).steps;
    expect(await steps(limited)).toMatchObject({ key: true, image: true });
    const beginner = await memberOf(test, owner, 'developer');
    okBody(await owner.send('PATCH', `${owner.base}/team/${beginner.user_id}`, { projects: [own.project] }));
    expect(await steps(beginner)).toMatchObject({ key: false, api: false });
    const first = okBody<NewKeyView>(
      await beginner.post(`${beginner.base}/keys`, { name: 'First', project: own.project }),
    );
    expect(await steps(beginner)).toMatchObject({ key: true, api: false });
    expect((await call(first.secret, '/v1/models')).status).toBe(200);
    await expect.poll(async () => (await steps(beginner)).api, { timeout: 90_000, interval: 1_000 }).toBe(true);
  });
});

describe('a list of feedback for a limited key', () => {
  type List = { data: { id: string; reference_id: string; name: string }[]; has_more: boolean };
  /** Ids of scores, by the metric that each has alone. */
  const ids = new Map<string, string>();

  const give = async (key: string, reference_id: string, name: string) => {
    const scored = await call(key, '/v1/feedback', { reference_id, name, score: 1, comment: `Of ${name}` });
    expect(scored.status, scored.text).toBe(200);
    ids.set(name, (JSON.parse(scored.text) as { id: string }).id);
  };

  const names = async (query = '', key = secret) =>
    (await read<List>(key, `/v1/feedback${query}`)).data.map(({ name }) => name).filter((name) => name !== 'rating');

  beforeAll(async () => {
    await give(own.secret, own.chat, 'early');
    await give(other.secret, other.chat, `${marker}-chat`);
    await give(other.secret, other.task, `${marker}-task`);
    await give(other.secret, own.task, 'late'); // a key of the whole account may score what another one made
  });

  it('has the scores of the calls and tasks of its project, whoever gave them, and no other', async () => {
    expect(await names()).toEqual(['late', 'early']);
    expect(await names('', own.secret)).toEqual(['late', `${marker}-task`, `${marker}-chat`, 'early']);
    expectClean(await call(secret, '/v1/feedback'), '/v1/feedback');
    expect(await names(`?name=${marker}-chat`)).toEqual([]);
    expect(await names(`?reference_id=${other.task}`)).toEqual([]);
    expect(await names(`?reference_id=${own.task}`)).toEqual(['late']);
  });

  it('takes the id of a score of another project as a place alone, and does not say that there is more', async () => {
    const after = await read<List>(secret, `/v1/feedback?limit=1&after=${ids.get(`${marker}-task`)}`);
    expect(after.data.map(({ name }) => name)).toEqual(['early']);
    const before = await read<List>(secret, `/v1/feedback?limit=1&before=${ids.get(`${marker}-chat`)}`);
    expect([before.data.map(({ name }) => name), before.has_more]).toEqual([['late'], false]);
  });

  it('is narrowed by the project where that has too many keys to name', async () => {
    const keyOf = (account: string, id: string) => `${keyOfTask(account, id)} union all ${keyOfCall(account, id)}`;
    const sight = { keys: { project_ids: [own.project] }, keyOf };
    const page = await listFeedback(test.app.db, { account_id: owner.account_id, limit: 100, sight });
    expect(page.feedback.map(({ name }) => name).filter((name) => name !== 'rating')).toEqual(['late', 'early']);
  });

  it('lets it remove these, and answers for one of another project as for one that there never was', async () => {
    const remove = (id = '') => call(secret, `/v1/feedback/${id}`, undefined, 'DELETE');
    const refused = await remove(ids.get(`${marker}-task`));
    expect(refused.status).toBe(404);
    expect(bare(refused)).toEqual(bare(await remove(newId('feedback'))));
    expect(await names(`?reference_id=${other.task}`, own.secret)).toEqual([`${marker}-task`]);
    expect((await remove(ids.get('late'))).status).toBe(200);
    expect(await names('', own.secret)).not.toContain('late');
  });

  it('has the scores of a call for as long as the key of the call is in its project', async () => {
    const rules = { name: 'Wanderer', project: own.project };
    const wanderer = okBody<NewKeyView>(await owner.post(`${owner.base}/keys`, rules));
    const answered = await call(wanderer.secret, '/v1/chat/completions', { model: 'sandbox/chat', messages });
    await give(secret, answered.id, 'moving'); // by the limited key itself
    expect(await names()).toContain('moving');
    const moved = { project: other.project };
    okBody(await owner.send('PATCH', `${owner.base}/keys/${wanderer.key.id}`, moved));
    expect(await names()).not.toContain('moving');
    expect((await call(secret, `/v1/feedback/${ids.get('moving')}`, undefined, 'DELETE')).status).toBe(404);
  });
});

describe('an export of contents for a limited key', () => {
  const contents = async (key: string, query = '') => {
    const answer = await call(key, `/v1/chat/contents${query}`);
    expect(answer.status, answer.text).toBe(200);
    return answer;
  };
  const idsIn = ({ text }: Seen) => text.split('\n').flatMap((line) => /req_\w+/.exec(line) ?? []);

  async function keyWith(rules: object): Promise<NewKeyView> {
    return okBody(await limited.post(`${limited.base}/keys`, { project: own.project, ...rules }));
  }

  it('has the calls of its project if it may read alone, and none of another one', async () => {
    const reader = await keyWith({ name: 'Exporter', scopes: ['read'] });
    const all = await contents(reader.secret);
    expectClean(all, '/v1/chat/contents');
    expect(idsIn(all)).toContain(own.chat);
    expect(idsIn(await contents(reader.secret, `?key=${own.key}`))).toEqual([own.chat]);
    expect((await contents(reader.secret, `?key=${other.key}`)).text).toBe('');
    expect((await contents(reader.secret, '?form=messages&outcome=ok')).text).toContain('Hello');
    const wide = { name: 'Wide exporter', scopes: ['read'] };
    const of_all = okBody<NewKeyView>(await owner.post(`${owner.base}/keys`, wide)).secret;
    expect(idsIn(await contents(of_all))).toEqual(expect.arrayContaining([own.chat, other.chat]));
  });

  it('has the calls of the key itself if it calls models, too', async () => {
    const caller = await keyWith({ name: 'Caller', log_content: { keep_days: 7, redact: [], patterns: [] } });
    const answered = await call(caller.secret, '/v1/chat/completions', { model: 'sandbox/chat', messages });
    await test.app.contents.flush();
    expect(idsIn(await contents(caller.secret, `?key=${own.key}`))).toEqual([answered.id]);
  });

  it('is narrowed by the project where that has too many keys to name', async () => {
    const filter = { account_id: owner.account_id, project_ids: [own.project] };
    const lines: string[] = [];
    for await (const line of contentLines(test.app, filter, 'full', new Date())) lines.push(line);
    expect(idsIn({ status: 200, text: lines.join(''), id: '' })).toContain(own.chat);
    expectClean({ text: lines.join('') }, 'the export');
  });
});
