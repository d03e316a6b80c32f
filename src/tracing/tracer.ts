import { AsyncLocalStorage } from 'node:async_hooks';
import { newSpanId, newTraceId, parseTraceparent, traceparentOf, type TraceContext } from './trace-context.ts';

/**
 * Traces: where the time of one request went, over processes and upstreams. Off, nothing here costs more than a look
 * at an empty context. A caller's `traceparent` is continued; its trace is recorded if the caller's is.
 */

export type AttributeValue = string | number | boolean | readonly string[];

/** Facts about a span, without prompts and answers: those are its content. Never a key, nor an address with a query. */
export type Attributes = Readonly<Record<string, AttributeValue | undefined>>;

export type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer';

/** A span that is over. Times are ms since 1970, with fractions. */
export type EndedSpan = {
  readonly context: TraceContext;
  readonly parent_id: string | undefined;
  readonly name: string;
  readonly kind: SpanKind;
  readonly started_ms: number;
  readonly ended_ms: number;
  readonly attributes: Attributes;
  /** Texts of any length, where the operator and the key of the call want them here. */
  readonly content?: Readonly<Record<string, string>>;
  /** Absent: it went well. */
  readonly error: string | undefined;
};

/** Takes spans that are over; must not throw. */
export type SpanSink = (span: EndedSpan) => void;

/** Part of a trace, from its making to its `end`. */
export class Span {
  readonly context: TraceContext;
  readonly #tracer: Tracer;
  readonly #parent_id: string | undefined;
  readonly #kind: SpanKind;
  readonly #started_ms = performance.timeOrigin + performance.now();
  #name: string;
  #attributes: Record<string, AttributeValue | undefined>;
  #error: string | undefined;
  #is_over = false;
  /** Set while somebody else still has something to say about it. */
  #is_held = false;
  #ended: EndedSpan | undefined;

  constructor(tracer: Tracer, options: SpanOptions & { context: TraceContext; parent_id: string | undefined }) {
    this.#tracer = tracer;
    this.context = options.context;
    this.#parent_id = options.parent_id;
    this.#name = options.name;
    this.#kind = options.kind ?? 'internal';
    this.#attributes = { ...options.attributes };
  }

  rename(name: string): void {
    this.#name = name;
  }

  set(attributes: Attributes): void {
    Object.assign(this.#attributes, attributes);
  }

  /** Marks the span as failed; `reason` is a word or a status, without content. */
  fail(reason: string): void {
    this.#error = reason;
  }

  /** Runs `work` inside of this span: spans that it begins are its children. */
  run<T>(work: () => T): T {
    return active.run({ tracer: this.#tracer, context: this.context }, work);
  }

  /** Ends the span; more than once is the same as once. */
  end(): void {
    if (this.#is_over) return;
    this.#is_over = true;
    const ended: EndedSpan = {
      context: this.context,
      parent_id: this.#parent_id,
      name: this.#name,
      kind: this.#kind,
      started_ms: this.#started_ms,
      ended_ms: performance.timeOrigin + performance.now(),
      attributes: this.#attributes,
      error: this.#error,
    };
    if (this.#is_held) this.#ended = ended;
    else this.#tracer.sink(ended);
  }

  /** Keeps the span until its content is there. Returns what lets it go, with its content or without. */
  hold(): (content?: Readonly<Record<string, string>>) => void {
    this.#is_held = true;
    return (content) => {
      if (this.#ended) this.#tracer.sink(content ? { ...this.#ended, content } : this.#ended);
      this.#is_held = false;
      this.#ended = undefined;
    };
  }
}

export type SpanOptions = { name: string; kind?: SpanKind; attributes?: Attributes };

/** The place in a trace of what runs now. Without a tracer the trace is passed on, but not recorded. */
type Active = { readonly tracer: Tracer | undefined; readonly context: TraceContext };

const active = new AsyncLocalStorage<Active>();

/** Makes spans for a share of the traces that begin here. */
export class Tracer {
  readonly sink: SpanSink;
  readonly #ratio: number;

  constructor(sink: SpanSink, ratio: number) {
    this.sink = sink;
    this.#ratio = ratio;
  }

  /** Begins a span that continues `traceparent`, or a trace of its own. Undefined: the trace is not recorded. */
  begin(options: SpanOptions, traceparent?: string | null): Span | undefined {
    const parent = parseTraceparent(traceparent ?? undefined);
    if (!(parent ? parent.is_sampled : Math.random() < this.#ratio)) return undefined;
    const context = { trace_id: parent?.trace_id ?? newTraceId(), span_id: newSpanId(), is_sampled: true };
    return new Span(this, { ...options, context, parent_id: parent?.span_id });
  }

  /** Runs `work` in a span that continues `traceparent`; plainly if the trace is not recorded. */
  async continue<T>(
    traceparent: string,
    options: SpanOptions,
    work: (span: Span | undefined) => Promise<T>,
  ): Promise<T> {
    const span = this.begin(options, traceparent);
    return span ? during(span, () => work(span)) : passOn(traceparent, () => work(undefined));
  }
}

/** Runs `work` in the trace of a row, if traces are recorded and the row is in one. */
export function inTraceOf<T>(
  tracer: Tracer | undefined,
  { traceparent }: { traceparent: string | null },
  options: SpanOptions,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> {
  return tracer && traceparent !== null ? tracer.continue(traceparent, options, work) : work(undefined);
}

/** Runs `work`, which passes on a trace that is not recorded here. */
export function passOn<T>(traceparent: string, work: () => T): T {
  const context = parseTraceparent(traceparent);
  return context ? active.run({ tracer: undefined, context }, work) : work();
}

/** Runs `work` in a child of the span that runs now; plainly where none does. */
export async function inSpan<T>(options: SpanOptions, work: (span: Span | undefined) => Promise<T>): Promise<T> {
  const { tracer, context } = active.getStore() ?? {};
  if (!tracer || !context) return work(undefined);
  const own = { trace_id: context.trace_id, span_id: newSpanId(), is_sampled: true };
  const span = new Span(tracer, { ...options, context: own, parent_id: context.span_id });
  return during(span, () => work(span));
}

async function during<T>(span: Span, work: () => Promise<T>): Promise<T> {
  try {
    return await span.run(work);
  } catch (error) {
    span.fail(error instanceof Error ? error.name : 'error');
    throw error;
  } finally {
    span.end();
  }
}

/** Returns the header for an upstream that is called now; none outside of every trace. */
export function traceHeaders(): { traceparent?: string } {
  const traceparent = activeTraceparent();
  return traceparent === undefined ? {} : { traceparent };
}

/** Returns the place in a trace of what runs now; undefined outside of every trace. */
export function activeTraceparent(): string | undefined {
  const context = active.getStore()?.context;
  return context && traceparentOf(context);
}
