import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GuardError, openGuard, type Guard } from '../../../src/net/guard.ts';
import { openUpstream, type Upstream, type UpstreamOptions } from '../../../src/providers/http/http.ts';
import type { UpstreamParts } from '../../../src/providers/provider.ts';
import { startImitation, type Imitation } from '../imitations/imitation.ts';
import { configOf, never, secret, startRaw, untilClosed } from '../upstreams.ts';

const guard = openGuard();

const openTo = (url: string, options: UpstreamOptions = {}, own: Partial<UpstreamParts> = {}): Upstream =>
  openUpstream({ ...configOf('any', url), base_url: url }, { guard, ...own }, options);

const get = { method: 'GET', path: '/x', signal: never } as const;

describe('links of an upstream', () => {
  const hosts = ['api.example.com', '*.cluster.example.com'];
  const own = openTo('http://127.0.0.1:8080/v1', { hosts });

  it.each([
    'http://127.0.0.1:8080/other/path?x=1',
    'https://api.example.com/runs/1',
    'https://us1.cluster.example.com/runs/1',
    'https://a.b.cluster.example.com/',
  ])('may get the key: %s', (url) => {
    expect(own.link(url)).toBe(url);
  });

  it.each([
    'http://127.0.0.1:8081/v1',
    'https://127.0.0.1:8080/v1',
    'http://api.example.com/runs/1',
    'https://api.example.com:8443/runs/1',
    'https://key:x@api.example.com/runs/1',
    'https://cluster.example.com/',
    'https://evil-api.example.com/',
    'https://evilcluster.example.com/',
    'https://api.example.com.evil.example/',
    'javascript:alert(1)',
    '/runs/1',
    '',
    null,
    7,
    undefined,
  ])('never get the key: %j', (url) => {
    expect(own.link(url)).toBeUndefined();
  });

  it('are fetched only at their own hosts', async () => {
    const dialled: string[] = [];
    const connect: Guard['connect'] = async (url) => {
      dialled.push(url);
      throw new GuardError('connect', 'Nobody is there.');
    };
    const upstream = openTo('https://api.example.com/v1', { hosts }, { guard: { ...guard, connect } });
    const ask = (url: string) => upstream.call({ method: 'POST', url, signal: never });
    await expect(ask('https://us1.cluster.example.com/x')).rejects.toMatchObject({
      name: 'NotStarted',
      reason: 'unreachable',
    });
    await expect(ask('https://elsewhere.example/x')).rejects.toThrow('not its own');
    expect(dialled).toEqual(['https://us1.cluster.example.com']);
    await upstream.close();
  });
});

describe('a call to an upstream', () => {
  let imitation: Imitation;
  let upstream: Upstream;
  beforeEach(async () => {
    imitation = await startImitation({ roleOf: () => 'other', answer: () => ({ json: { ok: true } }) });
    upstream = openTo(`${imitation.url}/v1/`, { headers: () => ({ 'x-key': secret }) });
  });
  afterEach(async () => {
    await upstream.close();
    await imitation.stop();
  });

  it('has its path below the base, its query, its headers, and JSON', async () => {
    const json = { prompt: 'ąę' };
    const answer = await upstream.call({
      ...get,
      method: 'POST',
      query: { 'a b': 'c&d' },
      headers: { 'x-more': '1' },
      json,
    });
    expect(answer.object()).toEqual({ ok: true });
    expect(imitation.requests).toMatchObject([
      {
        method: 'POST',
        path: '/v1/x',
        query: { 'a b': 'c&d' },
        headers: { 'x-key': secret, 'x-more': '1', 'content-type': 'application/json', 'user-agent': 'Medley' },
        json,
      },
    ]);
  });

  it('may have a form or bytes', async () => {
    const form = new FormData();
    form.append('file', new Blob(['abc'], { type: 'audio/wav' }), 'a.wav');
    await upstream.call({ ...get, method: 'POST', form });
    await upstream.call({ ...get, method: 'PUT', body: Buffer.from('abc'), headers: { 'content-type': 'audio/wav' } });
    const [first, second] = imitation.requests;
    const sent = new Response(new Uint8Array(first?.body ?? []), {
      headers: { 'content-type': String(first?.headers['content-type']) },
    });
    const file = (await sent.formData()).get('file');
    expect(file).toMatchObject({ name: 'a.wav', type: 'audio/wav', size: 3 });
    expect(second?.body.toString()).toBe('abc');
  });

  it.each(['/../admin', '/runs/..', '/runs/%2e%2E/x', '/./x', '//elsewhere/x/..'])(
    'stays below its base for the path %s',
    async (path) => {
      await expect(upstream.call({ ...get, path })).rejects.toThrow('leads out of it');
      expect(imitation.requests).toEqual([]);
    },
  );

  it('reads only what it needs', async () => {
    imitation.instead('other', { json: 'x'.repeat(100_000) });
    await expect(upstream.call({ ...get, answer_bytes_max: 50_000 })).rejects.toThrow('larger than 50000');
    expect((await upstream.call(get)).status).toBe(200);
  });

  it('reads a limited part of a refusal, be it a page or endless', async () => {
    imitation.instead(
      'other',
      { status: 400, text: 'x'.repeat(3_000_000) },
      { status: 500, half: true, text: '<h1>Oops</h1>' },
    );
    const [long, half] = [await upstream.call(get), await upstream.call(get)];
    expect(long).toMatchObject({ status: 400, ok: false });
    expect(long.bytes.length).toBeLessThan(2_300_000);
    expect(half).toMatchObject({ status: 500, ok: false });
    expect(upstream.refusal(half)).toMatchObject({ name: 'NotStarted', reason: 'unavailable' });
  });

  it('reports responses that are not a JSON object', async () => {
    imitation.instead('other', { json: [1] }, { json: 'text' }, { text: '<h1>Hello</h1>' }, {});
    for (let i = 0; i < 4; i++) {
      const answer = await upstream.call(get);
      expect(() => answer.object()).toThrow(/JSON/);
    }
  });
});

describe('connections to an upstream', () => {
  const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}';

  it('are kept for polls, while each submit has its own, which nobody else can be closing', async () => {
    const raw = await startRaw((socket) => socket.on('data', () => socket.write(answer)));
    const upstream = openTo(raw.url);
    for (let i = 0; i < 10; i++) await upstream.call(get);
    expect(raw.sockets.length).toBeLessThanOrEqual(4); // not one for each, though some close while the machine stands still
    const before = raw.sockets.length;
    for (let i = 0; i < 5; i++) await upstream.call({ ...get, method: 'POST', json: {} });
    expect(raw.sockets.length - before).toBe(5);
    await Promise.all(raw.sockets.slice(before).map(untilClosed));
    await upstream.close();
    await Promise.all(raw.sockets.map(untilClosed));
    await raw.stop();
  });

  it('that end before a response leave the outcome of the call unknown', async () => {
    const raw = await startRaw((socket) => socket.once('data', () => socket.destroy()));
    const upstream = openTo(raw.url);
    const error: unknown = await upstream.call({ ...get, method: 'POST', json: {} }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toMatchObject({ name: 'NotStarted' });
    expect(raw.sockets).toHaveLength(1);
    await upstream.close();
    await raw.stop();
  });

  it('are not opened after the close, and earlier calls complete', async () => {
    const not_started = { name: 'NotStarted', reason: 'unavailable', simulated: true };
    const requests: string[] = [];
    const imitation = await startImitation({
      roleOf: ({ path }) => {
        requests.push(path);
        return 'other';
      },
      answer: () => ({ json: { ok: true } }),
    });
    const post = (path: string) => upstream.call({ path, method: 'POST', json: {}, signal: never });
    const upstream = openTo(imitation.url);
    const before = post('/before');
    await expect.poll(() => requests).toEqual(['/before']);
    const closing = upstream.close();
    await expect(post('/meanwhile')).rejects.toMatchObject(not_started);
    expect((await before).status).toBe(200);
    await closing;
    await expect(post('/after')).rejects.toMatchObject(not_started);
    await imitation.stop();
    expect(requests).toEqual(['/before']);
    const unused = openTo(imitation.url);
    await unused.close();
    await expect(unused.call({ ...get, method: 'POST', json: {} })).rejects.toMatchObject(not_started);
  });

  it("to private addresses are opened only when the provider's configuration permits them", async () => {
    const config = { ...configOf('any', 'http://10.0.0.1'), base_url: 'http://10.0.0.1', allow_private: false };
    const upstream = openUpstream(config, { guard });
    const submit = upstream.call({ ...get, method: 'POST', json: {} });
    await expect(submit).rejects.toMatchObject({ name: 'NotStarted', reason: 'unreachable' });
    // A run that is asked for is not dropped because we cannot ask.
    await expect(upstream.call(get)).rejects.toMatchObject({ name: 'GuardError', code: 'address_refused' });
    await upstream.close();
  });
});

describe('the rate limit of a key', () => {
  it('stops all polls after one is refused with Retry-After, and no submit', async () => {
    let now_ms = 0;
    const rate_clock = { now: () => now_ms, sleep: async (wait_ms: number) => void (now_ms += wait_ms) };
    const imitation = await startImitation({
      roleOf: ({ method }) => (method === 'GET' ? 'poll' : 'submit'),
      answer: () => ({ json: {} }),
    });
    const upstream = openTo(imitation.url, { rate_limit: { per_minute: 600, burst: 10 } }, { rate_clock });
    imitation.instead('poll', { status: 429, headers: { 'retry-after': '30' }, json: {} });
    expect((await upstream.call(get)).status).toBe(429);
    await expect(upstream.call(get)).rejects.toThrow('may not be asked for 30000 ms');
    expect((await upstream.call({ ...get, method: 'POST', json: {} })).status).toBe(200);
    now_ms = 30_000;
    expect((await upstream.call(get)).status).toBe(200);
    imitation.instead('poll', { status: 503, json: {} }); // says nothing of a pace
    expect((await upstream.call(get)).status).toBe(503);
    expect((await upstream.call(get)).status).toBe(200);
    expect(imitation.requestsFor('poll')).toHaveLength(4);
    await upstream.close();
    await imitation.stop();
  });
});

describe('a window of requests that is used up by its headers', () => {
  it('refuses the next submits of its model without asking, and no other one', async () => {
    const imitation = await startImitation({ roleOf: () => 'submit', answer: () => ({ json: {} }) });
    const upstream = openTo(imitation.url);
    const submit = (model: string) => upstream.call({ ...get, method: 'POST', json: { model } });
    const headers = { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '30s' };
    imitation.instead('submit', { headers, json: {} });
    expect((await submit('a')).ok).toBe(true);
    const refused = { name: 'NotStarted', reason: 'rate_limited', wait_basis: 'window' };
    await expect(submit('a')).rejects.toMatchObject(refused);
    expect((await submit('b')).ok).toBe(true);
    expect((await upstream.call({ ...get, method: 'POST' })).ok).toBe(true); // a cancel, which begins nothing
    expect(imitation.requests).toHaveLength(3);
    imitation.instead('submit', { status: 429, headers, json: {} });
    const error = upstream.refusal(await submit('c'));
    expect(error).toMatchObject({ ...refused, retry_after_ms: 30_000 });
    await upstream.close();
    await imitation.stop();
  });
});

describe('secrets', () => {
  it('in two parts are secret in each part', async () => {
    const imitation = await startImitation({
      roleOf: () => 'submit',
      answer: () => ({ status: 401, json: { message: 'no access for accesskey-12 with secretkey-34' } }),
    });
    const config = { ...configOf('any', imitation.url), base_url: imitation.url, api_key: 'accesskey-12:secretkey-34' };
    const upstream = openUpstream(config, { guard });
    const refused = upstream.refusal(await upstream.call({ ...get, method: 'POST', json: {} }));
    expect(refused.message).toBe('answered 401: no access for [key] with [key]');
    await upstream.close();
    await imitation.stop();
  });
});
