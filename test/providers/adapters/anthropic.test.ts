import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openGuard } from '../../../src/net/guard.ts';
import { anthropic } from '../../../src/providers/adapters/anthropic/adapter.ts';
import { startChatUpstream, type ChatUpstream } from '../../helpers/chat-upstream.ts';
import { callOf, configOf, never, secret, textOf } from '../upstreams.ts';

const guard = openGuard();
let upstream: ChatUpstream;

beforeAll(async () => {
  upstream = await startChatUpstream();
  upstream.script('m', { json: { hello: 1 } });
});
afterAll(() => upstream.stop());

const open = (path = '') => anthropic.openChat(configOf('anthropic', upstream.url + path), { guard });

describe('an upstream of messages style', () => {
  it('gets the key, a version and the unchanged body', async () => {
    const provider = open();
    const call = callOf('messages');
    expect(await textOf(provider, call)).toBe('{"hello":1}');
    const request = upstream.requests.at(-1);
    expect(request).toMatchObject({ path: '/v1/messages', body: call.body });
    expect(request?.headers).toMatchObject({
      'x-api-key': secret,
      'anthropic-version': '2023-06-01',
      accept: 'application/json',
    });
    expect(request?.headers.authorization).toBeUndefined();
    await provider.close?.();
  });

  it("gets the caller's version and betas, but never a key of the caller's", async () => {
    const provider = open();
    const headers = {
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'a-1,b-2',
      'x-api-key': 'mdl_of_the_caller',
    };
    await textOf(provider, callOf('messages', { headers }));
    const sent = { 'anthropic-version': '2026-10-21', 'anthropic-beta': 'a-1,b-2', 'x-api-key': secret };
    expect(upstream.requests.at(-1)?.headers).toMatchObject(sent);
    await provider.close?.();
  });

  it.each([
    ['', '/v1/messages'],
    ['/', '/v1/messages'],
    ['/v1', '/v1/messages'],
    ['/v1/', '/v1/messages'],
    ['/anthropic', '/anthropic/v1/messages'],
    ['/anthropic/v1', '/anthropic/v1/messages'],
  ])('has its path after the base URL %j, with or without /v1', async (path, expected) => {
    const provider = open(path);
    await textOf(provider, callOf('messages'));
    expect(upstream.requests.at(-1)?.path).toBe(expected);
    await provider.close?.();
  });

  it('is asked for a stream of events when the caller streams', async () => {
    const provider = open();
    upstream.script('s', { stream: ['event: ping\n', 'data: {}\n\n'] });
    const call = callOf('messages', { stream: true, body: { model: 's', stream: true } });
    expect(await textOf(provider, call)).toBe('event: ping\ndata: {}\n\n');
    expect(upstream.requests.at(-1)?.headers.accept).toBe('text/event-stream');
    await provider.close?.();
  });

  it('has a default address when the file names none', async () => {
    const { base_url: _, ...config } = configOf('anthropic', upstream.url);
    const refusing = { ...guard, connect: (url: string) => Promise.reject(new Error(`asked for ${url}`)) };
    const provider = anthropic.openChat(config, { guard: refusing });
    await expect(provider.send(callOf('messages'), never)).rejects.toThrow('asked for https://api.anthropic.com');
    await provider.close?.();
  });

  it('offers chat and no media', () => {
    expect((['chat', 'image', 'video', 'audio'] as const).map(anthropic.serves)).toEqual([true, false, false, false]);
    expect(open().styles.map(({ name }) => name)).toEqual(['messages']);
  });
});

describe('counting tokens', () => {
  it('asks the upstream', async () => {
    const provider = open('/v1');
    upstream.script('c', { json: { input_tokens: 17 } });
    const call = callOf('messages', { body: { model: 'c', messages: [] }, headers: { 'anthropic-beta': 'x' } });
    expect(await provider.countTokens?.(call, never)).toBe(17);
    const request = upstream.requests.at(-1);
    expect(request).toMatchObject({ path: '/v1/messages/count_tokens', body: call.body });
    expect(request?.headers).toMatchObject({
      'x-api-key': secret,
      'anthropic-beta': 'x',
      'anthropic-version': '2023-06-01',
    });
    await provider.close?.();
  });

  it.each([
    [{ input_tokens: -1 }, 'is no number'],
    [{ input_tokens: 1.5 }, 'is no number'],
    [{ input_tokens: '5' }, 'is no number'],
    [{ input_tokens: 1e300 }, 'is no number'],
    [{}, 'is no number'],
    ['no JSON', 'not valid JSON'],
    [`{"input_tokens":1,"x":"${'x'.repeat(70_000)}"}`, 'larger than 65536 bytes'],
  ])('rejects a count like %.60j', async (json, problem) => {
    const provider = open();
    upstream.script('c', { json });
    const call = callOf('messages', { body: { model: 'c' } });
    await expect(provider.countTokens?.(call, never)).rejects.toThrow(problem);
    await provider.close?.();
  });

  it('fails when the upstream refuses to count', async () => {
    const provider = open();
    upstream.script('c', { status: 404, json: {} });
    const counted = provider.countTokens?.(callOf('messages', { body: { model: 'c' } }), never);
    await expect(counted).rejects.toMatchObject({ name: 'NotStarted' });
    await provider.close?.();
  });
});
