import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openGuard } from '../../../src/net/guard.ts';
import { openai } from '../../../src/providers/adapters/openai/adapter.ts';
import { startChatUpstream, type ChatUpstream } from '../../helpers/chat-upstream.ts';
import { callOf, configOf, never, secret, textOf } from '../upstreams.ts';

const guard = openGuard();
let upstream: ChatUpstream;

beforeAll(async () => {
  upstream = await startChatUpstream();
  upstream.script('m', { json: { hello: 1 } });
});
afterAll(() => upstream.stop());

const open = (path: string, more: object = {}) =>
  openai.openChat(configOf('openai', upstream.url + path, more), { guard });

describe('an upstream of completions style', () => {
  it('gets the key and the unchanged body, and its response is relayed byte for byte', async () => {
    const provider = open('/v1');
    const call = callOf('completions', { headers: { 'anthropic-version': 'x', 'anthropic-beta': 'y' } });
    expect(await textOf(provider, call)).toBe('{"hello":1}');
    const request = upstream.requests.at(-1);
    expect(request).toMatchObject({ path: '/v1/chat/completions', body: call.body });
    expect(request?.headers).toMatchObject({
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      accept: 'application/json',
      'user-agent': 'Medley',
    });
    expect(Object.keys(request?.headers ?? {}).filter((name) => name.startsWith('anthropic'))).toEqual([]);
    await provider.close?.();
  });

  it('without a key is called without one', async () => {
    const { api_key: _, ...config } = configOf('openai', `${upstream.url}/v1`);
    const provider = openai.openChat(config, { guard });
    await textOf(provider, callOf('completions'));
    expect(upstream.requests.at(-1)?.headers.authorization).toBeUndefined();
    await provider.close?.();
  });

  it.each([
    ['/v1', '/v1/chat/completions'],
    ['/v1/', '/v1/chat/completions'],
    ['/openai/v1//', '/openai/v1/chat/completions'],
    ['', '/chat/completions'],
    ['/', '/chat/completions'],
  ])('has its path after the base URL %j, as in the official SDK', async (path, expected) => {
    const provider = open(path);
    await textOf(provider, callOf('completions'));
    expect(upstream.requests.at(-1)?.path).toBe(expected);
    await provider.close?.();
  });

  it('is asked for a stream of events when the caller streams', async () => {
    const provider = open('/v1');
    upstream.script('s', { stream: ['data: {"a":', 5, '1}\n\n', 'data: [DONE]\n\n'] });
    const call = callOf('completions', { stream: true, body: { model: 's', stream: true } });
    expect(await textOf(provider, call)).toBe('data: {"a":1}\n\ndata: [DONE]\n\n');
    expect(upstream.requests.at(-1)?.headers.accept).toBe('text/event-stream');
    await provider.close?.();
  });

  it('has a default address when the file names none', async () => {
    const { base_url: _, ...config } = configOf('openai', upstream.url);
    const refusing = { ...guard, connect: (url: string) => Promise.reject(new Error(`asked for ${url}`)) };
    const provider = openai.openChat(config, { guard: refusing });
    await expect(provider.send(callOf('completions'), never)).rejects.toThrow('asked for https://api.openai.com');
    await provider.close?.();
  });

  it('offers chat and all kinds of media, and counts no tokens', () => {
    expect((['chat', 'image', 'video', 'audio'] as const).map(openai.serves)).toEqual([true, true, true, true]);
    const provider = open('/v1');
    expect([provider.styles.map(({ name }) => name), provider.countTokens]).toEqual([['completions'], undefined]);
  });
});
