// isolated: it moves the monotonic clock of its process
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { deleteKey } from '../../src/accounts/keys.ts';
import { newId } from '../../src/lib/ids.ts';
import { expectExactBooks, startTestApp, type Answered, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel, required_prompt } from '../helpers/catalog.ts';
import { elapse, stopElapsing } from '../helpers/clock.ts';

/** Specification 7: errors, their formats and rules; and the sizes from which on there are some. One failure pauses. */

const yaml = `
version: 1
${limits({ generate_per_minute: 40, failed_per_24h: 1 })}
models:${['test/broken', 'test/silent']
  .map((id) => mediaModel({ id, schema: required_prompt, price: '0.01', routes: ['{ provider: sandbox, id: only }'] }))
  .join('')}
`;

let service: TestApp;
let client: Client;

beforeAll(async () => {
  service = await startTestApp({ yaml });
  await service.app.db.query(
    `insert into route_health (route, cause, openings, opened_at, retry_at)
     values ('test/broken#only', 'upstream_error', 1, now(), now() + interval '1 hour'),
            ('test/silent#only', 'timeout', 1, now(), now() + interval '1 hour')`,
  );
  elapse(1_100);
});
afterAll(() => service.stop());
beforeEach(async () => {
  client = await service.client();
});
afterEach(() => expectExactBooks(service.app));

const order = { model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } };
const post = (by: Client, path: string, body: unknown, headers?: Record<string, string>): Promise<Answered> =>
  by.call('POST', path, body, headers);
const generate = (body: unknown, by = client, query = ''): Promise<Answered> => post(by, `/v1/generate${query}`, body);

/** One way to get each error of the table. Returns the answer; called again, it fails the same way. */
const failures: Record<string, () => Promise<() => Promise<Answered>>> = {
  '400 invalid_request': async () => () => generate('{"model":'),
  '401 authentication_error': async () => {
    await deleteKey(service.app.db, client.key_id, new Date());
    service.app.authenticator.invalidate();
    return () => generate(order);
  },
  '402 insufficient_balance': async () => {
    const poor = await service.client({ credit: '0' });
    return () => generate(order, poor);
  },
  '403 permission_error': async () => {
    const limited = await service.client({ limit: '0' });
    return () => generate(order, limited);
  },
  '404 not_found': async () => () => generate({ ...order, model: 'no/such' }),
  '405 invalid_request': async () => () => client.call('GET', '/v1/generate'),
  '409 invalid_request': async () => {
    const { json: task } = await generate(order, client, '?wait=120');
    return () => client.call('POST', `/v1/tasks/${task.id}/cancel`);
  },
  '413 invalid_request': async () => () => post(client, '/v1/tasks/x/cancel', `{"a":"${'x'.repeat(1_000_000)}"}`),
  '415 invalid_request': async () => () => post(client, '/v1/generate', 'x', { 'content-type': 'text/plain' }),
  '422 invalid_request': async () => () => generate({ ...order, input: { prompt: 7 } }),
  '429 rate_limit': async () => {
    stopElapsing(true); // the window does not go on until it has refused
    for (let i = 0; i < 40; i++) await generate({});
    return () => generate(order).finally(() => stopElapsing(false));
  },
  '429 rate_limit_error': async () => {
    await generate({ model: 'sandbox/image', input: { prompt: '[[fail]] x' } }, client, '?wait=120');
    return () => generate(order);
  },
  '502 upstream_error': async () => () => generate({ model: 'test/broken', input: { prompt: 'x' } }),
  '504 timeout': async () => () => generate({ model: 'test/silent', input: { prompt: 'x' } }),
};

async function failed(name: string): Promise<Answered> {
  const ways = failures[name];
  if (!ways) throw new Error(`There is no way to get ${name}.`);
  return (await ways())();
}

function expectError(answer: Answered, name: string): void {
  expect(`${answer.status} ${answer.json.error.type}`).toBe(name);
  expect(answer.json.error.message).toMatch(/^\S.{8,}/);
}

it('S7-1 every status but 2xx carries a JSON body with an error type', async () => {
  for (const name of Object.keys(failures)) {
    client = await service.client();
    const answer = await failed(name);
    expectError(answer, name);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  }
});

it('S7.1-1 errors of generate, tasks, models and balance have the form { error: { type, message } }', async () => {
  const answers = [
    await generate({}),
    await client.call('GET', '/v1/tasks/x'),
    await client.call('GET', '/v1/models/x'),
    await client.call('GET', '/v1/balance?x=1'),
  ];
  expect(answers.map(({ status }) => status)).toEqual([400, 404, 404, 400]);
  for (const { json } of answers) {
    expect(Object.keys(json)).toEqual(['error']);
    expect(json.error).toMatchObject({ type: expect.any(String), message: expect.any(String) });
  }
});

const conversation = [{ role: 'user', content: 'x' }];

it('S7.1-2 errors of chat/completions have the form { error: { message, type } }', async () => {
  const { status, json } = await post(client, '/v1/chat/completions', { model: 'no/such', messages: conversation });
  expect([status, Object.keys(json)]).toEqual([404, ['error']]);
  expect(json.error).toMatchObject({ message: expect.any(String), type: 'not_found' });
});

it('S7.1-3 errors of messages have the form { type: error, error: { type, message } }', async () => {
  const { status, json } = await post(client, '/v1/messages', {
    model: 'no/such',
    max_tokens: 5,
    messages: conversation,
  });
  expect(status).toBe(404);
  expect(json).toMatchObject({ type: 'error', error: { type: 'not_found', message: expect.any(String) } });
});

it('S7.2-1 a request with broken JSON or without a model gets 400 invalid_request', async () => {
  for (const body of ['{"model":', '', '[]', 'null', '"x"', { input: {} }, '{"model":"\xff"}\u0000']) {
    expectError(await generate(body), '400 invalid_request');
  }
});

it('S7.2-2 a missing, malformed or deleted key gets 401 authentication_error', async () => {
  expectError(await failed('401 authentication_error'), '401 authentication_error');
});

it('S7.2-3 a request whose hold exceeds the available balance gets 402 insufficient_balance', async () => {
  const answer = await failed('402 insufficient_balance');
  expectError(answer, '402 insufficient_balance');
  expect(answer.json.error.message).toContain('0.01 USD');
});

it('S7.2-4 a key at its monthly spend limit gets 403 permission_error', async () => {
  expectError(await failed('403 permission_error'), '403 permission_error');
});

it('S7.2-5 the message of a 403 says to create a key with a higher limit or use another key', async () => {
  const { message } = (await failed('403 permission_error')).json.error;
  expect(message).toMatch(/monthly spend limit is reached.*Create a key with a higher limit or use another key\./);
});

it('S7.2-6 an unknown model or task gets 404 not_found', async () => {
  expectError(await generate({ ...order, model: 'no/such' }), '404 not_found');
  expectError(await client.call('GET', `/v1/tasks/${newId('task')}`), '404 not_found');
});

it("S7.2-7 input that does not match the model's schema gets a 422 invalid_request that names the field", async () => {
  const answer = await generate({ ...order, input: { prompt: 'x', width: 'wide' } });
  expectError(answer, '422 invalid_request');
  expect(answer.json.error.message).toContain('input.width');
});

it('S7.2-8 a key with too many requests gets 429 rate_limit', async () => {
  expectError(await failed('429 rate_limit'), '429 rate_limit');
});

it('S7.2-9 an account with too many failed generations gets 429 rate_limit_error with Retry-After in seconds', async () => {
  const answer = await failed('429 rate_limit_error');
  expectError(answer, '429 rate_limit_error');
  const retry_after_s = Number(answer.headers.get('retry-after'));
  expect(retry_after_s).toBeGreaterThan(86_300);
  expect(retry_after_s).toBeLessThanOrEqual(86_400);
});

it('S7.2-10 a call whose model provider fails gets 502 upstream_error', async () => {
  expectError(await failed('502 upstream_error'), '502 upstream_error');
});

it('S7.2-11 a call whose model does not answer in time gets 504 timeout', async () => {
  expectError(await failed('504 timeout'), '504 timeout');
});

it('S7.3-1 a generation that starts and fails gets 202, and its task becomes failed', async () => {
  const { status, json: task } = await generate({ model: 'sandbox/image', input: { prompt: '[[fail]] x' } });
  expect([status, task.status]).toEqual([202, 'queued']);
  const ended = () => client.call('GET', `/v1/tasks/${task.id}`);
  await expect.poll(async () => (await ended()).json.status, { interval: 20, timeout: 120_000 }).toBe('failed');
  expect((await ended()).json).toMatchObject({ error: { type: 'upstream_error' }, cost: { amount: '0.00' } });
  const { json: balance } = await client.call('GET', '/v1/balance');
  expect([balance.held.exact, balance.available.exact]).toEqual(['0.000000', '100.000000']);
});

it('S7.3-2 a request that got 400, 401, 402, 403, 404 or 422 gets it again until something changes', async () => {
  for (const name of Object.keys(failures).filter((each) => /^40[0-4]|^422/.test(each))) {
    client = await service.client();
    const again = await failures[name]?.();
    const answers = [await again?.(), await again?.(), await again?.()];
    for (const answer of answers) if (answer) expectError(answer, name);
    expect(new Set(answers.map((answer) => answer?.json.error.message)).size).toBe(1);
  }
});

it('D-errors-1 errors of unknown paths have the form of the path above them', async () => {
  const service_format = await client.call('GET', '/v1/unknown');
  expect([service_format.status, Object.keys(service_format.json)]).toEqual([404, ['error']]);
  const completions = await client.call('GET', '/v1/chat/completions/unknown');
  expect([completions.status, Object.keys(completions.json.error)]).toEqual([404, expect.arrayContaining(['param'])]);
  const messages = await client.call('GET', '/v1/messages/unknown');
  expect([messages.status, messages.json.type]).toEqual([404, 'error']);
});

it('D-errors-2 code, param and request_id are inside the error object', async () => {
  const broken = await generate('{');
  expect(broken.json.error).toMatchObject({ code: 'invalid_json', request_id: broken.headers.get('x-request-id') });
  const { error } = (await generate({})).json;
  expect(Object.keys(error).toSorted()).toEqual(['message', 'param', 'request_id', 'type']);
  expect(error.param).toBe('model');
});

it('D-errors-3 errors of the chat-completions style always carry param and code, which may be null', async () => {
  const { json } = await client.call('GET', '/v1/chat/completions/unknown');
  expect(json.error).toMatchObject({ param: null, code: null, request_id: expect.any(String) });
});

it('D-errors-4 errors of the messages style carry request_id beside error', async () => {
  const { json, headers } = await post(client, '/v1/messages', { model: 'no/such' });
  expect(Object.keys(json).toSorted()).toEqual(['error', 'request_id', 'type']);
  expect(json).toMatchObject({ request_id: headers.get('x-request-id') });
});

it('D-errors-5 a wrong method gets a 405 that lists the allowed ones', async () => {
  const answer = await client.call('DELETE', '/v1/generate');
  expectError(answer, '405 invalid_request');
  expect(answer.headers.get('allow')).toBe('POST');
});

it('D-errors-6 a body that is too large gets 413', async () => {
  expectError(await failed('413 invalid_request'), '413 invalid_request');
});

it('S4-1 a body of another content type than JSON gets 415', async () => {
  for (const type of ['text/plain', 'multipart/form-data', 'application/x-www-form-urlencoded', '']) {
    expectError(await generate(JSON.stringify(order)).then(() => withType(type)), '415 invalid_request');
  }
  expect((await withType('application/json; charset=UTF-8')).status).toBe(202);
});

const withType = (type: string) => post(client, '/v1/generate', JSON.stringify(order), { 'content-type': type });

it('D-errors-7 a conflict gets 409 with the code conflict', async () => {
  const answer = await failed('409 invalid_request');
  expectError(answer, '409 invalid_request');
  expect(answer.json.error.code).toBe('conflict');
});

it('D-errors-8 an unexpected failure gets 500 internal_error without its details', async () => {
  await service.app.db.query('alter table budgets rename to lost_budgets');
  const answer = await client.call('GET', '/v1/key');
  await service.app.db.query('alter table lost_budgets rename to budgets');
  expectError(answer, '500 internal_error');
  expect(answer.text).not.toContain('budgets');
});

it('D-errors-9 402, 403 and the failure pause carry x-should-retry: false, and other errors do not', async () => {
  for (const name of Object.keys(failures)) {
    client = await service.client();
    const final = ['402', '403'].includes(name.slice(0, 3)) || name === '429 rate_limit_error';
    expect((await failed(name)).headers.get('x-should-retry'), name).toBe(final ? 'false' : null);
  }
});

it('D-errors-10 every response has its own x-request-id', async () => {
  const answers = [
    await generate(order),
    await generate({}),
    await client.call('GET', '/v1/models'),
    await client.call('GET', '/livez'),
    await client.call('GET', '/unknown'),
  ];
  const ids = answers.map(({ headers }) => headers.get('x-request-id'));
  for (const id of ids) expect(id).toMatch(/^req_[0-9a-z]{26}$/);
  expect(new Set(ids).size).toBe(answers.length);
});

it('D-errors-11 every response of /v1/messages also has a request-id', async () => {
  const { headers } = await post(client, '/v1/messages', { model: 'no/such' });
  expect(headers.get('request-id')).toBe(headers.get('x-request-id'));
  expect((await client.call('GET', '/v1/models')).headers.get('request-id')).toBeNull();
});

it("D-errors-12 the caller's x-client-request-id is echoed", async () => {
  const { headers } = await client.call('GET', '/v1/models', undefined, { 'x-client-request-id': 'mine 7' });
  expect(headers.get('x-client-request-id')).toBe('mine 7');
});

it('D-models-0 a chat path with a media model gets a 404 not_found that names the right endpoint', async () => {
  for (const path of ['/v1/chat/completions', '/v1/messages']) {
    const messages = [{ role: 'user', content: 'x' }];
    const answer = await post(client, path, { model: 'sandbox/image', max_tokens: 16, messages });
    expectError(answer, '404 not_found');
    expect(answer.json.error.message).toContain('POST /v1/generate');
  }
});

/** A body of exactly this many bytes. */
function bodyOf(size_bytes: number, model: string): string {
  const frame = JSON.stringify({ model, input: { prompt: '' } });
  return JSON.stringify({ model, input: { prompt: 'x'.repeat(size_bytes - frame.length) } });
}

it('D-sizes-1 POST /v1/generate accepts bodies of up to 20 MB', async () => {
  expectError(await generate(bodyOf(20_000_000, 'sandbox/image')), '422 invalid_request'); // too long a prompt
  expectError(await generate(bodyOf(20_000_001, 'sandbox/image')), '413 invalid_request');
});

it('D-sizes-2 chat accepts bodies of up to 32 MB', async () => {
  expectError(await post(client, '/v1/messages', bodyOf(32_000_000, 'no/such')), '400 invalid_request'); // no messages
  expectError(await post(client, '/v1/messages', bodyOf(32_000_001, 'no/such')), '413 invalid_request');
});

it('D-sizes-3 JSON is accepted up to 64 levels deep', async () => {
  const nested = (depth: number) => `{"model":"no/such","input":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
  expectError(await generate(nested(64)), '404 not_found');
  expectError(await generate(nested(65)), '400 invalid_request');
  expectError(await generate(nested(1_000_000)), '400 invalid_request');
});

it('D-sizes-4 headers of up to 64 KiB together are accepted', async () => {
  const padded = (length: number) => client.call('GET', '/v1/models', undefined, { 'x-padding': 'x'.repeat(length) });
  expect((await padded(64_000)).status).toBe(200);
  const answer = await padded(66_000);
  expectError(answer, '400 invalid_request');
});

it('D-sizes-5 URLs of up to 2,048 characters are accepted', async () => {
  const path = (length: number) => `/v1/models/${'x'.repeat(length - '/v1/models/'.length)}`;
  expectError(await client.call('GET', path(2_048)), '404 not_found');
  expectError(await client.call('GET', path(2_049)), '400 invalid_request');
  const hook = (length: number) => `https://example.com/${'x'.repeat(length - 'https://example.com/'.length)}`;
  expect((await generate({ ...order, webhook_url: hook(2_048) })).status).toBe(202);
  expectError(await generate({ ...order, webhook_url: hook(2_049) }), '422 invalid_request');
});

it('D-sizes-6 text with NUL or lone surrogates is stored and never causes a 500', async () => {
  const odd = 'a\u0000b\ud800c\udfff\u2028\ufeff';
  const body = { model: 'sandbox/image', input: { prompt: odd, width: 16, height: 16 }, metadata: { k: 'x\ud800' } };
  const { status, json: task } = await generate(body, client, '?wait=120');
  expect([status, task.status, task.metadata]).toEqual([202, 'succeeded', { k: 'x\ud800' }]);
  expect((await client.call('GET', '/v1/tasks')).json.data).toHaveLength(1);
  for (const field of ['model', 'webhook_url', 'input', 'metadata', odd]) {
    expect((await generate({ ...order, [field]: odd })).json.error.type).toMatch(/^(invalid_request|not_found)$/);
  }
  const hook = { ...order, webhook_url: 'https://example.com/a\u0000b' };
  expectError(await generate(hook), '422 invalid_request');
});
