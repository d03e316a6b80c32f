import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport, type CallToolResult } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NewKeyView } from '../../src/dashboard/views/keys.ts';
import { newId } from '../../src/lib/ids.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { memberOf, okBody, ownerOfNew, type Someone } from './people.ts';

/** The tools of agents with a key of a member of some projects: what the key may do below /v1, they do. */

const cli = join(import.meta.dirname, '../../src/cli.ts');
const marker = 'Zanzibar';

let test: TestApp;
let owner: Someone;
let own: Things;
let other: Things;
let limited: string;

/** Ids of what the key of a project has made. `slow`: a task that runs until it is canceled. */
type Things = { project: string; secret: string; task: string; slow: string };

beforeAll(async () => {
  test = await startTestApp({ yaml: 'version: 1\nnet: { allow: ["127.0.0.0/8"] }\n' });
  owner = await ownerOfNew(test, 'Agency', 90_000_000n);
  own = await makeThings('Shop');
  other = await makeThings(marker);
  const developer = await memberOf(test, owner, 'developer');
  const limit = { projects: [own.project] };
  okBody(await owner.send('PATCH', `${owner.base}/team/${developer.user_id}`, limit));
  const created = await developer.post(`${developer.base}/keys`, { name: 'Theirs', project: own.project });
  limited = okBody<NewKeyView>(created).secret;
}, 240_000);

afterAll(async () => {
  await Promise.all([own, other].map(({ secret, slow }) => call(secret, `/v1/tasks/${slow}/cancel`, {})));
  await expectExactBooks(test.app);
  await test.stop();
});

async function call(key: string, path: string, body?: object): Promise<{ id: string; status: string }> {
  const response = await fetch(test.url + path, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${text}`);
  return JSON.parse(text) as { id: string; status: string };
}

async function makeThings(name: string): Promise<Things> {
  const { id: project } = okBody<{ id: string }>(await owner.post(`${owner.base}/projects`, { name }));
  const { secret } = okBody<NewKeyView>(await owner.post(`${owner.base}/keys`, { name: `Key of ${name}`, project }));
  const body = (prompt: string) => ({ model: 'sandbox/image', input: { prompt, width: 16, height: 16 } });
  const task = await call(secret, '/v1/generate?wait=60', body(`A ${name}`));
  const slow = await call(secret, '/v1/generate', body(`[[delay 600s]] A slow ${name}`));
  return { project, secret, task: task.id, slow: slow.id };
}

async function overHttp(key: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${test.url}/mcp`), { requestInit }));
  return client;
}

async function overStdio(key: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  const env = { PATH: process.env['PATH'] ?? '', MEDLEY_URL: test.url, MEDLEY_API_KEY: key };
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [cli, 'mcp'], env, stderr: 'inherit' }),
  );
  return client;
}

function textOf({ content: [first] }: CallToolResult): string {
  if (first?.type !== 'text') throw new Error('an answer begins with a text');
  return first.text;
}

/** Nothing of the other project is in an answer. */
function expectClean(answer: CallToolResult): void {
  const text = JSON.stringify(answer);
  expect([marker, other.task, other.slow, other.project].filter((each) => text.includes(each))).toEqual([]);
}

describe.each([
  ['over HTTP', overHttp],
  ['over stdin and stdout', overStdio],
])('an agent with a limited key %s', (_, open) => {
  let agent: Client;

  beforeAll(async () => {
    agent = await open(limited);
  });
  afterAll(() => agent.close());

  const use = (name: string, args: Record<string, unknown> = {}) => agent.callTool({ name, arguments: args });

  it('lists the tasks of its project, and no others', async () => {
    for (const args of [{}, { limit: 100 }, { status: 'running' }, { status: 'succeeded' }, { after: own.slow }]) {
      const tasks = await use('list_tasks', args);
      expect(tasks.isError, textOf(tasks)).toBeFalsy();
      expectClean(tasks);
    }
    expect(textOf(await use('list_tasks'))).toContain(own.task);
  });

  it('gets for a task of another project what it gets for one that there never was', async () => {
    const none = newId('task');
    const bare = (answer: CallToolResult) => JSON.stringify(answer).replaceAll(/(?:task|req)_\w+/g, 'ID');
    for (const [name, of_other, of_none] of [
      ['get_task', { task_id: other.task }, { task_id: none }],
      ['get_task', { task_id: other.slow }, { task_id: none }],
      ['cancel_task', { task_id: other.slow }, { task_id: none }],
      ['list_tasks', { after: other.task }, { after: none }],
    ] as const) {
      const refused = await use(name, of_other);
      expect([name, refused.isError, bare(refused)]).toEqual([name, true, bare(await use(name, of_none))]);
    }
    expect(['queued', 'running']).toContain((await call(other.secret, `/v1/tasks/${other.slow}`)).status);
  });

  it('makes what its project then has, with the files, and sees no balance', async () => {
    const input = { prompt: 'Mine', width: 16, height: 16 };
    const estimate = textOf(await use('estimate', { model: 'sandbox/image', input }));
    expect(JSON.parse(estimate)).toMatchObject({ available: null, allowed: true });
    const task = await use('generate', { model: 'sandbox/image', input, max_cost: '1' });
    expect(task.content.map(({ type }) => type)).toEqual(['text', 'resource_link', 'image']);
    const { id } = JSON.parse(textOf(task)) as { id: string };
    expect((await call(own.secret, `/v1/tasks/${id}`)).status).toBe('succeeded');
    const messages = [{ role: 'user', content: 'Hello' }];
    expect((await use('chat', { model: 'sandbox/chat', messages })).isError).toBeFalsy();
    expect((await use('list_models')).isError).toBeFalsy();
  });
});

it('has no tool that reads the balance over HTTP, and is refused by that of a program', async () => {
  const [agent, wide, program] = await Promise.all([overHttp(limited), overHttp(own.secret), overStdio(limited)]);
  const names = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name);
  const all = await names(wide);
  expect(all).toContain('get_balance');
  expect(await names(agent)).toEqual(all.filter((name) => name !== 'get_balance'));
  const refused = await program.callTool({ name: 'get_balance', arguments: {} });
  expect([refused.isError, textOf(refused)]).toEqual([true, expect.stringContaining('limited_to_projects')]);
  await Promise.all([agent, wide, program].map((client) => client.close()));
});
