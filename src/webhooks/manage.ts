import { audit, type NewAuditEntry } from '../accounts/audit.ts';
import { ApiError } from '../errors.ts';
import { firstIdSince, isId } from '../lib/ids.ts';
import { isoTime } from '../lib/iso-time.ts';
import type { Windows } from '../limits/window.ts';
import { filtersOf, invalidValue, readEndpointFields } from './endpoint-fields.ts';
import {
  changeEndpoint,
  createEndpoint,
  endpoints_max,
  findEndpoint,
  removeEndpoint,
  rotateEndpointSecret,
  type EndpointRef,
  type NewEndpoint,
  type WebhookEndpoint,
} from './endpoints.ts';
import type { EventType } from './events.ts';
import { sendEventTest, type ManualSendParts, type SendResult } from './manual.ts';

/** Acts of people and keys on endpoints. Each is in the audit log, under its actor. Mistakes are ApiErrors. */

type Parts = ManualSendParts & { readonly windows: Windows };

type Body = Record<string, unknown> | undefined;

/** A person, or the name of a key. */
export type Actor = Pick<NewAuditEntry, 'user' | 'by' | 'address'>;

/** Registers an endpoint. The result is the only place where its secret is shown. */
export async function registerEndpoint(app: Parts, account_id: string, body: Body, actor: Actor): Promise<NewEndpoint> {
  const fields = readEndpointFields(body, app.addressRules());
  const now = new Date(app.clock.now());
  const created = await createEndpoint(app.db, account_id, fields, now);
  if (!created) {
    const message = `An account has at most ${endpoints_max} webhook endpoints. Delete one, or add its events to another.`;
    throw new ApiError('conflict', message, { code: 'too_many_endpoints' });
  }
  await note(app, created.endpoint, 'create', actor, detailsOf(created.endpoint));
  return created;
}

/** Changes the fields that the body names. */
export async function alterEndpoint(app: Parts, ref: EndpointRef, body: Body, actor: Actor): Promise<WebhookEndpoint> {
  const before = await requireEndpoint(app, ref);
  const fields = readEndpointFields(body, app.addressRules(), before);
  const changed = await changeEndpoint(app.db, ref, fields, new Date(app.clock.now()));
  if (!changed) throw unknownEndpoint();
  await note(app, ref, 'change', actor, detailsOf(changed));
  return changed;
}

/** Deletes an endpoint; one that is gone already is no mistake. */
export async function deleteEndpoint(app: Parts, ref: EndpointRef, actor: Actor): Promise<void> {
  checkId(ref);
  const before = await findEndpoint(app.db, ref);
  if (before && (await removeEndpoint(app.db, ref))) await note(app, ref, 'delete', actor, { url: before.url });
}

/** Gives an endpoint a new secret; the one before is valid for another 24 hours. */
export async function rotateSecretOf(app: Parts, ref: EndpointRef, actor: Actor): Promise<NewEndpoint> {
  checkId(ref);
  const rotated = await rotateEndpointSecret(app.db, ref, new Date(app.clock.now()));
  if (!rotated) throw unknownEndpoint();
  await note(app, ref, 'rotate_secret', actor);
  return rotated;
}

/** Sends an example of an event now, and tells how the receiver answered. `data` is JSON text. */
export async function testEndpoint(
  app: Parts,
  ref: EndpointRef,
  example: { type: EventType; data: string },
  actor: Actor,
): Promise<SendResult> {
  const endpoint = await requireEndpoint(app, ref);
  await takeTest(app, ref.account_id);
  const sent = await sendEventTest(app, endpoint, example);
  await note(app, ref, 'test', actor, { event: example.type, delivery: sent.id });
  return sent;
}

/** They go out at once, past the limits of the schedule. */
const tests_per_minute = 20;

/** Takes one of the tests that an account may send in a minute. Throws ApiError 429. */
export async function takeTest({ windows }: { windows: Windows }, account_id: string): Promise<void> {
  const taken = await windows.take('other', `webhook test ${account_id}`, tests_per_minute, performance.now());
  if (taken.ok) return;
  const seconds = Math.ceil(taken.retry_after_ms / 1000);
  const headers = { 'retry-after': String(seconds) };
  throw new ApiError('rate_limit', `Too many test payloads in a minute. Try again in ${seconds} s.`, { headers });
}

/** A span of events to send again. */
export type Replay = {
  from: Date;
  to: Date;
  /** `failed`: those that did not arrive, or were never sent. */
  which: 'failed' | 'all';
  /** Counts, and sends nothing. */
  dry_run: boolean;
};

/** Number of events, and from when on there are more than `replay_max`; null: these are all. */
export type ReplayResult = { events: number; next_from: Date | null };

/** In one call. */
export const replay_max = 1_000;

/** Sends the events of a span to an endpoint again, after what is sent for the first time. */
export async function replaySpan(app: Parts, ref: EndpointRef, replay: Replay, actor: Actor): Promise<ReplayResult> {
  const { from, to, which, dry_run } = replay;
  const { enabled } = await requireEndpoint(app, ref);
  if (!enabled && !dry_run) {
    throw new ApiError('conflict', 'This endpoint is disabled. Enable it first, then send its events again.', {
      code: 'endpoint_disabled',
    });
  }
  const rows = await app.db.query<{ events: number; last_at: Date | null; has_more: boolean }>(
    'select * from replay_events($1, $2, $3, $4, $5, $6, $7, $8)',
    [
      new Date(app.clock.now()),
      ref.account_id,
      ref.id,
      firstIdSince('evt', from.getTime()),
      firstIdSince('evt', to.getTime()),
      which,
      replay_max,
      dry_run,
    ],
  );
  const { events = 0, last_at = null, has_more = false } = rows[0] ?? {};
  if (!dry_run) {
    app.engine.wake('delivery.retry');
    const span = { from: from.toISOString(), to: to.toISOString() };
    await note(app, ref, 'replay', actor, { ...span, which, events });
  }
  return { events, next_from: has_more ? last_at : null };
}

/** Reads a span; it ends now unless the body says otherwise. */
export function readReplay(body: Body, now: Date): Replay {
  const from = readTime('from', body?.['from']);
  const to = body?.['to'] === undefined ? now : readTime('to', body['to']);
  if (from >= to) throw invalidValue('to', 'must be later than from.');
  const { which = 'failed', dry_run = false } = body ?? {};
  if (which !== 'failed' && which !== 'all') throw invalidValue('which', 'must be failed or all.');
  if (typeof dry_run !== 'boolean') throw invalidValue('dry_run', 'must be true or false.');
  return { from, to, which, dry_run };
}

function readTime(name: string, value: unknown): Date {
  const time = typeof value === 'string' ? isoTime(value) : undefined;
  // Ids have no times before 1970, and none after the year 10889.
  if (time && time.getTime() >= 0 && time.getUTCFullYear() < 10_000) return time;
  throw invalidValue(name, 'must be a time such as 2026-01-31T12:00:00Z.');
}

/** Throws ApiError 404. */
export async function requireEndpoint({ db }: Pick<Parts, 'db'>, ref: EndpointRef): Promise<WebhookEndpoint> {
  checkId(ref);
  const endpoint = await findEndpoint(db, ref);
  if (!endpoint) throw unknownEndpoint();
  return endpoint;
}

function checkId({ id }: EndpointRef): void {
  if (!isId('whe', id)) throw unknownEndpoint();
}

function unknownEndpoint(): ApiError {
  return new ApiError('not_found', 'There is no such webhook endpoint.', { param: 'id' });
}

function detailsOf(endpoint: WebhookEndpoint): Record<string, unknown> {
  const { url, events, enabled } = endpoint;
  return { url, events, enabled, filters: filtersOf(endpoint) };
}

async function note(
  { db, clock }: Parts,
  { account_id, id }: EndpointRef,
  act: string,
  actor: Actor,
  details?: Record<string, unknown>,
): Promise<void> {
  const now = new Date(clock.now());
  await audit(db, { account_id, action: `webhook_endpoint.${act}`, subject: id, details, now, ...actor });
}
