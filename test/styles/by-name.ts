import type { Json, JsonObject } from '../../src/catalog/model.ts';
import { renderAnswer as renderAnswerOf } from '../../src/styles/answer.ts';
import type {
  AnswerOptions,
  CallerCodec,
  ChatRequest,
  Codec,
  Purpose,
  Target,
  UpstreamBody,
} from '../../src/styles/codec.ts';
import { completions } from '../../src/styles/completions/codec.ts';
import { converse } from '../../src/styles/converse/codec.ts';
import { embeddings } from '../../src/styles/embeddings.ts';
import { gemini } from '../../src/styles/gemini/codec.ts';
import { messages } from '../../src/styles/messages/codec.ts';
import { openRelay as openRelayOf, type Relay, type RelayOptions } from '../../src/styles/relay.ts';
import { readChatRequest, upstreamBody as upstreamBodyOf } from '../../src/styles/request.ts';
import { responses } from '../../src/styles/responses/codec.ts';
import { texts } from '../../src/styles/texts/codec.ts';

/** The styles by their names, and what is done in them: tables of tests are by name. */

export type Style = 'completions' | 'messages';
export type CallerStyle = Style | 'responses' | 'gemini';
export type UpstreamStyle = CallerStyle | 'converse';

const callers = { completions, messages, responses, gemini };
const upstreams = { ...callers, converse };

export function callerNamed(style: CallerStyle): CallerCodec {
  return callers[style];
}

export function upstreamNamed(style: UpstreamStyle): Codec {
  return upstreams[style];
}

export function membersNamed(style: CallerStyle | 'texts' | 'embeddings') {
  if (style === 'texts') return texts.caller.members;
  return style === 'embeddings' ? embeddings.members : callers[style].caller.members;
}

export function readAsk(style: CallerStyle, body: unknown, purpose?: Purpose): ChatRequest {
  return readChatRequest(callers[style], body, purpose);
}

type NamedTarget = Omit<Target, 'style'> & { style: UpstreamStyle };

export function upstreamBody(request: ChatRequest, target: NamedTarget): UpstreamBody {
  return upstreamBodyOf(request, { ...target, style: upstreams[target.style] });
}

export function renderAnswer(request: ChatRequest, style: UpstreamStyle, bytes: Buffer, options: AnswerOptions) {
  return renderAnswerOf(request, upstreams[style], bytes, options);
}

export function readUsage(style: CallerStyle, fields: Json | undefined) {
  return callers[style].caller.usage.read(fields);
}

export type NamedRelayOptions = RelayOptions & {
  caller: CallerStyle;
  upstream: UpstreamStyle;
  wants_usage: boolean;
  /** Of the request. */
  body?: JsonObject;
};

/** Relays a stream for a request that has nothing but what a relay looks at. */
export function openRelay({ caller, upstream, wants_usage, body = {}, ...options }: NamedRelayOptions): Relay {
  const numbers = { max_tokens: undefined, thinking_budget: 0, n: 1 };
  const request = { style: callers[caller], body, model: options.model, stream: true, wants_usage, ...numbers };
  return openRelayOf(request, upstreams[upstream], options);
}
