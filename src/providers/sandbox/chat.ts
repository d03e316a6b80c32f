/** The chat of the sandbox: all styles of callers as their own upstreams speak them, scripted by the last user message. */
import { setTimeout as wait } from 'node:timers/promises';
import type { JsonObject } from '../../catalog/model.ts';
import { ApiError } from '../../errors.ts';
import type { Codec } from '../../styles/codec.ts';
import type { Conversation, Usage } from '../../styles/conversation.ts';
import { echoOf } from '../../styles/responses/response.ts';
import { refusalError } from '../http/refusal.ts';
import { InputRefused, NotStarted, type ChatCall, type ChatProvider, type ChatReply } from '../provider.ts';
import type { Prober } from '../../storage/probe.ts';
import { answerTo, hasForgedThinking, momentOf } from './chat-answer.ts';
import { countInput } from './chat-count.ts';
import { cutAnswer, type ServedAnswer } from './chat-pieces.ts';
import { assert } from '../../lib/assert.ts';
import { readChatScript, type ChatScript } from './chat-script.ts';
import { voices, type Voice, type WireOptions } from './chat-wire.ts';

/** `[[hang]]` ends here, whatever the route's own time limits are. */
const hang_ms = 20_000;

/** More answers to one request would keep the process from its other work. */
const answers_max = 8;

/** Each is looked for in all of the text. */
const stops_max = 64;

/** Makes the chat of the sandbox. It remembers nothing. */
export function openSandboxChat(prober: Prober): ChatProvider {
  return {
    styles: voices.map(({ style }) => style),
    runs_no_tools: true,
    send: (call, stop) => answer(prober, call, stop),
    countTokens: async ({ style, body }) => {
      const voice = voiceOf(style);
      const conversation = readConversation(voice, body);
      const { input_tokens, cached_input_tokens } = await countInput(prober, conversation, voice, body);
      return input_tokens + cached_input_tokens;
    },
  };
}

/** It is asked in those styles alone that it says it speaks. */
function voiceOf(style: Codec): Voice {
  const voice = voices.find((each) => each.style === style);
  assert(voice, 'the sandbox is asked in its own styles');
  return voice;
}

async function answer(prober: Prober, call: ChatCall, signal: AbortSignal): Promise<ChatReply> {
  const { body, options } = call;
  const voice = voiceOf(call.style);
  const conversation = readConversation(voice, body);
  if (conversation.stop.length > stops_max) throw refused(`There may be at most ${stops_max} stop sequences.`);
  if (hasForgedThinking(conversation)) throw refused('Invalid signature in a thinking block: give it back as it came.');
  const moment = momentOf(conversation);
  // What the tools found is answered by itself: the directives were for the answer that called them.
  const script = readChatScript(moment.last_text, options);
  const is_first = moment.calls_made === 0;
  if (is_first) await behave(script, call.stream, signal);
  const count = choicesOf(body);
  const served: ServedAnswer[] = [];
  for (let seed = 0; seed < count; seed++) {
    served.push(await cutAnswer(await answerTo(conversation, { moment, script, seed, prober }), conversation));
  }
  const usage = script.tells_usage ? await usageOf(prober, conversation, call, served) : undefined;
  const wire = { ...wireOptions(call), usage };
  signal.throwIfAborted();
  if (!call.stream) return { body: oneChunk(voice.whole(served, wire)) };
  const outcome = is_first && (script.is_cut ? 'cut' : script.outcome === 'fail' && 'fail');
  return { body: stream(voice, served, wire, outcome || 'done', signal), ...(outcome && { simulated: true }) };
}

function readConversation({ style }: Voice, body: JsonObject): Conversation {
  try {
    return style.caller.parseRequest(body);
  } catch (error) {
    if (error instanceof ApiError) throw refused(error.message);
    throw error;
  }
}

export function refused(message: string): InputRefused {
  return new InputRefused('invalid_request', message);
}

function choicesOf(body: JsonObject): number {
  const n = typeof body['n'] === 'number' ? body['n'] : 1;
  if (n > answers_max) throw refused(`n must be at most ${answers_max} for this model.`);
  return Math.max(1, Math.floor(n));
}

/** Everything that a script asks for before the answer begins. */
export async function behave(script: ChatScript, is_stream: boolean, signal: AbortSignal): Promise<void> {
  if (script.refuse) throw notStarted('refused', 'The sandbox refused the call before its start, as requested.');
  if (script.delay_ms !== undefined) await wait(script.delay_ms, undefined, { signal });
  if (script.error_status !== undefined) throw errorOf(script.error_status);
  if (script.outcome === 'hang') {
    await wait(hang_ms, undefined, { signal });
    throw notStarted('timeout', 'The sandbox did not answer within 20 seconds, as requested.');
  }
  if (script.outcome === 'moderate') {
    const message = 'The sandbox found the content unfit, as requested.';
    throw new InputRefused('content_policy_violation', message, { simulated: true });
  }
  // Half an answer that is no stream is none.
  if (is_stream) return;
  if (script.outcome === 'fail') throw notStarted('unavailable', 'The sandbox failed, as requested.');
  if (script.is_cut) throw notStarted('unavailable', 'The sandbox broke off, as requested.');
}

function notStarted(reason: NotStarted['reason'], message: string, retry_after_ms?: number): NotStarted {
  return new NotStarted(reason, message, { simulated: true, ...(retry_after_ms !== undefined && { retry_after_ms }) });
}

/** Read as the same status of any other upstream is read. */
function errorOf(status: number): NotStarted | InputRefused {
  const message = `The sandbox answered ${status}, as requested.`;
  const error = refusalError({ status, retry_after: undefined, body: JSON.stringify({ error: { message } }) }, []);
  return error instanceof NotStarted
    ? notStarted(error.reason, error.message, error.retry_after_ms)
    : new InputRefused(error.type, error.message, { simulated: true });
}

async function usageOf(
  prober: Prober,
  conversation: Conversation,
  call: ChatCall,
  served: readonly ServedAnswer[],
): Promise<Usage> {
  const input = await countInput(prober, conversation, voiceOf(call.style), call.body);
  const sum = (field: 'output_tokens' | 'reasoning_tokens') => served.reduce((total, one) => total + one[field], 0);
  return {
    ...input,
    cache_write_tokens: 0,
    cache_write_1h_tokens: 0,
    output_tokens: sum('output_tokens'),
    reasoning_tokens: sum('reasoning_tokens'),
  };
}

function wireOptions({ model, request_id, body }: ChatCall): Omit<WireOptions, 'usage'> {
  const legacy_functions = Array.isArray(body['functions']) && !Array.isArray(body['tools']);
  const created = Math.floor(Date.now() / 1000);
  return { model, request_id, created, legacy_functions, echo: echoOf(body) };
}

async function* oneChunk(body: JsonObject): AsyncGenerator<Buffer> {
  yield Buffer.from(JSON.stringify(body));
}

const pause_ms = 10;

/** Several answers at once come no slower than one. */
const pauses_max = 200;

async function* stream(
  { style, frames, failure }: Voice,
  served: readonly ServedAnswer[],
  wire: WireOptions,
  outcome: 'done' | 'cut' | 'fail',
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const { head, content, tail } = frames(served, wire);
  const until = outcome === 'done' ? content.length : Math.ceil(content.length / 2);
  const size = Math.ceil(content.length / pauses_max) || 1;
  yield Buffer.from(head.join(''));
  for (let at = 0; at < until; at += size) {
    yield Buffer.from(content.slice(at, Math.min(at + size, until)).join(''));
    await wait(pause_ms, undefined, { signal });
  }
  if (outcome === 'done') yield Buffer.from(tail.join(''));
  if (outcome !== 'fail') return;
  const message = 'The sandbox failed in the middle of its answer, as requested.';
  const { request_id, model, created } = wire;
  yield style.caller.errorEvent({ type: failure, message, request_id, model, created });
}
