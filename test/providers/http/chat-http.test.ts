import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openGuard } from '../../../src/net/guard.ts';
import { openai } from '../../../src/providers/adapters/openai/adapter.ts';
import { startChatUpstream, type ChatUpstream } from '../../helpers/chat-upstream.ts';
import { untilStill } from '../../helpers/still.ts';
import { callOf, configOf, never, secret, startRaw, textOf, untilClosed } from '../upstreams.ts';

const guard = openGuard();
let upstream: ChatUpstream;

beforeAll(async () => {
  upstream = await startChatUpstream();
});
afterAll(() => upstream.stop());

const open = (url: string, more: object = {}) => openai.openChat(configOf('openai', url, more), { guard });
const call = (model: string) => callOf('completions', { body: { model }, stream: true });

/** An answer of HTTP that begins a stream. */
const stream_head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

describe('a chat call to an unreachable upstream is reported as not started', () => {
  it('when nobody listens', async () => {
    const gone = await startRaw(() => undefined);
    await gone.stop();
    const provider = open(gone.url);
    await expect(provider.send(call('m'), never)).rejects.toMatchObject({ name: 'NotStarted', reason: 'unreachable' });
    await provider.close?.();
  });

  it('when the name has no address', async () => {
    const provider = openai.openChat(configOf('openai', 'http://nowhere.example.com/v1'), {
      guard: openGuard({ resolve: () => Promise.reject(new Error('ENOTFOUND')) }),
    });
    await expect(provider.send(call('m'), never)).rejects.toMatchObject({ name: 'NotStarted' });
    await provider.close?.();
  });

  it.each(['http://127.0.0.1:9', 'http://10.0.0.1', 'http://169.254.169.254', 'http://[::1]:9', 'http://localhost:9'])(
    'when the address is private and not permitted: %s',
    async (url) => {
      const provider = open(url, { allow_private: false });
      await expect(provider.send(call('m'), never)).rejects.toMatchObject({
        name: 'NotStarted',
        reason: 'unreachable',
      });
      await provider.close?.();
    },
  );

  it('when connecting takes too long', async () => {
    const silent = { ...guard, connect: openGuard({ resolve: () => new Promise(() => undefined) }).connect };
    const provider = openai.openChat(configOf('openai', 'http://slow.example.com'), { guard: silent });
    const timeout_ms = { connect: 50, first_byte: 1, idle: 1, start: 1, total: 1 };
    const late = provider.send(callOf('completions', { timeout_ms }), never);
    await expect(late).rejects.toMatchObject({ name: 'NotStarted', reason: 'timeout' });
    await provider.close?.();
  });
});

describe('an upstream that breaks off before its response', () => {
  it('is not reported as not started, because it may have started', async () => {
    upstream.script('cut', 'cut');
    const provider = open(upstream.url);
    const error: unknown = await provider.send(call('cut'), never).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toMatchObject({ name: 'NotStarted' });
    await provider.close?.();
  });
});

describe('a refusal of an upstream', () => {
  it('is read with its Retry-After, and without our key in its message', async () => {
    upstream.script('r', {
      status: 429,
      headers: { 'retry-after': '3' },
      json: { error: { message: `Slow down, ${secret}` } },
    });
    const provider = open(upstream.url);
    const refused = provider.send(call('r'), never);
    const expected = { reason: 'rate_limited', retry_after_ms: 3_000, message: 'answered 429: Slow down, [key]' };
    await expect(refused).rejects.toMatchObject(expected);
    await provider.close?.();
  });

  it('of any length is read up to a limit', async () => {
    upstream.script('r', { status: 400, json: `{"error":{"message":"${'x '.repeat(1_000_000)}"}}` });
    const provider = open(upstream.url);
    await expect(provider.send(call('r'), never)).rejects.toMatchObject({ name: 'InputRefused' });
    await provider.close?.();
  });

  it('that breaks off still counts as a refusal', async () => {
    const raw = await startRaw((socket) => {
      socket.once('data', () => {
        socket.end('HTTP/1.1 503 Oops\r\ncontent-length: 1000\r\n\r\n{"error"');
      });
    });
    const provider = open(raw.url);
    await expect(provider.send(call('m'), never)).rejects.toMatchObject({ name: 'NotStarted', reason: 'unavailable' });
    await provider.close?.();
    await raw.stop();
  });

  it('includes redirects: keys go to no other address', async () => {
    const other = await startChatUpstream();
    upstream.script('r', { status: 307, headers: { location: `${other.url}/v1/chat/completions` }, json: {} });
    const provider = open(upstream.url);
    await expect(provider.send(call('r'), never)).rejects.toMatchObject({ name: 'NotStarted', reason: 'unavailable' });
    expect(other.requests).toEqual([]);
    await provider.close?.();
    await other.stop();
  });
});

describe('connections to an upstream', () => {
  it('are reused and are closed with the provider', async () => {
    const raw = await startRaw((socket) => {
      socket.on('data', (bytes) => {
        if (bytes.at(-1) === 0x7d) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'); // the body's last }
      });
    });
    const provider = open(raw.url);
    for (let i = 0; i < 20; i++) expect(await textOf(provider, call('m'))).toBe('{}');
    // Few: one is not yet free in the moment in which its answer has been read, or was closed while the machine stood still.
    expect(raw.sockets.length).toBeLessThanOrEqual(5);
    const closed = Promise.all(raw.sockets.map(untilClosed));
    await provider.close?.();
    await closed;
    await raw.stop();
  });

  it('are one for each call in flight', async () => {
    const raw = await startRaw((socket) => void socket.once('data', () => socket.write(stream_head)));
    const provider = open(raw.url);
    const stop = new AbortController();
    await Promise.all(Array.from({ length: 20 }, () => provider.send(call('m'), stop.signal)));
    expect(raw.sockets).toHaveLength(20);
    stop.abort();
    await Promise.all(raw.sockets.map(untilClosed));
    await provider.close?.();
    await raw.stop();
  });

  it.each(['before the answer', 'in the middle of it'])('are closed when the caller disconnects %s', async (moment) => {
    const request_came = Promise.withResolvers<void>();
    const raw = await startRaw((socket) => {
      socket.once('data', () => {
        if (moment !== 'before the answer') socket.write(stream_head + chunk('data: 1\n\n'));
        request_came.resolve();
      });
    });
    const provider = open(raw.url);
    const stop = new AbortController();
    const reading = textOf(provider, call('m'), stop.signal).catch((error: unknown) => error);
    await request_came.promise;
    const [socket] = raw.sockets;
    const closed = untilClosed(socket);
    stop.abort(new Error('the caller is gone'));
    await closed;
    expect(await reading).toBeInstanceOf(Error);
    await provider.close?.();
    await raw.stop();
  });
});

describe('a fast upstream with a slow reader', () => {
  it('is slowed down, so that nothing accumulates here', async () => {
    let written = 0;
    const block = chunk(`data: ${'x'.repeat(65_000)}\n\n`);
    const blocked = Promise.withResolvers<void>();
    const raw = await startRaw((socket) => {
      socket.once('data', () => {
        socket.write(stream_head);
        const pump = () => {
          let more = true;
          while (more && written < 512 * 1_048_576) {
            more = socket.write(block);
            written += block.length;
          }
          blocked.resolve();
          socket.once('drain', pump);
        };
        pump();
      });
    });
    const provider = open(raw.url);
    const stop = new AbortController();
    const { body } = await provider.send(call('m'), stop.signal);
    const iterator = body[Symbol.asyncIterator]();
    expect((await iterator.next()).done).toBe(false);
    await blocked.promise;
    // Until three looks in a row see nothing new: the buffers of both kernels and of undici are full.
    expect(await untilStill(() => written)).toBeLessThan(32 * 1_048_576);
    stop.abort();
    await iterator.next().catch(() => undefined);
    await setImmediate();
    await provider.close?.();
    await raw.stop();
  });
});

describe.concurrent('kept-alive connections', () => {
  const answer = (head = '') =>
    `HTTP/1.1 200 OK\r\n${head}content-type: application/json\r\ncontent-length: 2\r\n\r\n{}`;
  /** Many close a connection after 5 s and do not say so. */
  const late_ms = 4_500;

  it('are reused, but not so late that an upstream may close them at the same moment', async () => {
    const upstream_raw = await startRaw((socket) => void socket.on('data', () => socket.write(answer())));
    const provider = open(upstream_raw.url);
    const ask = () => textOf(provider, callOf('completions'));
    for (let i = 0; i < 10; i++) await ask();
    const used = upstream_raw.sockets.length;
    expect(used).toBeLessThanOrEqual(5); // as above
    await sleep(late_ms);
    await ask();
    expect(upstream_raw.sockets).toHaveLength(used + 1);
    await provider.close?.();
    await upstream_raw.stop();
  });

  it('are reused for as long as the upstream permits', async () => {
    const head = 'keep-alive: timeout=20\r\n';
    const upstream_raw = await startRaw((socket) => void socket.on('data', () => socket.write(answer(head))));
    const provider = open(upstream_raw.url);
    await textOf(provider, callOf('completions'));
    await sleep(late_ms);
    await textOf(provider, callOf('completions'));
    expect(upstream_raw.sockets).toHaveLength(1);
    await provider.close?.();
    await upstream_raw.stop();
  });

  it('bodies that are sent piece by piece arrive whole', async () => {
    upstream.script('large', { json: {} });
    const content = 'Grüße 😀 '.repeat(40_000);
    const provider = open(upstream.url);
    await textOf(provider, callOf('completions', { body: { model: 'large', content } }));
    expect(upstream.requests.at(-1)?.body).toEqual({ model: 'large', content });
    expect(upstream.requests.at(-1)?.headers['transfer-encoding']).toBeUndefined();
    await provider.close?.();
  });
});
