import { afterAll, beforeAll, expect, it } from 'vitest';
import type { KeysView, NewKeyView, ProjectsView } from '../../src/dashboard/views/keys.ts';
import type { UsageView } from '../../src/dashboard/views/usage.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { commandsBeside } from '../cli/medley.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from './people.ts';

let test: TestApp;
let owner: Someone;
let stranger: Someone;

beforeAll(async () => {
  test = await startTestApp();
  [owner, stranger] = await Promise.all([ownerOfNew(test), ownerOfNew(test, 'Foreign')]);
});

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

const projectsOf = async (who: Someone) => okBody<ProjectsView>(await who.get(`${who.base}/projects`)).data;

async function create(name: string, who = owner): Promise<string> {
  return okBody<{ id: string }>(await who.post(`${who.base}/projects`, { name })).id;
}

const createKey = async (body: object) => okBody<NewKeyView>(await owner.post(`${owner.base}/keys`, body));

function generate(secret: string): Promise<Response> {
  return fetch(`${test.url}/v1/generate?wait=60`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox/audio', input: { prompt: 'x', duration: 5 } }),
  });
}

it('every account has the project Default, and its keys are there', async () => {
  const other = await ownerOfNew(test, 'Without projects');
  const { key } = okBody<NewKeyView>(await other.post(`${other.base}/keys`, { name: 'First' }));
  expect(key.project).toEqual({ id: 'default', name: 'Default' });
  expect(await projectsOf(other)).toMatchObject([
    { id: 'default', is_default: true, keys: 1, spent: { exact: '0.000000' } },
  ]);
});

it('a key is made in a project and moved to another, and its spending stays where it was', async () => {
  const [shop, lab] = [await create('  Shop '), await create('Lab')];
  const { key, secret } = await createKey({ name: 'Web', project: shop });
  expect(key.project).toEqual({ id: shop, name: 'Shop' });
  expect((await generate(secret)).status).toBe(202);
  const moved = okBody<{ project: object }>(
    await owner.send('PATCH', `${owner.base}/keys/${key.id}`, { project: lab }),
  );
  expect(moved.project).toEqual({ id: lab, name: 'Lab' });
  expect(okBody<KeysView>(await owner.get(`${owner.base}/keys`)).data[0]?.project.name).toBe('Lab');
  expect((await generate(secret)).status).toBe(202);
  expect((await generate(secret)).status).toBe(202);

  const usage = okBody<UsageView>(await owner.get(`${owner.base}/usage?group=project`));
  expect(usage.rows).toMatchObject([
    { id: lab, name: 'Lab', count: 2, cost: { exact: '0.100000' } },
    { id: shop, name: 'Shop', count: 1, cost: { exact: '0.050000' } },
  ]);
  const only = okBody<UsageView>(await owner.get(`${owner.base}/usage?group=model&project=${shop}`));
  expect(only.total).toMatchObject({ count: 1, cost: { exact: '0.050000' } });
  const charges = await owner.get(`${owner.base}/usage/charges.csv?project=${shop}`);
  expect(charges.text.trimEnd().split('\r\n')).toHaveLength(2);
  expect(charges.text).toContain(`,Web,${shop},0.050000`);
  const answer = await fetch(`${test.url}/v1/usage?group_by=project`, {
    headers: { authorization: `Bearer ${secret}` },
  });
  expect(await answer.json()).toMatchObject({
    data: [
      { project: lab, count: 2 },
      { project: shop, count: 1 },
    ].toSorted((a, b) => (a.project < b.project ? -1 : 1)),
  });
  expect((await projectsOf(owner)).map(({ name, keys, spent }) => [name, keys, spent.exact])).toEqual([
    ['Default', 0, '0.000000'],
    ['Shop', 0, '0.050000'],
    ['Lab', 1, '0.100000'],
  ]);
});

it('a name is taken once, in any case, but again when its project is archived; each mistake names its field', async () => {
  const id = await create('Once');
  const again = await owner.post(`${owner.base}/projects`, { name: 'ONCE' });
  expect([again.status, again.json]).toMatchObject([400, { error: { param: 'name' } }]);
  expect((await owner.post(`${owner.base}/projects`, { name: 'default' })).status).toBe(400);
  expect((await owner.post(`${owner.base}/projects`, { name: ' ' })).status).toBe(400);
  okBody(await owner.send('PATCH', `${owner.base}/projects/${id}`, { name: 'once' })); // its own
  okBody(await owner.post(`${owner.base}/projects/${id}/archive`, {}));
  const second = await create('Once');
  expect((await owner.send('PATCH', `${owner.base}/projects/${id}`, { name: 'Late' })).status).toBe(404);
  expect((await owner.send('PATCH', `${owner.base}/projects/default`, { name: 'Mine' })).status).toBe(409);
  expect((await owner.post(`${owner.base}/projects/default/archive`, {})).status).toBe(409);
  const wrong = await owner.post(`${owner.base}/keys`, { name: 'A key', project: id });
  expect([wrong.status, wrong.json]).toMatchObject([400, { error: { param: 'project' } }]);
  const { key } = await createKey({ name: 'Busy', project: second });
  expect((await owner.post(`${owner.base}/projects/${second}/archive`, {})).status).toBe(409);
  okBody(await owner.send('DELETE', `${owner.base}/keys/${key.id}`));
  okBody(await owner.post(`${owner.base}/projects/${second}/archive`, {}));
});

it('projects of other accounts are not there, and a viewer changes none', async () => {
  const [own, foreign] = [await create('Mine'), await create('Theirs', stranger)];
  expect((await projectsOf(owner)).map(({ id }) => id)).not.toContain(foreign);
  expect((await owner.send('PATCH', `${owner.base}/projects/${foreign}`, { name: 'Mine now' })).status).toBe(404);
  expect((await owner.post(`${owner.base}/keys`, { name: 'A key', project: foreign })).status).toBe(400);
  const viewer = await memberOf(test, owner, 'viewer');
  expect((await viewer.get(`${owner.base}/projects`)).status).toBe(200);
  expect((await viewer.post(`${owner.base}/projects`, { name: 'No' })).status).toBe(403);
  expect((await viewer.post(`${owner.base}/projects/${own}/archive`, {})).status).toBe(403);
});

it('the command line makes, renames, lists and archives projects, and moves keys', async () => {
  const { ok, fails } = commandsBeside(test);
  const { account_id, key_id } = await test.client();
  const whose = ['--account', account_id];
  const { id } = await ok('project', 'create', 'Shop', ...whose);
  expect(await ok('project', 'rename', id, 'Store', ...whose)).toEqual({ id, name: 'Store' });
  expect(await ok('project', 'move', key_id, id)).toEqual({ id: key_id, project: id });
  expect((await ok('key', 'list', ...whose)).keys).toMatchObject([{ id: key_id, project: id }]);
  expect(await ok('key', 'create', ...whose, '--project', id)).toMatchObject({ project: id });
  await fails(1, 'project', 'archive', id, ...whose);
  await ok('project', 'move', key_id, 'default');
  expect(await ok('project', 'list', ...whose)).toEqual({
    projects: [
      { id: 'default', name: 'Default', status: 'active' },
      { id, name: 'Store', status: 'active' },
    ],
  });
  const { entries } = await test.app.db
    .query<{ entries: string }>(
      `select string_agg(action, ' ' order by id) as entries from audit_entries where account_id = $1 and subject = $2`,
      [account_id, id],
    )
    .then(([row]) => row ?? { entries: '' });
  expect(entries).toBe('project.create project.rename');
});
