import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { AdminAccounts } from '../../src/dashboard/views/admin.ts';
import type { SearchView } from '../../src/dashboard/views/search.ts';
import { newId } from '../../src/lib/ids.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { ownerOfNew, okBody, type Someone } from './people.ts';

let test: TestApp;
let owner: Someone;
let other: Someone;
let client: Client;
/** Of the owner's tasks, by what they are here for. */
const ids: Record<string, string> = {};

beforeAll(async () => {
  test = await startTestApp({ yaml: 'version: 1\nnet: { allow: ["127.0.0.0/8"] }\n' });
  owner = await ownerOfNew(test, 'Zebra works');
  other = await ownerOfNew(test, 'Other');
  client = await test.client({ account_id: owner.account_id });
  const tasks: Record<string, [prompt: string, more: object]> = {
    bicycle: ['A red Bicycle\nbeside the "Überfall", state-of-the-art', {}],
    tagged: ['plain', { metadata: { Campaign: 'Autumn sale', note: 'x' } }],
    running: ['[[delay 3600s]] a slow glacier', {}],
  };
  for (const [name, [prompt, more]] of Object.entries(tasks)) {
    const wait = name === 'running' ? '' : '?wait=60';
    const body = { model: 'sandbox/image', input: { prompt, width: 16, height: 16 }, ...more };
    const { json, status } = await client.call('POST', `/v1/generate${wait}`, body);
    if (status >= 300) throw new Error(`the task was answered ${status}: ${JSON.stringify(json)}`);
    ids[name] = json.id;
  }
}, 240_000);

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

async function search(who: Someone, text: string): Promise<SearchView> {
  return okBody<SearchView>(await who.get(`${who.base}/search?q=${encodeURIComponent(text)}`));
}

async function tasksFor(text: string, who = owner): Promise<string[]> {
  let view: SearchView | undefined;
  // A machine that is busy at the moment leaves tasks out, and says so.
  await expect.poll(async () => (view = await search(who, text)).is_partial).toBe(false);
  return (view?.data ?? []).filter(({ kind }) => kind === 'task').map(({ id }) => id);
}

describe('a search for words', () => {
  it.each([
    ['a word of the prompt', 'bicycle', 'bicycle'],
    ['the beginning of a word, in other capitals', 'BICY', 'bicycle'],
    ['a word behind a line break', 'beside', 'bicycle'],
    ['a word with an umlaut, in quotation marks', 'überfall', 'bicycle'],
    ['a part of words that are joined', 'art', 'bicycle'],
    ['several words in any order', 'red state bicycle', 'bicycle'],
    ['a value of the metadata', 'autumn', 'tagged'],
    ['a name and a value of the metadata', 'campaign: sale', 'tagged'],
    ['a task that has not ended', 'glacier', 'running'],
    ['an operator of text searches', `bicycle' & | ! :* <-> \\ (`, 'bicycle'],
  ])('finds %s', async (_, text, name) => {
    expect(await tasksFor(text)).toEqual([ids[name]]);
  });

  it('finds nothing by words of which one is missing, by names of members, or by no word at all', async () => {
    expect(await tasksFor('bicycle elephant')).toEqual([]);
    expect(await tasksFor('width')).toEqual([]);
    expect(await tasksFor('prompt')).toEqual([]);
    expect(await tasksFor('!"§$%&/()')).toEqual([]);
    expect(await tasksFor('icycle')).toEqual([]);
  });

  it('reads the first 4,000 characters of an input, and of a prompt that lies behind them', async () => {
    const has = async (input: object, word: string) => {
      const values = [owner.account_id, JSON.stringify(input), '{}', word];
      const statement = 'select task_words($1, $2, $3) @@ task_query($1, $4) as has';
      return (await test.app.db.query<{ has: boolean }>(statement, values))[0]?.has;
    };
    const prompt = `first ${'filler '.repeat(700)}last`;
    expect(await has({ prompt }, 'first')).toBe(true);
    expect(await has({ prompt }, 'last')).toBe(false);
    expect(await has({ image: 'x'.repeat(100_000), prompt }, 'first filler')).toBe(true);
    expect(await has({ prompt: '\u0000 \ud800 😀 été 東京タワー' }, 'été')).toBe(true);
    expect(await has({ prompt: '\u0000 \ud800 😀 été 東京タワー' }, '東京')).toBe(true);
    expect(await has({ prompt: 'x'.repeat(3_999) }, 'y')).toBe(false);
    expect(await has({}, 'y')).toBe(false);
  });

  it.each([2_000, 2_038, 2_040, 2_046, 2_047, 3_900])(
    'that is beside a word of %d letters is found, and every word has its tag',
    async (length) => {
      const input = JSON.stringify({ prompt: `aa ${'q'.repeat(length)} zz` });
      const words = await test.app.db.query<{ word: string; tagged: boolean }>(
        `select word, left(word, 8) = left(md5($1), 8) as tagged
           from unnest(tsvector_to_array(task_words($1, $2, '{}'))) word`,
        [owner.account_id, input],
      );
      expect(words.filter(({ tagged }) => !tagged)).toEqual([]);
      expect(words.map(({ word }) => word.slice(8, 10))).toEqual(expect.arrayContaining(['aa', 'zz']));
    },
  );

  it('finds keys by name and last four characters, and models by id', async () => {
    const [key] = await test.app.db.query<{ name: string; last_four: string }>(
      'select name, last_four from api_keys where id = $1',
      [client.key_id],
    );
    const by_end = (await search(owner, key?.last_four ?? 'none')).data.filter(({ kind }) => kind === 'key');
    expect(by_end.map(({ id }) => id)).toContain(client.key_id);
    const by_name = (await search(owner, key?.name.toUpperCase() ?? 'none')).data.filter(({ kind }) => kind === 'key');
    expect(by_name.map(({ id }) => id)).toContain(client.key_id);
    const models = (await search(owner, 'SANDBOX/IM')).data.filter(({ kind }) => kind === 'model');
    expect(models.map(({ id }) => id)).toContain('sandbox/image');
  });

  it.each([
    ['that is not there', ''],
    ['of no characters', '?q='],
    ['of 201 characters', `?q=${'x'.repeat(201)}`],
    ['of spaces and NUL', '?q=%20%00'],
  ])('%s is refused', async (_, query) => {
    const { status, json } = await owner.get(`${owner.base}/search${query}`);
    expect(status).toBe(400);
    expect(json).toMatchObject({ error: { param: 'q' } });
  });
});

describe('a search for an id', () => {
  it('leads to the task, the call, the key or the delivery that has it', async () => {
    const chat = await client.call('POST', '/v1/chat/completions', {
      model: 'sandbox/chat',
      messages: [{ role: 'user', content: 'Hello' }],
    });
    const request_id = chat.headers.get('x-request-id') ?? '';
    const webhook_url = 'http://127.0.0.1:8099/hook';
    const input = { prompt: 'delivered', width: 16, height: 16 };
    const body = { model: 'sandbox/image', input, webhook_url };
    const { json } = await client.call('POST', '/v1/generate?wait=60', body);
    expect(json.status, JSON.stringify(json)).toBe('succeeded');
    const [delivery] = await test.app.db.query<{ id: string }>('select id from deliveries where task_id = $1', [
      json.id,
    ]);
    await vi.waitUntil(async () => (await search(owner, request_id)).data.length === 1, { timeout: 120_000 });
    const results = await Promise.all(
      [` ${json.id} `, request_id, client.key_id, delivery?.id ?? ''].map((id) => search(owner, id)),
    );
    expect(results.map(({ data }) => data.map(({ kind, id }) => [kind, id]))).toEqual([
      [['task', json.id]],
      [['chat', request_id]],
      [['key', client.key_id]],
      [['delivery', delivery?.id]],
    ]);
    // The same ids lead nowhere in another account.
    for (const id of [json.id, request_id, client.key_id, delivery?.id ?? '', owner.account_id])
      expect((await search(other, id)).data).toEqual([]);
  });

  it('finds nothing if nothing has it', async () => {
    for (const prefix of ['task', 'req', 'key', 'dlv', 'acct'] as const)
      expect((await search(owner, newId(prefix))).data).toEqual([]);
  });
});

it('another account finds none of the words', async () => {
  for (const text of ['bicycle', 'autumn', 'glacier']) expect(await tasksFor(text, other)).toEqual([]);
});

describe('a search of operators', () => {
  it('is not there for others', async () => {
    expect((await owner.get('/dash/admin/search?q=zebra')).status).toBe(404);
  });

  it('finds accounts by name, id, an address of their people, and a key', async () => {
    const operator = await ownerOfNew(test, 'Operating');
    await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
    const email = 'ada.lovelace@example.com';
    await test.app.db.query('update auth."user" set email = $2 where id = $1', [owner.user_id, email]);
    const [key] = await test.app.db.query<{ last_four: string }>('select last_four from api_keys where id = $1', [
      client.key_id,
    ]);
    for (const text of ['zebra', owner.account_id, 'ada.love', client.key_id, key?.last_four ?? 'no key']) {
      const path = `/dash/admin/accounts?search=${encodeURIComponent(text)}`;
      expect(okBody<AdminAccounts>(await operator.get(path)).data.map(({ id }) => id)).toEqual([owner.account_id]);
      const { data } = okBody<SearchView>(await operator.get(`/dash/admin/search?q=${encodeURIComponent(text)}`));
      expect(data.map(({ kind, id, title }) => [kind, id, title])).toEqual([
        ['account', owner.account_id, 'Zebra works'],
      ]);
    }
    const none = okBody<SearchView>(await operator.get('/dash/admin/search?q=nobody-of-this-name'));
    expect(none.data).toEqual([]);
  });
});
