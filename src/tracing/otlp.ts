import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { AttributeValue, EndedSpan, SpanKind } from './tracer.ts';

/**
 * Spans in the JSON form of OTLP over HTTP (https://opentelemetry.io/docs/specs/otlp/, version 1.10, read 2026-11-27).
 * Our own: the SDK of OpenTelemetry is 121 packages, and what is needed of it is this file.
 */

const kinds: Readonly<Record<SpanKind, number>> = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 };
const status_error = 2;

type Value =
  | { stringValue: string }
  | { boolValue: boolean }
  | { intValue: string }
  | { doubleValue: number }
  | { arrayValue: { values: Value[] } };

/** Longer texts are cut: an attribute is a fact, not a document. */
const text_length_max = 1_000;

function valueOf(value: AttributeValue): Value {
  if (typeof value === 'string') return { stringValue: value.slice(0, text_length_max).toWellFormed() };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map(valueOf) } };
}

type KeyValue = { key: string; value: Value };

/** Returns facts in the form of OTLP. */
export function attributesOf(attributes: Readonly<Record<string, AttributeValue | undefined>>): KeyValue[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: valueOf(value) }],
  );
}

/** Contents are as long as they are: who writes them has bounded them. */
function textsOf(content: Readonly<Record<string, string>>): KeyValue[] {
  return Object.entries(content).map(([key, text]) => ({ key, value: { stringValue: text.toWellFormed() } }));
}

/** Returns a time as OTLP writes it. */
export function nanoseconds(ms: number): string {
  return `${Math.floor(ms)}${String(Math.floor((ms % 1) * 1e6)).padStart(6, '0')}`;
}

function spanOf(span: EndedSpan) {
  const { context, parent_id, name, kind, started_ms, ended_ms, attributes, content = {}, error } = span;
  return {
    traceId: context.trace_id,
    spanId: context.span_id,
    ...(parent_id !== undefined && { parentSpanId: parent_id }),
    flags: 1,
    name,
    kind: kinds[kind],
    startTimeUnixNano: nanoseconds(started_ms),
    endTimeUnixNano: nanoseconds(ended_ms),
    attributes: [...attributesOf(attributes), ...textsOf(content)],
    status: error === undefined ? {} : { code: status_error, message: error },
  };
}

/** The collector that spans go to. `resource` are the facts that all of them share. */
export type OtlpOptions = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly resource: Readonly<Record<string, string>>;
  readonly version: string;
  /** Hears why spans were lost. */
  onLost(count: number, reason: string): void;
};

/** Sends spans in batches, after everything else. */
export type SpanExporter = {
  add(span: EndedSpan): void;
  /** Sends what is there, for as long as a stop may wait. */
  close(): Promise<void>;
};

/** A collector that is away costs this many spans of memory, a few MB. */
const waiting_max = 4_096;
const batch_max = 512;
const every_ms = 2_000;
const send_ms = 10_000;
/** Time for the last spans when the process stops. */
const close_ms = 2_000;

const compress = promisify(gzip);

/** Opens an exporter. What the collector does not take within 10 s is lost, and counted. */
export function openOtlp(options: OtlpOptions): SpanExporter {
  const waiting: EndedSpan[] = [];
  const stopped = new AbortController();
  let sending: Promise<void> | undefined;
  const sendSome = async (limit_ms: number) => {
    const batch = waiting.splice(0, batch_max);
    if (batch.length === 0) return;
    try {
      await postOtlp(options, bodyOf(options, batch), AbortSignal.any([stopped.signal, AbortSignal.timeout(limit_ms)]));
    } catch (error) {
      options.onLost(batch.length, reasonOf(error));
    }
  };
  const sendSoon = () => {
    sending ??= sendSome(send_ms).finally(() => {
      sending = undefined;
      if (waiting.length >= batch_max) sendSoon();
    });
  };
  const timer = setInterval(sendSoon, every_ms);
  timer.unref();
  return {
    add: (span) => {
      if (waiting.length >= waiting_max) return options.onLost(1, 'the collector is too slow');
      waiting.push(span);
      if (waiting.length >= batch_max) sendSoon();
    },
    close: async () => {
      clearInterval(timer);
      const until_ms = performance.now() + close_ms;
      const left_ms = () => Math.max(1, Math.ceil(until_ms - performance.now()));
      const late = new Promise<void>((resolve) => setTimeout(resolve, close_ms).unref());
      await Promise.race([sending, late]);
      while (waiting.length > 0 && performance.now() < until_ms) await sendSome(left_ms());
      stopped.abort(new Error('the service stopped'));
      await sending;
      if (waiting.length > 0) options.onLost(waiting.splice(0).length, 'the service stopped');
    },
  };
}

/**
 * Posts to a collector, compressed; rejects unless it takes the body. A connection that was kept may have been closed
 * meanwhile: what fails without an answer is sent once more.
 */
export async function postOtlp(
  { url, headers }: Pick<OtlpOptions, 'url' | 'headers'>,
  text: string,
  signal: AbortSignal,
): Promise<void> {
  const body = await compress(text);
  const ask = () =>
    fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body,
      redirect: 'error',
      signal,
    });
  const response = await ask().catch((error: unknown) => (signal.aborted ? Promise.reject(error) : ask()));
  await response.body?.cancel();
  if (!response.ok) throw new Error(`the collector answered ${response.status}`);
}

function bodyOf({ resource, version }: OtlpOptions, batch: EndedSpan[]): string {
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope: { name: 'medley', version }, spans: batch.map(spanOf) }],
      },
    ],
  });
}

/** Returns the reason of a failure, with the cause that the network gave. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error ? `${error.message}: ${cause.message}` : error.message;
}
