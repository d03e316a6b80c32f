import { createHmac, timingSafeEqual } from 'node:crypto';

/** The signed message: the stored bytes, and the facts about them in the headers. */
export type Message = { id: string; event: string; body: Buffer; sent_at_ms: number };

/** The account's secrets as they are shown: the current one, then the one that was rotated out within 24 h. */
export type Secrets = readonly [current: string, before?: string];

const overlap_ms = 86_400_000;

type RotatedSecret = {
  webhook_secret: string;
  webhook_secret_before: string | null;
  webhook_secret_rotated_at: Date | null;
};

/** The secrets that sign for an account at this time. */
export function secretsAt(account: RotatedSecret, now_ms: number): Secrets {
  const { webhook_secret, webhook_secret_before, webhook_secret_rotated_at } = account;
  const overlaps = webhook_secret_rotated_at !== null && now_ms - webhook_secret_rotated_at.getTime() < overlap_ms;
  return overlaps && webhook_secret_before !== null ? [webhook_secret, webhook_secret_before] : [webhook_secret];
}

/** Returns the time until which the secret before signs, too; undefined if it does not. */
export function overlapEnd(account: RotatedSecret, now_ms: number): Date | undefined {
  const [, before] = secretsAt(account, now_ms);
  if (before === undefined || account.webhook_secret_rotated_at === null) return undefined;
  return new Date(account.webhook_secret_rotated_at.getTime() + overlap_ms);
}

/**
 * The headers of one attempt: those of the specification (part 6.2), and beside them the trio of
 * Standard Webhooks (github.com/standard-webhooks), which signs the time too and so protects against
 * replays. `x-service-signature` is keyed with the whole text of the current secret,
 * `webhook-signature` with the bytes that each secret's base64 stands for.
 */
export function signedHeaders(message: Message, secrets: Secrets): Record<string, string> {
  const seconds = secondsOf(message);
  return headersWith(message, {
    body: bodySignature(message.body, secrets[0]),
    standard: secrets
      .filter((secret) => secret !== undefined)
      .map((secret) => standardSignature(message.id, seconds, message.body, secret))
      .join(' '),
  });
}

/** The same for people, without the signatures: they are made of a secret that may be another one by now. */
export function shownHeaders(message: Omit<Message, 'body'>): Record<string, string> {
  return headersWith(message, { body: 'sha256=…', standard: 'v1,…' });
}

function headersWith(
  message: Omit<Message, 'body'>,
  signatures: { body: string; standard: string },
): Record<string, string> {
  const seconds = secondsOf(message);
  return {
    'content-type': 'application/json',
    'user-agent': 'Medley-Webhooks/1',
    'x-service-event': message.event,
    'x-service-signature': signatures.body,
    'x-service-delivery': message.id,
    'x-service-timestamp': seconds,
    'webhook-id': message.id,
    'webhook-timestamp': seconds,
    'webhook-signature': signatures.standard,
  };
}

function secondsOf({ sent_at_ms }: Pick<Message, 'sent_at_ms'>): string {
  return String(Math.floor(sent_at_ms / 1000));
}

/** `x-service-signature`: `sha256=` and the lowercase hex of the body's HMAC. */
function bodySignature(body: Buffer, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

function standardSignature(id: string, seconds: string, body: Buffer, secret: string): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${seconds}.`).update(body).digest('base64')}`;
}

/** Tells whether a received body has the specification's signature by this secret, compared in constant time. */
export function hasSignature(body: Buffer, signature: string, secret: string): boolean {
  const expected = Buffer.from(bodySignature(body, secret));
  const actual = Buffer.from(signature);
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
