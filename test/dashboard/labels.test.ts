import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ActivityPage, ChatView, TaskView } from '../../src/dashboard/views/activity.ts';
import type { SearchView } from '../../src/dashboard/views/search.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from './people.ts';

/** Calls and tasks by what their callers said of them, and by how they failed. */

let test: TestApp;
let owner: Someone;
let other: Someone;
/** Of keys in two projects. */
let clients: [Client, Client];
let shop: string;
/** In the order in which they were made. */
const created: string[] = [];

const long = 'long '.repeat(102).trim(); // 509 characters
const hostile = { user: '=HYPERLINK("x")', metadata: { '100%_a': 'x%y_z', note: long, version: '1.0' } };

beforeAll(async () => {
  test = await startTestApp();
  owner = await ownerOfNew(test, 'Labels');
  other = await ownerOfNew(test, 'Other');
  const { account_id } = owner;
  clients = [await test.client({ account_id }), await test.client({ account_id })];
  shop = okBody<{ id: string }>(await owner.post(`${owner.base}/projects`, { name: 'Shop' })).id;
  okBody(await owner.send('PATCH', `${owner.base}/keys/${clients[1].key_id}`, { project: shop }));
  const [first, second] = clients;
  created.push(
    await chat(first, 'Hello', { user: 'ada', metadata: { team: 'Red fox', tags: 'night shift, day' } }),
    await generate(first, 'A bay', { user: 'ada', team: 'Red fox', tags: 'day,2026' }),
    await chat(first, '[[fail]]', { metadata: { team: 'blue' } }),
    await generate(first, '[[fail]] a storm', { team: 'blue' }),
    await chat(second, 'Hello', { user: 'bob', metadata: { team: 'Red fox', tags: 'day' } }),
    await chat(first, 'Hello', {}),
    await chat(second, 'Hello', hostile),
  );
  const stranger = await test.client({ account_id: other.account_id });
  await chat(stranger, 'Hello', { user: 'ada', metadata: { team: 'Red fox', tags: 'day' } });
  await vi.waitUntil(async () => (await list('')).length === created.length && (await list('', other)).length === 1, {
    timeout: 120_000,
  });
}, 240_000);

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

async function chat(by: Client, content: string, labels: object): Promise<string> {
  const body = { model: 'sandbox/chat', messages: [{ role: 'user', content }], ...labels };
  const { headers } = await by.call('POST', '/v1/chat/completions', body);
  return headers.get('x-request-id') ?? '';
}

async function generate(by: Client, prompt: string, metadata: object): Promise<string> {
  const body = { model: 'sandbox/image', input: { prompt, width: 16, height: 16 }, metadata };
  return (await by.call('POST', '/v1/generate?wait=60', body)).json.id;
}

async function list(query: string, who = owner): Promise<string[]> {
  const page = okBody<ActivityPage>(await who.get(`${who.base}/activity${query}`));
  return page.data.map(({ id }) => id);
}

const idsAt = (places: readonly number[]) => places.map((place) => created[place]);
const of = (values: Record<string, string>) => `?${new URLSearchParams(values).toString()}`;

describe('filters by labels', () => {
  it.each<[values: Record<string, string>, places: number[]]>([
    [{ tag: 'day' }, [4, 1, 0]],
    [{ tag: ' day ' }, [4, 1, 0]],
    [{ tag: 'night shift' }, [0]],
    [{ tag: '2026' }, [1]],
    [{ tag: 'da' }, []],
    [{ tag: 'DAY' }, []],
    [{ tag: 'day', of: 'chats' }, [4, 0]],
    [{ tag: 'day', of: 'tasks' }, [1]],
    [{ tag: 'day', sort: 'oldest' }, [0, 1, 4]],
    [{ user: 'ada' }, [1, 0]],
    [{ user: 'ada', tag: 'night shift' }, [0]],
    [{ user: 'ad%' }, []],
    [{ user: hostile.user }, [6]],
    [{ 'metadata[team]': 'Red fox' }, [4, 1, 0]],
    [{ 'metadata[team]': 'Red' }, []],
    [{ 'metadata[team]': 'Red fox', tag: '2026' }, [1]],
    [{ 'metadata[team]': 'blue', outcome: 'ok' }, []],
    [{ 'metadata[100%_a]': 'x%y_z', 'metadata[version]': '1.0' }, [6]],
    [{ 'metadata[100%_a]': 'x%y%z' }, []],
    [{ 'metadata[note]': long }, [6]],
    [{ error: 'upstream_error' }, [3, 2]],
    [{ error: 'upstream' }, []],
    [{ http_status: '502' }, [2]],
    [{ http_status: '429' }, []],
    [{ http_status: '200', user: 'ada' }, [0]],
    [{ http_status: '204' }, []],
    [{ http_status: '502', of: 'tasks' }, []],
    [{ user: 'bob', to: '2020-01-01' }, []],
    [{ user: 'bob', from: '2020-01-01' }, [4]],
    [{ user: 'ada', model: 'sandbox/image' }, [1]],
  ])('with %o has what fits', async (values, places) => {
    expect(await list(of(values))).toEqual(idsAt(places));
    expect((await list(of({ ...values, sort: 'cost' }))).toSorted()).toEqual(idsAt(places).toSorted());
  });

  it.each(['user', 'tag', 'error', 'metadata[team]'])(
    'finds nothing by a %s that no call can have, and takes any text',
    async (name) => {
      for (const value of ['\0', `a\0`, 'x'.repeat(1_500), `' or true --`, '\\', '"', '{', "':* & |", '🦊', '%'])
        for (const sort of ['newest', 'cost']) expect(await list(of({ [name]: value, sort }))).toEqual([]);
    },
  );

  it('are read page by page without a gap or a line twice', async () => {
    for (const [query, places] of [
      ['tag=day', [4, 1, 0]],
      ['q=fox', [4, 1, 0]],
      ['q=fox&sort=oldest', [0, 1, 4]],
    ] as const) {
      const seen: string[] = [];
      for (let after = '', pages = 0; pages < 5; pages++) {
        const page = okBody<ActivityPage>(
          await owner.get(`${owner.base}/activity?limit=1&${query}${after && `&after=${after}`}`),
        );
        seen.push(...page.data.map(({ id }) => id));
        after = seen.at(-1) ?? '';
        if (!page.has_more) break;
      }
      expect(seen).toEqual(idsAt(places));
    }
  });

  it.each([
    ['http_status', 'http_status=abc'],
    ['http_status', 'http_status=99'],
    ['metadata', 'metadata=x'],
    ['users', 'users=ada'],
  ])('refuse another %s', async (param, query) => {
    const { status, json } = await owner.get(`${owner.base}/activity?${query}`);
    expect([status, json]).toMatchObject([400, { error: { param } }]);
  });

  it('show a member of one project nothing of another', async () => {
    const limited = await memberOf(test, owner, 'developer');
    okBody(await owner.send('PATCH', `${owner.base}/team/${limited.user_id}`, { projects: [shop] }));
    for (const query of ['?tag=day', '?metadata[team]=Red%20fox', '?q=fox', '?tag=day&sort=cost', '?user=bob'])
      expect(await list(query, limited), query).toEqual(idsAt([4]));
    for (const query of ['?user=ada', '?q=ada', '?error=upstream_error', '?http_status=502', '?q=storm'])
      expect(await list(query, limited), query).toEqual([]);
    const { text } = await limited.get(`${limited.base}/activity.csv?tag=day`);
    expect(text).toContain(created[4]);
    expect(text).not.toContain(',ada,');
  });

  it('find nothing of another account', async () => {
    for (const query of ['?tag=day', '?user=ada', '?q=fox', '?metadata[team]=Red%20fox'])
      expect((await list(query, other)).filter((id) => created.includes(id))).toEqual([]);
  });
});

describe('words', () => {
  it.each<[words: string, places: number[]]>([
    ['ada', [1, 0]],
    ['fox', [4, 1, 0]],
    ['RED fo', [4, 1, 0]],
    ['shift night', [0]],
    ['fox bob', [4]],
    ['fox elephant', []],
    ['upstream_error', [3, 2]],
    ['upstream blue', [3, 2]],
    ['502', [2]],
    ['storm upstream', [3]],
    ['reached on any route', [2]], // the message of its error
    ['REACH blue 502', [2]],
    ['reached fox', []],
    ['hyperlink', [6]],
    ['100%_a', [6]],
    ['x%y_z', [6]],
    ['team', [4, 3, 2, 1, 0]],
    ['%', []],
    ['_', []],
    ['hello', []], // what was said is not stored
    [`bob' & ! (`, [4]],
  ])('"%s" finds what has all of them', async (words, places) => {
    expect(await list(of({ q: words }))).toEqual(idsAt(places));
    expect(await list(of({ q: words, of: 'chats' }))).toEqual(
      idsAt(places.filter((place) => created[place]?.startsWith('req_'))),
    );
  });

  it('and labels together leave what has both', async () => {
    expect(await list(of({ q: 'fox', user: 'ada' }))).toEqual(idsAt([1, 0]));
    expect(await list(of({ q: 'fox', tag: '2026' }))).toEqual(idsAt([1]));
    expect(await list(of({ q: 'fox', 'metadata[team]': 'blue' }))).toEqual([]);
    expect(await list(of({ q: 'upstream', http_status: '502' }))).toEqual(idsAt([2]));
    expect(await list(of({ q: 'reached', http_status: '502', 'metadata[team]': 'blue' }))).toEqual(idsAt([2]));
    expect(await list(of({ q: 'reached', error: 'timeout' }))).toEqual([]);
  });

  it('find calls in the search of all pages', async () => {
    const { data } = okBody<SearchView>(await owner.get(`${owner.base}/search?q=bob`));
    expect(data).toEqual([
      { kind: 'chat', id: created[4], title: 'sandbox/chat', detail: expect.stringContaining('bob') },
    ]);
  });
});

describe('labels', () => {
  it('stand in lines, on the pages of a call and of a task, and in files', async () => {
    const { data } = okBody<ActivityPage>(await owner.get(`${owner.base}/activity?user=ada&sort=oldest`));
    const [call, task] = [
      { user: 'ada', tags: ['night shift', 'day'], metadata: { team: 'Red fox', tags: 'night shift, day' } },
      { user: 'ada', tags: ['day', '2026'], metadata: { user: 'ada', team: 'Red fox', tags: 'day,2026' } },
    ];
    expect(data).toMatchObject([call, task]);
    expect(okBody<ChatView>(await owner.get(`${owner.base}/chats/${created[0]}`))).toMatchObject(call);
    expect(okBody<TaskView>(await owner.get(`${owner.base}/tasks/${created[1]}`))).toMatchObject(task);
    const { text } = await owner.get(
      `${owner.base}/activity.jsonl?sort=oldest&columns=id,user,tags,metadata,http_status`,
    );
    const rows = text
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line));
    expect(rows).toHaveLength(created.length);
    expect(rows.slice(0, 2)).toEqual([
      { id: created[0], http_status: 200, ...call },
      { id: created[1], http_status: null, ...task },
    ]);
  });

  it('are text in a spreadsheet, whatever they say', async () => {
    const { text } = await owner.get(
      `${owner.base}/activity.csv?sort=oldest&columns=id,status,http_status,error_type,user,tags,metadata`,
    );
    const lines = text.trimEnd().split('\r\n');
    expect(lines[0]).toBe('id,status,http_status,error_type,user,tags,metadata');
    expect(lines[1]).toBe(
      `${created[0]},succeeded,200,,ada,"night shift,day","{""tags"":""night shift, day"",""team"":""Red fox""}"`,
    );
    expect(lines[3]).toBe(`${created[2]},failed,502,upstream_error,,,"{""team"":""blue""}"`);
    expect(lines[4]).toBe(`${created[3]},failed,,upstream_error,,,"{""team"":""blue""}"`);
    expect(lines[6]).toBe(`${created[5]},succeeded,200,,,,`);
    expect(lines[7]).toContain(`,"'=HYPERLINK(""x"")",`);
  });
});

it('words and labels of calls are found by their index', async () => {
  const { db } = test.app;
  const has = async (words: string | null, labels: string[]) => {
    const values = [owner.account_id, words, labels];
    const rows = await db.query<{ id: string }>(
      `select id from chat_calls where call_words(account_id, end_user, metadata, error_type, status)
          @@ call_query($1, $2, $3) order by id`,
      values,
    );
    return rows.map(({ id }) => id);
  };
  expect(await has('fox', [])).toEqual(idsAt([0, 4]));
  expect(await has('fox', ['user ada'])).toEqual(idsAt([0]));
  expect(await has(null, ['tag day', 'pair team Red fox'])).toEqual(idsAt([0, 4]));
  expect(await has(null, ['error upstream_error', 'status 502'])).toEqual(idsAt([2]));
  expect(await has('!', ['user ada'])).toEqual([]);
  expect(await has(null, ['user ad'])).toEqual([]);
});
