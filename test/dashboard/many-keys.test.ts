import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ActivityLine, Page } from '../../src/dashboard/views/activity.ts';
import type { HomeView } from '../../src/dashboard/views/home.ts';
import type { KeyChoices, KeyPageView, KeysView, KeyView, ProjectsView } from '../../src/dashboard/views/keys.ts';
import type { SearchView } from '../../src/dashboard/views/search.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { insertKeys } from '../helpers/many-keys.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from './people.ts';

/** An account of a reseller: a key for each customer, most of them deleted by now. */
const count = 3_000;
const page_size = 50;

let test: TestApp;
let owner: Someone;
let project: string;
/** Ids, oldest first. */
let ids: string[];

beforeAll(async () => {
  test = await startTestApp({ worker: false });
  owner = await ownerOfNew(test, 'Reseller');
  project = okBody<{ id: string }>(await owner.post(`${owner.base}/projects`, { name: 'Shops' })).id;
  ids = await insertKeys(test.app.db, owner.account_id, count, project);
});

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

async function page(query = '', who = owner): Promise<KeysView> {
  const answer = await who.get(`${who.base}/keys${query}`);
  expect(answer.text.length).toBeLessThan(60_000); // never a list of all
  return okBody<KeysView>(answer);
}

async function allPages(query: string, who = owner): Promise<KeyView[]> {
  const keys: KeyView[] = [];
  for (let after: string | undefined = ''; after !== undefined;) {
    const { data, has_more } = await page(`?${query}${after && `&after=${after}`}`, who);
    keys.push(...data);
    expect(data.length).toBeLessThanOrEqual(page_size);
    after = has_more ? data.at(-1)?.id : undefined;
  }
  return keys;
}

const choices = async (query: string, who = owner) =>
  okBody<KeyChoices>(await who.get(`${who.base}/choices/keys${query}`));

describe('an account with thousands of keys', () => {
  it('lists them in pages, newest first, none twice and none left out', async () => {
    const { data, has_more } = await page();
    expect([data.length, has_more]).toEqual([page_size, true]);
    expect((await allPages('')).map(({ id }) => id)).toEqual(ids.toReversed());
  });

  it('filters them by state and by project, with every page full', async () => {
    for (const [state, shown] of [
      ['active', 'active'],
      ['present', 'active'],
      ['ended', 'deleted'],
    ]) {
      const { data, has_more } = await page(`?state=${state}`);
      expect([data.length, has_more, ...new Set(data.map((key) => key.state))]).toEqual([page_size, true, shown]);
    }
    const { data, has_more } = await page(`?project=${project}`);
    expect([data.length, has_more]).toEqual([count / 100, false]);
    expect(new Set(data.map((key) => key.project.name))).toEqual(new Set(['Shops']));
    expect((await page('?project=default&state=present')).data).toHaveLength(page_size);
    expect((await page('?project=project_none')).data).toEqual([]);
  });

  it('finds a key by a part of its name, by its last four characters and by its id, deleted or not', async () => {
    for (const search of ['tomer 0007', 'CUSTOMER 0007', '0007', ids[6] ?? '']) {
      const { data } = await page(`?search=${encodeURIComponent(search)}`);
      expect(data.map(({ name, state }) => [name, state])).toEqual([['Customer 0007', 'deleted']]);
    }
    expect((await page('?search=0007&state=active')).data).toEqual([]);
    expect((await page('?search=%25')).data).toEqual([]);
    expect(await page('?search=nobody')).toMatchObject({ data: [], has_any: true });
  });

  it('refuses a cursor that is no key, an unknown state and too long a text, and names each', async () => {
    for (const [query, param] of [
      ['after=x', 'after'],
      ['state=gone', 'state'],
      [`search=${'x'.repeat(201)}`, 'search'],
    ]) {
      const answer = await owner.get(`${owner.base}/keys?${query}`);
      expect([answer.status, answer.json]).toMatchObject([400, { error: { param } }]);
    }
  });

  it('has a cursor of another account that leads nowhere', async () => {
    const stranger = await ownerOfNew(test, 'Foreign');
    okBody(await stranger.post(`${stranger.base}/keys`, { name: 'Own' }));
    const { data } = await page(`?after=${ids[5]}`, stranger);
    expect(data.every(({ name }) => name === 'Own')).toBe(true);
    expect((await page(`?search=${ids[5]}`, stranger)).data).toEqual([]);
    expect((await choices(`?chosen=${ids[5]}`, stranger)).chosen).toEqual([]);
  });

  it('offers a few of them for a filter, working ones first, and those that are chosen with their names', async () => {
    const { data, chosen, has_more } = await choices(`?chosen=${ids[0]},${ids[1]},none`);
    expect([data.length, has_more, data[0]?.name]).toEqual([25, true, 'Customer 3000']);
    expect(chosen.map(({ name }) => name).toSorted()).toEqual(['Customer 0001 (deleted)', 'Customer 0002']);
    const answer = await choices('?search=customer 000');
    expect(answer.data.map(({ name }) => name).toSorted()).toEqual(
      [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `Customer 000${n}${n % 2 === 1 ? ' (deleted)' : ''}`),
    );
    expect((await choices('?search=customer 000&state=active')).data).toHaveLength(4);
    const wrong = await owner.get(`${owner.base}/choices/keys?chosen=${Array(101).fill('x').join(',')}`);
    expect([wrong.status, wrong.json]).toMatchObject([400, { error: { param: 'chosen' } }]);
  });

  it('finds a few of them with the search of all pages', async () => {
    const { data } = okBody<SearchView>(await owner.get(`${owner.base}/search?q=Customer`));
    expect(data.filter(({ kind }) => kind === 'key')).toHaveLength(6);
    const one = okBody<SearchView>(await owner.get(`${owner.base}/search?q=${ids[9]}`));
    expect(one.data).toMatchObject([{ title: 'Customer 0010' }]);
  });

  it('shows on its home page the five keys that are nearest to their limit, and that there are more', async () => {
    const { db } = test.app;
    await db.query('update budgets set limit_month = 0, spent = 0 where account_id = $1', [owner.account_id]);
    const spent = (n: number, percent: number) =>
      db.query(
        `update budgets set month = date_trunc('month', now() at time zone 'UTC'), limit_month = 100, spent = $2
          where key_id = $1`,
        [ids[n - 1], percent],
      );
    for (const [n, percent] of [
      [2, 100],
      [4, 95],
      [6, 80],
      [8, 79],
      [9, 100],
    ] as const)
      await spent(n, percent);
    const near = async () => okBody<HomeView>(await owner.get(`${owner.base}/home`));
    expect(await near()).toMatchObject({
      keys_near_limit: [
        { id: ids[1], name: 'Customer 0002', used_percent: 100 },
        { id: ids[3], used_percent: 95 },
        { id: ids[5], used_percent: 80 },
      ],
      has_more_near_limit: false,
    });
    for (const n of [10, 12, 14]) await spent(n, 90);
    const { keys_near_limit, has_more_near_limit } = await near();
    expect([keys_near_limit.length, has_more_near_limit]).toEqual([5, true]);
    await db.query('update budgets set limit_month = null, spent = 0 where account_id = $1', [owner.account_id]);
  });

  it('counts the working keys of each project', async () => {
    const { data } = okBody<ProjectsView>(await owner.get(`${owner.base}/projects`));
    expect(data.map(({ name, keys }) => [name, keys])).toEqual([
      ['Default', count / 2 - count / 100],
      ['Shops', count / 100],
    ]);
    expect((await owner.post(`${owner.base}/projects/${project}/archive`, {})).status).toBe(409);
  });

  it('shows a member of a project the keys of that project alone', async () => {
    const member = await memberOf(test, owner, 'developer');
    okBody(await owner.send('PATCH', `${owner.base}/team/${member.user_id}`, { projects: [project] }));
    const own = new Set(ids.filter((_, index) => (index + 1) % 100 === 0));
    expect(new Set((await allPages('', member)).map(({ id }) => id))).toEqual(own);
    expect((await page('?project=default', member)).data).toEqual([]);
    expect((await page(`?search=${ids[0]}`, member)).data).toEqual([]);
    const offered = await choices(`?chosen=${ids[0]},${ids[99]}`, member);
    expect(offered.data.every(({ id }) => own.has(id))).toBe(true);
    expect(offered.chosen.map(({ name }) => name)).toEqual(['Customer 0100']);
    const { data } = okBody<SearchView>(await member.get(`${member.base}/search?q=Customer`));
    expect(data.filter(({ kind }) => kind === 'key').every(({ id }) => own.has(id))).toBe(true);
  });

  it('lists generations and calls of a project with thousands of keys, and of one with a few', async () => {
    const ids_of = new Map<string, string[]>();
    for (const name of ['default', project]) {
      const client = await test.client({ account_id: owner.account_id });
      await test.app.db.query('update budgets set project_id = $2 where key_id = $1', [
        client.key_id,
        name === 'default' ? null : name,
      ]);
      const task = await client.call('POST', '/v1/generate', {
        model: 'sandbox/image',
        input: { prompt: `A shop of ${name}` },
      });
      const chat = await client.call('POST', '/v1/chat/completions', {
        model: 'sandbox/chat',
        messages: [{ role: 'user', content: 'Hello' }],
      });
      expect([task.status, chat.status]).toEqual([202, 200]);
      ids_of.set(name, [task.json.id, chat.headers.get('x-request-id') ?? '']);
    }
    const shown = async (query: string, who = owner) =>
      okBody<Page<ActivityLine>>(await who.get(`${who.base}/activity?${query}`)).data.map(({ id }) => id);
    for (const [name, ids_in] of ids_of) {
      const member = await memberOf(test, owner, 'developer');
      okBody(await owner.send('PATCH', `${owner.base}/team/${member.user_id}`, { projects: [name] }));
      for (const sort of ['newest', 'oldest', 'cost']) {
        await expect.poll(async () => new Set(await shown(`project=${name}&sort=${sort}`))).toEqual(new Set(ids_in));
        expect(new Set(await shown(`sort=${sort}`, member))).toEqual(new Set(ids_in));
      }
      expect(await shown(`project=${name}&of=tasks&q=shop`)).toEqual(ids_in.slice(0, 1));
      const { data } = okBody<SearchView>(await member.get(`${member.base}/search?q=shop`));
      expect(data.filter(({ kind }) => kind === 'task').map(({ id }) => id)).toEqual(ids_in.slice(0, 1));
    }
  });

  it('is shown to operators in pages, which they search', async () => {
    const operator = await ownerOfNew(test, 'Operator');
    await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
    const path = `/dash/admin/accounts/${owner.account_id}`;
    expect((await operator.get(path)).text).not.toContain('Customer');
    const first = okBody<KeyPageView>(await operator.get(`${path}/keys?state=present`));
    expect([first.data.length, first.has_more]).toEqual([page_size, true]);
    const answer = okBody<KeyPageView>(await operator.get(`${path}/keys?search=Customer%200042`));
    expect(answer.data.map(({ name }) => name)).toEqual(['Customer 0042']);
    expect((await owner.get(`${path}/keys`)).status).toBe(404);
  });
});
