import type { IncomingHttpHeaders } from 'node:http';
import type { Logger } from 'pino';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Engine, Job, Outcome } from '../queue/queue.ts';
import type { AddressRules } from '../net/address.ts';
import type { Clock } from '../lib/clock.ts';
import { failpoint } from '../lib/failpoint.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { GuardError, type Guard } from '../net/guard.ts';
import { inTraceOf, traceHeaders, type Tracer } from '../tracing/tracer.ts';
import { readDue } from './delivery.ts';
import type { AfterAttempt, Begun, AttemptEnd, DeliverySlots } from './delivery-slots.ts';
import { signedHeaders } from './sign.ts';

/** The parts of the app that sending needs. */
export type Sender = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly guard: Guard;
  readonly engine: Engine;
  readonly delivery_slots: DeliverySlots;
  readonly catalog: CatalogHolder;
  readonly metrics: Metrics;
  readonly tracer: Tracer | undefined;
  addressRules(): AddressRules;
};

/** A retry is due by the database's clock, some milliseconds after the end that we noted; an alarm too early waits for the next poll. */
const alarm_margin_ms = 50;

const connect_timeout_ms = 5_000;
const answer_bytes_max = 16_384;
const answer_stored_bytes = 2_048;

/** The jobs `delivery.send` and `delivery.retry`: one attempt, if there is a slot for it. */
export async function sendDelivery(app: Sender, job: Job): Promise<Outcome> {
  const begun = await app.delivery_slots.begin(readDue(job.data));
  if (!begun) return 'done';
  await failpoint('delivery.begun');
  const ended = await tracedAttempt(app, begun, job.signal);
  await failpoint('delivery.sent');
  const after = await app.delivery_slots.end(begun, ended);
  await failpoint('delivery.ended');
  wakeNext(app, after);
  logAttempt(app, begun, ended, after);
  countAttempt(app.metrics, ended, after);
  // Lost to another worker, this settles nothing. Lost by a crash of the server, or by an answer that
  // did not come and was asked for again, the job looks at the delivery once more.
  return after.state === 'lost' ? { again_after_ms: 0 } : 'done';
}

/** An attempt in the trace of its task, whose place the receiver is told. */
async function tracedAttempt(app: Sender, begun: Begun, stopped: AbortSignal): Promise<AttemptEnd> {
  if (!app.tracer) return attempt(app, begun, stopped);
  const traceparent = await app.delivery_slots.traceparent(begun);
  const attributes = { 'medley.delivery_id': begun.id, 'medley.attempt': begun.number };
  const options = { name: `webhook ${begun.event}`, kind: 'client', attributes } as const;
  return inTraceOf(app.tracer, { traceparent }, options, async (span) => {
    const ended = await attempt(app, begun, stopped);
    if (ended.status !== null) span?.set({ 'http.response.status_code': ended.status });
    if (!ended.delivered) span?.fail(ended.timed_out ? 'timeout' : ended.status === null ? 'unreachable' : 'refused');
    return ended;
  });
}

/**
 * Signs the stored bytes and posts them; only 2xx is success, redirects are not followed. Throws only
 * when `stopped` aborts, since then nobody knows how the receiver would have answered. `onHeaders` gets those of a response.
 */
export async function attempt(
  app: Sender,
  begun: Begun,
  stopped?: AbortSignal,
  onHeaders?: (headers: IncomingHttpHeaders) => void,
): Promise<AttemptEnd> {
  const sent_at_ms = app.clock.now();
  const begun_at_ms = performance.now();
  const { timeout_ms } = app.catalog.current.settings.webhooks;
  const ended = (): Pick<AttemptEnd, 'started_at' | 'ended_at' | 'duration_ms'> => ({
    started_at: new Date(sent_at_ms),
    ended_at: new Date(app.clock.now()),
    duration_ms: Math.round(performance.now() - begun_at_ms),
  });
  try {
    const { status, headers, answer } = await app.guard.send(begun.url, {
      method: 'POST',
      headers: { ...signedHeaders({ ...begun, sent_at_ms }, begun.secrets), ...traceHeaders() },
      body: begun.body,
      rules: app.addressRules(),
      connect_timeout_ms: Math.min(connect_timeout_ms, timeout_ms),
      timeout_ms,
      answer_bytes_max,
      signal: stopped,
    });
    onHeaders?.(headers);
    const delivered = status >= 200 && status < 300;
    return { ...ended(), status, error: null, answer: storedText(answer), delivered, timed_out: false };
  } catch (error) {
    if (stopped?.aborted) throw error;
    const failed = { ...ended(), status: null, answer: null, delivered: false };
    if (error instanceof GuardError) return { ...failed, error: error.message, timed_out: error.code === 'timeout' };
    // A job that throws runs again without end, and the receiver may have been sent all of it each time.
    app.log.error({ err: error, delivery: begun.id }, 'a webhook failed by a fault of ours');
    return { ...failed, error: 'The webhook could not be sent, by a fault of the service.', timed_out: false };
  }
}

/** Text for people: bytes that are no UTF-8 show as such, and NUL, which no database stores, goes. */
function storedText(answer: Buffer): string {
  return answer.subarray(0, answer_stored_bytes).toString('utf8').replaceAll('\0', '�').toWellFormed();
}

/** The database has sent jobs: the retry of this delivery, or first attempts that were handed the slot. */
function wakeNext(app: Sender, after: AfterAttempt): void {
  if (after.next_at) app.engine.wake('delivery.retry', after.next_at.getTime() - app.clock.now() + alarm_margin_ms);
  app.engine.wake('delivery.send');
  app.engine.wake('delivery.retry');
}

/** Adds an attempt to what this process counts. */
function countAttempt(metrics: Metrics, ended: AttemptEnd, after: AfterAttempt): void {
  const failed = ended.timed_out ? 'timeout' : ended.status === null ? 'unreachable' : 'refused';
  const outcome = ended.delivered ? 'delivered' : failed;
  metrics.deliveries.add({ outcome: after.state === 'dropped' ? 'dropped' : outcome });
  metrics.delivery_seconds.observe({}, ended.duration_ms / 1000);
}

function logAttempt(app: Sender, begun: Begun, ended: AttemptEnd, after: AfterAttempt): void {
  const { account_id, id, number } = begun;
  const { status, error, duration_ms } = ended;
  const facts = { account_id, delivery: id, attempt: number, status, error, duration_ms };
  if (after.state === 'dropped') app.log.info(facts, 'webhook dropped after its last attempt');
  else app.log.debug({ ...facts, state: after.state }, 'webhook attempt');
}
