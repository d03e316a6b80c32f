import { ApiError } from '../../../clients/typescript/src/index.ts';
import { isRecord } from '../../lib/is-record.ts';
import { CommandError } from '../result.ts';
import type { Service } from './service.ts';
import { oneLine } from './terminal.ts';

/** One call of POST /v1/chat/completions, streamed. */

export type Message = { role: 'system' | 'user' | 'assistant'; content: string };

export type ChatRequest = { model: string; messages: readonly Message[]; max_tokens: number | undefined };

export type Usage = { prompt_tokens: number; completion_tokens: number };

/** The outcome of a call. `cost`: undefined where the service does not say it yet. */
export type Answered = {
  text: string;
  finish_reason: string | undefined;
  usage: Usage | undefined;
  request_id: string | undefined;
  cost: Cost | undefined;
};

export type Cost = { amount: string; currency: string; exact: string };

const answer_length_max = 64_000_000;
const line_length_max = 8_000_000;
const error_length_max = 100_000;

/** The time within which the head of the answer comes: the service sends one after 15 s of silence. */
const head_ms_max = 120_000;
const silence_ms_max = 120_000;

/** Asks, hands on the text as it comes, and returns the whole. Rejects with ApiError, CommandError or the signal's reason. */
export async function streamAnswer(
  service: Service,
  { model, messages, max_tokens }: ChatRequest,
  { signal, onText, onStart }: { signal: AbortSignal; onText: (text: string) => void; onStart: (id: string) => void },
): Promise<Omit<Answered, 'cost'>> {
  const silence = new SilenceLimit(signal);
  const body = {
    model,
    messages,
    stream: true,
    stream_options: { include_usage: true },
    ...(max_tokens !== undefined && { max_tokens }),
  };
  try {
    silence.begin(head_ms_max);
    const response = await fetch(`${service.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.api_key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      redirect: 'error', // the key would go along
      signal: silence.signal,
    });
    const request_id = response.headers.get('x-request-id') ?? undefined;
    if (!response.ok || !response.body) throw await refusal(response);
    if (request_id !== undefined) onStart(request_id);
    const answer = new Answer(onText);
    for await (const line of linesOf(response.body, () => silence.begin(silence_ms_max))) answer.take(line, response);
    return { ...answer.whole(), request_id };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ApiError || error instanceof CommandError) throw error;
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const reason = oneLine(cause instanceof Error ? cause.message : String(cause), 200);
    throw new CommandError(`${service.url} gave no whole answer (${reason}).`, 5);
  } finally {
    silence.end();
  }
}

/** Ends a call that says nothing for too long, and with the signal. */
class SilenceLimit {
  readonly #controller = new AbortController();
  readonly signal: AbortSignal;
  #timer: NodeJS.Timeout | undefined;

  constructor(signal: AbortSignal) {
    this.signal = AbortSignal.any([signal, this.#controller.signal]);
  }

  begin(limit_ms: number): void {
    clearTimeout(this.#timer);
    const reason = new Error(`nothing came for ${limit_ms / 1000} s`);
    this.#timer = setTimeout(() => this.#controller.abort(reason), limit_ms);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

/** Returns the lines of a body, as they come. */
async function* linesOf(body: ReadableStream<Uint8Array>, onPiece: () => void): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    onPiece();
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > line_length_max) throw new Error('a line of the answer is too long');
    yield* lines.map((line) => line.replace(/\r$/, ''));
  }
  if (rest !== '') yield rest;
}

/** Puts the events together. */
class Answer {
  readonly #onText: (text: string) => void;
  #text = '';
  #finish_reason: string | undefined;
  #usage: Usage | undefined;
  #is_done = false;

  constructor(onText: (text: string) => void) {
    this.#onText = onText;
  }

  /** Throws ApiError for an event that is an error. */
  take(line: string, response: Response): void {
    if (!line.startsWith('data:')) return; // a comment, which keeps the connection open
    const data = line.slice('data:'.length).trim();
    if (data === '[DONE]') {
      this.#is_done = true;
      return;
    }
    const event = parse(data);
    if (!isRecord(event)) return;
    if (isRecord(event['error'])) throw errorOf(event, response.status, response.headers);
    this.#usage = usageIn(event['usage']) ?? this.#usage;
    const choices: readonly unknown[] = Array.isArray(event['choices']) ? event['choices'] : [];
    const [choice] = choices;
    if (!isRecord(choice)) return;
    const { delta, finish_reason } = choice;
    if (typeof finish_reason === 'string') this.#finish_reason = finish_reason;
    if (isRecord(delta)) this.#add(delta['content'] ?? delta['refusal']);
  }

  #add(text: unknown): void {
    if (typeof text !== 'string' || text === '') return;
    this.#text += text;
    if (this.#text.length > answer_length_max) throw new Error('the answer is too long');
    this.#onText(text);
  }

  whole(): Pick<Answered, 'text' | 'finish_reason' | 'usage'> {
    if (!this.#is_done && this.#finish_reason === undefined) throw new Error('it was cut off');
    return { text: this.#text, finish_reason: this.#finish_reason, usage: this.#usage };
  }
}

function usageIn(value: unknown): Usage | undefined {
  if (!isRecord(value)) return undefined;
  const { prompt_tokens, completion_tokens } = value;
  if (typeof prompt_tokens !== 'number' || typeof completion_tokens !== 'number') return undefined;
  return { prompt_tokens, completion_tokens };
}

async function refusal(response: Response): Promise<ApiError> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > error_length_max) break;
  }
  return errorOf(parse(text), response.status, response.headers);
}

function errorOf(json: unknown, status: number, headers: Headers): ApiError {
  const error = isRecord(json) && isRecord(json['error']) ? json['error'] : {};
  const text = (name: string) => (typeof error[name] === 'string' ? error[name] : undefined);
  return new ApiError({
    status,
    type: text('type') ?? 'unknown',
    message: text('message') ?? `The service answered ${status} without an error of its own.`,
    code: text('code'),
    param: text('param'),
    details: [],
    request_id: text('request_id') ?? headers.get('x-request-id') ?? undefined,
    headers,
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const record_tries = 8;
const record_pause_ms = 250;
const record_ms_max = 5_000;

/**
 * Returns the cost of a call from its record, which is written a moment after the answer; undefined if it does not come,
 * or the key may not read it.
 */
export async function costOf({ url, api_key }: Service, request_id: string): Promise<Cost | undefined> {
  const limit = AbortSignal.timeout(record_ms_max);
  for (let tries = 0; tries < record_tries; tries++) {
    if (tries > 0) await new Promise((resolve) => setTimeout(resolve, record_pause_ms));
    const response = await fetch(`${url}/v1/chat/${encodeURIComponent(request_id)}`, {
      headers: { authorization: `Bearer ${api_key}` },
      redirect: 'error',
      signal: limit,
    }).catch(() => undefined);
    const json: unknown = await response?.json().catch(() => undefined);
    const cost = response?.ok && isRecord(json) ? json['cost'] : undefined;
    if (isRecord(cost)) return readCost(cost);
    if (!response || response.status !== 404) return undefined;
  }
  return undefined;
}

function readCost({ amount, currency, exact }: Record<string, unknown>): Cost {
  const shown = (value: unknown) => oneLine(String(value ?? ''), 30);
  return { amount: shown(amount), currency: shown(currency), exact: shown(exact ?? amount) };
}

/** `acme/assistant: 0.01 USD, 12 + 340 tokens`. */
export function footer(model: string, { cost, usage, finish_reason }: Omit<Answered, 'text' | 'request_id'>): string {
  const parts = [
    ...(cost ? [`${cost.exact} ${cost.currency}`] : []),
    ...(usage ? [`${usage.prompt_tokens} + ${usage.completion_tokens} tokens`] : []),
    ...(finish_reason === 'length' ? ['cut at the most tokens of an answer'] : []),
    ...(finish_reason === 'content_filter' ? ['ended by a content filter'] : []),
  ];
  return `${oneLine(model, 100)}: ${parts.join(', ')}`;
}
