import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { highestCostRecords } from '../../src/chat/record.ts';
import type { ActivityLine, ActivityPage, ChatView, Page } from '../../src/dashboard/views/activity.ts';
import { newId } from '../../src/lib/ids.ts';
import { highestCostTaskLines } from '../../src/tasks/list.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { moreEvents, openLivePage } from './live-rows.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from './people.ts';

let test: TestApp;
let owner: Someone;
let other: Someone;
let client: Client;
/** Tasks and calls in the order in which they were made. */
const task_ids: string[] = [];

beforeAll(async () => {
  test = await startTestApp();
  owner = await ownerOfNew(test);
  other = await ownerOfNew(test, 'Other');
  client = await test.client({ account_id: owner.account_id });
  for (const prompt of ['=HYPERLINK("x") first', '[[fail]] second', 'third, with "quotes"']) {
    task_ids.push(await generate(client, prompt), await chat(client));
  }
  await vi.waitUntil(async () => (await list('')).data.length === task_ids.length, { timeout: 120_000 });
}, 240_000);

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

async function generate(by: Client, prompt: string, wait = '?wait=60'): Promise<string> {
  const body = { model: 'sandbox/image', input: { prompt, width: 16, height: 16 }, metadata: { order: 'o7' } };
  return (await by.call('POST', `/v1/generate${wait}`, body)).json.id;
}

async function chat(by: Client): Promise<string> {
  const messages = [{ role: 'user', content: 'Hello' }];
  const { headers } = await by.call('POST', '/v1/chat/completions', { model: 'sandbox/chat', messages });
  return headers.get('x-request-id') ?? '';
}

async function list(query: string, who = owner): Promise<Page<ActivityLine>> {
  return okBody<Page<ActivityLine>>(await who.get(`${who.base}/activity${query}`));
}

const idsOf = ({ data }: Page<ActivityLine>) => data.map(({ id }) => id);

describe('the list of both', () => {
  it('has tasks and calls in the order of their making, the newest first or the oldest first', async () => {
    expect(idsOf(await list(''))).toEqual(task_ids.toReversed());
    expect(idsOf(await list('?sort=oldest'))).toEqual(task_ids);
    expect((await list('')).data.map(({ what }) => what)).toEqual(['chat', 'task', 'chat', 'task', 'chat', 'task']);
  });

  it.each([
    ['', () => task_ids.toReversed()],
    ['&sort=oldest', () => task_ids],
    ['&of=tasks', () => task_ids.toReversed().filter((id) => id.startsWith('task_'))],
    ['&of=chats&sort=oldest', () => task_ids.filter((id) => id.startsWith('req_'))],
    ['&q=o7&sort=oldest', () => task_ids.filter((id) => id.startsWith('task_'))],
  ])('is read page by page without a gap or a line twice (%s)', async (query, expected) => {
    const seen: string[] = [];
    for (let pages = 0, after = ''; pages < 10; pages += 1) {
      const page = await list(`?limit=1${query}${after && `&after=${after}`}`);
      seen.push(...idsOf(page));
      after = page.data.at(-1)?.id ?? '';
      if (!page.has_more) break;
    }
    expect(seen).toEqual(expected());
  });

  it.each([
    ['?outcome=failed', [2]],
    ['?outcome=ok', [5, 4, 3, 1, 0]],
    ['?status=succeeded', [4, 0]],
    ['?status=queued', []],
    ['?of=tasks&status=failed', [2]],
    ['?q=THIRD', [4]],
    ['?q=o7&of=tasks', [4, 2, 0]],
    ['?q=hello', []],
    ['?model=sandbox/chat', [5, 3, 1]],
    ['?to=2020-01-01', []],
  ])('with %s has what fits', async (query, places) => {
    expect(idsOf(await list(query))).toEqual(places.map((place) => task_ids[place]));
  });

  it('finds a line of each kind by its id, and none of another account', async () => {
    expect(idsOf(await list(`?q=${task_ids[0]}`))).toEqual([task_ids[0]]);
    expect(idsOf(await list(`?q=${task_ids[1]}`))).toEqual([task_ids[1]]);
    expect(idsOf(await list(`?q=${newId('req')}`))).toEqual([]);
    for (const query of ['', `?q=${task_ids[0]}`, `?q=${task_ids[1]}`, '?q=third', `?after=${newId('task')}`])
      expect(idsOf(await list(query, other))).toEqual([]);
  });

  it('has the highest costs first, of what the filters leave and of the time that is asked for', async () => {
    const costOf = (page: Page<ActivityLine>) => page.data.map(({ cost }) => Number(cost.exact));
    const page = okBody<ActivityPage>(await owner.get(`${owner.base}/activity?sort=cost`));
    expect(idsOf(page).toSorted()).toEqual(task_ids.toSorted());
    expect(costOf(page)).toEqual(costOf(page).toSorted((a, b) => b - a));
    expect(costOf(page)[0]).toBe(0.01);
    expect(costOf(page).at(-1)).toBe(0); // the failed one
    expect(page).toMatchObject({ has_more: false, compared: { cut_since: null } });
    expect(Date.now() - Date.parse(page.compared?.from ?? '')).toBeGreaterThan(29 * 86_400_000);
    expect(idsOf(await list('?sort=cost&of=chats&model=sandbox/chat'))).toHaveLength(3);
    expect(idsOf(await list('?sort=cost&outcome=failed'))).toEqual([task_ids[2]]);
    expect(idsOf(await list('?sort=cost&of=tasks&status=succeeded')).toSorted()).toEqual(
      [task_ids[0], task_ids[4]].toSorted(),
    );
    expect(idsOf(await list('?sort=cost&to=2020-01-01'))).toEqual([]);
    expect(idsOf(await list('?sort=cost', other))).toEqual([]);
    expect(idsOf(await list('?sort=cost&model=%00'))).toEqual([]);
  });

  it('compares the newest of a time alone, however many there are, and says since when', async () => {
    const { db } = test.app;
    const time = { created_after: new Date(0), created_before: new Date(Date.now() + 60_000) };
    const filter = { account_id: owner.account_id, limit: 10, ...time };
    const [tasks, calls] = [await highestCostTaskLines(db, filter, 2), await highestCostRecords(db, filter, 2)];
    expect(tasks.lines.map(({ id }) => id)).toEqual([task_ids[4], task_ids[2]]);
    expect(calls.lines.map(({ id }) => id).toSorted()).toEqual([task_ids[3], task_ids[5]].toSorted());
    for (const { compared, since, lines } of [tasks, calls]) {
      expect(compared).toBe(2);
      expect(since).toEqual(lines.map(({ created_at }) => created_at).toSorted((a, b) => a.getTime() - b.getTime())[0]);
    }
  });

  it('has the calls and tasks of the keys that are in a project', async () => {
    const project = okBody<{ id: string }>(await owner.post(`${owner.base}/projects`, { name: 'Shop' }));
    expect(idsOf(await list(`?project=${project.id}`))).toEqual([]);
    expect(idsOf(await list('?project=default'))).toEqual(task_ids.toReversed());
    okBody(await owner.send('PATCH', `${owner.base}/keys/${client.key_id}`, { project: project.id }));
    for (const query of ['', '&sort=cost', '&of=tasks', '&sort=oldest&of=chats'])
      expect(idsOf(await list(`?project=${project.id}${query}`)).length, query).toBeGreaterThan(2);
    expect(idsOf(await list('?project=default&sort=cost'))).toEqual([]);
    expect(idsOf(await list(`?project=${project.id}`, other))).toEqual([]);
    okBody(await owner.send('PATCH', `${owner.base}/keys/${client.key_id}`, { project: 'default' }));
  });

  it.each([
    ['of', '?of=all,tasks'],
    ['sort', '?sort=price'],
    ['q', '?sort=cost&q=third'],
    ['after', '?after=key_1'],
    ['outcome', '?outcome=maybe'],
    ['q', `?q=${'x'.repeat(201)}`],
    ['limit', '?limit=101'],
  ])('refuses another %s', async (param, query) => {
    const { status, json } = await owner.get(`${owner.base}/activity${query}`);
    expect(status).toBe(400);
    expect(json).toMatchObject({ error: { param } });
  });
});

it('the page of a call has the routes that were tried, and their names for operators alone', async () => {
  const attempts = async (who: Someone) =>
    okBody<ChatView>(await who.get(`${owner.base}/chats/${task_ids[1]}`)).attempts.map(({ route }) => route);
  expect(await attempts(owner)).toEqual([null]);
  const operator = await ownerOfNew(test, 'Operating');
  await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
  expect(await attempts(operator)).toEqual(['sandbox/chat#sandbox']);
});

describe('the files', () => {
  it('have all lines with the filters of the list, in chosen columns', async () => {
    const columns = 'columns=cost,prompt,id,type';
    const { text, headers } = await owner.get(`${owner.base}/activity.csv?of=tasks&sort=oldest&${columns}`);
    expect(headers.get('content-disposition')).toBe('attachment; filename="medley-tasks.csv"');
    const lines = text.split('\r\n');
    expect(lines[0]).toBe('type,id,prompt,cost');
    expect(lines).toHaveLength(5);
    expect(lines[1]).toMatch(new RegExp(`^task,${task_ids[0]},"'=HYPERLINK\\(""x""\\) first",0\\.\\d{6}$`)); // no formula
    expect(lines[2]).toBe(`task,${task_ids[2]},[[fail]] second,0.000000`);
  });

  it('are JSON lines, too, with every column', async () => {
    const { text, headers } = await owner.get(`${owner.base}/activity.jsonl?sort=oldest`);
    expect(headers.get('content-type')).toBe('application/jsonl; charset=utf-8');
    const rows = text
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line));
    expect(rows).toMatchObject([
      {
        type: 'task',
        id: task_ids[0],
        prompt: '=HYPERLINK("x") first',
        status: 'succeeded',
        files: 1,
        input_tokens: null,
      },
      {
        type: 'chat',
        id: task_ids[1],
        prompt: null,
        status: 'succeeded',
        currency: 'USD',
        input_tokens: expect.any(Number),
      },
      { type: 'task', id: task_ids[2], status: 'failed', error_type: 'upstream_error', cost: '0.000000' },
      { type: 'chat', id: task_ids[3] },
      { type: 'task', id: task_ids[4], prompt: 'third, with "quotes"' },
      { type: 'chat', id: task_ids[5] },
    ]);
    expect((await owner.get(`${owner.base}/activity.jsonl?q=nothinghasit`)).text).toBe('');
  });

  it('refuse a column that they do not have', async () => {
    const { status, json } = await owner.get(`${owner.base}/activity.csv?columns=id,secret`);
    expect([status, json]).toMatchObject([400, { error: { param: 'columns' } }]);
  });
});

describe('the events', () => {
  const listen = (who: Someone) => openLivePage(test.url, who);

  it('come when a task begins, moves and ends and when a call has ended, and only to its own account', async () => {
    const [mine, theirs] = await Promise.all([listen(owner), listen(other)]);
    expect(mine.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    await moreEvents(mine, 0); // as soon as it listens
    await moreEvents(theirs, 0);
    const before_task = mine.seen.count;
    await generate(client, '[[delay 2s]] live');
    await moreEvents(mine, before_task + 1); // begun or running, and ended
    const before_chat = mine.seen.count;
    await chat(client);
    await moreEvents(mine, before_chat);
    expect(theirs.seen.count).toBe(1);
    await Promise.all([mine.close(), theirs.close()]);
  });

  it.each([
    ['their session is signed out', async (who: Someone) => void okBody(await who.post('/auth/sign-out', {}))],
    [
      'their person belongs to the account no more',
      async ({ user_id }: Someone) =>
        void (await test.app.db.query('delete from auth.member where "userId" = $1', [user_id])),
    ],
  ])('end as soon as %s, and those of others go on', async (_, leave) => {
    const colleague = await memberOf(test, owner, 'viewer');
    const [mine, theirs] = await Promise.all([listen(owner), listen(colleague)]);
    expect([mine.response.status, theirs.response.status]).toEqual([200, 200]);
    await leave(colleague);
    await theirs.end;
    const count = mine.seen.count;
    await generate(client, 'after the end');
    await moreEvents(mine, count);
    await mine.close();
  });

  it('are heard by 50 pages of an account at most, and a page that is closed makes room', async () => {
    const crowd = await ownerOfNew(test, 'Crowd');
    const streams: Awaited<ReturnType<typeof listen>>[] = [];
    const ten = () => Promise.all(Array.from({ length: 10 }, () => listen(crowd)));
    while (streams.length < 50) streams.push(...(await ten())); // all at once were too many for a busy database
    expect(new Set(streams.map(({ response }) => response.status))).toEqual(new Set([200]));
    const refused = await listen(crowd);
    expect(refused.response.status).toBe(429);
    const elsewhere = await listen(other);
    expect(elsewhere.response.status).toBe(200);
    await streams[0]?.close();
    await vi.waitUntil(
      async () => {
        const next = await listen(crowd);
        streams.push(next);
        return next.response.status === 200;
      },
      { timeout: 120_000, interval: 200 },
    );
    await Promise.all([elsewhere, ...streams].map(({ close }) => close()));
  });

  it('are for those who may read the account', async () => {
    expect((await other.get(`${owner.base}/activity/events`)).status).toBe(404);
    expect((await fetch(`${test.url}${owner.base}/activity/events`)).status).toBe(401);
  });
});

describe('saved lists', () => {
  const saved = async (who: Someone, base = who.base) => (await who.get(`${base}/views`)).json;

  it('are kept by name for one person in one account, and removed', async () => {
    const colleague = await memberOf(test, owner, 'viewer');
    const save = (who: Someone, name: string, search: string) => who.post(`${who.base}/views`, { name, search });
    expect((await save(owner, 'Failures', 'tab=all&outcome=failed')).status).toBe(200);
    expect((await save(owner, 'all', '')).status).toBe(200);
    expect((await save(owner, 'Failures', 'outcome=failed')).status).toBe(200);
    expect((await save(colleague, 'Mine', 'q=x')).status).toBe(200);
    const data = [
      { name: 'all', search: '' },
      { name: 'Failures', search: 'outcome=failed' },
    ];
    expect(await saved(owner)).toEqual({ data });
    expect(await saved(colleague)).toEqual({ data: [{ name: 'Mine', search: 'q=x' }] });
    expect(await saved(other)).toEqual({ data: [] });
    await owner.post(`${owner.base}/views/remove`, { name: 'all' });
    await owner.post(`${owner.base}/views/remove`, { name: 'never there' });
    expect(await saved(owner)).toEqual({ data: data.slice(1) });
  });

  it.each([
    ['name', { search: 'q=x' }],
    ['name', { name: ' ', search: 'q=x' }],
    ['name', { name: 'x'.repeat(61), search: 'q=x' }],
    ['search', { name: 'x' }],
    ['search', { name: 'x', search: 'x'.repeat(2_001) }],
  ])('need a sensible %s', async (param, body) => {
    const { status, json } = await owner.post(`${owner.base}/views`, body);
    expect([status, json]).toMatchObject([400, { error: { param } }]);
  });

  it('are at most 50, of which each can be saved anew', async () => {
    const names = Array.from({ length: 50 }, (_, i) => `list ${i}`);
    for (const name of names)
      expect((await other.post(`${other.base}/views`, { name, search: 'q=x' })).status).toBe(200);
    const one_more = await other.post(`${other.base}/views`, { name: 'one more', search: 'q=x' });
    expect([one_more.status, one_more.json]).toMatchObject([400, { error: { param: 'name' } }]);
    expect((await other.post(`${other.base}/views`, { name: 'list 7', search: 'q=y' })).status).toBe(200);
  });

  it('are not left in an account by an operator who looks at it', async () => {
    const operator = await ownerOfNew(test, 'Operating');
    await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
    expect((await operator.post(`${owner.base}/views`, { name: 'x', search: '' })).status).toBe(403);
    expect(await saved(operator, owner.base)).toEqual({ data: [] });
  });

  it('go with an account that is deleted', async () => {
    const short_lived = await ownerOfNew(test, 'Short-lived', 0n);
    await short_lived.post(`${short_lived.base}/views`, { name: 'x', search: '' });
    const operator = await ownerOfNew(test, 'Operating');
    await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
    expect((await operator.send('DELETE', `/dash/admin/accounts/${short_lived.account_id}`)).status).toBe(200);
  });
});
