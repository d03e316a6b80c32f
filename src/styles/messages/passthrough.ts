import type { Json, JsonObject } from '../../catalog/model.ts';
import type { SseFrame } from '../../net/sse.ts';
import type { ChatRequest, Passthrough, Target } from '../codec.ts';
import { isObject } from '../fields.ts';
import { edited, innerMemberEdits } from '../model-name.ts';
import { withoutSampling, type Quirks } from '../quirks.ts';
import { isForeign } from '../thought-signatures.ts';
import {
  changed,
  chargedIn,
  complete,
  deliverText,
  fail,
  frameOf,
  learnUsage,
  noteToolCall,
  objectOf,
  refuse,
  upstreamIdOf,
  type SameStream,
  type StreamState,
} from '../stream.ts';
import { answer_tokens_min, budget_tokens_min, budgetOf, effortOfBudget, readEffort } from '../thinking.ts';
import { answerId } from './response.ts';
import { isOwnSearch, withoutOwnCitations } from './searches.ts';
import { serverBlock } from './server-blocks.ts';
import { readStartUsage, usage_format } from './usage.ts';

export function sameMessagesBody(request: ChatRequest, target: Target): JsonObject {
  const body: JsonObject = { ...request.body, model: target.model };
  const max_tokens = Math.min(request.max_tokens ?? target.max_tokens, target.max_tokens);
  body['max_tokens'] = max_tokens;
  adaptThinking(body, target.quirks);
  if (max_tokens !== request.max_tokens) limitBudget(body, max_tokens);
  if (target.quirks.sampling === false) withoutSampling(body);
  body['messages'] = withoutOwnSearches(withoutUnsigned(request.body['messages']));
  return body;
}

/** Fields that a messages upstream refuses when it only counts; a thinking budget has no limit to be below then. */
const uncounted = [
  'max_tokens',
  'stream',
  'stop_sequences',
  'temperature',
  'top_p',
  'top_k',
  'metadata',
  'service_tier',
];

/** The body for counting the tokens of a messages request at an upstream of that style. */
export function countedBody(request: ChatRequest, { model, quirks }: Target): JsonObject {
  const body: JsonObject = {
    ...request.body,
    model,
    messages: withoutOwnSearches(withoutUnsigned(request.body['messages'])),
  };
  for (const name of uncounted) delete body[name];
  if (quirks.thinking !== undefined) delete body['thinking'];
  return body;
}

/** Tools send `adaptive` for every model whose name they do not know, and older models refuse it. */
function adaptThinking(body: JsonObject, quirks: Quirks): void {
  const { thinking } = body;
  if (!isObject(thinking) || quirks.thinking === undefined) return;
  const type = thinking['type'];
  if (quirks.thinking === 'none' || (quirks.thinking === 'always' && type !== 'adaptive')) {
    delete body['thinking'];
  } else if (quirks.thinking === 'adaptive' && type === 'enabled') {
    const { budget_tokens, ...rest } = thinking;
    body['thinking'] = { ...rest, type: 'adaptive' };
    const config = isObject(body['output_config']) ? body['output_config'] : {};
    const effort = effortOfBudget(typeof budget_tokens === 'number' ? budget_tokens : budget_tokens_min);
    body['output_config'] = { effort, ...config };
  } else if (quirks.thinking === 'budget' && type === 'adaptive') {
    const config = isObject(body['output_config']) ? body['output_config'] : {};
    const budget_tokens = budgetOf(readEffort(config['effort']) ?? 'high');
    body['thinking'] = { ...thinking, type: 'enabled', budget_tokens: budget_tokens };
    limitBudget(body, typeof body['max_tokens'] === 'number' ? body['max_tokens'] : 0);
  }
}

/** The upstream wants the budget below max_tokens, which may be less than the caller's. */
function limitBudget(body: JsonObject, max_tokens: number): void {
  const { thinking } = body;
  if (!isObject(thinking) || thinking['type'] !== 'enabled' || typeof thinking['budget_tokens'] !== 'number') return;
  if (thinking['budget_tokens'] < max_tokens) return;
  const budget_tokens = max_tokens - answer_tokens_min;
  if (budget_tokens < budget_tokens_min) delete body['thinking'];
  else body['thinking'] = { ...thinking, budget_tokens };
}

/**
 * Thinking that an upstream of another style gave has no signature, or one that holds thought signatures; this one would
 * refuse the whole conversation for it. Such blocks are left out, all others stay the objects that they were.
 */
function withoutUnsigned(messages: Json | undefined): Json {
  if (!Array.isArray(messages)) return null;
  if (!messages.some(hasUnsigned)) return messages;
  return messages.flatMap((message) => {
    if (!isObject(message) || !Array.isArray(message['content']) || !hasUnsigned(message)) return [message];
    const content = message['content'].filter((block) => !isUnsigned(block));
    return content.length === 0 ? [] : [{ ...message, content }];
  });
}

function hasUnsigned(message: Json): boolean {
  return isObject(message) && Array.isArray(message['content']) && message['content'].some(isUnsigned);
}

function isUnsigned(block: Json): boolean {
  if (!isObject(block) || block['type'] !== 'thinking') return false;
  const signature = block['signature'] ?? '';
  return signature === '' || (typeof signature === 'string' && isForeign(signature));
}

/** Searches that the service ran become text: the upstream has not sealed them. */
function withoutOwnSearches(messages: Json): Json {
  if (!Array.isArray(messages)) return messages;
  return messages.map((message) => {
    if (!isObject(message) || !Array.isArray(message['content']) || !message['content'].some(isOwnSearch))
      return message;
    const content = message['content'].flatMap((block): Json[] => {
      if (!isObject(block) || !isOwnSearch(block)) return [block];
      const parts = block['type'] === 'text' ? undefined : serverBlock(block);
      if (!parts) return [withoutOwnCitations(block)];
      return parts.flatMap((part) => (part.type === 'text' ? [{ type: 'text', text: part.text }] : []));
    });
    return { ...message, content };
  });
}

type PassthroughOptions = Parameters<Passthrough['openStream']>[0];

export function sameMessages(options: PassthroughOptions, state: StreamState): SameStream {
  const usage = new ReportedUsage(options, state);
  const own = { id: answerId(options.request_id), model: options.model };
  const take = (frame: SseFrame): Buffer | undefined => {
    if (frame.data === undefined) return frame.raw;
    if (frame.data.trim() === '') return undefined;
    const event = objectOf(frame.data);
    const named = withName(frame, event['type']);
    const { raw } = named;
    switch (event['type']) {
      case 'message_start':
        state.has_begun = true;
        if (isObject(event['message'])) {
          const { message } = event;
          state.upstream_id ??= upstreamIdOf(message['id']);
          learnUsage(state, readStartUsage(message['usage']));
          const started = usage.start(message);
          if (started) return frameOf('message_start', { ...event, message: { ...started, ...own } });
        }
        return changed(named, (bytes) => innerMemberEdits(bytes, own));
      case 'content_block_start':
        noteBlock(state, event['content_block']);
        return raw;
      case 'content_block_delta':
        noteDelta(state, event['delta']);
        return raw;
      case 'message_delta':
        learnUsage(state, { ...state.usage, ...usage_format.read(event['usage']) }); // it may have a part of the input
        if (isObject(event['delta']) && typeof event['delta']['stop_reason'] === 'string')
          [state.finish, state.is_ending] = [event['delta']['stop_reason'], true];
        return usage.correct(event) ?? raw;
      case 'message_stop': {
        const bytes = complete(state, raw);
        const missing = bytes && usage.correct({ delta: { stop_reason: state.finish ?? null, stop_sequence: null } });
        return bytes && missing ? Buffer.concat([missing, bytes]) : bytes;
      }
      case 'error':
        return refuse(state, event['error'] ?? null);
      default:
        return raw;
    }
  };
  return {
    take,
    end: () => {
      if (!state.is_complete) fail(state, 'The stream was cut off.', 'cut');
      return undefined;
    },
  };
}

/** The usage that a caller reads from the events of a messages stream: of the start, with that of each delta over it. */
class ReportedUsage {
  readonly #options: PassthroughOptions;
  readonly #state: StreamState;
  #reported: JsonObject = {};

  constructor(options: PassthroughOptions, state: StreamState) {
    this.#options = options;
    this.#state = state;
  }

  /** The message with usage, if it has none of its input; SDKs read it there without looking. */
  start(message: JsonObject): JsonObject | undefined {
    const { usage: fields } = message;
    const is_reported = this.#state.usage?.input_tokens !== undefined;
    const begun = { ...chargedIn(this.#state, this.#options), output_tokens: 0, reasoning_tokens: 0 };
    this.#reported = is_reported && isObject(fields) ? fields : usage_format.correct(fields, begun);
    return is_reported ? undefined : { ...message, usage: this.#reported };
  }

  /** A message_delta with the counts that are charged; undefined if the caller has them already with what it tells. */
  correct(event: JsonObject): Buffer | undefined {
    const charged = chargedIn(this.#state, this.#options);
    this.#reported = { ...this.#reported, ...(isObject(event['usage']) && event['usage']) };
    if (usage_format.reports(this.#reported, charged)) return undefined;
    this.#reported = usage_format.correct(this.#reported, charged);
    const usage = usage_format.correct(event['usage'], charged);
    return frameOf('message_delta', { type: 'message_delta', ...event, usage });
  }
}

/** A block that comes whole, or begins with something, is content; an empty text or thought is not yet. */
function noteBlock(state: StreamState, block: Json | undefined): void {
  if (!isObject(block)) return;
  if (block['type'] === 'text') return deliverText(state, block['text']);
  state.reasons ||= block['type'] === 'thinking' || block['type'] === 'redacted_thinking';
  if (block['type'] === 'thinking') return deliverText(state, block['thinking']);
  deliverText(state, block['name']);
  if (block['type'] === 'server_tool_use' && block['name'] === 'web_search') noteToolCall(state, 'web_search');
  state.has_content = true;
}

function noteDelta(state: StreamState, delta: Json | undefined): void {
  if (!isObject(delta)) return;
  deliverText(state, delta['text'] ?? delta['thinking'] ?? delta['partial_json']);
  if (typeof delta['signature'] === 'string') state.has_content = true;
}

/** SDKs pass over events without a name, which some servers leave out. */
function withName(frame: SseFrame, type: Json | undefined): SseFrame {
  const last = frame.data_lines.at(-1);
  if (frame.event !== '' || !last || typeof type !== 'string' || !/^\w+$/.test(type)) return frame;
  const value = Buffer.from(`\nevent: ${type}`);
  return { ...frame, event: type, raw: edited(frame.raw, [{ from: last.to, to: last.to, value }]) };
}
