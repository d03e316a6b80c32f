import { MedleyError, WebhookError } from './errors.ts';
import type { EventEnvelope, Task, TaskEvent } from './types.ts';

/** A webhook to the `webhook_url` of a task. */
export type TaskWebhook = {
  type: 'task.succeeded' | 'task.failed';
  /** The same at each attempt of one delivery. */
  delivery_id: string;
  /** The final task. It may come twice: deduplicate by `task.id`. */
  task: Task;
};

/**
 * An event that came to an endpoint of the account; its `type` decides about its `data`. It may come twice: deduplicate
 * by `id`. A newer service may have other types: ignore what you do not know.
 */
export type EndpointEvent =
  | (TaskEvent & { delivery_id: string; task: Task })
  | (Exclude<EventEnvelope, TaskEvent> & { delivery_id: string });

export type WebhookEvent = TaskWebhook | EndpointEvent;

export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export type WebhookOptions = {
  /** The most seconds between the clock of the sender and this one; 300 unless set. */
  tolerance_s?: number | undefined;
};

const signatures_max = 16;

/**
 * Returns the event of a webhook whose signature is right. `body` is what was received, before any parsing; `secret`
 * is that of the account, for the `webhook_url` of tasks, or that of an endpoint; or several, of both kinds and while
 * one is replaced. Throws WebhookError otherwise.
 * It reads the headers of Standard Webhooks, which sign the time too, so that an old request cannot be sent again.
 */
export async function verifyWebhook(
  body: string | ArrayBuffer | Uint8Array,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  { tolerance_s = 300 }: WebhookOptions = {},
): Promise<WebhookEvent> {
  const bytes = bytesOf(body);
  const secrets = typeof secret === 'string' ? [secret] : secret;
  if (secrets.length === 0) throw new MedleyError('verifyWebhook needs at least one secret.');
  const keys = secrets.map(secretBytes);
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
    headerOf(headers, name),
  );
  if (!id || !timestamp || !signatures) throw new WebhookError('The request has no signature.');
  const age_s = Date.now() / 1000 - Number(timestamp);
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(age_s) > tolerance_s) {
    throw new WebhookError(`The time of the request is more than ${tolerance_s} s away.`);
  }
  const message = joined(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  if (!(await hasSignature(message, signatures, keys))) throw new WebhookError('The signature is wrong.');
  return eventOf(id, new TextDecoder().decode(bytes));
}

/** Returns the event of a signed body, which `types.ts` describes: a test compares them with the service. */
function eventOf(delivery_id: string, text: string): WebhookEvent {
  const body = parseBody(text);
  if ('status' in body) {
    return { type: body.status === 'failed' ? 'task.failed' : 'task.succeeded', delivery_id, task: body };
  }
  return isTaskEvent(body) ? { ...body, delivery_id, task: body.data } : { ...body, delivery_id };
}

function parseBody(text: string): Task | EventEnvelope {
  try {
    const body: unknown = JSON.parse(text);
    if (isTask(body) || isEnvelope(body)) return body;
  } catch (error) {
    throw new WebhookError('The body is not JSON.', { cause: error });
  }
  throw new WebhookError('The body is neither a task nor an event.');
}

function isTask(body: unknown): body is Task {
  return isObject(body) && typeof body['status'] === 'string';
}

function isEnvelope(body: unknown): body is EventEnvelope {
  return isObject(body) && typeof body['id'] === 'string' && typeof body['type'] === 'string' && isObject(body['data']);
}

function isTaskEvent(event: EventEnvelope): event is TaskEvent {
  return event.type.startsWith('task.');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

type Bytes = Uint8Array<ArrayBuffer>;

/** Compares in constant time, which `verify` of WebCrypto does. */
async function hasSignature(message: Bytes, signatures: string, keys: readonly Bytes[]): Promise<boolean> {
  const { subtle } = await webCrypto();
  const texts = signatures.split(' ', signatures_max).filter((each) => each.startsWith('v1,'));
  for (const bytes of keys) {
    const key = await subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
    for (const text of texts) {
      const signature = base64Bytes(text.slice('v1,'.length));
      if (signature && (await subtle.verify('HMAC', key, signature, message))) return true;
    }
  }
  return false;
}

/** Node 18 has it in a module only. */
async function webCrypto(): Promise<Pick<Crypto, 'subtle'>> {
  if (typeof crypto !== 'undefined') return crypto;
  return (await import('./node.ts')).webcrypto;
}

function bytesOf(body: string | ArrayBuffer | Uint8Array): Bytes {
  if (typeof body === 'string') return new TextEncoder().encode(body);
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  if (body instanceof Uint8Array) return new Uint8Array(body);
  throw new MedleyError('verifyWebhook needs the body as it was received: bytes or text, not a parsed object.');
}

function secretBytes(secret: string): Bytes {
  const bytes = secret.startsWith('whsec_') ? base64Bytes(secret.slice('whsec_'.length)) : undefined;
  if (!bytes || bytes.length === 0) throw new MedleyError('A webhook secret is whsec_ and base64 after it.');
  return bytes;
}

function base64Bytes(text: string): Bytes | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function joined(first: Uint8Array, second: Uint8Array): Bytes {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}

function headerOf(headers: WebhookHeaders, name: string): string | undefined {
  if (isHeaders(headers)) return headers.get(name) ?? undefined;
  const value = Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1];
  return typeof value === 'string' ? value : value?.[0];
}

function isHeaders(headers: WebhookHeaders): headers is { get(name: string): string | null } {
  return typeof headers['get'] === 'function';
}
