import type { JsonObject } from '../../src/catalog/model.ts';
import { ApiError } from '../../src/errors.ts';
import { SseSplitter } from '../../src/net/sse.ts';
import type { ChatEvent } from '../../src/styles/conversation.ts';
import {
  callerNamed,
  openRelay,
  readAsk,
  renderAnswer,
  upstreamBody,
  upstreamNamed,
  type CallerStyle,
} from '../styles/by-name.ts';
import { plainest } from '../styles/carried/row.ts';

/**
 * The meaning of a translation, whatever words it uses: requests, answers and streams are read back into the neutral form
 * by the style that they are written in, so that two translations of one text can be compared.
 */

/** The members of a neutral form, by their paths: `turns.0.parts.1.text`. Absent, null and 0 tokens are one. */
export type Meaning = Map<string, string>;

const request_id = 'req_1';
const answer_options = { model: 'm', request_id, created: 5, input_tokens_estimated: 0 };
const line_bytes_max = 10_000_000;

/** The body that this service sends an upstream for a caller's. */
export function translateRequest(caller: CallerStyle, upstream: CallerStyle, sent: JsonObject): JsonObject {
  const request = readAsk(caller, structuredClone(sent));
  const max_tokens = request.max_tokens ?? 4096;
  return upstreamBody(request, { style: upstream, model: 'm', max_tokens, quirks: {} }).body;
}

/** The answer that this service gives a caller for an upstream's. `request` has the caller's tools, if that matters. */
export function translateAnswer(
  upstream: CallerStyle,
  caller: CallerStyle,
  sent: JsonObject,
  request: JsonObject = {},
): JsonObject {
  const ask = { ...readAsk(caller, structuredClone(plainest[caller])), body: request };
  const { bytes } = renderAnswer(ask, upstream, Buffer.from(JSON.stringify(sent)), answer_options);
  return JSON.parse(bytes.toString()) as JsonObject;
}

/** The stream that this service gives a caller for an upstream's, up to where that one is broken. */
export function translateStream(
  upstream: CallerStyle,
  caller: CallerStyle,
  sent: string,
  request: JsonObject = {},
): string {
  const relay = openRelay({ ...answer_options, line_bytes_max, caller, upstream, wants_usage: true, body: request });
  const pieces = [relay.push(Buffer.from(sent)), relay.end()];
  return Buffer.concat(pieces.filter((piece) => piece !== undefined)).toString();
}

export function meaningOfRequest(style: CallerStyle, body: JsonObject): Meaning {
  // Their files have Gemini's own words: those are compared.
  if (style === 'gemini') return flat(body);
  return flat(callerNamed(style).caller.parseRequest(structuredClone(body)));
}

export function meaningOfAnswer(style: CallerStyle, body: JsonObject): Meaning {
  const answers = upstreamNamed(style).upstream.parseResponse(structuredClone(body), request_id);
  return flat(answers.map(({ parts, finish, usage }) => ({ parts, finish, usage })));
}

export function meaningOfStream(style: CallerStyle, text: string): Meaning {
  const splitter = new SseSplitter(line_bytes_max);
  const reader = upstreamNamed(style).upstream.openReader(request_id);
  const frames = splitter.push(Buffer.from(text));
  const rest = splitter.rest();
  const events = [...frames, ...(rest ? [rest] : [])].flatMap((frame) => reader.read(frame));
  return flat(wholeOf([...events, ...reader.end()]));
}

type Whole = {
  text: string;
  thinking: string;
  signature: string;
  refusal: string;
  calls: string[];
  [rest: string]: unknown;
};

function wholeOf(events: readonly ChatEvent[]): Whole {
  const whole: Whole = { text: '', thinking: '', signature: '', refusal: '', calls: [] };
  for (const event of events) {
    if (event.type === 'text' || event.type === 'thinking' || event.type === 'refusal') whole[event.type] += event.text;
    if (event.type === 'signature') whole.signature += event.signature;
    if (event.type === 'tool_call') whole.calls[event.index] = `${event.id} ${event.name} `;
    if (event.type === 'tool_arguments') whole.calls[event.index] += event.json;
    if (event.type === 'usage') whole['usage'] = Object.assign({}, whole['usage'], event.usage);
    if (event.type === 'finish') whole['finish'] = event.reason;
    if (event.type === 'error') whole['error'] = event.message;
    if (event.type === 'end') whole['end'] = true;
  }
  return whole;
}

function flat(value: unknown, path = '', into: Meaning = new Map()): Meaning {
  if (typeof value === 'object' && value !== null) {
    for (const [name, member] of Object.entries(value)) {
      if (name !== 'at') flat(member, path === '' ? name : `${path}.${name}`, into);
    }
  } else if (value !== undefined && value !== null && !(value === 0 && path.includes('usage.'))) {
    into.set(path, JSON.stringify(value));
  }
  return into;
}

/** Returns the differences of what we make of a text from what it is to mean, `PATH: OURS, not THEIRS`; or that we refuse it. */
export function compareTexts<Text>(
  translate: () => Text,
  meaningOf: (text: Text) => Meaning,
  expected: () => Meaning,
): string[] {
  try {
    const [ours, theirs] = [meaningOf(translate()), expected()];
    const paths = [...new Set([...ours.keys(), ...theirs.keys()])];
    return paths
      .filter((path) => ours.get(path) !== theirs.get(path))
      .map((path) => `${path}: ${ours.get(path) ?? 'nothing'}, not ${theirs.get(path) ?? 'nothing'}`);
  } catch (error) {
    if (error instanceof ApiError) return [`refused, ${error.extras.param ?? ''}: ${error.message}`];
    throw error;
  }
}
