import type { Logger } from 'pino';
import type { JsonObject, Route } from '../catalog/model.ts';
import type { Permit } from '../concurrency/semaphore.ts';
import { ApiError } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import { readBytes } from '../lib/read-bytes.ts';
import { exact } from '../money/money.ts';
import type { Providers } from '../providers/open.ts';
import { InputRefused, type ChatCall, type ChatProvider, type ChatReply } from '../providers/provider.ts';
import { withoutWords } from '../lib/without-words.ts';
import { scrub } from '../providers/http/scrub.ts';
import { allowanceOf, allowedRequest, refuseFields, type Allowance } from '../styles/allowed.ts';
import { renderAnswer } from '../styles/answer.ts';
import {
  unfinished_type,
  type AnswerOptions,
  type ChatRequest,
  type Codec,
  type Link,
  type Target,
  type UpstreamBody,
} from '../styles/codec.ts';
import { scopeEndUsers } from '../styles/end-users.ts';
import { hasLongCaches, withoutLongCaches } from '../styles/long-caches.ts';
import { quirksOf, type Quirks } from '../styles/quirks.ts';
import { mayReason } from '../styles/thinking.ts';
import { openRelay, type Relay } from '../styles/relay.ts';
import { objectOf } from '../styles/stream.ts';
import { upstreamBody } from '../styles/request.ts';
import type { ContentCopy } from '../contents/content-log.ts';
import { headersFor } from './ignored.ts';
import { fetchLinks, type LinkParts } from './links.ts';
import { refusedInput, refusedInStream } from './refused.ts';
import type { PricedChatRequest } from './priced-request.ts';
import type { ChatOutcome } from './outcome.ts';
import type { StreamWriter } from './stream-writer.ts';
import { hasHourPrice } from './price.ts';
import { chargeFor } from './settle.ts';
import type { RequestMemory } from './request-memory.ts';
import { toolsLeftOut, tools_left_out_header, withToolsOf } from './tools.ts';
import {
  abandoned,
  failed,
  failureOf,
  lateness,
  unfinished,
  type AttemptResult,
  type RouteFailure,
} from './attempt-result.ts';
import { AttemptTimeouts, type LeavePolicy } from './attempt-timeouts.ts';

/** Facts about the caller that are not in the priced request. */
export type ChatCaller = {
  /** Versions and betas of the messages style, for an upstream of the same style. */
  headers: Record<string, string>;
  /** Aborted when the caller is gone; with an ApiError if a stop of the service sent it away, which costs it nothing more. */
  gone: AbortSignal;
  /** Released when nobody reads the request any more. */
  memory: RequestMemory;
  /** Keeps a complete answer, before the caller gets its end. Never rejects. */
  keep?: (answer: JsonObject) => Promise<void>;
  /** Gets a copy of the answer, where the key of the call stores its content. */
  content?: ContentCopy;
  /** To be called when the call has ended, whatever became of it. Never rejects. */
  end?: () => Promise<void>;
};

/** The surroundings of an attempt: its caller, the outcome that it fills in, and the writer of its answer. */
export type AttemptContext = {
  readonly caller: ChatCaller;
  readonly outcome: ChatOutcome;
  readonly writer: StreamWriter;
};

/** Returns the error of a call whose caller waited for it until a stop of the service closed the connection. */
export function stopOf({ gone }: Pick<ChatCaller, 'gone'>): ApiError | undefined {
  return gone.reason instanceof ApiError ? gone.reason : undefined;
}

const line_bytes_max = 67_108_864;
export const answer_bytes_max = 67_108_864;

/** The parts of the app that asking a route takes. */
export type AttemptParts = LinkParts & {
  readonly clock: Clock;
  readonly log: Logger;
  readonly providers: Pick<Providers, 'chat'>;
  readonly secret: string;
  readonly stopping: AbortSignal;
};

type RouteAttempt = {
  parts: AttemptParts;
  priced: PricedChatRequest;
  route: Route;
  provider: ChatProvider;
  style: Codec;
  sent: UpstreamBody;
  caller: ChatCaller;
  outcome: ChatOutcome;
  timeouts: AttemptTimeouts;
  /** By its catalogue or its request, the model writes what nobody sees and the upstream bills. */
  reasons: boolean;
  /** The relay of a stream, once it has begun. */
  relay?: Relay;
  is_kept?: boolean;
};

/**
 * Asks one route. Throws ApiError 400 for what is the caller's own mistake in the upstream's judgement: no
 * other route is tried then.
 */
export async function attemptRoute(
  parts: AttemptParts,
  priced: PricedChatRequest,
  route: Route,
  { caller, outcome, writer }: AttemptContext,
): Promise<AttemptResult> {
  const provider = parts.providers.chat(route.provider);
  if (!provider) return failed({ cause: 'upstream_error', reason: `${route.provider} is not configured` });
  const quirks = quirksOf(route.options);
  const style = styleFor(priced.request, provider, quirks);
  if (style === undefined) return failed({ cause: 'upstream_error', reason: `${route.provider} speaks no style` });
  const target = {
    style,
    model: route.upstream_model,
    max_tokens: priced.max_tokens,
    quirks,
  };
  const allowance = allowanceOf(route.options);
  let sent: UpstreamBody;
  try {
    refuseFields(priced.request.body, allowance);
    sent = bodyFor(priced, route, { ...target, runs_no_tools: provider.runs_no_tools === true }, outcome);
  } catch (refusal) {
    if (!(refusal instanceof ApiError)) throw refusal;
    return failed({ cause: 'upstream_error', reason: refusal.message, refusal });
  }
  noteToolsLeftOut(writer, outcome);
  outcome.writes_for_an_hour = limitCaches(priced, style, allowance, sent);
  sent.body = scopeEndUsers(sent.body, { account_id: priced.caller.account.id, secret: parts.secret });
  const timeouts = new AttemptTimeouts(route.timeout_ms, priced.request.stream, caller.gone, parts.stopping);
  const reasons = mayReason(priced.model.capabilities, quirks, { requested: priced.request.body, sent: sent.body });
  const attempt: RouteAttempt = { parts, priced, route, provider, style, sent, caller, outcome, timeouts, reasons };
  let files: Files | undefined;
  try {
    files = sent.links && (await fillLinks(attempt, sent.links));
    if (files && 'problem' in files) return failed(files.problem);
    if (timeouts.signal.aborted) return failed(left_before_request);
    timeouts.begin(leavePolicyOf(attempt));
    const reply = await attempt.provider
      .send(callOf(attempt), timeouts.signal)
      .catch((error: unknown) => endWithoutReply(error, attempt));
    freeBody(sent); // it was sent
    files?.release();
    if ('answered' in reply) return reply;
    if (priced.request.stream) return await relayStream(attempt, reply, writer);
    return await readWhole(attempt, reply);
  } finally {
    if (files && 'release' in files) files.release();
    timeouts.stop();
  }
}

/** The body for an upstream, without the tools that it does not get. Throws ApiError 400 naming the field. */
function bodyFor(
  { request, hosted }: PricedChatRequest,
  route: Route,
  target: Target & { runs_no_tools: boolean },
  outcome: ChatOutcome,
): UpstreamBody {
  const { request: reduced, left_out } = withToolsOf(route, target, request, hosted);
  outcome.tools_left_out = left_out;
  return upstreamBody(
    target.style === request.style ? allowedRequest(reduced, allowanceOf(route.options)) : reduced,
    target,
  );
}

/** The header of an answer is that of the last route that was asked. */
function noteToolsLeftOut({ headers }: StreamWriter, { tools_left_out }: ChatOutcome): void {
  const names = toolsLeftOut(tools_left_out);
  if (names === undefined) delete headers[tools_left_out_header];
  else headers[tools_left_out_header] = names;
}

/**
 * Marks for an hour go on to upstreams that report what they have written for an hour, if the model has a price for that
 * or the route says so; else they are for five minutes. True if any go on.
 */
function limitCaches({ model }: PricedChatRequest, style: Codec, allowance: Allowance, sent: UpstreamBody): boolean {
  if (!hasLongCaches(sent.body)) return false;
  if (allowance.pass.has('cache_ttl') || (style.upstream.reports_hour_caches && hasHourPrice(model))) return true;
  sent.body = withoutLongCaches(sent.body);
  return false;
}

const left_before_request: RouteFailure = {
  cause: 'upstream_error',
  reason: 'the caller left before the route was asked',
  is_not_route_fault: true,
};

/**
 * Decides what happens when the caller leaves (docs/chat-billing.md). No other route is tried then, so the
 * request can be freed. A stream goes on if the upstream may still report tokens that it bills.
 */
function leavePolicyOf(attempt: RouteAttempt): LeavePolicy {
  const { priced, caller, outcome, reasons } = attempt;
  return {
    onLeave: () => {
      if (attempt.relay?.is_complete) return; // many leave at the last event
      outcome.is_gone = true;
      caller.memory.release();
    },
    isReadOn: () => {
      const { relay } = attempt;
      if (!priced.request.stream || !relay?.has_begun) return true;
      return relay.is_complete || relay.is_ending || reasons || relay.reasons;
    },
  };
}

function freeBody(sent: UpstreamBody): void {
  sent.body = {};
  sent.links = []; // they have the bytes of files
}

/** Memory leased for files, or the reason why there is none. */
type Files = Permit | { problem: RouteFailure };

/** Fills in the files that the upstream does not fetch itself; why that cannot be done says nothing about the route. */
async function fillLinks({ parts, priced, timeouts }: RouteAttempt, links: readonly Link[]): Promise<Files> {
  try {
    const files = await fetchLinks(parts, priced.caller.account.id, links, timeouts.signal);
    if (!(files instanceof ApiError)) return files;
    return { problem: { cause: 'upstream_error', reason: files.message, refusal: files } };
  } catch (error) {
    if (!timeouts.signal.aborted) throw error;
    return { problem: { ...failureOf(error, timeouts), is_not_route_fault: true, is_spent: false, may_cost: false } }; // nothing was sent
  }
}

/** Returns the call to the upstream. */
function callOf({ priced, route, style, sent, caller }: RouteAttempt): ChatCall {
  return {
    request_id: priced.request_id,
    style,
    model: route.upstream_model,
    body: sent.body,
    stream: priced.request.stream,
    headers:
      style === priced.request.style ? headersFor(priced.request.style, priced.model, route.options, caller) : {},
    timeout_ms: route.timeout_ms,
    options: route.options,
  };
}

function endWithoutReply(error: unknown, { priced, timeouts, outcome }: RouteAttempt): AttemptResult {
  if (error instanceof InputRefused) throw refusedInput(error, priced.model);
  return abandoned(error, timeouts, outcome) ?? failed(failureOf(error, timeouts));
}

/** Returns a style that chooses itself, else the caller's own if the upstream speaks it, else the first. */
function styleFor(request: ChatRequest, provider: ChatProvider, quirks: Quirks): Codec | undefined {
  const { styles, styles_by_option = [] } = provider;
  const usual = styles.filter(({ upstream }) => !upstream.isChosen);
  return (
    styles.find(({ upstream }) => upstream.isChosen?.(request, quirks, true)) ??
    styles_by_option.find(({ upstream }) => upstream.isChosen?.(request, quirks, false)) ??
    usual.find(({ name }) => name === request.style.name) ?? // a search changes the codec of its request
    usual[0]
  );
}

/** Relays a stream. Before its first content nothing has been sent, so the next route may be asked. */
async function relayStream(attempt: RouteAttempt, reply: ChatReply, writer: StreamWriter): Promise<AttemptResult> {
  const { priced, style, outcome, timeouts } = attempt;
  const { simulated = false, secrets = [] } = reply;
  const relay = openRelay(priced.request, style, { ...renderOptions(attempt), line_bytes_max });
  attempt.relay = relay;
  const interruption = await sendFrames(attempt, relay, reply, writer);
  const { failure } = relay;
  const problem = failure ? scrub(`${failure.type}: ${failure.message}`, secrets) : interruption;
  copyResults(relay, outcome);
  outcome.is_complete = relay.is_complete;
  outcome.is_abandoned = timeouts.is_abandoned;
  if (problem === undefined || relay.is_complete || outcome.is_abandoned) return { answered: true };
  if (outcome.is_gone && relay.has_content) return { answered: true };
  const refused = failure && refusedInStream(failure, secrets, priced.model);
  if (!relay.has_content) {
    if (refused && !outcome.is_gone) throw refused;
    return failed({ ...emptyStream(failure, problem, timeouts), simulated });
  }
  return endBroken(attempt, relay, { problem, refused, simulated });
}

/** Sends the frames of an upstream to the caller until the stream ends. Returns the reason if it was interrupted. */
async function sendFrames(
  attempt: RouteAttempt,
  relay: Relay,
  reply: ChatReply,
  writer: StreamWriter,
): Promise<string | undefined> {
  const { timeouts } = attempt;
  try {
    for await (const chunk of reply.body) {
      const bytes = relay.push(chunk);
      if (relay.answer) await storeAnswer(attempt, relay.answer);
      timeouts.beat(relay.has_begun);
      timeouts.review();
      if (!sendBytes(bytes, relay, attempt, writer)) await drained(timeouts, writer);
      if (relay.failure) break;
      if (relay.is_complete) timeouts.expectEnd();
    }
    const rest = relay.failure ? undefined : relay.end();
    if (relay.answer) await storeAnswer(attempt, relay.answer);
    if (!relay.failure && !sendBytes(rest, relay, attempt, writer)) await drained(timeouts, writer);
    return undefined;
  } catch (error) {
    return timeouts.timed_out ? lateness(timeouts.timed_out) : String(error);
  }
}

/** Notes the error of a stream that broke off after its first content: no other route is asked then. */
function endBroken(
  { parts, priced, route, caller, outcome, timeouts }: RouteAttempt,
  { failure }: Relay,
  { problem, refused, simulated }: { problem: string; refused: ApiError | undefined; simulated: boolean },
): AttemptResult {
  const facts = { request_id: priced.request_id, route: route.id, problem: withoutWords(problem) };
  parts.log.warn(facts, 'a chat stream broke off');
  const stopped = stopOf(caller);
  outcome.error = timeouts.timed_out
    ? new ApiError('timeout', 'The model stopped in the middle of its answer.')
    : (stopped ?? cutOff(refused));
  // It wrote all the time that a call may take: there was much to write.
  const is_calls_own = timeouts.timed_out === 'total' || failure?.type === unfinished_type || stopped !== undefined;
  return { answered: true, is_not_route_fault: simulated || is_calls_own || outcome.error.extras.code !== undefined };
}

/** The error of an answer that broke off: with a code where clients can do something about the reason. */
function cutOff(refused: ApiError | undefined): ApiError {
  const message = 'The model provider cut its answer off.';
  const { code, record_message } = refused?.extras ?? {};
  if (!refused || code === undefined) return new ApiError('upstream_error', message);
  const words = `${message} ${refused.message}`;
  return new ApiError('upstream_error', words, { code, record_message: `${message} ${record_message ?? ''}`.trim() });
}

/** Keeps a complete answer, if the caller wants that: before its end is sent, so that a next call finds it on any node. */
async function storeAnswer(attempt: RouteAttempt, answer: JsonObject): Promise<void> {
  const { keep: store } = attempt.caller;
  if (!store || attempt.is_kept) return;
  attempt.is_kept = true;
  await store(answer);
}

/** Returns the failure of a stream that ended before its first content. */
function emptyStream(failure: Relay['failure'], problem: string, timeouts: AttemptTimeouts): RouteFailure {
  if (timeouts.timed_out) return failureOf(undefined, timeouts);
  if (failure?.type === unfinished_type) return unfinished(failure.message);
  return { cause: 'upstream_error', reason: problem, may_cost: !failure };
}

/** Writes bytes for the caller. Returns false if the buffer is full: the upstream is read at the caller's pace. */
function sendBytes(bytes: Buffer | undefined, relay: Relay, attempt: RouteAttempt, writer: StreamWriter): boolean {
  if (relay.has_content) noteContent(attempt);
  if (attempt.timeouts.is_left || !bytes || bytes.length === 0) return true;
  return writer.write(bytes);
}

/** Waits until the caller has read, at most for the time that a route may take. */
async function drained(timeouts: AttemptTimeouts, writer: StreamWriter): Promise<void> {
  timeouts.pause();
  await Promise.race([writer.drained(), timeouts.over]);
  if (timeouts.is_left) writer.cut(); // what waits there is read by nobody
  timeouts.beat(true);
}

/** Frees the request at the first content: no other route is asked from here on, and a stream may go on for minutes. */
function noteContent({ outcome, caller }: RouteAttempt): void {
  if (outcome.first_content_ms !== undefined) return;
  outcome.first_content_ms = elapsedMs(outcome);
  caller.memory.release();
}

function elapsedMs(outcome: ChatOutcome): number {
  return Math.round(performance.now() - outcome.started_at_ms);
}

/** Copies the results of a response or a stream to the outcome. */
function copyResults(answer: AnswerResults, outcome: ChatOutcome): void {
  outcome.usage = answer.usage;
  outcome.has_content = answer.has_content;
  outcome.delivered = answer.delivered;
  outcome.finish = answer.finish;
  outcome.upstream_id = answer.upstream_id;
}

type AnswerResults = Pick<ChatOutcome, 'usage' | 'has_content' | 'delivered' | 'finish' | 'upstream_id'>;

/** Returns the options for writing the response, whole or streamed. */
function renderOptions({ parts, priced, sent, outcome }: RouteAttempt): AnswerOptions {
  return {
    ...answerOptions(parts, priced, outcome),
    ...(sent.json_tool !== undefined && { json_tool: sent.json_tool }),
    ...(sent.tool_names && { tool_names: sent.tool_names }),
  };
}

/** Returns those of the options that do not depend on the request to the upstream. */
export function answerOptions(
  parts: Pick<AttemptParts, 'clock'>,
  priced: PricedChatRequest,
  outcome: ChatOutcome,
): AnswerOptions {
  return {
    model: priced.model.id,
    request_id: priced.request_id,
    created: Math.floor(parts.clock.now() / 1000),
    input_tokens_estimated: priced.input_tokens_counted, // what is charged, unlike the hold's estimate
    writes_for_an_hour: outcome.writes_for_an_hour,
    ...(priced.request.echo && { echo: priced.request.echo }),
    ...(priced.request.wants_cost && { cost: (usage) => Number(exact(chargeFor(priced, usage).cost)) }),
  };
}

async function readWhole(attempt: RouteAttempt, reply: ChatReply): Promise<AttemptResult> {
  try {
    const answered = renderWhole(attempt, await readBytes(reply.body, answer_bytes_max));
    if (attempt.caller.keep && answered.answered && answered.whole)
      await storeAnswer(attempt, objectOf(answered.whole.toString('utf8')));
    return answered;
  } catch (error) {
    return endWithoutAnswer(attempt, reply, error);
  }
}

function renderWhole(attempt: RouteAttempt, bytes: Buffer): AttemptResult {
  const { priced, style, outcome } = attempt;
  const answer = renderAnswer(priced.request, style, bytes, renderOptions(attempt));
  copyResults(answer, outcome);
  outcome.is_complete = true;
  outcome.first_content_ms ??= elapsedMs(outcome);
  return attempt.timeouts.is_left ? { answered: true } : { answered: true, whole: answer.bytes };
}

function endWithoutAnswer(
  { timeouts, outcome }: RouteAttempt,
  { simulated }: ChatReply,
  error: unknown,
): AttemptResult {
  if (error instanceof ApiError) throw error; // an error that came with status 200
  return abandoned(error, timeouts, outcome) ?? failed({ ...failureOf(error, timeouts), simulated });
}
