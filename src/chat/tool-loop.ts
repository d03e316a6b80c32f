import type { JsonObject, Route } from '../catalog/model.ts';
import { ApiError } from '../errors.ts';
import type { CallerCodec } from '../styles/codec.ts';
import type { ChatEvent, Part, Turn, Usage } from '../styles/conversation.ts';
import type { ChatEventWriter } from '../styles/stream.ts';
import { addText, chargedUsage, no_usage, tokensOf, type TextSize } from '../styles/usage.ts';
import { answerOptions, attemptRoute, type AttemptContext, type AttemptParts } from './attempt.ts';
import { failed, type AttemptResult, type RouteFailure } from './attempt-result.ts';
import { newOutcome, type ChatOutcome } from './outcome.ts';
import { OwnTools, withFunctions, type CallPart, type OwnResult, type OwnToolParts } from './own-tools.ts';
import { ownCallsOf, type PricedChatRequest } from './priced-request.ts';
import { RequestMemory } from './request-memory.ts';
import { RoundAnswer, roundStyle } from './tool-round.ts';

/**
 * Tools of the service's own: the model is given functions, their calls are answered here, by a search API or by a task
 * that makes an image, and the model is asked again, until it calls none of them. The caller sees one answer. All rounds
 * and searches are one hold, one charge and one record; images are tasks with charges of their own.
 */

/** The parts of the app that a call with tools takes. */
export type ToolLoopParts = AttemptParts & OwnToolParts;

type Loop = AttemptContext & {
  readonly parts: ToolLoopParts;
  readonly priced: PricedChatRequest;
  readonly route: Route;
  /** The request with functions in place of the tools. */
  readonly body: JsonObject;
  readonly tools: OwnTools;
  /** Writes the caller's stream; absent for a whole answer. */
  readonly shown: ChatEventWriter | undefined;
  readonly ends_at_ms: number;
  /** The turns of the rounds so far, and their size, for counting. */
  readonly turns: Turn[];
  readonly read: TextSize;
  /** The parts of the whole answer. */
  readonly answer: Part[];
  /** The sum of the rounds, without their usage. */
  readonly seen: ChatOutcome;
  /** The caller has seen something of it. */
  has_shown: boolean;
  usage: Usage;
  rounds: number;
  readonly call_ids: Set<string>;
};

/** More calls than may be answered are refused one by one, as input that the model reads; beyond these they are left out. */
const refused_calls_max = 4;

/** Time for an answer that nobody can get any more. */
const round_ms_min = 1_000;

/**
 * Asks one route, and answers its calls. Throws ApiError 400 for what is the caller's own mistake, as long as nothing was
 * sent.
 */
export async function attemptWithTools(
  parts: ToolLoopParts,
  priced: PricedChatRequest,
  route: Route,
  context: AttemptContext,
): Promise<AttemptResult> {
  const loop = begin(parts, priced, route, context);
  const attempted = await run(loop);
  if (attempted.answered) context.caller.memory.release(); // else another route reads the request
  return attempted;
}

function begin(parts: ToolLoopParts, priced: PricedChatRequest, route: Route, context: AttemptContext): Loop {
  const { request } = priced;
  const { caller, outcome } = context;
  const { body, ...names } = withFunctions(request.style.caller, priced);
  const options = answerOptions(parts, priced, outcome);
  return {
    parts,
    priced,
    route,
    ...context,
    body,
    tools: new OwnTools(parts, priced, caller, names),
    shown: request.stream ? request.style.caller.openWriter(request, options) : undefined,
    ends_at_ms: performance.now() + route.timeout_ms.total,
    turns: [],
    read: { ascii_bytes: 0, other_bytes: 0 },
    answer: [],
    seen: newOutcome(),
    has_shown: false,
    usage: no_usage,
    rounds: 0,
    call_ids: new Set(),
  };
}

/** Rounds, until the model calls none of the tools, or may not. */
async function run(loop: Loop): Promise<AttemptResult> {
  const { priced } = loop;
  for (;;) {
    const stop = await stopBefore(loop);
    if (stop) return stop;
    const is_last = loop.rounds === ownCallsOf(priced);
    const { attempted, answer, outcome } = await runRound(loop, is_last);
    if (!attempted.answered) return loop.rounds === 1 ? attempted : breakOff(loop, attempted.failure);
    note(loop, outcome);
    if (!outcome.is_complete || !answer.ended) {
      settleUsage(loop);
      leave(loop, outcome);
      return attempted;
    }
    loop.has_shown ||= answer.shown_parts.length > 0;
    loop.answer.push(...answer.shown_parts);
    const { ended } = answer;
    const calls = answer.calls.slice(0, ownCallsOf(priced) + refused_calls_max);
    if (calls.length === 0) return finish(loop, ended);
    if (ended.reason === 'length' || ended.reason === 'refusal') return finish(loop, ended);
    const has_own_calls = answer.shown_parts.some(({ type }) => type === 'tool_call');
    const results = await runTools(loop, calls);
    if (!results) continue; // the caller is gone, or the time is over
    if (!Array.isArray(results)) return breakOff(loop, results);
    if (has_own_calls) return finish(loop, { reason: 'tool_calls' });
    if (is_last) return finish(loop, { reason: 'stop' });
    remember(loop, answer.parts, results);
  }
}

/** The end of a call whose caller has left, whose time is over, or that has written all that it may. */
async function stopBefore(loop: Loop): Promise<AttemptResult | undefined> {
  const { caller, parts, outcome, priced, rounds } = loop;
  if (rounds === 0) return undefined;
  if (caller.gone.aborted || parts.stopping.aborted) {
    outcome.is_gone = true;
    settleUsage(loop);
    outcome.is_abandoned = true;
    return { answered: true };
  }
  if (left_ms(loop) < round_ms_min)
    return breakOff(loop, { cause: 'timeout', reason: 'no answer in time (total)', is_spent: true });
  return loop.usage.output_tokens < priced.max_tokens ? undefined : finish(loop, { reason: 'length' });
}

function left_ms({ ends_at_ms }: Loop): number {
  return ends_at_ms - performance.now();
}

type Round = { attempted: AttemptResult; answer: RoundAnswer; outcome: ChatOutcome };

/** Asks the model, as if it were a call by itself. */
async function runRound(loop: Loop, is_last: boolean): Promise<Round> {
  const { parts, priced, route, caller, writer, shown, tools, turns, body } = loop;
  const place = { is_first: loop.rounds === 0, is_last };
  loop.rounds += 1;
  const answer = new RoundAnswer(tools, shown, place);
  const style: CallerCodec = roundStyle(priced.request.style, { turns, tools }, place, answer);
  const { search: _, images: ____, hosted: __, ...rest } = priced;
  const round: PricedChatRequest = {
    ...rest,
    request: { ...priced.request, style, body: { ...body } },
    max_tokens: priced.max_tokens - loop.usage.output_tokens,
    input_tokens_counted: priced.input_tokens_counted + tokensOf(loop.read),
  };
  const total = Math.max(round_ms_min, Math.min(route.timeout_ms.total, Math.ceil(left_ms(loop))));
  const timed = { ...route, timeout_ms: { ...route.timeout_ms, total } };
  const outcome = newOutcome();
  outcome.started_at_ms = loop.outcome.started_at_ms;
  const { keep: ___, ...one } = caller;
  const asking = { ...one, memory: new RequestMemory() }; // the request is read again in the next round
  try {
    return { attempted: await attemptRoute(parts, round, timed, { caller: asking, outcome, writer }), answer, outcome };
  } catch (error) {
    if (place.is_first) throw error;
    return { attempted: failed(failureAfterTool(loop, error)), answer, outcome };
  }
}

/**
 * A later round failed: what was shown ends with an error. Where nothing was, another route may be asked, unless images
 * would be made anew.
 */
function breakOff(loop: Loop, failure: RouteFailure): AttemptResult {
  const { outcome, shown, priced, tools } = loop;
  if (!shown && !tools.has_begun_image) return failed({ ...failure, may_cost: true });
  const { cause, refusal, is_not_route_fault = false } = failure;
  settleUsage(loop);
  outcome.has_content = shown !== undefined && loop.has_shown;
  const headers = { 'x-should-retry': 'false' };
  outcome.error =
    refusal ??
    (cause === 'timeout'
      ? new ApiError('timeout', `${priced.model.id} did not answer in time after a tool call.`, { headers })
      : new ApiError('upstream_error', 'The model provider failed after a tool call.', { headers }));
  return { answered: true, is_not_route_fault: is_not_route_fault || refusal !== undefined };
}

/** Returns the failure of a round, or of the service itself, such as that its database is away: neither is the route's fault. */
function failureAfterTool({ parts, priced }: Loop, error: unknown): RouteFailure {
  if (error instanceof ApiError) return { cause: 'upstream_error', reason: error.message, refusal: error };
  parts.log.error({ request_id: priced.request_id, err: error }, 'a chat call failed after a tool call');
  const reason = 'The service could not finish this call after a tool call.';
  const refusal = new ApiError('internal_error', reason, { headers: { 'x-should-retry': 'false' } });
  return { cause: 'upstream_error', reason, refusal };
}

/** Adds a round to the call: to `seen`, since another route may begin anew. */
function note(loop: Loop, round: ChatOutcome): void {
  const { seen, priced } = loop;
  const { usage, delivered, is_complete, writes_for_an_hour } = round;
  const input_tokens_counted = priced.input_tokens_counted + tokensOf(loop.read);
  const charged = chargedUsage(usage, delivered, { input_tokens_counted, is_complete, writes_for_an_hour });
  if (round.has_content || is_complete || round.is_abandoned) loop.usage = sum(loop.usage, charged.usage);
  seen.is_counted = seen.is_counted === true || charged.is_counted;
  seen.has_content ||= round.has_content;
  seen.is_gone ||= round.is_gone;
  seen.writes_for_an_hour = writes_for_an_hour;
  seen.tools_left_out = round.tools_left_out;
  seen.upstream_id = round.upstream_id;
  seen.first_content_ms ??= round.first_content_ms;
}

/** Searches that an upstream ran by itself are none of these. */
function sum(before: Usage, more: Usage): Usage {
  return {
    input_tokens: before.input_tokens + more.input_tokens,
    cached_input_tokens: before.cached_input_tokens + more.cached_input_tokens,
    cache_write_tokens: before.cache_write_tokens + more.cache_write_tokens,
    cache_write_1h_tokens: before.cache_write_1h_tokens + more.cache_write_1h_tokens,
    output_tokens: before.output_tokens + more.output_tokens,
    reasoning_tokens: before.reasoning_tokens + more.reasoning_tokens,
  };
}

/** The usage of all rounds, with the searches that were answered. */
function usageOf({ usage, tools }: Loop): Usage {
  const { searches_answered: web_search } = tools;
  return web_search === 0 ? usage : { ...usage, tool_calls: { web_search } };
}

/** Writes what all rounds come to into the outcome of the call. */
function settleUsage(loop: Loop): void {
  const { outcome, seen } = loop;
  outcome.usage = usageOf(loop);
  outcome.delivered = { ascii_bytes: 0, other_bytes: 0 }; // every round was counted by itself
  outcome.is_counted = seen.is_counted === true;
  outcome.has_content = seen.has_content;
  outcome.is_gone ||= seen.is_gone;
  outcome.writes_for_an_hour = seen.writes_for_an_hour;
  outcome.tools_left_out = seen.tools_left_out;
  outcome.upstream_id = seen.upstream_id;
  outcome.first_content_ms ??= seen.first_content_ms;
}

/** A round was cut off, or the caller left in it: what was done is charged. */
function leave({ outcome }: Loop, { error, is_abandoned, is_complete }: ChatOutcome): void {
  outcome.is_complete = is_complete;
  outcome.is_abandoned ||= is_abandoned;
  outcome.error ??= error;
}

/** Answers the calls of a round at once. Undefined if nobody waits for them any more; a failure is the service's own. */
async function runTools(loop: Loop, calls: readonly CallPart[]): Promise<OwnResult[] | RouteFailure | undefined> {
  const { parts, caller, tools } = loop;
  const signal = AbortSignal.any([caller.gone, parts.stopping]);
  const taken = calls.map((call) => tools.take(call, { signal, left_ms: Math.ceil(left_ms(loop)) }));
  for (const { begun } of taken) show(loop, begun);
  try {
    const results = await Promise.all(taken.map((call) => call.run()));
    for (const { shown } of results) {
      show(loop, shown);
      loop.answer.push(shown);
    }
    return results;
  } catch (error) {
    return signal.aborted ? undefined : failureAfterTool(loop, error);
  }
}

/** The turns of a round and of its calls, for the next one. */
function remember(loop: Loop, answer: readonly Part[], results: readonly OwnResult[]): void {
  const { turns, read, tools, call_ids } = loop;
  const ids: string[] = [];
  const parts = answer.flatMap((part): Part[] => {
    if (part.type !== 'tool_call' || !tools.has(part.name)) return [part];
    if (ids.length === results.length) return [];
    const id = call_ids.has(part.id) ? `${part.id}_${loop.rounds}_${ids.length}` : part.id;
    call_ids.add(id);
    ids.push(id);
    return [{ ...part, id }];
  });
  const answers = results.map(({ text, is_error }, index): Part => {
    addText(read, text);
    return { type: 'tool_result', id: ids[index] ?? '', parts: [{ type: 'text', text }], is_error };
  });
  for (const part of parts) {
    if (part.type === 'tool_call') addText(read, part.name + part.arguments);
    else if (part.type === 'text' || part.type === 'thinking') addText(read, part.text);
  }
  turns.push({ role: 'assistant', parts }, { role: 'user', parts: answers });
}

function show(loop: Loop, event: ChatEvent): void {
  const text = loop.shown?.write(event, () => usageOf(loop)) ?? '';
  if (text === '') return;
  loop.has_shown = true;
  loop.writer.write(Buffer.from(text));
}

/** Ends the answer, and keeps it for callers that continue it. */
async function finish(loop: Loop, ended: NonNullable<RoundAnswer['ended']>): Promise<AttemptResult> {
  const { outcome, shown, writer, priced, parts, caller } = loop;
  settleUsage(loop);
  const usage = usageOf(loop);
  outcome.is_complete = true;
  outcome.has_content = true;
  if (shown) {
    show(loop, { type: 'finish', ...ended });
    const end = shown.write({ type: 'end' }, () => usage);
    outcome.finish = shown.finish;
    if (shown.answer) await caller.keep?.(shown.answer);
    writer.write(Buffer.from(end));
    return { answered: true };
  }
  const { style } = priced.request;
  const whole = { parts: loop.answer, finish: ended };
  const body = style.caller.renderResponse([whole], usage, priced.request, answerOptions(parts, priced, outcome));
  outcome.finish = String(style.caller.finishOf(body));
  await caller.keep?.(body);
  return { answered: true, whole: Buffer.from(JSON.stringify(body)) };
}
