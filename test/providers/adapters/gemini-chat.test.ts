import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { gemini } from '../../../src/providers/adapters/gemini/adapter.ts';
import { startChatUpstream, type ChatUpstream } from '../../helpers/chat-upstream.ts';
import { callOf, configOf, never, secret, textOf } from '../upstreams.ts';

const guard = openGuard();
let upstream: ChatUpstream;

beforeAll(async () => {
  upstream = await startChatUpstream();
  upstream.script('m', { json: { hello: 1 } });
});
afterAll(() => upstream.stop());

const body = { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] };
const call = (more: object = {}) => callOf('gemini', { body, ...more });
const open = (path = '') => gemini.openChat(configOf('gemini', upstream.url + path), { guard });

describe("an upstream of Gemini's style", () => {
  it('gets the key, the model in the path, and the unchanged body', async () => {
    const provider = open();
    expect(provider.styles.map(({ name }) => name)).toEqual(['gemini']);
    expect(await textOf(provider, call())).toBe('{"hello":1}');
    const request = upstream.requests.at(-1);
    expect(request).toMatchObject({ path: '/v1beta/models/m:generateContent', body });
    expect(request?.headers).toMatchObject({ 'x-goog-api-key': secret, accept: 'application/json' });
    await provider.close?.();
  });

  it.each([
    ['', 'm', '/v1beta/models/m:generateContent'],
    ['/v1beta/', 'm', '/v1beta/models/m:generateContent'],
    ['/v1', 'models/m', '/v1/models/m:generateContent'],
    ['/proxy', 'm', '/proxy/v1beta/models/m:generateContent'],
    ['', 'tunedModels/m a?', '/v1beta/tunedModels/m%20a%3F:generateContent'],
  ])('has its path after the base URL %j for the model %j', async (path, model, expected) => {
    const provider = open(path);
    await textOf(provider, call({ model })).catch(() => undefined);
    expect(upstream.requests.at(-1)?.path).toBe(expected);
    await provider.close?.();
  });

  it('is asked for a stream of events when the caller streams', async () => {
    const provider = open();
    upstream.script('s', { stream: ['data: {}\r\n\r\n'] });
    expect(await textOf(provider, call({ model: 's', stream: true }))).toBe('data: {}\r\n\r\n');
    const request = upstream.requests.at(-1);
    expect(request?.path).toBe('/v1beta/models/s:streamGenerateContent?alt=sse');
    expect(request?.headers.accept).toBe('text/event-stream');
    await provider.close?.();
  });

  it('gets the safety settings of the route', async () => {
    const provider = open();
    upstream.script('m', { json: { hello: 1 } });
    const safety_settings = [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }];
    await textOf(provider, call({ options: { safety_settings, thinking: 'budget' } }));
    expect(upstream.requests.at(-1)?.body).toEqual({ ...body, safetySettings: safety_settings });
    const problems = (options: JsonObject) => gemini.checkChatOptions(options).map(({ field }) => field);
    expect(problems({ safety_settings, thinking: 'budget', result_media: false })).toEqual([]);
    expect(problems({ safety_settings: 'none', thinking: 'much', temprature: 1 }).toSorted()).toEqual([
      'safety_settings',
      'temprature',
      'thinking',
    ]);
    await provider.close?.();
  });

  it('has a default address when the file names none', async () => {
    const { base_url: _, ...config } = configOf('gemini', upstream.url);
    const refusing = { ...guard, connect: (url: string) => Promise.reject(new Error(`asked for ${url}`)) };
    const provider = gemini.openChat(config, { guard: refusing });
    await expect(provider.send(call(), never)).rejects.toThrow('asked for https://generativelanguage.googleapis.com');
    await provider.close?.();
  });
});

describe('counting tokens', () => {
  it('asks the upstream with the whole request', async () => {
    const provider = open();
    upstream.script('c', { json: { totalTokens: 17 } });
    expect(await provider.countTokens?.(call({ model: 'c' }), never)).toBe(17);
    const request = upstream.requests.at(-1);
    expect(request).toMatchObject({ path: '/v1beta/models/c:countTokens' });
    expect(request?.body).toEqual({ generateContentRequest: { model: 'models/c', ...body } });
    expect(request?.headers['x-goog-api-key']).toBe(secret);
    await provider.close?.();
  });

  it.each([[{ totalTokens: -1 }], [{ totalTokens: '5' }], [{}]])('rejects a count like %j', async (json) => {
    const provider = open();
    upstream.script('c', { json });
    await expect(provider.countTokens?.(call({ model: 'c' }), never)).rejects.toThrow('is no number');
    await provider.close?.();
  });
});

describe('unknown thought signatures', () => {
  const part = (name: string, thoughtSignature?: string) => ({
    functionCall: { id: name, name, args: {} },
    ...(thoughtSignature !== undefined && { thoughtSignature }),
  });
  const unknown = { status: 400, json: { error: { code: 400, message: 'Corrupted thought signature.' } } };
  const of = (...contents: JsonObject[]) => ({ contents, generationConfig: { maxOutputTokens: 9 } });
  const sealed = of(
    { role: 'user', parts: [{ text: 'Hi' }] },
    { role: 'model', parts: [{ text: 'Hm', thoughtSignature: 'old' }, part('a', 'old'), part('b')] },
  );

  it('are left out once', async () => {
    const provider = open();
    upstream.script('m', unknown, { json: { hello: 1 } });
    const requests_before = upstream.requests.length;
    expect(await textOf(provider, call({ body: sealed }))).toBe('{"hello":1}');
    expect(upstream.requests.slice(requests_before).map((one) => one.body)).toEqual([
      sealed,
      of(
        { role: 'user', parts: [{ text: 'Hi' }] },
        { role: 'model', parts: [{ text: 'Hm' }, part('a', 'skip_thought_signature_validator'), part('b')] },
      ),
    ]);
    upstream.script('m', unknown);
    await expect(provider.send(call({ body: sealed }), never)).rejects.toMatchObject({ name: 'InputRefused' });
    expect(upstream.requests).toHaveLength(requests_before + 4);
    await provider.close?.();
  });

  it.each([
    ['nothing to leave out', body, unknown],
    ['another refusal', sealed, { status: 400, json: { error: { code: 400, message: 'Too long' } } }],
    ['trouble of its own', sealed, { status: 503, json: { error: { message: 'thought signature service' } } }],
  ])('are left out of no other request: %s is sent once', async (_, fields, script) => {
    const provider = open();
    upstream.script('m', script);
    const requests_before = upstream.requests.length;
    await expect(provider.send(call({ body: fields }), never)).rejects.toThrow(/thought signature|Too long/);
    expect(upstream.requests).toHaveLength(requests_before + 1);
    await provider.close?.();
  });
});

const info = (reason: string) => [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason }];
const quota = (quotaId: string) => ({ violations: [{ quotaId }] });
const retry = (retryDelay: string) => ({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay });
const exceeded = 'You exceeded your current quota, please check your plan and billing details.';

describe('a refusal of Gemini', () => {
  it.each<[string, number, object, object]>([
    [
      'a key that is not valid, told as a mistake in the request',
      400,
      { message: 'Bad', status: 'INVALID_ARGUMENT', details: info('API_KEY_INVALID') },
      { name: 'NotStarted', reason: 'rejected_credentials' },
    ],
    [
      'a place that is not served',
      400,
      { message: 'User location is not supported for the API use.', status: 'FAILED_PRECONDITION' },
      { name: 'NotStarted', reason: 'rejected_credentials' },
    ],
    [
      'a key without permission',
      403,
      { message: 'Blocked', status: 'PERMISSION_DENIED', details: info('API_KEY_SERVICE_BLOCKED') },
      { name: 'NotStarted', reason: 'rejected_credentials' },
    ],
    [
      'a mistake in the request',
      400,
      { message: 'Unsupported MIME type: image/svg+xml', status: 'INVALID_ARGUMENT' },
      { name: 'InputRefused', type: 'invalid_request', message: 'Unsupported MIME type: image/svg+xml' },
    ],
    [
      'a caller’s words that look like a code',
      400,
      { message: 'Unknown name "API_KEY_INVALID" at tools[0]', status: 'INVALID_ARGUMENT' },
      { name: 'InputRefused' },
    ],
    [
      'a pace, in details',
      429,
      { message: exceeded, status: 'RESOURCE_EXHAUSTED', details: [quota('PerMinute'), retry('34.4s')] },
      { name: 'NotStarted', reason: 'rate_limited', retry_after_ms: 34_400 },
    ],
    [
      'a quota of the day, whatever pause is told',
      429,
      { message: exceeded, status: 'RESOURCE_EXHAUSTED', details: [quota('RequestsPerDayPerProject'), retry('2s')] },
      { name: 'NotStarted', reason: 'rate_limited', retry_after_ms: 300_000 },
    ],
    [
      'no money any more',
      429,
      { message: exceeded, status: 'RESOURCE_EXHAUSTED' },
      { name: 'NotStarted', reason: 'rejected_credentials' },
    ],
    [
      'a model that is not there',
      404,
      { message: 'models/m is not found for API version v1beta', status: 'NOT_FOUND' },
      { name: 'NotStarted', reason: 'unavailable' },
    ],
    ['no time', 504, { message: 'Deadline', status: 'DEADLINE_EXCEEDED' }, { name: 'NotStarted', reason: 'timeout' }],
    [
      'too much work',
      503,
      { message: 'Overloaded', status: 'UNAVAILABLE' },
      { name: 'NotStarted', reason: 'unavailable' },
    ],
  ])('is recognized: %s', async (_, status, error, expected) => {
    const provider = open();
    const answer = { error: { code: status, ...error } };
    for (const json of [answer, [answer]]) {
      upstream.script('m', { status, json });
      await expect(provider.send(call(), never)).rejects.toMatchObject(expected);
    }
    await provider.close?.();
  });
});
