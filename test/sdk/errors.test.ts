// isolated: it moves the monotonic clock of its process
import Anthropic0 from 'anthropic-0';
import Anthropic1 from 'anthropic-1';
import OpenAI6 from 'openai-6';
import OpenAI7 from 'openai-7';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { completion, yamlOf } from '../chat/setup.ts';
import { elapse } from '../helpers/clock.ts';
import { broken, caller_names, setSdkStage, type SdkStage } from './stage.ts';
import type { Place } from './task.ts';

let sdk: SdkStage;
let poor: Place;

beforeAll(async () => {
  sdk = await setSdkStage();
  const { url } = sdk.stage.test;
  poor = { url, key: (await sdk.stage.test.client({ credit: '0.000001' })).key };
});
afterAll(() => sdk.stop());

/** Returns the error that an SDK throws, with its status, wherever it stands. */
async function thrown(call: Promise<unknown>): Promise<{ status: number; error: Error }> {
  const error: unknown = await call.then(
    () => new Error('answered'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof Error)) throw new Error(`no error: ${String(error)}`);
  const details = error as Error & { status?: number; statusCode?: number; lastError?: { statusCode?: number } };
  return { status: details.status ?? details.statusCode ?? details.lastError?.statusCode ?? 0, error };
}

describe.each(caller_names)('the SDK %s', (name) => {
  test.each([false, true])('throws HTTP errors with our message (streamed: %s)', async (stream) => {
    const ask = (model: string, place?: Place) => thrown(sdk.caller(name, place).ask({ model, stream }));
    const missing = await ask('acme/none');
    expect([missing.status, missing.error.message]).toEqual([404, expect.stringContaining('There is no model')]);
    const wrong_key = await ask('acme/oai', { ...poor, key: 'sk-medley-wrong' });
    expect(wrong_key.status).toBe(401);
    const unpaid = await ask('acme/oai', poor);
    expect([unpaid.status, unpaid.error.message]).toEqual([402, expect.stringMatching(/balance/i)]);
    sdk.upstream.script('broken', { status: 500, json: { error: { message: 'secret words' } } });
    const failed = await ask('acme/broken');
    expect([failed.status, failed.error.message]).toEqual([
      502,
      expect.stringMatching(/could not be reached|not available/),
    ]);
    sdk.upstream.script('silent', 'hang');
    const late = await ask('acme/silent');
    expect([late.status, late.error.message]).toEqual([504, expect.stringMatching(/in time/)]);
    sdk.upstream.script('gpt-x', {
      status: 400,
      json: { error: { message: 'too long', type: 'invalid_request_error' } },
    });
    const refused = await ask('acme/oai');
    expect([refused.status, refused.error.message]).toEqual([400, expect.stringContaining('too long')]);
  });
});

describe('a limit of one call a minute', () => {
  beforeAll(() => sdk.stage.test.configure(yamlOf(sdk.upstream, broken, '', { chat_per_minute: 1 })));
  afterAll(() => sdk.stage.test.configure(yamlOf(sdk.upstream, broken)));

  test.each(caller_names)('gives the second call of %s a 429 with a retry time', async (name) => {
    sdk.upstream.script('gpt-x', { json: completion('Hi') });
    const { key } = await sdk.stage.test.client();
    const caller = sdk.caller(name, { url: sdk.stage.test.url, key });
    expect((await caller.ask({ model: 'acme/oai', stream: false })).text).toBe('Hi');
    const { status, error } = await thrown(caller.ask({ model: 'acme/oai', stream: false }));
    expect([status, error.message]).toEqual([429, expect.stringMatching(/again in|limit|per minute/i)]);
  });
});

describe('the official SDK', () => {
  const messages = [{ role: 'user' as const, content: 'Hello' }];
  const bodyOf = (model: string) => ({ model, messages, max_tokens: 10 });
  const completions = ({ url, key }: Place) => ({ baseURL: `${url}/v1`, apiKey: key });
  const messaging = ({ url, key }: Place) => ({ baseURL: url, apiKey: key, authToken: null });
  type CallSdk = (place: Place, model: string) => PromiseLike<unknown>;
  const openai6: CallSdk = (place, model) => new OpenAI6(completions(place)).chat.completions.create(bodyOf(model));
  const openai7: CallSdk = (place, model) => new OpenAI7(completions(place)).chat.completions.create(bodyOf(model));
  const anthropic0: CallSdk = (place, model) => new Anthropic0(messaging(place)).messages.create(bodyOf(model));
  const anthropic1: CallSdk = (place, model) => new Anthropic1(messaging(place)).messages.create(bodyOf(model));

  test.each([
    ['openai 6', OpenAI6.NotFoundError, openai6],
    ['openai 7', OpenAI7.NotFoundError, openai7],
    ['@anthropic-ai/sdk 0', Anthropic0.NotFoundError, anthropic0],
    ['@anthropic-ai/sdk 1', Anthropic1.NotFoundError, anthropic1],
  ])(
    '%s throws the right class, type and request id, and waits as long as Retry-After says',
    async (_, NotFound, ask) => {
      const place = { url: sdk.stage.test.url, key: sdk.stage.client.key };
      const { error } = await thrown(Promise.resolve(ask(place, 'acme/none')));
      expect(error).toBeInstanceOf(NotFound);
      expect(error).toMatchObject({ status: 404, type: 'not_found', requestID: expect.stringMatching(/^req_/) });
      const limited = { status: 429, headers: { 'retry-after': '1' }, json: { error: { message: 'slow down' } } };
      sdk.upstream.script('gpt-x', limited, { json: completion('back') });
      const begun_at_ms = performance.now();
      expect(JSON.stringify(await ask(place, 'acme/oai'))).toContain('"back"');
      expect(performance.now() - begun_at_ms).toBeGreaterThan(900); // not the SDK's own 500 ms
    },
  );

  const timed_out = { status: 504, type: 'timeout', message: expect.stringContaining('did not answer in time') };
  test.each([
    ['openai 6', OpenAI6.InternalServerError, openai6],
    ['openai 7', OpenAI7.InternalServerError, openai7],
    ['@anthropic-ai/sdk 0', Anthropic0.InternalServerError, anthropic0],
    ['@anthropic-ai/sdk 1', Anthropic1.InternalServerError, anthropic1],
  ])('%s does not repeat a call that took all its time, which would cost as much again', async (_, Failed, ask) => {
    await sdk.stage.test.app.db.query('delete from route_health');
    elapse(1_100); // nodes believe what they have read for a second
    sdk.upstream.script('silent', 'hang');
    const asked_before = sdk.upstream.requests.length;
    const place = { url: sdk.stage.test.url, key: (await sdk.stage.test.client()).key };
    const { error } = await thrown(Promise.resolve(ask(place, 'acme/silent')));
    expect(error).toBeInstanceOf(Failed);
    expect(error).toMatchObject(timed_out);
    // None at all where the machine stood still for the time that this call has.
    expect(sdk.upstream.requests.length - asked_before).toBeLessThanOrEqual(1);
  });
});
