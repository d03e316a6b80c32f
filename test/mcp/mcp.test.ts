import { join } from 'node:path';
import {
  Client,
  StreamableHTTPClientTransport,
  type CallToolResult,
  type ClientOptions,
} from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { writeCredentials } from '../../src/cli/caller/credentials.ts';
import { expectExactBooks, startTestApp, type Client as Caller, type TestApp } from '../helpers/app.ts';
import { temporaryFolder } from '../helpers/embedded.ts';

const yaml = 'version: 1\nlimits: { generate_per_minute: 3 }\n';
const cli = join(import.meta.dirname, '../../src/cli.ts');

let service: TestApp;

beforeAll(async () => {
  service = await startTestApp({ yaml });
});
afterEach(() => expectExactBooks(service.app));
afterAll(() => service.stop());

async function connect(key: string, options: ClientOptions = {}): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, options);
  const headers = { authorization: `Bearer ${key}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit: { headers } }));
  return client;
}

async function connectStdio(key: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  const env = { PATH: process.env['PATH'] ?? '', MEDLEY_URL: service.url, MEDLEY_API_KEY: key };
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [cli, 'mcp'], env, stderr: 'inherit' }),
  );
  return client;
}

/** The text of an answer, as JSON. */
function jsonOf({ content }: CallToolResult): Record<string, unknown> & { id: string } {
  const [first] = content;
  if (first?.type !== 'text') throw new Error('an answer begins with a text');
  return JSON.parse(first.text);
}

describe.each([
  ['over HTTP, of 2025', (key: string) => connect(key)],
  ['over HTTP, of 2026', (key: string) => connect(key, { versionNegotiation: { mode: { pin: '2026-07-28' } } })],
  ['over stdin and stdout', connectStdio],
])('an agent %s', (_, open) => {
  let caller: Caller;
  let agent: Client;

  beforeAll(async () => {
    caller = await service.client({ credit: '1.00' });
    agent = await open(caller.key);
  });
  afterAll(() => agent.close());

  const call = (name: string, args: Record<string, unknown> = {}) => agent.callTool({ name, arguments: args });

  test('is told what there is, and which tools only read', async () => {
    const { tools } = await agent.listTools();
    const reads = tools.filter(({ annotations }) => annotations?.readOnlyHint).map(({ name }) => name);
    expect(tools.map(({ name }) => name)).toContain('generate');
    expect(reads.toSorted()).toEqual([
      'describe_model',
      'estimate',
      'get_balance',
      'get_task',
      'list_models',
      'list_tasks',
    ]);
    expect(agent.getInstructions()).toContain('list_models');
  });

  test('finds a model, reads its input, asks for the price, and makes an image that it can see', async () => {
    const { models } = jsonOf(await call('list_models', { kind: 'image', search: 'sandbox/image' }));
    expect(models).toEqual([expect.objectContaining({ id: 'sandbox/image', kind: 'image', status: 'available' })]);
    expect(jsonOf(await call('describe_model', { model: 'sandbox/image' }))['input_schema']).toMatchObject({
      type: 'object',
    });
    const input = { prompt: 'seen by an agent', width: 64, height: 64 };
    expect(jsonOf(await call('estimate', { model: 'sandbox/image', input }))).toMatchObject({ allowed: true });
    const task = await call('generate', { model: 'sandbox/image', input, max_cost: '0.01' });
    expect(task.isError).toBeFalsy();
    const [summary, link, image] = task.content;
    expect(summary?.type).toBe('text');
    expect(jsonOf(task)).toMatchObject({ status: 'succeeded', cost: { amount: '0.01' } });
    expect(link).toMatchObject({
      type: 'resource_link',
      mimeType: 'image/png',
      uri: expect.stringContaining('/files/'),
    });
    expect(image).toMatchObject({ type: 'image', mimeType: 'image/png', data: expect.stringMatching(/^iVBORw0KGgo/) });
    const { id } = jsonOf(task);
    expect(jsonOf(await call('get_task', { task_id: id }))).toMatchObject({ id, status: 'succeeded' });
    expect(JSON.stringify(jsonOf(await call('list_tasks', { limit: 1 })))).toContain(id);
    expect(jsonOf(await call('get_balance'))).toMatchObject({ balance: { amount: '0.99' } });
  });

  test('creates nothing that costs more than it allows', async () => {
    const refused = await call('generate', { model: 'sandbox/image', input: { prompt: 'x' }, max_cost: '0.009999' });
    expect(refused).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('Nothing was created') }],
    });
    expect(jsonOf(await call('get_balance'))).toMatchObject({ balance: { amount: '0.99' } });
  });

  test('hears how long a task takes, and gets it unfinished when the time is over', async () => {
    const heard: number[] = [];
    const input = { prompt: '[[delay 60s]] slow', width: 64, height: 64 };
    const waited = await agent.callTool(
      { name: 'generate', arguments: { model: 'sandbox/image', input, wait_seconds: 5 } },
      { onprogress: ({ progress }) => void heard.push(progress) },
    );
    expect(heard.length).toBeGreaterThan(0);
    const { id, status } = jsonOf(waited);
    expect(['queued', 'running']).toContain(status);
    expect((await caller.call('POST', `/v1/tasks/${id}/cancel`)).status).toBe(200);
    await expect.poll(async () => jsonOf(await call('get_task', { task_id: id }))['status']).toBe('failed');
  });

  test('is told the API’s own errors: of fields, of models, of limits', async () => {
    const wrong = await call('generate', { model: 'sandbox/image', input: { prompt: 7 } });
    expect(wrong.isError).toBe(true);
    expect(jsonOf(wrong)).toMatchObject({ status: 422, error: { type: 'invalid_request', param: 'input.prompt' } });
    // Of the three in a minute some are used: how many depends on how long the tests before took.
    const limited = async () => jsonOf(await call('generate', { model: 'nobody/knows', input: {} }));
    await expect.poll(limited).toMatchObject({ status: 429, error: { type: 'rate_limit' } });
    expect(jsonOf(await call('describe_model', { model: 'nobody/knows' }))).toMatchObject({ status: 404 });
    expect(jsonOf(await call('get_task', { task_id: 'task_of_somebody' }))).toMatchObject({ status: 404 });
    await expect(call('get_task', {})).resolves.toMatchObject({ isError: true });
  });

  test('asks a chat model and pays for its tokens', async () => {
    const answer = await call('chat', { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Hello' }] });
    expect(answer.isError).toBeFalsy();
    expect(answer.content).toMatchObject([
      { type: 'text' },
      { type: 'text', text: expect.stringContaining('"usage"') },
    ]);
    const count = async () =>
      (await service.app.db.query('select id from chat_calls where account_id = $1', [caller.account_id])).length;
    await expect.poll(count).toBe(1);
  });
});

test('tools offer and call only the models that the key may use', async () => {
  const caller = await service.client();
  await service.app.db.query('update api_keys set models = $2 where id = $1', [caller.key_id, ['sandbox/chat']]);
  service.app.authenticator.invalidate();
  const agent = await connect(caller.key);
  const { models } = jsonOf(await agent.callTool({ name: 'list_models', arguments: {} }));
  expect(models).toEqual([expect.objectContaining({ id: 'sandbox/chat' })]);
  const input = { prompt: 'x' };
  for (const [name, args] of [
    ['generate', { model: 'sandbox/image', input }],
    ['estimate', { model: 'sandbox/image', input }],
    ['describe_model', { model: 'sandbox/image' }],
  ] as const) {
    const refused = await agent.callTool({ name, arguments: args });
    expect(jsonOf(refused)).toMatchObject({ status: 403, error: { code: 'model_not_allowed' } });
  }
  const messages = [{ role: 'user', content: 'Hello' }];
  const answer = await agent.callTool({ name: 'chat', arguments: { model: 'sandbox/chat', messages } });
  expect(answer.isError).toBeFalsy();
  await agent.close();
});

test('a key without the scope of a tool is refused by that tool alone', async () => {
  const caller = await service.client();
  await service.app.db.query('update api_keys set scopes = $2 where id = $1', [caller.key_id, ['read']]);
  service.app.authenticator.invalidate();
  const agent = await connect(caller.key);
  const balance = await agent.callTool({ name: 'get_balance', arguments: {} });
  expect(balance.isError).toBeFalsy();
  const refused = await agent.callTool({
    name: 'generate',
    arguments: { model: 'sandbox/image', input: { prompt: 'x' } },
  });
  expect(jsonOf(refused)).toMatchObject({ status: 403, error: { code: 'scope_missing' } });
  await agent.close();
});

test('no tool is reached without a key, and a body that is no message is an error of the protocol', async () => {
  const ask = (body: string, headers: Record<string, string> = {}) =>
    fetch(`${service.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body,
    });
  const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
  expect((await ask(list)).status).toBe(401);
  const { key } = await service.client();
  const authorization = `Bearer ${key}`;
  expect((await ask(list, { authorization })).status).toBe(200);
  for (const body of ['{}', '{"jsonrpc":"1.0"}', '{"jsonrpc":"2.0","id":1,"method":"no/such"}', '[]', 'x']) {
    const response = await ask(body, { authorization });
    const text = await response.text();
    expect([body, response.status < 500, text.includes('error')]).toEqual([body, true, true]);
  }
  expect((await fetch(`${service.url}/mcp`, { headers: { authorization } })).status).toBe(405);
});

test('an agent that starts the program uses the key of the last sign-in, and is refused without one', async () => {
  const { key } = await service.client({ credit: '3.00' });
  const config_dir = temporaryFolder(0o700);
  const start = () => {
    const env = { PATH: process.env['PATH'] ?? '', XDG_CONFIG_HOME: config_dir };
    const transport = new StdioClientTransport({ command: process.execPath, args: [cli, 'mcp'], env, stderr: 'pipe' });
    let printed = '';
    transport.stderr?.on('data', (chunk: Buffer) => (printed += String(chunk)));
    const client = new Client({ name: 'test', version: '1' });
    return { client, connected: client.connect(transport), printed: () => printed };
  };
  const refused = start();
  await expect(refused.connected).rejects.toThrow('closed');
  await expect
    .poll(refused.printed)
    .toContain('Run "npm run -s medley -- login http://127.0.0.1:8080", or set MEDLEY_API_KEY.');
  const credential = {
    api_key: key,
    account: undefined,
    key: undefined,
    source: 'key',
    created_at: '2026-11-28T00:00:00Z',
  } as const;
  writeCredentials(config_dir, { current: service.url, services: new Map([[service.url, credential]]) });
  const { client, connected } = start();
  await connected;
  expect(jsonOf(await client.callTool({ name: 'get_balance', arguments: {} }))).toMatchObject({
    balance: { amount: '3.00' },
  });
  await client.close();
});

test('the client of a service that is away is told so by each tool', async () => {
  const client = new Client({ name: 'test', version: '1' });
  const env = { PATH: process.env['PATH'] ?? '', MEDLEY_URL: 'http://127.0.0.1:1', MEDLEY_API_KEY: 'mdl_x' };
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [cli, 'mcp'], env }));
  const answer = await client.callTool({ name: 'get_balance', arguments: {} });
  expect(answer).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining('http://127.0.0.1:1 gave no answer') }],
  });
  await client.close();
});
