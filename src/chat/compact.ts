import { isObject, type JsonObject, type Route } from '../catalog/model.ts';
import { ApiError } from '../errors.ts';
import { readBytes } from '../lib/read-bytes.ts';
import { InputRefused, type ChatProvider } from '../providers/provider.ts';
import { allowanceOf, refuseFields } from '../styles/allowed.ts';
import { renderAnswer } from '../styles/answer.ts';
import type { CallerCodec, Compaction } from '../styles/codec.ts';
import { quirksOf } from '../styles/quirks.ts';
import { objectOf } from '../styles/stream.ts';
import { AttemptTimeouts } from './attempt-timeouts.ts';
import { answer_bytes_max, type AttemptContext } from './attempt.ts';
import { abandoned, failed, failureOf, type AttemptResult } from './attempt-result.ts';
import { attemptWithLinks, linkPolicy, type LinkedParts } from './linked.ts';
import type { ChatOutcome } from './outcome.ts';
import { priceChatRequest, type PricedChatRequest, type PricingParts, type ReceivedChat } from './priced-request.ts';
import { refusedInput } from './refused.ts';

/** The request of a compaction: for an upstream that does it by itself, and for a model that writes a summary. */
export type PricedCompaction = Omit<PricedChatRequest, 'fallbacks'> & {
  compaction: Compaction;
  /** An ApiError where a part of it can be read by its own upstream alone. */
  summary: PricedChatRequest | ApiError;
  /** Encrypts a summary. */
  encrypt(text: string): Promise<string>;
  /** The caller's items that stay. */
  messages: JsonObject[];
};

/** Prices a compaction: its hold is that of its whole input. Throws ApiError 400 and 404. */
export function priceCompaction(
  parts: PricingParts,
  style: CallerCodec,
  call: ReceivedChat,
  facts: Pick<PricedCompaction, 'compaction' | 'messages' | 'encrypt'>,
): PricedCompaction {
  const body = facts.compaction.requestBody(isObject(call.body) ? call.body : {});
  const { fallbacks: _, ...whole } = priceChatRequest(parts, style, { ...call, body });
  const { model, model_reason: why } = whole;
  const chosen = [{ id: model.id, ...(why !== undefined && { why }) }] as const; // the same for the summary
  return { ...whole, ...facts, summary: summaryOf(parts, style, { ...call, body, chosen }, facts.compaction) };
}

function summaryOf(
  parts: PricingParts,
  style: CallerCodec,
  call: ReceivedChat & { body: JsonObject },
  compaction: Compaction,
): PricedCompaction['summary'] {
  try {
    return priceChatRequest(parts, style, { ...call, body: compaction.summaryBody(call.body) });
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** Asks one route to compact a conversation: by the upstream's own means, else by a summary. Throws ApiError. */
export async function attemptCompaction(
  parts: LinkedParts,
  priced: PricedCompaction,
  route: Route,
  context: AttemptContext,
): Promise<AttemptResult> {
  const provider = parts.providers.chat(route.provider);
  const native = provider && nativeOf(parts, priced, route, provider);
  if (native) return attemptNative(parts, { priced, native }, route, context);
  const { summary, max_tokens } = priced;
  if (summary instanceof ApiError)
    return failed({ cause: 'upstream_error', reason: summary.message, refusal: summary });
  const attempted = await attemptWithLinks(parts, { ...summary, max_tokens }, route, context);
  if (!attempted.answered || !attempted.whole) return attempted;
  return { ...attempted, whole: await rendered(parts, priced, attempted.whole, route, context.outcome) };
}

/** Returns how the upstream of a route compacts; undefined if it does not, or may not be given the links of this request. */
function nativeOf(
  parts: LinkedParts,
  { request, links }: PricedCompaction,
  route: Route,
  { compaction }: ChatProvider,
): ChatProvider['compaction'] {
  const quirks = quirksOf(route.options);
  if (compaction?.style !== request.style || quirks.responses === false) return undefined;
  if (!(quirks.compaction ?? compaction.is_usual)) return undefined;
  const is_given = links.length === 0 || linkPolicy(parts, route, request.style) === 'pass';
  return is_given ? compaction : undefined;
}

/** The answer of a model, as a compaction. A model that wrote nothing is charged for, as in every call. */
async function rendered(
  { clock }: LinkedParts,
  { compaction, messages, request_id, encrypt }: PricedCompaction,
  whole: Buffer,
  route: Route,
  outcome: ChatOutcome,
): Promise<Buffer> {
  const answer = objectOf(whole.toString('utf8'));
  const text = compaction.textOf(answer);
  if (text === '') {
    outcome.route = route;
    throw new ApiError('upstream_error', 'The model wrote no summary.', { headers: { 'x-should-retry': 'false' } });
  }
  const created = Math.floor(clock.now() / 1000);
  const { usage = null } = answer;
  const content = await encrypt(text);
  return Buffer.from(JSON.stringify(compaction.render({ request_id, created, messages, content, usage })));
}

type Native = { priced: PricedCompaction; native: NonNullable<ChatProvider['compaction']> };

async function attemptNative(
  parts: LinkedParts,
  { priced, native }: Native,
  route: Route,
  { caller, outcome }: AttemptContext,
): Promise<AttemptResult> {
  const { request, request_id, model, max_tokens } = priced;
  const { timeout_ms, options, upstream_model } = route;
  try {
    refuseFields(request.body, allowanceOf(options));
  } catch (refusal) {
    if (!(refusal instanceof ApiError)) throw refusal;
    return failed({ cause: 'upstream_error', reason: refusal.message, refusal });
  }
  const target = { style: request.style, model: upstream_model, max_tokens, quirks: quirksOf(options) };
  const body = priced.compaction.nativeBody(request, target);
  const timeouts = new AttemptTimeouts(timeout_ms, false, caller.gone, parts.stopping);
  const onLeave = () => {
    outcome.is_gone = true;
    caller.memory.release();
  };
  timeouts.begin({ onLeave, isReadOn: () => true });
  try {
    const call = { request_id, style: request.style, model: upstream_model, body, headers: {}, timeout_ms, options };
    const reply = await native.send(call, timeouts.signal);
    const answer = renderAnswer(request, request.style, await readBytes(reply.body, answer_bytes_max), {
      model: model.id,
      request_id,
      created: Math.floor(parts.clock.now() / 1000),
      input_tokens_estimated: priced.input_tokens_counted,
    });
    const { usage, has_content, delivered, upstream_id } = answer;
    Object.assign(outcome, { usage, has_content, delivered, finish: 'compacted', upstream_id, is_complete: true });
    outcome.first_content_ms = Math.round(performance.now() - outcome.started_at_ms);
    return timeouts.is_left ? { answered: true } : { answered: true, whole: answer.bytes };
  } catch (error) {
    if (error instanceof InputRefused) throw refusedInput(error, model);
    return abandoned(error, timeouts, outcome) ?? failed(failureOf(error, timeouts));
  } finally {
    timeouts.stop();
  }
}
