import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { newId, type IdPrefix } from '../../src/lib/ids.ts';
import { listEndpoints } from '../../src/server.ts';
import { ownerOfNew, type Someone } from '../dashboard/people.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel } from '../helpers/catalog.ts';
import { depth } from '../helpers/depth.ts';
import type { Seen } from '../helpers/person.ts';

/** Nothing of one account is in the dashboard of another: every route × method, whatever ids are asked for. */

/** Stands in whatever the victim has; no answer to anybody else may show it. */
const note = 'note-of-the-victim';

/** The run of the last one goes on for longer than all tests of this file. */
const yaml = `
version: 1
${limits({ failed_per_24h: 100_000 })}
models:${mediaModel({
  id: 'test/long',
  routes: ['{ provider: sandbox, upstream_model: image, timeout: { total: 24h } }'],
})}
`;

let service: TestApp;
let attacker: Someone;
let victim: Someone;
let client: Client;
/** Of the victim, by what they are called in paths. */
let ids: Record<string, string[]>;
/** The victim's view of it all, which nothing below may change. */
let before: string;

beforeAll(async () => {
  service = await startTestApp({ yaml });
  attacker = await ownerOfNew(service, 'Attacker');
  victim = await ownerOfNew(service, note);
  client = await service.client({ account_id: victim.account_id, limit: '76543.21' });
  const tasks = await Promise.all(['x', '[[fail]] x'].map((prompt) => create(prompt, '?wait=120')));
  const running = await create('[[delay 24h]] x', '', 'test/long');
  await vi.waitUntil(async () => (await client.call('GET', `/v1/tasks/${running}`)).json.status === 'running', {
    timeout: 120_000,
  });
  const chat = await client.call('POST', '/v1/chat/completions', {
    model: 'sandbox/chat',
    messages: [{ role: 'user', content: note }],
  });
  // Its record is written a moment later; a state from before that would differ from every later one.
  const request_id = chat.headers.get('x-request-id') ?? '';
  await vi.waitUntil(async () => (await victim.get(`${victim.base}/chats`)).text.includes(request_id), {
    timeout: 120_000,
  });
  const rows = await service.app.db.query<{ id: string }>('select id from deliveries where account_id = $1', [
    victim.account_id,
  ]);
  ids = {
    tasks: [...tasks, running],
    chats: [request_id],
    keys: [client.key_id],
    deliveries: rows.map(({ id }) => id),
    members: [victim.user_id],
  };
  before = await stateOfVictim();
});

afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
});

async function create(prompt: string, query: string, model = 'sandbox/image'): Promise<string> {
  const input = { prompt: `${prompt} ${note}`, width: 16, height: 16 };
  const { json } = await client.call('POST', `/v1/generate${query}`, {
    model,
    input,
    metadata: { note },
  });
  return json.id;
}

const endpoints = listEndpoints().filter(({ path }) => path.startsWith('/dash/accounts/{account}'));
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const matrix = [...new Set(endpoints.map(({ path }) => path))].flatMap((path) =>
  methods.map((method) => ({
    method,
    path,
    is_answered: endpoints.some((each) => each.method === method && each.path === path),
  })),
);

const prefixes: readonly IdPrefix[] = ['task', 'acct', 'key', 'req', 'dlv', 'user', 'member'];

/** An id of the same form that nobody has. */
function unknownLike(id: string): string {
  const prefix = prefixes.find((each) => id.startsWith(`${each}_`)) ?? 'task';
  return newId(prefix);
}

function fill(path: string, account: string, id: string): string {
  return path
    .replace('{account}', account)
    .replace(/\{\+?\w+\}/, id)
    .replaceAll(/\{\+?\w+\}/g, '0');
}

/** Returns an answer without what is different in every answer. */
function answerWithout({ status, text }: Seen, ...words: string[]): [number, string] {
  const plain = words.reduce((so_far, id) => so_far.replaceAll(id, 'ID'), text);
  return [status, plain.replaceAll(/req_\w+/g, 'REQ')];
}

async function stateOfVictim(): Promise<string> {
  const reads = ['/balance', '/tasks', '/chats', '/keys', ...(ids['tasks'] ?? []).map((id) => `/tasks/${id}`)];
  const answers = await Promise.all(reads.map((path) => victim.get(victim.base + path)));
  // The last use of a key is written seconds later.
  return JSON.stringify(
    answers.map(({ status, text }) => [status, text.replaceAll(/"last_used_at":("[^"]*"|null)/g, '')]),
  );
}

describe.each(matrix)('$method $path', ({ method, path, is_answered }) => {
  const body = method === 'GET' ? undefined : {};
  const allIds = () => Object.values(ids).flat();
  /** A method that the path does not have is refused before anybody looks at the id. */
  const tried = () => (is_answered ? allIds() : allIds().slice(0, depth(1, undefined)));

  test('answers for an account of others as for an unknown account', async () => {
    for (const id of tried()) {
      const nobody = newId('acct');
      const foreign = await attacker.send(method, fill(path, victim.account_id, id), body);
      const unknown = await attacker.send(method, fill(path, nobody, id), body);
      expect(answerWithout(foreign, victim.account_id)).toEqual(answerWithout(unknown, nobody));
      expect([404, 405]).toContain(foreign.status);
      expect(foreign.text).not.toContain(note);
    }
  });

  test('answers for ids of others as for unknown ids, and changes nothing', async () => {
    for (const id of /\{\+?(?!account\})\w+\}/.test(path) ? tried() : []) {
      const nobody = unknownLike(id);
      const foreign = await attacker.send(method, fill(path, attacker.account_id, id), body);
      const unknown = await attacker.send(method, fill(path, attacker.account_id, nobody), body);
      expect(answerWithout(foreign, id)).toEqual(answerWithout(unknown, nobody));
      expect(foreign.text).not.toContain(note);
    }
    expect(is_answered ? await stateOfVictim() : before).toBe(before);
  });

  test('needs a session: a key opens it no more than no key', async () => {
    const at = service.url + fill(path, victim.account_id, allIds()[0] ?? '');
    for (const headers of [{}, { authorization: `Bearer ${client.key}` }, { 'x-api-key': client.key }]) {
      const init = {
        method,
        headers: { origin: service.url, ...headers },
        ...(body && { body: JSON.stringify(body) }),
      };
      const response = await fetch(at, init);
      expect([401, 405]).toContain(response.status);
      expect(await response.text()).not.toContain(note);
    }
  });
});

test('a search finds nothing of others, by their words or by their ids', async () => {
  const [of_victim, of_attacker] = [victim, attacker].map(({ base }) => `${base}/search?q=`);
  for (const text of [note, 'note', ...Object.values(ids).flat(), victim.account_id]) {
    const { status, json } = await attacker.get(of_attacker + encodeURIComponent(text));
    expect([status, json], text).toEqual([200, { data: [], is_partial: false }]);
  }
  const own = (await victim.get(of_victim + encodeURIComponent(note))).json as { data: { kind: string }[] };
  expect(own.data.filter(({ kind }) => kind === 'task')).toHaveLength(3);
});

test('nothing of the victim has changed after all of it', async () => {
  expect(await stateOfVictim()).toBe(before);
});

test('the matrix of dashboard endpoints is not empty', async () => {
  expect(endpoints.length).toBeGreaterThan(10);
  expect((await victim.get(`${victim.base}/tasks`)).text).toContain(note);
});
