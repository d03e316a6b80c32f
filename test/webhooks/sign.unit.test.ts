import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { hasSignature, secretsAt, signedHeaders } from '../../src/webhooks/sign.ts';

const current = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
const before = `whsec_${Buffer.alloc(32, 2).toString('base64')}`;
const body = Buffer.from('{"id":"task_1","prompt":"ł 😀"}');
const message = { id: 'dlv_1', event: 'task.succeeded', body, sent_at_ms: Date.now() };

test('the signature of the specification is sha256= and lowercase hex over the raw bytes, keyed with the secret as shown', () => {
  const headers = signedHeaders(message, [current]);
  expect(headers['x-service-signature']).toBe(`sha256=${createHmac('sha256', current).update(body).digest('hex')}`);
  expect(headers['x-service-event']).toBe('task.succeeded');
  expect(headers['content-type']).toBe('application/json');
});

test('a signature equals a published example', () => {
  const headers = signedHeaders({ ...message, body: Buffer.from('{}'), sent_at_ms: 1_700_000_000_999 }, ['whsec_AAAA']);
  // openssl: printf '{}' | openssl dgst -sha256 -hmac whsec_AAAA
  expect(headers['x-service-signature']).toBe(
    'sha256=be82b4032f683bd9abd5e7d6e03c84fff89c5d2219dad97a6c3130bcab2a28d1',
  );
  expect(headers['webhook-timestamp']).toBe('1700000000');
});

test('the package of Standard Webhooks verifies either secret after a rotation and refuses a changed byte', () => {
  const headers = signedHeaders(message, [current, before]);
  for (const secret of [current, before])
    expect(new Webhook(secret).verify(body, headers)).toMatchObject({ id: 'task_1' });
  expect(() => new Webhook(current).verify(Buffer.from('{"id":"task_2"}'), headers)).toThrow(
    'No matching signature found',
  );
  expect(() => new Webhook(current).verify(body, { ...headers, 'webhook-id': 'dlv_2' })).toThrow(
    'No matching signature found',
  );
  const old = signedHeaders({ ...message, sent_at_ms: Date.now() - 3_600_000 }, [current]);
  expect(() => new Webhook(current).verify(body, old)).toThrow(/old/);
});

test('the old secret signs for 24 hours and not a moment longer, and never the first header', () => {
  const rotated_at = new Date('2026-11-21T12:00:00Z');
  const account = { webhook_secret: current, webhook_secret_before: before, webhook_secret_rotated_at: rotated_at };
  const day = 86_400_000;
  expect(secretsAt(account, rotated_at.getTime() + day - 1)).toEqual([current, before]);
  expect(secretsAt(account, rotated_at.getTime() + day)).toEqual([current]);
  expect(signedHeaders(message, [current, before])['x-service-signature']).toBe(
    signedHeaders(message, [current])['x-service-signature'],
  );
});

test('our example receiver compares in constant time and refuses a request without a signature', () => {
  const signature = signedHeaders(message, [current])['x-service-signature'] ?? '';
  expect(hasSignature(body, signature, current)).toBe(true);
  for (const wrong of ['', 'sha256=', signature.toUpperCase(), signature.slice(0, -1), `${signature}0`])
    expect(hasSignature(body, wrong, current)).toBe(false);
  expect(hasSignature(body, signature, before)).toBe(false);
});
