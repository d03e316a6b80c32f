import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { stopElapsing } from '../helpers/clock.ts';
import { speak } from '../hostile/speak.ts';

let test: TestApp;
let port: number;

beforeAll(async () => {
  test = await startTestApp({ worker: false, yaml: 'version: 1\nserver: { trusted_proxies: [127.0.0.1/32] }\n' });
  port = Number(new URL(test.url).port);
});

afterEach(() => {
  stopElapsing(false);
  vi.restoreAllMocks();
});
afterAll(() => test.stop());

let number = 0;

/** Sends only the head, and a body's beginning that is no JSON: what is answered was decided without it. */
async function answerToHead(path: string, length: number, from = `192.0.2.${++number}`) {
  const lines = [`POST ${path} HTTP/1.1`, 'host: a', `origin: ${test.url}`, 'content-type: application/json'];
  const head = [...lines, `x-forwarded-for: ${from}`, `content-length: ${length}`, 'connection: close'].join('\r\n');
  const { replies } = await speak(port, [`${head}\r\n\r\n]]]`], { enough: 1 });
  const [reply] = replies;
  return { status: reply?.status, headers: reply?.headers, text: String(reply?.body) };
}

describe('a request that needs no key', () => {
  it.each([
    ['/auth/nothing', 900_000, 404, 'There is nothing here.'],
    ['/auth/sign-in/social', 900_000, 404, 'There is nothing here.'],
    ['/auth/sign-in/email', 8_001, 413, 'larger than 8 kB'],
    ['/auth/sign-in/link', 900_000, 413, 'larger than 8 kB'],
    ['/stripe/webhook', 900_000, 404, 'There is nothing at POST /stripe/webhook.'],
  ])('is answered before its body is read: POST %s with %i bytes gets %i', async (path, length, status, message) => {
    const answer = await answerToHead(path, length);
    expect(answer).toMatchObject({ status, text: expect.stringContaining(message) });
  });

  it('is refused from another site before its body is read', async () => {
    const head =
      'POST /auth/sign-in/email HTTP/1.1\r\nhost: a\r\norigin: http://evil.example\r\ncontent-length: 7000\r\n';
    const { replies } = await speak(port, [`${head}content-type: application/json\r\n\r\n]]]`], { enough: 1 });
    expect(replies.map(({ status }) => status)).toEqual([403]);
  });

  it('an address that sends more than 300 requests in a minute is refused, and others are not', async () => {
    stopElapsing(true); // all of them within a minute, however slow this machine is
    const from = '2001:db8:0:ab00::1';
    const statuses = await Promise.all(
      Array.from({ length: 300 }, async () => (await answerToHead('/auth/nothing', 5, from)).status),
    );
    expect(new Set(statuses)).toEqual(new Set([404]));
    const neighbour = await answerToHead('/auth/sign-in/email', 900_000, '2001:db8:0:abff::2'); // in one /56
    expect(neighbour).toMatchObject({ status: 429, text: expect.stringContaining('from this address') });
    expect(Number(neighbour.headers?.get('retry-after'))).toBeGreaterThan(0);
    expect((await answerToHead('/auth/nothing', 5, '2001:db8:0:ac00::1')).status).toBe(404);
    expect((await answerToHead('/auth/nothing', 5)).status).toBe(404);
  });
});

it('a body of Stripe is parsed only after its signature is verified', async () => {
  const env = { STRIPE_SECRET_KEY: 'sk_test_x', STRIPE_WEBHOOK_SECRET: 'whsec_x' };
  const node = await startTestApp({ worker: false, env });
  try {
    const post = (headers: Record<string, string>) =>
      fetch(`${node.url}/stripe/webhook`, {
        method: 'POST',
        body: ']]] no JSON',
        headers: { 'content-type': 'application/json', ...headers },
      }).then(async (answer) => ({ status: answer.status, text: await answer.text() }));
    const unsigned = { status: 400, text: expect.stringContaining('signature is not by Stripe') };
    expect(await post({})).toMatchObject(unsigned);
    expect(await post({ 'stripe-signature': `t=${Math.floor(Date.now() / 1000)},v1=00` })).toMatchObject(unsigned);
  } finally {
    await node.stop();
  }
});
