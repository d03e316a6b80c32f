import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { removeFolder, clusterFolder } from '../helpers/embedded.ts';
import { startService, type Service } from '../hostile/service.ts';

/** Secrets planted wherever one can stand; the log of a whole process, at its most talkative, has none. */
const canaries = {
  secret: 'canary-secret-of-the-service',
  prompt: 'canary-prompt',
  metadata: 'canary-metadata',
  account_name: 'canary-account-name',
  header: 'canary-header',
  query: 'canary-query',
  path: 'canary-path',
  cookie: 'canary-cookie',
  wrong_key: 'canary-wrong-key',
  idempotency: 'canary-idempotency-key',
  hook_path: 'canary-hook-path',
  hook_query: 'canary-hook-query',
  hook_answer: 'canary-answer-of-the-receiver',
};

let calls = 0;
const receiver = createServer((_request, response) => {
  calls += 1;
  response.writeHead(500).end(canaries.hook_answer);
});

let database: TestDatabase;
let folder: string;
let service: Service;
let key: string;
let webhook_secret: string;
beforeAll(async () => {
  database = await testDatabase();
  folder = clusterFolder();
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  writeFileSync(join(folder, 'medley.yaml'), 'version: 1\nnet: { allow: ["127.0.0.0/8"] }\n');
  service = await startService(folder, {
    DATABASE_URL: database.url,
    MEDLEY_CONFIG: join(folder, 'medley.yaml'),
    MEDLEY_SECRET: canaries.secret,
    MEDLEY_LOG_LEVEL: 'trace',
    PORT: '0',
  });
  const now = new Date();
  const account = await createAccount(
    database.db,
    { name: canaries.account_name, currency: 'USD', initial_credit: 1_000_000n },
    now,
  );
  ({ webhook_secret } = account);
  key = (await createKey(database.db, { account_id: account.id, name: 'Canary', limit_month: null }, now)).text;
});
afterAll(async () => {
  await service?.stop();
  receiver.close();
  await database?.drop();
  removeFolder(folder);
});

const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  fetch(service.url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });

function order(prompt: string): object {
  const address = receiver.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return {
    model: 'sandbox/image',
    input: { prompt: `${canaries.prompt} ${prompt}`, width: 16, height: 16 },
    metadata: { note: canaries.metadata },
    webhook_url: `http://127.0.0.1:${port}/${canaries.hook_path}?token=${canaries.hook_query}`,
  };
}

test('the log of a process has no key, secret, prompt, link, header, query or body', async () => {
  const links = await useEverything();
  await vi.waitUntil(() => calls > 0, { timeout: 120_000 });
  await breakTheDatabase();
  await vi.waitUntil(() => service.log().includes('unexpected error'), { timeout: 120_000 });
  await service.stop();
  const log = service.log();
  // What must be there, or the test proves nothing.
  expect(log).toContain('/v1/generate');
  expect(log).toContain('refused by the HTTP parser');
  const planted = { ...canaries, key, webhook_secret, ...links };
  const leaked = Object.entries(planted).filter(([, text]) => log.includes(text));
  expect(leaked).toEqual([]);
  expect(log).not.toContain(webhook_secret.slice('whsec_'.length));
  expect(service.greeting).not.toContain(canaries.secret);
});

/** Answers of every kind; returns what only the links of a file have. */
async function useEverything(): Promise<Record<string, string>> {
  const idempotency = { 'idempotency-key': canaries.idempotency };
  const created = await call('POST', '/v1/generate?wait=120', order('a'), idempotency);
  const link = new URL(/"url":"([^"]+)"/.exec(await created.text())?.[1] ?? '');
  await fetch(link);
  await fetch(`${link}0`);
  await call('POST', '/v1/generate?wait=30', order('[[fail]]'));
  await call('POST', '/v1/generate', order('b'), { 'x-canary': canaries.header, cookie: `a=${canaries.cookie}` });
  await call('POST', '/v1/generate', { ...order('c'), [canaries.metadata]: 1 });
  await call('POST', '/v1/generate', `{"input":"${canaries.prompt}`);
  const conversation = { max_tokens: 50, messages: [{ role: 'user', content: canaries.prompt }] };
  for (const model of ['sandbox/chat', 'x']) {
    await call('POST', '/v1/chat/completions', { model, ...conversation });
    await call('POST', '/v1/messages', { model, ...conversation, stream: true });
  }
  await call('GET', `/v1/tasks/${canaries.path}?key=${canaries.query}`);
  await call('GET', `/${canaries.path}?key=${canaries.query}`);
  await call('GET', '/v1/balance', undefined, { authorization: `Bearer ${canaries.wrong_key}` });
  await call('GET', '/v1/balance', undefined, { authorization: '', 'x-api-key': canaries.wrong_key });
  await call('GET', '/v1/balance', undefined, { 'x-long': `${canaries.header}${'x'.repeat(70_000)}` });
  return { signature: link.searchParams.get('sig') ?? '' };
}

/** A surprise with everything at hand: its error goes to the log in full. */
async function breakTheDatabase(): Promise<void> {
  await database.db.query('alter table tasks rename to tasks_that_are_gone');
  await call('POST', '/v1/generate', order('d'));
  await call('GET', '/v1/tasks');
  await database.db.query('alter table tasks_that_are_gone rename to tasks');
}
