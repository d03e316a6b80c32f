import type { JsonObject, Route } from '../catalog/model.ts';
import { ApiError } from '../errors.ts';
import { assert } from '../lib/assert.ts';
import type { Guard } from '../net/guard.ts';
import { inputOf } from '../styles/calls.ts';
import type { CallerCodec } from '../styles/codec.ts';
import type { ChatEvent, Part, Turn, Usage, WebSearch } from '../styles/conversation.ts';
import { resultsText } from '../styles/search-function.ts';
import type { StreamWriter as StyleWriter } from '../styles/stream.ts';
import { addText, chargedUsage, tokensOf, type TextSize } from '../styles/usage.ts';
import { searchWeb } from '../web-search/search.ts';
import {
  answerOptions,
  attemptRoute,
  failed,
  type Attempted,
  type AttemptParts,
  type ChatCaller,
  type RouteFailure,
} from './attempt.ts';
import { newOutcome, type ChatOutcome } from './outcome.ts';
import type { OwnSearch } from './own-search.ts';
import type { PricedChatRequest } from './priced-request.ts';
import { RequestMemory } from './request-memory.ts';
import { RoundAnswer, roundStyle, type CallPart } from './search-round.ts';
import type { StreamWriter } from './stream-writer.ts';

/**
 * The service's own search of the web: the model is given a function, each of its calls is answered by the operator's
 * search API, and the model is asked again, until it calls it no more. The caller sees one answer, with its searches.
 * All rounds and searches are one hold, one charge and one record.
 */

/** The parts of the app that a search takes. */
export type SearchLoopParts = AttemptParts & { readonly guard: Guard };

type Loop = {
  readonly parts: SearchLoopParts;
  readonly priced: PricedChatRequest;
  readonly search: OwnSearch;
  readonly route: Route;
  readonly caller: ChatCaller;
  readonly outcome: ChatOutcome;
  readonly writer: StreamWriter;
  /** The request with a function in place of the search. */
  readonly body: JsonObject;
  readonly search_name: string;
  /** Writes the caller's stream; absent for a whole answer. */
  readonly shown: StyleWriter | undefined;
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
  searches_sent: number;
  answered: number;
  calls: Set<string>;
};

/** Time for an answer that nobody can get any more. */
const round_ms_min = 1_000;

/**
 * Asks one route, and searches for it. Throws ApiError 400 for what is the caller's own mistake, as long as nothing was
 * sent.
 */
export async function attemptWithSearch(
  parts: SearchLoopParts,
  priced: PricedChatRequest,
  route: Route,
  caller: ChatCaller,
  outcome: ChatOutcome,
  writer: StreamWriter,
): Promise<Attempted> {
  const loop = begin(parts, priced, route, caller, outcome, writer);
  const attempted = await run(loop);
  if (attempted.answered) caller.memory.release(); // else another route reads the request
  return attempted;
}

function begin(
  parts: SearchLoopParts,
  priced: PricedChatRequest,
  route: Route,
  caller: ChatCaller,
  outcome: ChatOutcome,
  writer: StreamWriter,
): Loop {
  const { search, request } = priced;
  const half = request.style.caller.search;
  assert(search && half, 'the call has a search');
  const { body, name } = half.withFunction(request.body);
  const options = answerOptions(parts, priced, outcome);
  return {
    parts,
    priced,
    search,
    route,
    caller,
    outcome,
    writer,
    body,
    search_name: name,
    shown: request.stream ? request.style.caller.openWriter(request, options) : undefined,
    ends_at_ms: performance.now() + route.timeout_ms.total,
    turns: [],
    read: { ascii_bytes: 0, other_bytes: 0 },
    answer: [],
    seen: newOutcome(),
    has_shown: false,
    usage: no_usage,
    rounds: 0,
    searches_sent: 0,
    answered: 0,
    calls: new Set(),
  };
}

const no_usage: Usage = {
  input_tokens: 0,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  cache_write_1h_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
};

/** Rounds, until the model searches no more, or may not. */
async function run(loop: Loop): Promise<Attempted> {
  for (;;) {
    const stop = await stopBefore(loop);
    if (stop) return stop;
    const is_last = loop.rounds === loop.search.searches_max;
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
    const { searches, ended } = answer;
    if (searches.length === 0) return finish(loop, ended);
    if (ended.reason === 'length' || ended.reason === 'refusal') return finish(loop, ended);
    const has_own_calls = answer.shown_parts.some(({ type }) => type === 'tool_call');
    const searched = await runSearches(loop, searches);
    if (!searched) continue; // the caller is gone, or the time is over
    if (has_own_calls) return finish(loop, { reason: 'tool_calls' });
    if (is_last) return finish(loop, { reason: 'stop' });
    remember(loop, answer.parts, searched);
  }
}

/** The end of a call whose caller has left, whose time is over, or that has written all that it may. */
async function stopBefore(loop: Loop): Promise<Attempted | undefined> {
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

type Round = { attempted: Attempted; answer: RoundAnswer; outcome: ChatOutcome };

/** Asks the model, as if it were a call by itself. */
async function runRound(loop: Loop, is_last: boolean): Promise<Round> {
  const { parts, priced, route, caller, writer, shown, search_name, turns, body } = loop;
  const place = { is_first: loop.rounds === 0, is_last };
  loop.rounds += 1;
  const answer = new RoundAnswer(search_name, shown, place);
  const style: CallerCodec = roundStyle(priced.request.style, { turns, search_name }, place, answer);
  const { search: _, hosted: __, ...rest } = priced;
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
    return { attempted: await attemptRoute(parts, round, timed, asking, outcome, writer), answer, outcome };
  } catch (error) {
    if (place.is_first || !(error instanceof ApiError)) throw error;
    return { attempted: failed({ cause: 'upstream_error', reason: error.message, refusal: error }), answer, outcome };
  }
}

/** A later round failed: what was shown ends with an error; where nothing was, another route may be asked. */
function breakOff(loop: Loop, failure: RouteFailure): Attempted {
  const { outcome, shown, priced } = loop;
  if (!shown) return failed({ ...failure, may_cost: true });
  const { cause, refusal, is_not_route_fault = false } = failure;
  settleUsage(loop);
  outcome.has_content = loop.has_shown;
  outcome.error =
    refusal ??
    (cause === 'timeout'
      ? new ApiError('timeout', `${priced.model.id} did not answer in time behind a search.`)
      : new ApiError('upstream_error', 'The model provider failed behind a search.'));
  return { answered: true, is_not_route_fault: is_not_route_fault || refusal !== undefined };
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
function usageOf({ usage, answered }: Loop): Usage {
  return answered === 0 ? usage : { ...usage, tool_calls: { web_search: answered } };
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

/** Runs the searches of a round at once. Undefined if nobody waits for them any more. */
async function runSearches(loop: Loop, calls: readonly CallPart[]): Promise<WebSearch[] | undefined> {
  const { parts, priced, search: own, caller } = loop;
  const room = own.searches_max - loop.searches_sent;
  const begun = calls.map((call, index) => {
    const { query } = inputOf(call.arguments);
    const number = loop.searches_sent + index;
    return { id: `${priced.request_id}_${number}`, query: typeof query === 'string' ? query.trim() : '' };
  });
  for (const { id, query } of begun) show(loop, { type: 'web_search_begun', id, query });
  loop.searches_sent += Math.min(calls.length, room);
  const signal = AbortSignal.any([caller.gone, parts.stopping]);
  const timeout_ms = Math.max(1, Math.min(own.settings.timeout_ms, Math.ceil(left_ms(loop))));
  const settings = { ...own.settings, timeout_ms };
  const { allowed_domains, blocked_domains } = own.options;
  const ask = async ({ id, query }: { id: string; query: string }, index: number): Promise<WebSearch> => {
    if (index >= room) return { id, query, results: [], failure: 'max_uses_exceeded' };
    const searched = await searchWeb(parts.guard, settings, { text: query, allowed_domains, blocked_domains }, signal);
    if ('results' in searched) {
      loop.answered += 1;
      return { id, query, results: searched.results };
    }
    const { failure, reason } = searched;
    parts.log.info({ request_id: priced.request_id, failure, reason }, 'a search gave nothing');
    return { id, query, results: [], failure };
  };
  try {
    const searches = await Promise.all(begun.map(ask));
    for (const each of searches) {
      show(loop, { type: 'web_search', ...each });
      loop.answer.push({ type: 'web_search', ...each });
    }
    return searches;
  } catch (error) {
    if (!signal.aborted) throw error;
    return undefined;
  }
}

/** The turns of a round and of its searches, for the next one. */
function remember(loop: Loop, answer: readonly Part[], searches: readonly WebSearch[]): void {
  const { turns, read, search_name } = loop;
  const ids: string[] = [];
  const parts = answer.map((part): Part => {
    if (part.type !== 'tool_call' || part.name !== search_name) return part;
    const id = loop.calls.has(part.id) ? `${part.id}_${loop.rounds}_${ids.length}` : part.id;
    loop.calls.add(id);
    ids.push(id);
    return { ...part, id };
  });
  const results = searches.map((each, index): Part => {
    const text = resultsText(each);
    addText(read, text);
    const is_error = each.failure !== undefined;
    return { type: 'tool_result', id: ids[index] ?? '', parts: [{ type: 'text', text }], is_error };
  });
  for (const part of parts) {
    if (part.type === 'tool_call') addText(read, part.name + part.arguments);
    else if (part.type === 'text' || part.type === 'thinking') addText(read, part.text);
  }
  turns.push({ role: 'assistant', parts }, { role: 'user', parts: results });
}

function show(loop: Loop, event: ChatEvent): void {
  const text = loop.shown?.write(event, () => usageOf(loop)) ?? '';
  if (text === '') return;
  loop.has_shown = true;
  loop.writer.write(Buffer.from(text));
}

/** Ends the answer, and keeps it for callers that continue it. */
async function finish(loop: Loop, ended: NonNullable<RoundAnswer['ended']>): Promise<Attempted> {
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
