import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Caller } from '../accounts/authenticate.ts';
import type { ContentRules } from '../accounts/content-rules.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import { isObject, type Json, type JsonObject } from '../catalog/model.ts';
import { storeContent, type ContentKeys } from '../db/content.ts';
import { isUnavailable, type Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Codec } from '../styles/codec.ts';
import type { Span } from '../tracing/tracer.ts';
import { readAnswer, type AnswerBytes } from './answer.ts';
import { copyBody, type BodyCopy } from './copy.ts';
import { spanContent } from './span-content.ts';
import { redactionOf, Redactor, type Redaction } from './redaction.ts';
import { insertContents, placeOfCallContent, type CallContent, type NewContent } from './stored.ts';

/** The parts of the app that storing contents takes. */
type ContentLogParts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Logger;
  readonly catalog: CatalogHolder;
  readonly content_keys: ContentKeys;
  readonly metrics: Metrics;
};

/** The content of a call that goes on. */
export type ContentCopy = {
  /** Copies a piece of a streamed answer, as the caller gets it. */
  take(bytes: Buffer): void;
  /** Adds the content to the span of the answer, if the operator wants that. */
  trace(span: Span): void;
  /** The call has ended: its content is stored after it. `whole`: an answer that was not streamed. */
  end(whole: Buffer | undefined): void;
  /** Forgets a call that has not ended. */
  drop(): void;
};

/** A call as far as its content needs it. */
export type LoggedCall = {
  readonly caller: Caller;
  readonly request_id: string;
  readonly model: { readonly id: string };
  readonly request: { readonly body: JsonObject };
};

/** Stores contents of calls after their answers: a call waits for nothing but a copy of its bytes. */
export type ContentLog = {
  /** Begins to copy a call; undefined where its key stores no content, or too much waits already. */
  begin(style: Codec, call: LoggedCall): ContentCopy | undefined;
  /** Resolves when all that waits now is stored or lost. */
  flush(): Promise<void>;
  /** Stores what waits, for as long as a stop may take. */
  close(): Promise<void>;
};

/** Memory of contents that wait, or whose calls go on. */
const waiting_bytes_max = 64_000_000;
/** The size of one call's content. A stream says each word in an event of some 200 bytes. */
const call_bytes_max = 4_000_000;
/** Calls that end together are stored together. */
const linger_ms = 200;
const batch_max = 50;
const close_ms = 3_000;
const retry_ms = 1_000;
const retries_max = 30;

const day_ms = 86_400_000;

/** A call whose content is to be stored. */
type Ended = {
  account_id: string;
  id: string;
  api_key_id: string;
  rules: ContentRules;
  model: string;
  style: Codec;
  request: BodyCopy;
  answer: AnswerBytes;
  is_answer_cut: boolean;
  created_at: Date;
  /** Lets the span of the answer go. */
  releaseSpan?: ReturnType<Span['hold']>;
  /** Memory that it takes. */
  bytes: number;
};

/** The log of contents, and the keys of all content at rest. */
export type Contents = { readonly contents: ContentLog; readonly content_keys: ContentKeys };

/** Opens the log of a process, which is closed before its database is. */
export function openContents(parts: ContentLogParts, onStop: (close: () => Promise<void>) => void): Contents {
  const contents = new QueuedLog(parts);
  onStop(() => contents.close());
  return { contents, content_keys: parts.content_keys };
}

class QueuedLog implements ContentLog {
  readonly #parts: ContentLogParts;
  readonly #waiting: Ended[] = [];
  #waiting_bytes = 0;
  #storing: Promise<void> | undefined;
  #is_closed = false;
  readonly #redactions = new WeakMap<ContentRules, { of: object; redaction: Redaction }>();

  constructor(parts: ContentLogParts) {
    this.#parts = parts;
  }

  begin(style: Codec, { caller, request_id, model, request }: LoggedCall): ContentCopy | undefined {
    const { content: settings } = this.#parts.catalog.current.settings;
    const { log_content: rules } = caller.key;
    if (!rules || settings.keep_ms === 0 || caller.account.keeps_responses === false) return undefined;
    const body = copyBody(request.body, settings.call_length_max);
    if (!this.#takeMemory(body.size * 2)) return undefined;
    const ended: Ended = {
      account_id: caller.account.id,
      id: request_id,
      api_key_id: caller.key.id,
      rules,
      model: model.id,
      style,
      request: body,
      answer: { pieces: [] },
      is_answer_cut: false,
      created_at: new Date(this.#parts.clock.now()),
      bytes: body.size * 2,
    };
    return this.#copyOf(ended);
  }

  #copyOf(ended: Ended): ContentCopy {
    const pieces: Buffer[] = [];
    ended.answer = { pieces };
    let is_over = false;
    const count = (bytes: Buffer): boolean => {
      ended.is_answer_cut ||= ended.bytes + bytes.length > call_bytes_max || !this.#hasRoom(bytes.length);
      if (ended.is_answer_cut) return false;
      this.#waiting_bytes += bytes.length;
      ended.bytes += bytes.length;
      return true;
    };
    const takeWhole = (whole: Buffer) => {
      if (count(whole)) ended.answer = { whole };
    };
    return {
      take: (bytes) => {
        if (!is_over && count(bytes)) pieces.push(Buffer.from(bytes)); // a part of a larger buffer would keep all of it
      },
      trace: (span) => {
        if (!is_over && this.#parts.catalog.current.settings.content.traces) ended.releaseSpan ??= span.hold();
      },
      end: (whole) => {
        if (is_over) return;
        is_over = true;
        if (whole) takeWhole(whole);
        this.#waiting.push(ended);
        void this.#store();
      },
      drop: () => {
        if (is_over) return;
        is_over = true;
        this.#waiting_bytes -= ended.bytes;
        ended.releaseSpan?.();
      },
    };
  }

  #hasRoom(bytes: number): boolean {
    return this.#waiting_bytes + bytes <= waiting_bytes_max;
  }

  #takeMemory(bytes: number): boolean {
    if (this.#is_closed || !this.#hasRoom(bytes)) {
      this.#lose(1, 'too many wait');
      return false;
    }
    this.#waiting_bytes += bytes;
    return true;
  }

  async flush(): Promise<void> {
    while (this.#waiting.length > 0 || this.#storing) await this.#store();
  }

  async close(): Promise<void> {
    this.#is_closed = true;
    const late = sleep(close_ms, undefined, { ref: false });
    await Promise.race([this.flush(), late]);
    const left = this.#waiting.splice(0);
    for (const { releaseSpan } of left) releaseSpan?.();
    if (left.length > 0) this.#lose(left.length, 'the service stops');
  }

  #store(): Promise<void> {
    this.#storing ??= this.#storeAll().finally(() => (this.#storing = undefined));
    return this.#storing;
  }

  async #storeAll(): Promise<void> {
    if (!this.#is_closed) await sleep(linger_ms, undefined, { ref: false });
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, batch_max);
      try {
        await this.#storeBatch(batch);
      } catch (error) {
        this.#parts.log.error({ err: error }, 'contents of chat calls could not be stored');
        this.#lose(batch.length, 'not stored');
      } finally {
        for (const { bytes, releaseSpan } of batch) {
          this.#waiting_bytes -= bytes;
          releaseSpan?.();
        }
      }
    }
  }

  async #storeBatch(batch: readonly Ended[]): Promise<void> {
    const contents: NewContent[] = [];
    for (const ended of batch) contents.push(await this.#contentOf(ended));
    const stored = await this.#insert(contents);
    this.#parts.metrics.contents.add({ outcome: 'stored' }, stored);
    if (stored < contents.length) this.#lose(contents.length - stored, 'switched off');
  }

  /** A database that is away is waited for: meanwhile others queue, as many as there is memory. */
  async #insert(contents: readonly NewContent[]): Promise<number> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await insertContents(this.#parts.db, contents);
      } catch (error) {
        if (!isUnavailable(error) || tries === retries_max || this.#is_closed) throw error;
        await sleep(retry_ms, undefined, { ref: false });
      }
    }
  }

  async #contentOf(ended: Ended): Promise<NewContent> {
    const { account_id, id, api_key_id, rules, model, style, request, created_at } = ended;
    const redactor = new Redactor(this.#redactionOf(rules));
    const read = await readAnswer(style, ended.answer, id);
    const { call_length_max, keep_ms } = this.#parts.catalog.current.settings.content;
    const answer = copyBody({ messages: read }, call_length_max);
    const content: CallContent = {
      model,
      style: style.name,
      request: objectIn(await redactor.redact(request.body)),
      answers: messagesIn(await redactor.redact(answer.body)),
      is_cut: request.is_cut || answer.is_cut || ended.is_answer_cut,
      redacted: redactor.counts,
    };
    ended.releaseSpan?.(spanContent(content));
    const stored = await storeContent(
      this.#parts.content_keys,
      placeOfCallContent({ account_id, id }),
      JSON.stringify(content),
    );
    const expires_at = new Date(created_at.getTime() + Math.min(rules.keep_days * day_ms, keep_ms));
    return { ...stored, account_id, id, api_key_id, created_at, expires_at };
  }

  /** Compiled once for a key, until its rules or the operator's change. */
  #redactionOf(rules: ContentRules): Redaction {
    const { content } = this.#parts.catalog.current.settings;
    const compiled = this.#redactions.get(rules);
    if (compiled?.of === content) return compiled.redaction;
    const redaction = redactionOf(content, rules);
    this.#redactions.set(rules, { of: content, redaction });
    return redaction;
  }

  /** Counts contents that are not stored. */
  #lose(count: number, reason: 'too many wait' | 'not stored' | 'switched off' | 'the service stops'): void {
    this.#parts.metrics.contents.add({ outcome: reason }, count);
  }
}

function objectIn(value: Json): JsonObject {
  return isObject(value) ? value : {};
}

function messagesIn(value: Json): JsonObject[] {
  const { messages } = objectIn(value);
  return Array.isArray(messages) ? messages.filter(isObject) : [];
}
