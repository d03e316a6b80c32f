import { afterAll, beforeAll, expect, test } from 'vitest';
import { newKeyText } from '../../src/accounts/keys.ts';
import { listEndpoints } from '../../src/server.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { workedMs } from '../helpers/work.ts';
import { speak } from '../hostile/speak.ts';

/** Faults of other programs in the reading of a request; SECURITY.md has the table. */

let service: TestApp;
let client: Client;
let port: number;
beforeAll(async () => {
  service = await startTestApp({ worker: false, yaml: 'version: 1\nlimits: { other_per_minute: 3000 }\n' });
  client = await service.client();
  port = Number(new URL(service.url).port);
});
afterAll(() => service?.stop());

const keyed = listEndpoints().filter((endpoint) => !endpoint.public && endpoint.session === undefined);
const posts = keyed
  .filter(({ method, form }) => method === 'POST' && !form)
  .map(({ path }) => path.replace('{id}', 'task_x').replace('{+name}', 'sandbox/chat:generateContent'));

const post = (type: string, body: string, key = client.key) =>
  speak(port, [
    `POST /v1/estimate HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\ncontent-type: ${type}\r\n` +
      `content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
  ]);

test('CVE-2024-8984 a long multipart boundary costs nothing, with a key or without', async () => {
  const type = `multipart/form-data; boundary=${'-'.repeat(60_000)}`;
  const body = `--${'-'.repeat(60_000)}\r\n\r\n`;
  const worked_ms = workedMs();
  const refused = await post(type, body);
  const unknown = await post(type, body, 'nobody');
  expect([...refused.replies, ...unknown.replies].map(({ status }) => status)).toEqual([415, 401]);
  expect(workedMs() - worked_ms).toBeLessThan(1_000);
});

test('CVE-2026-42208 a key that is SQL is looked up as nothing but a key', async () => {
  const injections = ["' or '1'='1", "mdl_'; drop table api_keys; --", `${newKeyText()}' or true --`, '\\', "''"];
  for (const text of injections) {
    for (const headers of [{ authorization: `Bearer ${text}` }, { authorization: '', 'x-api-key': text }]) {
      expect((await client.call('GET', '/v1/key', undefined, headers)).status).toBe(401);
    }
    expect((await client.call('GET', `/v1/tasks?model=${encodeURIComponent(text)}`)).json.data).toEqual([]);
    expect((await client.call('GET', `/v1/tasks?metadata[${encodeURIComponent(text)}]=x`)).json.data).toEqual([]);
  }
  expect((await client.call('GET', '/v1/key')).status).toBe(200);
});

test('CVE-2026-47102 a member that nobody asked for is refused, not written', async () => {
  const body = { model: 'sandbox/image', input: { prompt: 'x' } };
  for (const name of ['account_id', 'user_role', 'role', 'is_admin', 'limit_month', 'cost', '__proto__']) {
    const text = JSON.stringify(body).replace('{', `{"${name}":"admin",`);
    for (const path of ['/v1/generate', '/v1/estimate']) {
      expect(await client.call('POST', path, text)).toMatchObject({ status: 400, json: { error: { param: name } } });
    }
  }
});

test('CVE-2026-45339 both headers of a key are one authentication and one window', async () => {
  const small = await service.beside({ yaml: 'version: 1\nlimits: { generate_per_minute: 3 }\n' });
  const { key } = await small.client();
  const statuses: number[] = [];
  for (const headers of [{ authorization: `Bearer ${key}` }, { 'x-api-key': key }]) {
    for (let turn = 0; turn < 2; turn++) {
      const answer = await fetch(`${small.url}/v1/generate`, { method: 'POST', headers });
      statuses.push(answer.status);
    }
  }
  await small.stop();
  expect(statuses).toEqual([400, 400, 400, 429]);
});

test('CVE-2026-31949 no body takes the process with it, whatever is missing or null in it', async () => {
  const bodies = ['null', '[]', '{}', '{"model":null}', '{"model":{}}', '{"model":"sandbox/image","input":null}'];
  const more = ['{"messages":null}', '{"model":"x","messages":[null]}', '{"input":{"prompt":null}}', '""', '0'];
  for (const path of posts) {
    for (const body of [...bodies, ...more]) {
      const { status } = await client.call('POST', path, body);
      const answers = path === '/v1/conversations' ? [200, 400] : [400, 404, 422]; // an empty one needs no field
      expect(answers, `${path} ${body}`).toContain(status);
    }
  }
  expect((await fetch(`${service.url}/livez`)).status).toBe(200);
});

test('GHSA-f6hc-c5jr-878p nothing that is empty or null equals a secret that is not there', async () => {
  for (const text of ['', ' ', 'null', 'undefined', '[]', '0', 'false', 'NaN']) {
    for (const headers of [{ authorization: text }, { authorization: `Bearer ${text}` }, { 'x-api-key': text }]) {
      const answer = await fetch(`${service.url}/v1/key`, { headers });
      expect(answer.status, JSON.stringify(headers)).toBe(401);
    }
    const link = `/files/acct_x/task_x/0.png?exp=${text || '9999999999'}&sig=${text}`;
    expect((await fetch(service.url + link)).status).toBe(404);
  }
});

test('CVE-2026-25591 % and _ in a filter are characters, not wildcards', async () => {
  const order = { model: 'sandbox/image', input: { prompt: 'x' }, metadata: { color: 'red' } };
  expect((await client.call('POST', '/v1/generate', order)).status).toBe(202);
  const count = async (query: string) => (await client.call('GET', `/v1/tasks?${query}`)).json.data.length;
  expect(await count('metadata[color]=red')).toBe(1);
  for (const query of [
    'model=%25',
    'model=sandbox/%25',
    'metadata[color]=%25',
    'metadata[color]=r_d',
    'model=______%25',
  ]) {
    expect(await count(query), query).toBe(0);
  }
});

/** Spellings that a parser has taken for JSON and a validator for something else, or the other way round. */
const spellings =
  `Application/Json|APPLICATION/JSON|application/json;|application/json ;charset=utf-8| application/json|
application/json\t|application/json\t; charset=utf-8|\tapplication/json|application/json; charset="utf-8"|application/json,|
application/json\u00a0|application/json\x0b|application /json|application/json foo|application/json\tcharset=utf-8|
text/plain;application/json|application/json;;;|application/vnd.a+json|application/json;charset=utf-8;charset=utf-16`.split(
    /\|\n?/,
  );

/** Either it is JSON, and the schema counts, or it is refused; a wrong body never comes through. */
async function expectReadOrRefused(): Promise<void> {
  for (const type of spellings) {
    const [wrong] = (await post(type, '{"model":5,"input":{}}')).replies;
    const [right] = (await post(type, '{"model":"sandbox/image","input":{"prompt":"x"}}')).replies;
    const judged = String(wrong?.body).includes('model must be a non-empty string');
    expect([wrong?.status, right?.status], type).toEqual(judged ? [400, 200] : [right?.status, wrong?.status]);
    expect([400, 415], type).toContain(wrong?.status);
  }
}

test('CVE-2025-32442 a content type in another case is validated like any other', expectReadOrRefused);

test('CVE-2026-25223 a tab in a content type does not go round the validation', expectReadOrRefused);

test('CVE-2026-33806 a space before a content type does not go round it either', expectReadOrRefused);

const smuggled = 'GET /v1/key HTTP/1.1\r\nhost: a\r\n\r\n';

/** One answer, a refusal, and an end: what is behind it is never read as a request. */
async function expectRefused(...lines: string[]): Promise<void> {
  const start = `POST /v1/estimate HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${client.key}\r\n`;
  const { replies } = await speak(port, [`${start}${lines.join('\r\n')}\r\n\r\n0\r\n\r\n${smuggled}`]);
  expect(replies.map(({ status, headers }) => [status, headers.get('connection')])).toEqual([[400, 'close']]);
}

test('CVE-2024-27982 a space before the colon of Content-Length is refused', async () => {
  await expectRefused('content-length : 5');
  await expectRefused('transfer-encoding : chunked');
  await expectRefused(' content-length: 5', 'x: y');
});

test('CVE-2023-30589 a bare CR ends no header', async () => {
  await expectRefused('x: a\rcontent-length: 5');
  await expectRefused('x: a\r\rtransfer-encoding: chunked');
});

test('CVE-2022-32215 a Transfer-Encoding over several lines or in several parts is refused', async () => {
  await expectRefused('transfer-encoding: chunked\r\n , identity');
  await expectRefused('transfer-encoding: chunked', 'transfer-encoding: identity');
  await expectRefused('transfer-encoding: chunked', 'content-length: 5');
});
