// isolated: it moves the monotonic clock of its process
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { deleteKey } from '../../src/accounts/keys.ts';
import { finish } from '../../src/tasks/finish.ts';
import { expectExactBooks, startTestApp, type Answered, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel, required_prompt } from '../helpers/catalog.ts';
import { elapse, stopElapsing } from '../helpers/clock.ts';

/**
 * The order of checks on POST /v1/generate. Requests with two mistakes at a time: of every pair the
 * earlier one answers.
 */

const per_minute = 3;
const yaml = `
version: 1
${limits({ generate_per_minute: per_minute, failed_per_24h: 1 })}
models:${mediaModel({
  id: 'test/open',
  schema: required_prompt,
  price: '0.04',
  routes: ['{ provider: sandbox, id: only }'],
})}
`;

let service: TestApp;

beforeAll(async () => {
  service = await startTestApp({ yaml, worker: false });
  await service.app.db.query(
    `insert into route_health (route, cause, openings, opened_at, retry_at)
     values ('test/open#only', 'upstream_error', 1, now(), now() + interval '1 hour')`,
  );
  elapse(1_100);
  stopElapsing(true); // the window of a key with three requests does not go on
});
afterAll(() => service.stop());
afterEach(() => expectExactBooks(service.app));

type Stage = 'key' | 'window' | 'form' | 'model' | 'input' | 'webhook' | 'routes' | 'pause' | 'balance' | 'limit';

/** The order of checks (docs/spec-coverage.md), and what each answers. */
const stages: [Stage, status: number, type: string, param?: string][] = [
  ['key', 401, 'authentication_error'],
  ['window', 429, 'rate_limit'],
  ['form', 400, 'invalid_request'],
  ['model', 404, 'not_found', 'model'],
  ['input', 422, 'invalid_request', 'input.prompt'],
  ['webhook', 422, 'invalid_request', 'webhook_url'],
  ['routes', 502, 'upstream_error'],
  ['pause', 429, 'rate_limit_error'],
  ['balance', 402, 'insufficient_balance'],
  ['limit', 403, 'permission_error'],
];

/** Ways to get the form wrong; the other stages have one each. */
const forms = ['query', 'json', 'field', 'metadata'] as const;
type Form = (typeof forms)[number];

/** Sends one request with these mistakes, by an account and a key that are as wrong as they say. */
async function send(wrong: readonly Stage[], form: Form): Promise<Answered> {
  const is = (stage: Stage) => wrong.includes(stage);
  const client = await service.client({
    credit: is('balance') ? '0.02' : '1',
    ...(is('limit') && { limit: '0.02' }),
  });
  if (is('pause')) await failOnce(client);
  if (is('window')) for (let i = 0; i < per_minute; i++) await client.call('POST', '/v1/generate', {});
  if (is('key')) await deleteKey(service.app.db, client.key_id, new Date());
  if (is('key')) service.app.authenticator.invalidate();
  const body = {
    model: is('model') ? 'no/such' : is('routes') ? 'test/open' : 'sandbox/image',
    input: { prompt: is('input') ? 7 : 'x', ...(!is('routes') && { n: 4 }) },
    ...(is('webhook') && { webhook_url: 'ftp://example.com' }),
    ...(is('form') && form === 'field' && { unknown_field: 1 }),
    ...(is('form') && form === 'metadata' && { metadata: 'x' }),
  };
  const text = JSON.stringify(body);
  const query = is('form') && form === 'query' ? '?wait=soon' : '';
  return client.call('POST', `/v1/generate${query}`, is('form') && form === 'json' ? text.slice(1) : text);
}

/** One failed generation, after which this service pauses the account. */
async function failOnce(client: Client): Promise<void> {
  const { json } = await client.call('POST', '/v1/generate', { model: 'sandbox/image', input: { prompt: 'x' } });
  await finish(
    service.app,
    { account_id: client.account_id, task_id: json.id },
    { status: 'failed', type: 'upstream_error', message: 'x', counts: true, attempt: 'failed', reason: 'x' },
  );
}

/** Each mistake alone, then together with every later one. A model that is unknown has no routes. */
async function expectFirst(stage: Stage): Promise<void> {
  const position = stages.findIndex(([name]) => name === stage);
  const [, status, type, param] = stages[position] ?? [];
  const later = stages.slice(position + 1).map(([name]) => name);
  const possible = later.filter((other) => !(stage === 'model' && other === 'routes'));
  for (const others of [[], ...possible.map((other) => [other]), possible]) {
    const some_form = stage === 'form' || others.includes('form');
    for (const form of some_form ? forms : forms.slice(0, 1)) {
      const answer = await send([stage, ...others], form);
      const about = `${stage} before ${others.join(', ')} (${form})`;
      expect([answer.status, answer.json.error.type], about).toEqual([status, type]);
      expect(answer.json.error.param, about).toBe(param ?? answer.json.error.param);
    }
  }
}

it('D-order-1 the 401 for a key is checked before everything else', () => expectFirst('key'));
it('D-order-2 the 429 rate_limit is checked before the 400', () => expectFirst('window'));
it('D-order-3 the 400 is checked before the 404 for the model', () => expectFirst('form'));
it('D-order-4 the 404 for the model is checked before the 422 for the input', () => expectFirst('model'));
it('D-order-5 the 422 for the input is checked before the 422 for webhook_url', () => expectFirst('input'));
it('D-order-6 the 422 for webhook_url is checked before the 502 for unusable routes', () => expectFirst('webhook'));
it('D-order-7 the 502 or 504 for unusable routes is checked before the 429 rate_limit_error', () =>
  expectFirst('routes'));
it('D-order-8 the 429 rate_limit_error is checked before the 402 and the 403', () => expectFirst('pause'));
it('D-order-9 the 402 is checked before the 403, which is last', async () => {
  await expectFirst('balance');
  await expectFirst('limit');
});
