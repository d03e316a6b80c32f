import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isOpenToLimited } from '../../src/accounts/limited-keys.ts';
import { addressesOf } from '../../src/accounts/members.ts';
import { dashboardEndpoints } from '../../src/dashboard/endpoints.ts';
import type { ActivityPage, ContentAccesses } from '../../src/dashboard/views/activity.ts';
import type { BudgetsView } from '../../src/dashboard/views/budgets.ts';
import type { Me } from '../../src/dashboard/views/common.ts';
import type { HomeView } from '../../src/dashboard/views/home.ts';
import type { KeysView, NewKeyView, ProjectsView } from '../../src/dashboard/views/keys.ts';
import type { InvitedView, TeamView } from '../../src/dashboard/views/settings.ts';
import type { UsageView } from '../../src/dashboard/views/usage.ts';
import { listEndpoints } from '../../src/server.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { browserOf, type Seen } from '../helpers/person.ts';
import { moreEvents, openLivePage, type LivePage } from './live-rows.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from './people.ts';

/** Members who are limited to projects. Another project has this in everything that it has. */
const marker = 'Zanzibar';

let test: TestApp;
let owner: Someone;
let limited: Someone;
let own_project: string;
/** Ids in the two projects, by the name of the thing. */
let own: Things;
let other: Things;
let own_key: NewKeyView;

type Things = { project: string; key: string; secret: string; task: string; chat: string; file: string };

beforeAll(async () => {
  test = await startTestApp({ yaml: 'version: 1\nnet: { allow: ["127.0.0.0/8"] }\n' });
  owner = await ownerOfNew(test, 'Agency', 90_000_000n);
  own = await makeThings('Shop');
  other = await makeThings(marker);
  own_project = own.project;
  const account_wide: [string, object][] = [
    ['/budgets', { name: marker, scope: 'account', period: 'month', amount: '50', kind: 'soft' }],
    ['/webhooks/endpoints', { url: `https://127.0.0.1/${marker}`, events: ['task.succeeded'] }],
    ['/prompts', { name: marker, prompt: { model: 'sandbox/chat', text: marker } }],
    ['/team/invitations', { email: `${marker}@example.com`, role: 'viewer' }],
    ['/feedback', { reference_id: other.task, score: -1 }],
  ];
  for (const [path, body] of account_wide) {
    const { status, text } = await owner.post(owner.base + path, body);
    if (status >= 300) throw new Error(`${path} was answered ${status}: ${text}`);
  }
  limited = await memberOf(test, owner, 'developer');
  await limit([own.project]);
}, 240_000);

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

const limit = async (projects: string[] | null, who = limited) =>
  okBody(await owner.send('PATCH', `${owner.base}/team/${who.user_id}`, { projects }));

async function call(secret: string, path: string, body?: object, headers: Record<string, string> = {}) {
  const response = await fetch(test.url + path, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${secret}`, ...(body && { 'content-type': 'application/json' }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text, id: response.headers.get('x-request-id') ?? '' };
}

async function upload(secret: string, name: string): Promise<string> {
  const form = new FormData();
  form.set('purpose', 'user_data');
  form.set('file', new Blob([`${name} in a file`], { type: 'text/plain' }), `${name}.txt`);
  const headers = { authorization: `Bearer ${secret}` };
  const response = await fetch(`${test.url}/v1/files`, { method: 'POST', headers, body: form });
  const text = await response.text();
  expect(response.status, text).toBeLessThan(300);
  return (JSON.parse(text) as { id: string }).id;
}

/** A project with a key that stores contents, a task, a call and a file, all with its name in them. */
async function makeThings(name: string): Promise<Things> {
  const project = okBody<{ id: string }>(await owner.post(`${owner.base}/projects`, { name })).id;
  const log_content = { keep_days: 7, redact: [], patterns: [] };
  const response = await owner.post(`${owner.base}/keys`, { name: `Key of ${name}`, project, log_content });
  const { key, secret } = okBody<NewKeyView>(response);
  const prompt = { model: 'sandbox/image', input: { prompt: `A ${name} at noon`, width: 16, height: 16 } };
  const created = await call(
    secret,
    '/v1/generate?wait=60',
    { ...prompt, metadata: { [name]: name, tags: name } },
    {
      'idempotency-key': `shared ${name}`,
    },
  );
  expect(created.status, created.text).toBeLessThan(300);
  const messages = [{ role: 'user', content: `Tell me of ${name}` }];
  const answered = await call(secret, '/v1/chat/completions', { model: 'sandbox/chat', messages });
  expect(answered.status, answered.text).toBe(200);
  await test.app.contents.flush();
  const budget = { name: `Budget of ${name}`, period: 'month', amount: '50', kind: 'soft' };
  for (const subject of [
    { scope: 'project', subject: project },
    { scope: 'key', subject: key.id },
  ]) {
    okBody(await owner.post(`${owner.base}/budgets`, { ...budget, ...subject }));
  }
  const task = (JSON.parse(created.text) as { id: string }).id;
  return { project, key: key.id, secret, task, chat: answered.id, file: await upload(secret, name) };
}

/** Every route of an account, and what a member of projects gets of it. A route that is not here fails the test. */
const routes: { readonly [route: string]: 'own' | 'same' | 'refused' } = {
  'GET /choices': 'own',
  'GET /choices/keys': 'own',
  'GET /search': 'own',
  'GET /home': 'own',
  'GET /activity': 'own',
  'GET /activity.csv': 'own',
  'GET /activity.jsonl': 'own',
  'GET /activity/events': 'own',
  'GET /tasks': 'own',
  'GET /tasks/{id}': 'own',
  'GET /tasks/{id}/files/{index}': 'own',
  'POST /tasks/{id}/cancel': 'own',
  'GET /chats': 'own',
  'GET /chats/{id}': 'own',
  'POST /chats/{id}/content': 'own',
  'DELETE /chats/{id}/content': 'own',
  'GET /chats/{id}/content/accesses': 'refused',
  'GET /contents.jsonl': 'own',
  'POST /feedback': 'own',
  'GET /usage': 'own',
  'GET /usage/table.csv': 'own',
  'GET /usage/charges.csv': 'own',
  'GET /refusals': 'own',
  'GET /usage/mail': 'refused',
  'PUT /usage/mail': 'refused',
  'GET /keys': 'own',
  'POST /keys': 'own',
  'PATCH /keys/{id}': 'own',
  'POST /keys/{id}/rotate': 'own',
  'DELETE /keys/{id}': 'own',
  'GET /projects': 'own',
  'POST /projects': 'refused',
  'PATCH /projects/{id}': 'refused',
  'POST /projects/{id}/archive': 'refused',
  'POST /estimate': 'own',
  'POST /generate': 'own',
  'POST /files': 'own',
  'POST /chat/completions': 'own',
  'POST /chat/completions/estimate': 'own',
  'POST /chat/messages': 'own',
  'POST /chat/messages/estimate': 'own',
  'POST /rerank': 'own',
  'POST /rerank/estimate': 'own',
  'POST /moderations': 'own',
  'POST /moderations/estimate': 'own',
  'GET /models': 'own',
  'GET /models/{+id}': 'own',
  'GET /model-speeds': 'own',
  'GET /model-costs': 'same',
  'GET /price-changes': 'same',
  'GET /views': 'same',
  'POST /views': 'same',
  'POST /views/remove': 'same',
  'GET /prompts': 'refused',
  'GET /prompts/{id}': 'refused',
  'POST /prompts': 'refused',
  'POST /prompts/{id}': 'refused',
  'POST /prompts/{id}/remove': 'refused',
  'GET /conversations': 'same',
  'PUT /conversations': 'same',
  'GET /conversations/{id}': 'same',
  'PUT /conversations/{id}': 'same',
  'DELETE /conversations/{id}': 'same',
  'GET /conversations/{id}/files/{file}': 'same',
  'PUT /conversations/{id}/files/{file}': 'same',
  'GET /speed': 'own',
  'GET /balance': 'refused',
  'GET /ledger': 'refused',
  'GET /ledger.csv': 'refused',
  'GET /billing': 'refused',
  'PUT /billing/details': 'refused',
  'PUT /billing/alert': 'refused',
  'POST /billing/top-up': 'refused',
  'GET /invoices': 'refused',
  'GET /invoices/{number}/pdf': 'refused',
  'GET /invoices/{number}/csv': 'refused',
  'GET /invoices/{number}/json': 'refused',
  'GET /budgets': 'own',
  'POST /budgets': 'refused',
  'PATCH /budgets/{id}': 'refused',
  'DELETE /budgets/{id}': 'refused',
  'GET /alerts': 'refused',
  'PUT /alerts': 'refused',
  'POST /alerts/test': 'refused',
  'POST /device-login': 'refused',
  'GET /audit': 'refused',
  'GET /audit.csv': 'refused',
  'GET /audit.jsonl': 'refused',
  'GET /webhooks': 'refused',
  'POST /webhooks/secret': 'refused',
  'POST /webhooks/secret/rotate': 'refused',
  'POST /webhooks/test': 'refused',
  'GET /webhooks/endpoints': 'refused',
  'POST /webhooks/endpoints': 'refused',
  'PATCH /webhooks/endpoints/{id}': 'refused',
  'DELETE /webhooks/endpoints/{id}': 'refused',
  'POST /webhooks/endpoints/{id}/rotate': 'refused',
  'POST /webhooks/endpoints/{id}/test': 'refused',
  'POST /webhooks/endpoints/{id}/replay': 'refused',
  'GET /deliveries': 'refused',
  'GET /deliveries/{id}': 'refused',
  'POST /deliveries/{id}/resend': 'refused',
  'GET /team': 'refused',
  'PUT /name': 'refused',
  'PUT /team/second-factor': 'refused',
  'PATCH /team/{user}': 'refused',
  'DELETE /team/{user}': 'refused',
  'POST /team/invitations': 'refused',
  'DELETE /team/invitations/{id}': 'refused',
};

const prefix = '/dash/accounts/{account}';

const accountRoutes = () =>
  dashboardEndpoints().flatMap((endpoint) => {
    if (!endpoint.path.startsWith(prefix) || endpoint.session === undefined) return [];
    const { method, path, limited: is } = endpoint;
    return [{ name: `${method} ${path.slice(prefix.length)}`, method, path, is: is ?? 'refused' }];
  });

const codeOf = ({ json }: Seen) => (json as { error?: { code?: string } } | undefined)?.error?.code;

/** Nothing of the other project is in an answer but what the request itself said. */
function expectClean({ text }: Seen, name: string): void {
  const leaks = [marker, ...Object.values(other)].filter((each) => text.toLowerCase().includes(each.toLowerCase()));
  expect(leaks, `${name} answered ${text.slice(0, 400)}`).toEqual([]);
}

/** Queries that widen an answer as far as it goes. */
const queries: { readonly [route: string]: readonly string[] } = {
  'GET /choices/keys': ['', '?search=zanz', '?search=key', '?search=key_'],
  'GET /keys': ['', '?search=zanz', '?search=key', '?project=default', '?state=ended'],
  'GET /search': ['?q=noon', '?q=key', '?q=tell', '?q=zanz'],
  'GET /activity': ['', '?limit=100&sort=oldest', '?sort=cost', '?of=tasks&q=noon', '?project=default'],
  'GET /usage': ['', ...['key', 'project', 'user', 'tag', `metadata.x`].map((group) => `?group=${group}`)],
  'GET /usage/table.csv': ['?group=key', '?group=project'],
  'GET /contents.jsonl': ['', '?form=messages', '?model=sandbox/chat&outcome=ok'],
  'GET /speed': ['', ...['key', 'user', 'tag', 'metadata.x'].map((group) => `?group=${group}`)],
  'GET /refusals': ['', '?key=key_1', '?project=default'],
  'GET /models/{+id}': [''],
  'GET /model-costs': ['?models=sandbox/chat&units={"input_token":"1"}'],
};

describe('a member who is limited to a project', () => {
  it('gets of each route of the account what this list says, and no route is missing', () => {
    expect(Object.fromEntries(accountRoutes().map(({ name, is }) => [name, is]))).toEqual(routes);
  });

  it('is refused by every route that is about the whole account', async () => {
    for (const { name, method, path, is } of accountRoutes()) {
      if (is !== 'refused') continue;
      const at = path.replace('{account}', owner.account_id).replaceAll(/\{\+?\w+\}/g, other.task);
      const refused = await limited.send(method, at, method === 'GET' ? undefined : {});
      expect([name, refused.status, codeOf(refused)]).toEqual([name, 403, 'limited_to_projects']);
    }
  });

  it('finds no word and no id of another project in any answer', async () => {
    const things: readonly [RegExp, keyof Things][] = [
      [/^\/tasks\//, 'task'],
      [/^\/chats\//, 'chat'],
      [/^\/keys\//, 'key'],
    ];
    let [answered, leaked] = [0, 0];
    for (const { name, path, is, method } of accountRoutes()) {
      if (is === 'refused' || method !== 'GET') continue;
      const short = path.slice(prefix.length);
      if (short.startsWith('/conversations/')) continue; // the person's own: conversations.test.ts
      if (short === '/activity/events') continue; // has no end: see below
      const thing = things.find(([form]) => form.test(short))?.[1];
      const value = thing ? own[thing] : 'sandbox/chat';
      const at = (id: string) => owner.base + short.replace(/\{\+?id\}/, id).replace('{index}', '0');
      for (const query of queries[name] ?? ['']) {
        const answer = await limited.get(at(value) + query);
        expect([name, query, answer.status], answer.text.slice(0, 300)).toEqual([name, query, 200]);
        expectClean(answer, name + query);
        answered += 1;
        if ((await owner.get(at(value) + query)).text.includes(marker)) leaked += 1;
      }
      if (!thing) continue;
      const stranger = await limited.get(at(other[thing]));
      expect([name, stranger.status]).toEqual([name, 404]);
    }
    expect(answered).toBeGreaterThan(25);
    expect(leaked).toBeGreaterThan(12); // those are answers in which an owner finds it
  });

  it('finds none at routes without an account, either', async () => {
    for (const endpoint of dashboardEndpoints()) {
      const { path, method } = endpoint;
      if (endpoint.session === undefined || path.startsWith(prefix) || method !== 'GET') continue;
      expectClean(await limited.get(path.replaceAll(/\{\+?\w+\}/g, other.task)), path);
    }
  });

  it('sees what is of their project, as before', async () => {
    const { data } = okBody<ActivityPage>(await limited.get(`${limited.base}/activity`));
    expect(data.map(({ id }) => id).toSorted()).toEqual([own.task, own.chat].toSorted());
    const usage = okBody<UsageView>(await limited.get(`${limited.base}/usage?group=project`));
    expect(usage.rows.map(({ id }) => id)).toEqual([own.project]);
    const all = okBody<UsageView>(await owner.get(`${owner.base}/usage?project=${own.project}`));
    expect([usage.total.count, usage.total.cost]).toEqual([all.total.count, all.total.cost]);
    const projects = okBody<ProjectsView>(await limited.get(`${limited.base}/projects`)).data;
    expect(projects.map(({ name }) => name)).toEqual(['Shop']);
    const ofMonth = async () => {
      const month = new Date(test.app.clock.now()).toISOString().slice(0, 7);
      const { total } = okBody<UsageView>(await limited.get(`${limited.base}/usage?from=${month}-01`));
      const home = okBody<HomeView>(await limited.get(`${limited.base}/home`));
      return [home.spend.month.exact === total.cost.exact, month];
    };
    await expect.poll(ofMonth).toEqual([true, expect.any(String)]); // the month may end between the two
    const content = await limited.post(`${limited.base}/chats/${own.chat}/content`, {});
    expect(content.text).toContain('Tell me of Shop');
    expect((await limited.get(`${limited.base}/tasks/${own.task}/files/0`)).status).toBe(200);
    const me = okBody<Me>(await limited.get('/dash/me')).accounts[0];
    expect(me).toMatchObject({ is_limited: true, rights: ['read', 'run', 'keys', 'content'] });
  });

  it('takes the contents of calls of their project along as a file, and the account sees of which projects it was', async () => {
    const linesOf = async (who: Someone, query = '') => {
      const file = await who.get(`${who.base}/contents.jsonl${query}`);
      expect(file.status, file.text).toBe(200);
      return file.text.split('\n').filter((line) => line !== '');
    };
    const own_line = [expect.stringContaining(own.chat)];
    expect(await linesOf(limited)).toEqual(own_line);
    expect(await linesOf(limited, `?project=${own.project}`)).toEqual(own_line);
    for (const query of [`?key=${other.key}`, `?project=${other.project}`])
      expect(await linesOf(limited, query)).toEqual([]);
    expect(await linesOf(owner, `?project=${own.project}`)).toEqual(own_line);
    expect(await linesOf(owner)).toHaveLength(2);
    const at = `${owner.base}/chats/${other.chat}/content/accesses`;
    const { data } = okBody<ContentAccesses>(await owner.get(at));
    expect(data.slice(0, 3).map(({ projects }) => projects)).toEqual([null, null, ['Shop']]); // the newest
  });

  it('sees the budgets of their project and its keys, and no other one', async () => {
    const { data, choices } = okBody<BudgetsView>(await limited.get(`${limited.base}/budgets`));
    expect(data.map(({ subject }) => subject?.id).toSorted()).toEqual([own.project, own.key].toSorted());
    expect(choices).toEqual({ projects: [], members: [] });
  });

  it('changes nothing of another project', async () => {
    const at = (path: string) => limited.base + path;
    const acts: [string, string, object][] = [
      ['POST', `/tasks/${other.task}/cancel`, {}],
      ['POST', `/chats/${other.chat}/content`, {}],
      ['DELETE', `/chats/${other.chat}/content`, {}],
      ['POST', '/feedback', { reference_id: other.chat, score: 1 }],
      ['POST', '/feedback', { reference_id: other.task, score: 1 }],
      ['PATCH', `/keys/${other.key}`, { name: 'Mine' }],
      ['POST', `/keys/${other.key}/rotate`, { overlap_hours: 0 }],
      ['DELETE', `/keys/${other.key}`, {}],
    ];
    for (const [method, path, body] of acts) {
      const refused = await limited.send(method, at(path), body);
      expect([method, path, refused.status], refused.text).toEqual([method, path, 404]);
    }
    for (const project of [other.project, 'default', undefined]) {
      const refused = await limited.post(at('/keys'), { name: 'New', ...(project !== undefined && { project }) });
      expect([project, refused.status]).toEqual([project, 400]);
    }
    const moved = await limited.send('PATCH', at(`/keys/${own.key}`), { project: other.project });
    expect(moved.status).toBe(400);
  });

  it('uses the playground with a key of their project, and sees no balance', async () => {
    const input = { model: 'sandbox/image', input: { prompt: 'A boat', width: 16, height: 16 } };
    const estimate = await limited.post(`${limited.base}/estimate`, input);
    expect(estimate.json).toMatchObject({ ok: true, available: null, obstacle: null });
    const { id } = okBody<{ id: string }>(await limited.post(`${limited.base}/generate`, input));
    const { key } = okBody<{ key: { id: string } }>(await limited.get(`${limited.base}/tasks/${id}`));
    const keys = okBody<KeysView>(await owner.get(`${owner.base}/keys`)).data;
    const own_playground = keys.find((each) => each.id === key.id);
    expect(own_playground).toMatchObject({ kind: 'playground', is_limited: true, project: { id: own.project } });
    const again = okBody<{ id: string }>(await limited.post(`${limited.base}/generate`, input));
    expect(okBody<{ key: object }>(await limited.get(`${limited.base}/tasks/${again.id}`)).key).toEqual(key);
    const listed = okBody<ActivityPage>(await limited.get(`${limited.base}/tasks?source=playground`));
    expect(listed.data.map((line) => line.id).toSorted()).toEqual([id, again.id].toSorted());
    const moved = await owner.send('PATCH', `${owner.base}/keys/${key.id}`, { project: other.project });
    expect(moved.status).toBe(409);
    const of_other = await limited.post(`${limited.base}/chat/completions`, chatWith(other.file));
    expect([of_other.status, of_other.text.includes(marker)]).toEqual([400, false]);
  });
});

const chatWith = (file_id: string) => ({
  model: 'sandbox/chat',
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Read' },
        { type: 'file', file: { file_id } },
      ],
    },
  ],
});

describe('a key of a limited member', () => {
  beforeAll(async () => {
    own_key = okBody(await limited.post(`${limited.base}/keys`, { name: 'Theirs', project: own.project }));
  });

  it('calls models and reads tasks of its project', async () => {
    expect(own_key.key).toMatchObject({ is_limited: true, project: { id: own.project } });
    const input = { model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } };
    const { text, status } = await call(own_key.secret, '/v1/generate', input);
    expect(status, text).toBe(202);
    const { id } = JSON.parse(text) as { id: string };
    for (const task of [id, own.task]) expect((await call(own_key.secret, `/v1/tasks/${task}`)).status).toBe(200);
    expect((await call(own_key.secret, '/v1/models')).status).toBe(200);
    expect((await call(own_key.secret, '/v1/chat/completions', chatWith(own.file))).status).toBe(200);
    const own_file = await upload(own_key.secret, 'Mine');
    expect((await call(own_key.secret, '/v1/chat/completions', chatWith(own_file))).status).toBe(200);
  });

  it('finds nothing of other projects by their ids', async () => {
    const { secret } = own_key;
    expect((await call(secret, `/v1/tasks/${other.task}`)).status).toBe(404);
    for (const act of ['cancel', 'links']) {
      expect((await call(secret, `/v1/tasks/${other.task}/${act}`, {})).status).toBe(404);
    }
    const with_file = await call(secret, '/v1/chat/completions', chatWith(other.file));
    expect([with_file.status, with_file.text.includes(marker)]).toEqual([400, false]);
    const first = await call(other.secret, '/v1/responses', { model: 'sandbox/chat', input: `Of ${marker}` });
    const { id } = JSON.parse(first.text) as { id: string };
    const next = { model: 'sandbox/chat', input: 'And?', previous_response_id: id };
    const continued = await call(secret, '/v1/responses', next);
    expect(continued.text).not.toContain(marker);
    const shortened = await call(secret, '/v1/responses/compact', next);
    expect([shortened.status, shortened.text.includes(marker)], shortened.text).toEqual([200, false]);
    const repeated = { model: 'sandbox/image', input: { prompt: 'Mine', width: 16, height: 16 } };
    const replayed = await call(secret, '/v1/generate', repeated, { 'idempotency-key': `shared ${marker}` });
    expect(replayed.status, replayed.text).toBe(202);
    expect(replayed.text).not.toContain(other.task);
    const same = await call(secret, '/v1/generate', repeated, { 'idempotency-key': `shared ${marker}` });
    expect((JSON.parse(same.text) as { id: string }).id).toBe((JSON.parse(replayed.text) as { id: string }).id);
  });

  it('is refused wherever a key sees the whole account, and no endpoint is open by mistake', async () => {
    const keyed = listEndpoints().filter((endpoint) => !endpoint.public && endpoint.session === undefined);
    const open = keyed.filter(isOpenToLimited).map(({ method, path }) => `${method} ${path}`);
    expect(open.toSorted()).toEqual(open_endpoints.toSorted());
    for (const endpoint of keyed) {
      if (isOpenToLimited(endpoint)) continue;
      const { method, path } = endpoint;
      const at = test.url + path.replaceAll(/\{\+?\w+\}/g, 'x');
      const headers = { authorization: `Bearer ${own_key.secret}`, 'content-type': 'application/json' };
      const response = await fetch(at, { method, headers, ...(method !== 'GET' && { body: '{}' }) });
      const text = await response.text();
      expect([method, path, response.status], text).toEqual([method, path, 403]);
    }
  });

  it('hears that a budget of the account is reached, and neither which one nor how much is left', async () => {
    const budget = { name: marker, scope: 'account', period: 'total', amount: '0', kind: 'hard' };
    const { id } = okBody<{ id: string }>(await owner.post(`${owner.base}/budgets`, budget));
    const input = { model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } };
    const messages = [{ role: 'user', content: 'x' }];
    const chat = { model: 'sandbox/chat', messages };
    for (const [path, body] of [
      ['/v1/generate', input],
      ['/v1/chat/completions', chat],
    ] as const) {
      const refused = await call(own_key.secret, path, body);
      expect([path, refused.status, refused.text.includes('A budget of the account')]).toEqual([path, 403, true]);
      expect(refused.text).not.toContain(marker);
    }
    okBody(await owner.send('DELETE', `${owner.base}/budgets/${id}`));
  });

  it('stays limited when an owner rotates it, and a key that a limited member rotates becomes so', async () => {
    const rotated = await owner.post(`${owner.base}/keys/${own_key.key.id}/rotate`, { overlap_hours: 24 });
    expect(okBody<NewKeyView>(rotated).key.is_limited).toBe(true);
    const wide = await owner.post(`${owner.base}/keys`, { name: 'Wide', project: own.project });
    const { key } = okBody<NewKeyView>(wide);
    expect(key.is_limited).toBe(false);
    const theirs = await limited.post(`${limited.base}/keys/${key.id}/rotate`, { overlap_hours: 0 });
    const { secret, key: narrow } = okBody<NewKeyView>(theirs);
    expect(narrow.is_limited).toBe(true);
    expect((await call(secret, '/v1/balance')).status).toBe(403);
  });
});

/** Each of them answers nothing that another project made: see the tests above, limited-reads.test.ts, limited-files.test.ts and limited-agents.test.ts. */
const open_endpoints = [
  'POST /v1/generate',
  'POST /v1/estimate',
  'GET /v1/files',
  'POST /v1/files',
  'GET /v1/files/{id}',
  'GET /v1/files/{id}/content',
  'DELETE /v1/files/{id}',
  'GET /v1beta/files',
  'GET /v1beta/files/{name}',
  'DELETE /v1beta/files/{name}',
  'POST /upload/v1/files',
  'POST /upload/v1beta/files',
  'POST /v1/uploads',
  'POST /v1/uploads/{id}/parts',
  'POST /v1/uploads/{id}/complete',
  'POST /v1/uploads/{id}/cancel',
  'GET /v1/videos',
  'POST /v1/videos',
  'GET /v1/videos/{id}',
  'GET /v1/videos/{id}/content',
  'DELETE /v1/videos/{id}',
  'POST /v1/videos/edits',
  'POST /v1/videos/extensions',
  'POST /v1/videos/{id}/edits',
  'POST /v1/videos/{id}/extensions',
  'POST /v1/videos/{id}/remix',
  'GET /v1/batches',
  'POST /v1/batches',
  'GET /v1/batches/{id}',
  'POST /v1/batches/{id}/cancel',
  'GET /v1/tasks',
  'GET /v1/tasks/{id}',
  'GET /v1/calls',
  'GET /v1/chat/{request_id}',
  'GET /v1/chat/{request_id}/content',
  'DELETE /v1/chat/{request_id}/content',
  'GET /v1/chat/contents',
  'GET /v1/usage',
  'GET /v1/usage/refusals',
  'GET /v1/speed',
  'POST /v1/feedback',
  'GET /v1/feedback',
  'DELETE /v1/feedback/{id}',
  'POST /mcp',
  'POST /v1/tasks/{id}/cancel',
  'DELETE /v1/tasks/{id}/output',
  'POST /v1/tasks/{id}/links',
  'GET /v1/key',
  'GET /v1/models',
  'GET /v1/models/{+id}',
  'GET /v1beta/models',
  'GET /v1beta/models/{+name}',
  'POST /v1/audio/speech',
  'POST /v1/audio/transcriptions',
  'POST /v1/audio/translations',
  'POST /v1/chat/completions',
  'POST /v1/completions',
  'POST /v1/embeddings',
  'POST /v1/images/edits',
  'POST /v1/images/generations',
  'POST /v1/images/variations',
  'POST /v1/messages',
  'POST /v1/messages/count_tokens',
  'POST /v1/models/{+name}',
  'POST /v1/moderations',
  'POST /v1/rerank',
  'POST /v1/responses',
  'POST /v1/responses/compact',
  'POST /v1/responses/input_tokens',
  'POST /v1beta/models/{+name}',
  'POST /v2/rerank',
];

describe('an owner', () => {
  const team = async () => okBody<TeamView>(await owner.get(`${owner.base}/team`));
  const of = async (who: Someone) => (await team()).members.find(({ user_id }) => user_id === who.user_id);

  it('sees who is limited to what, and finds each change in the audit log', async () => {
    expect(await of(limited)).toMatchObject({ projects: [{ id: own_project, name: 'Shop' }] });
    expect(await of(owner)).toMatchObject({ projects: null });
    const { text } = await owner.get(`${owner.base}/audit?action=member.change`);
    expect(text).toContain(own_project);
  });

  it('lifts the limit and sets it again, from the next request on', async () => {
    const read = async () => (await limited.get(`${limited.base}/chats/${other.chat}`)).status;
    await limit(null);
    expect([await read(), (await limited.get(`${limited.base}/balance`)).status]).toEqual([200, 200]);
    await limit([own_project]);
    expect([await read(), (await limited.get(`${limited.base}/balance`)).status]).toEqual([404, 403]);
  });

  it('takes the last project away, and the member sees nothing', async () => {
    await limit([]);
    const { data } = okBody<ActivityPage>(await limited.get(`${limited.base}/activity`));
    const { data: keys } = okBody<KeysView>(await limited.get(`${limited.base}/keys`));
    const usage = okBody<UsageView>(await limited.get(`${limited.base}/usage`));
    expect([data, keys, usage.total.count]).toEqual([[], [], 0]);
    const run = await limited.post(`${limited.base}/rerank`, { model: 'sandbox/rerank', query: 'x', documents: ['x'] });
    expect([run.status, run.text.includes('no project')]).toEqual([403, true]);
    await limit([own_project]);
  });

  it('cannot be limited, nor can a member for billing, and a limited member becomes neither by mistake', async () => {
    const billing = await memberOf(test, owner, 'billing');
    for (const who of [owner, billing]) {
      const refused = await owner.send('PATCH', `${owner.base}/team/${who.user_id}`, { projects: [own_project] });
      expect([refused.status, refused.text.includes('projects')]).toEqual([400, true]);
    }
    for (const role of ['owner', 'billing']) {
      const refused = await owner.send('PATCH', `${owner.base}/team/${limited.user_id}`, { role });
      expect(refused.status).toBe(409);
    }
    expect(await of(limited)).toMatchObject({ role: 'developer', projects: [{ id: own_project }] });
    const viewer = await owner.send('PATCH', `${owner.base}/team/${limited.user_id}`, { role: 'viewer' });
    expect(viewer.status).toBe(200);
    expect(await of(limited)).toMatchObject({ role: 'viewer', projects: [{ id: own_project }] });
    okBody(await owner.send('PATCH', `${owner.base}/team/${limited.user_id}`, { role: 'developer' }));
  });

  it.each([[['nope']], ['all'], [[7]], [{}], [['default\0']]])(
    'gets 400 for projects that are %j',
    async (projects) => {
      const refused = await owner.send('PATCH', `${owner.base}/team/${limited.user_id}`, { projects });
      expect([refused.status, refused.text.includes('projects')]).toEqual([400, true]);
    },
  );

  it('invites somebody to a project, who sees nothing else from the first moment', async () => {
    const email = 'client@example.com';
    const body = { email, role: 'developer', projects: [own_project] };
    const { link } = okBody<InvitedView>(await owner.post(`${owner.base}/team/invitations`, body));
    expect((await team()).invitations?.find((each) => each.email === email)?.projects).toEqual([
      { id: own_project, name: 'Shop' },
    ]);
    const id = new URL(link).searchParams.get('id') ?? '';
    const browser = browserOf(test.url);
    expect((await browser.get(`/dash/invitations/${id}`)).json).toMatchObject({ projects: ['Shop'] });
    const joined = await browser.post('/auth/join', { id, name: 'Client', password: 'correct horse battery' });
    expect(joined.status, joined.text).toBeLessThan(300);
    expect((await browser.get(`${owner.base}/tasks/${other.task}`)).status).toBe(404);
    expect((await browser.get(`${owner.base}/tasks/${own.task}`)).status).toBe(200);
    expect((await browser.get(`${owner.base}/billing`)).status).toBe(403);
    const refused = await owner.post(`${owner.base}/team/invitations`, {
      ...body,
      role: 'billing',
      email: 'b@example.com',
    });
    expect(refused.status).toBe(400);
  });
});

it('mails about the whole account do not go to members who are limited', async () => {
  await test.app.db.query('update auth."user" set "emailVerified" = true where id = any($1)', [
    [limited.user_id, owner.user_id],
  ]);
  const mailed = await addressesOf(test.app.db, [owner.account_id]);
  expect(mailed.map(({ user_id }) => user_id)).not.toContain(limited.user_id);
  expect(mailed.map(({ user_id }) => user_id)).toContain(owner.user_id);
});

describe('a page with live rows', () => {
  async function listen(who: Someone) {
    const page = await openLivePage(test.url, who);
    expect(page.response.status).toBe(200);
    await moreEvents(page, 0); // as soon as it listens
    return page;
  }

  /** A page that shows the other project: what happens there has been looked at when it hears of it. */
  async function listenToOther() {
    const colleague = await memberOf(test, owner, 'viewer');
    await limit([other.project], colleague);
    return listen(colleague);
  }

  const image = { model: 'sandbox/image', input: { prompt: '[[delay 2s]] live', width: 16, height: 16 } };
  const chat = { model: 'sandbox/chat', messages: [{ role: 'user', content: 'x' }] };

  it("hears of what happens in its member's project, and nothing of what happens in another", async () => {
    const [mine, theirs] = [await listen(limited), await listenToOther()];
    for (const [path, body, moves] of [
      ['/v1/generate?wait=60', image, 2], // begun or running, and ended
      ['/v1/chat/completions', chat, 1],
      ['/v1/chat/completions', chat, 1],
    ] as const) {
      const before = theirs.seen.count;
      expect((await call(other.secret, path, body)).status).toBeLessThan(300);
      await moreEvents(theirs, before + moves - 1);
      expect([path, mine.seen.count]).toEqual([path, 1]);
    }
    const their_count = theirs.seen.count;
    expect((await call(own.secret, '/v1/generate?wait=60', image)).status).toBeLessThan(300);
    await moreEvents(mine, 2);
    const before = mine.seen.count;
    expect((await call(own.secret, '/v1/chat/completions', chat)).status).toBe(200);
    await moreEvents(mine, before);
    expect(theirs.seen.count).toBe(their_count);
    await Promise.all([mine.close(), theirs.close()]);
  });

  it("hears of a key while it is in its member's project, and of no move", async () => {
    const created = await owner.post(`${owner.base}/keys`, { name: 'Wanderer', project: other.project });
    const { key, secret } = okBody<NewKeyView>(created);
    const move = async (project: string) =>
      okBody(await owner.send('PATCH', `${owner.base}/keys/${key.id}`, { project }));
    const [mine, theirs] = [await listen(limited), await listenToOther()];
    const callAndHear = async (by: string, page: LivePage) => {
      const before = page.seen.count;
      expect((await call(by, '/v1/chat/completions', chat)).status).toBe(200);
      await moreEvents(page, before);
    };
    await callAndHear(secret, theirs);
    await move(own.project);
    await callAndHear(other.secret, theirs); // the calls of the moved key are not new
    await callAndHear(other.secret, theirs);
    expect(mine.seen.count).toBe(1);
    await callAndHear(secret, mine);
    await move(other.project);
    const count = mine.seen.count;
    await callAndHear(secret, theirs);
    await callAndHear(other.secret, theirs);
    expect(mine.seen.count).toBe(count);
    await Promise.all([mine.close(), theirs.close()]);
  });

  it('ends when its member is limited, or limited to other projects, and hears of these when it comes back', async () => {
    const someone = await memberOf(test, owner, 'developer');
    const whole = await listen(someone);
    await limit([own_project], someone);
    await whole.end;
    const narrow = await listen(someone);
    await limit([other.project], someone);
    await narrow.end;
    const moved = await listen(someone);
    const before = moved.seen.count;
    expect((await call(other.secret, '/v1/chat/completions', chat)).status).toBe(200);
    await moreEvents(moved, before);
    await limit(null, someone);
    await moved.end;
  });
});
