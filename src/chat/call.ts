import type { Logger } from 'pino';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Route } from '../catalog/model.ts';
import type { Shares } from '../leases/shares.ts';
import type { Permit, Semaphore } from '../concurrency/semaphore.ts';
import { ApiError } from '../errors.ts';
import { credentials_pause_ms, type RouteHealth } from '../routing/health.ts';
import type { RouteSpeeds, Speed } from '../routing/speeds.ts';
import type { HoldRequest } from '../money/holds.ts';
import type { UpstreamUse } from '../money/upstream.ts';
import type { StreamError } from '../styles/codec.ts';
import { stopOf, type AttemptContext, type Attempted, type ChatCaller, type RouteFailure } from './attempt.ts';
import { confirmHold, takeHold, type Held, type HoldParts } from './hold.ts';
import type { CallStyle, PricedCall, PricedRequest, WithFallbacks } from './priced-request.ts';
import { newOutcome, type ChatOutcome } from './outcome.ts';
import type { StreamWriter } from './stream-writer.ts';
import { assert } from '../lib/assert.ts';
import { withoutWords } from '../lib/without-words.ts';
import { writeRecord, type RecordParts } from './record.ts';
import { retryAfter, routesOf, type CallRoute, type Routing, type RoutingParts } from './routes.ts';
import type { TokensByModel } from './plan.ts';
import { default_reason } from './preferences.ts';
import { chargeOf, settle, type Charge, type Settled, type SettleParts } from './settle.ts';
import { traceAttempt } from './trace.ts';
import { inSpan } from '../tracing/tracer.ts';
import { noteLost, useOf, type LostCostParts } from './upstream.ts';

/** Silence of a stream after which the caller gets a sign of life. */
const heartbeat_ms = 15_000;

/** A whole answer; undefined after a stream, and when the caller is gone. */
export type ChatResult = { whole: Buffer | undefined; charged: Settled['charged'] };

/** The parts of the app that a call takes, without those that its attempts take. */
export type CallParts = RoutingParts &
  HoldParts &
  SettleParts &
  RecordParts &
  LostCostParts & {
    readonly catalog: CatalogHolder;
    readonly speeds: RouteSpeeds;
    readonly limits: { readonly chat_calls: Semaphore };
    readonly shares: Shares;
    /** Writes down what a call has come to, before it is booked; false: nothing is charged for it. Absent: nobody does. */
    readonly keepEnd?: (ended: EndedCall & { whole: Buffer | undefined; hold: HoldRequest }) => Promise<boolean>;
    /** Hears how its end was settled, and when its record is written, or never will be. Absent: nobody does. */
    readonly noteSettled?: (settled: Settled, recorded: Promise<void>) => void;
    track(work: Promise<unknown>): void;
  };

/** A call that has its hold and its permit, and whose end somebody else books: a response in the background. */
export type CallOwner = {
  readonly permit: Permit;
  readonly held: Held;
  end(ended: EndedCall): Promise<void>;
};

/** The end of a call: what its caller owes, and what its upstream charges. */
export type EndedCall = {
  /** As the model has it that was asked last. */
  priced: PricedRequest;
  outcome: ChatOutcome;
  charge: Charge | undefined;
  upstream: UpstreamUse | undefined;
  created_at: Date;
  total_ms: number;
};

/** Asks one route. Throws ApiError 400 for the caller's own mistake: no other route is tried then. */
export type AttemptRoute<Priced extends PricedRequest> = (
  priced: Priced,
  route: Route,
  context: AttemptContext,
) => Promise<Attempted>;

/**
 * Runs one call, from hold to settlement: hold, the first route that gives content, relay, settle. Whatever becomes of
 * the routes, the hold is ended once, behind them: at the price of the model that answered, where the call has
 * fallbacks. Throws ApiError if nothing has been sent yet; once the answer has begun, its last event is the error.
 */
export async function runCall<Priced extends PricedRequest>(
  parts: CallParts,
  priced: WithFallbacks<Priced>,
  attemptRoute: AttemptRoute<Priced>,
  { caller, writer, owner }: { caller: ChatCaller; writer: StreamWriter; owner?: CallOwner },
): Promise<ChatResult> {
  const permit = owner?.permit ?? (await enter(parts, priced));
  const end = parts.begin(); // a caller who is gone does not keep the server from stopping, and the hold has to end
  let routing: Routing<Priced> | undefined;
  try {
    const created_at = new Date(parts.clock.now());
    const outcome = newOutcome();
    const context = { caller, outcome, writer };
    routing = await routesOf(parts, priced);
    const { routes, leaveProbe } = routing;
    if (leaveProbe) caller.memory.add(leaveProbe); // a probe of open routes ends with the first content
    const { hold, max_tokens } = owner?.held ?? (await inSpan({ name: 'hold' }, () => reserve(parts, priced, routes)));
    let attempted: Priced = priced; // as the model has it that was asked last
    const beat = priced.request.stream ? startHeartbeat(priced, writer, caller) : undefined;
    let whole: Buffer | undefined;
    try {
      const attempt = async ({ route, priced: paid }: CallRoute<Priced>) => {
        await confirmHold(parts, priced, hold);
        attempted = paid;
        noteTokens(writer, paid);
        return attemptRoute(paid, route, context);
      };
      const paid_routes = await paidRoutes(parts, routes, max_tokens);
      whole = await tryRoutes(parts, paid_routes, attempt, context);
    } catch (error) {
      outcome.error = error instanceof ApiError ? error : unexpected(parts.log, priced, error);
    }
    beat?.stop();
    if (!outcome.is_complete && !outcome.is_gone) outcome.error ??= stopOf(caller);
    outcome.is_gone ||= caller.gone.aborted && !(priced.request.stream && outcome.is_complete); // many leave at [DONE]
    let charge = chargeOf(attempted, outcome);
    const total_ms = Math.round(performance.now() - outcome.started_at_ms);
    const use = () => useOf(parts.catalog.current.settings, attempted, outcome, charge);
    if (owner) {
      await owner.end({ priced: attempted, outcome, charge, upstream: use(), created_at, total_ms });
      return { whole: undefined, charged: 0n };
    }
    let settled: Settled;
    try {
      const upstream = use();
      const ended = { priced: attempted, whole, hold, outcome, charge, upstream, created_at, total_ms };
      if (parts.keepEnd && !(await parts.keepEnd(ended))) charge = undefined;
      settled = await inSpan({ name: 'settle' }, () => settle(parts, attempted, { hold, charge, upstream }));
    } catch (error) {
      parts.log.error({ request_id: priced.request_id, err: error }, 'a chat call could not be settled');
      if (!outcome.is_complete) writer.cut(); // the caller gets no error any more: it must not look like an end
      throw error;
    }
    const recorded = writeRecord(parts, attempted, { outcome, charge, ...settled, created_at, total_ms });
    parts.noteSettled?.(settled, recorded);
    caller.content?.end(whole);
    const { error } = outcome;
    if (outcome.is_gone) writer.cut();
    const { caller: words } = priced.request.style;
    if (error && !writer.is_open && !(priced.request.stream && isStreamed(error, words))) throw error;
    if (error && words) writer.write(words.errorEvent(streamError(error, priced, created_at)));
    return { whole, charged: settled.charged };
  } finally {
    routing?.leaveProbe?.();
    caller.content?.drop();
    permit.release();
    end();
  }
}

/** The `retry-after` of a refused call; the end of the key's other calls is unknown. */
const retry_after_s = 1;

/** Takes one of the permits that a key has on all nodes. Rejects with ApiError 429. */
export async function enter(
  parts: Pick<CallParts, 'catalog' | 'limits' | 'shares'>,
  priced: Pick<PricedRequest, 'caller'>,
): Promise<Permit> {
  const { id } = priced.caller.key;
  const { chat_calls } = parts.limits;
  const { chat_at_once } = parts.catalog.current.settings.limits;
  let permit: Permit | undefined;
  await parts.shares.take(`calls ${id}`, {
    limit: chat_at_once,
    lost_ms: 0,
    inUse: () => chat_calls.inUse(id),
    freesInMs: () => undefined,
    take: (bound) => {
      permit = chat_calls.inUse(id) < bound ? chat_calls.tryAcquire(id) : undefined;
      return permit !== undefined;
    },
  });
  if (permit) return permit;
  const message = `Too many calls at once with this key: at most ${chat_at_once} may be in progress. Wait until one of them ends.`;
  throw new ApiError('rate_limit', message, {
    headers: { 'retry-after': String(retry_after_s) },
    refusal: { reason: 'concurrency_limit', key_id: id },
  });
}

/** Clients of the style look for this error in a stream, not in the status of an answer. */
function isStreamed({ extras: { code } }: ApiError, words: CallStyle['caller']): boolean {
  return code !== undefined && words?.streamed_codes?.includes(code) === true;
}

function streamError(
  { type, message, extras: { code, param } }: ApiError,
  { request_id, model }: PricedRequest,
  created_at: Date,
): StreamError {
  const named = { ...(code !== undefined && { code }), ...(param !== undefined && { param }) };
  return { type, message, ...named, request_id, model: model.id, created: Math.floor(created_at.getTime() / 1000) };
}

function unexpected(log: Logger, priced: PricedRequest, error: unknown): ApiError {
  log.error({ request_id: priced.request_id, err: error }, 'a chat call failed');
  return new ApiError(
    'internal_error',
    'The service could not finish this call; output that was not delivered costs nothing.',
  );
}

type ReserveParts = HoldParts & SettleParts & Pick<CallParts, 'health' | 'track'>;

/** Holds the money. A call that ends here leaves neither a probe taken nor a hold behind. */
async function reserve(parts: ReserveParts, priced: PricedCall, [first]: readonly CallRoute[]): Promise<Held> {
  try {
    return await takeHold(parts, priced);
  } catch (error) {
    if (first) await parts.health.releaseProbe(first.name, priced.caller.account.id);
    // The hold may be there all the same: only its answer was lost.
    if (!(error instanceof ApiError)) parts.track(settle(parts, priced, {}));
    throw error;
  }
}

/** The routes of the models that the hold pays, each with the output that it pays. */
async function paidRoutes<Priced extends PricedRequest>(
  { health }: Pick<CallParts, 'health'>,
  routes: readonly CallRoute<Priced>[],
  max_tokens: TokensByModel,
): Promise<CallRoute<Priced>[]> {
  const paid: CallRoute<Priced>[] = [];
  for (const { priced, ...named } of routes) {
    const tokens = max_tokens.get(priced.model.id);
    if (tokens === undefined) await health.releaseProbe(named.name, priced.caller.account.id);
    else paid.push({ ...named, priced: tokens === priced.max_tokens ? priced : { ...priced, max_tokens: tokens } });
  }
  return paid;
}

/** The header of an answer is that of the model that was asked last. For keys of projects, it would tell the account's balance. */
function noteTokens({ headers }: StreamWriter, { caller, max_tokens, output }: PricedRequest): void {
  if (max_tokens < output.bound && !caller.key.is_limited) headers['x-max-tokens'] = String(max_tokens);
  else delete headers['x-max-tokens'];
}

type TryParts = LostCostParts & Pick<CallParts, 'health' | 'speeds' | 'track'>;

const route_header = 'x-route';
const route_reason_header = 'x-route-reason';

/** Says why a route is asked: its place in the order, and whether others failed before it. */
function whyOf(
  { model_reason = default_reason, route_reason = model_reason }: PricedRequest,
  { attempts }: ChatOutcome,
): string {
  return attempts.length === 0 ? route_reason : `${route_reason}, fallback`;
}

/** Returns how fast a complete answer came: its first content where it was streamed, and its tokens. */
function speedOf({ request }: PricedRequest, outcome: ChatOutcome, begun_at_ms: number): Speed {
  const { is_complete, is_gone, usage, first_content_ms } = outcome;
  if (!is_complete || is_gone) return {};
  const elapsed_ms = performance.now() - begun_at_ms;
  const waited_ms = (first_content_ms ?? 0) - (begun_at_ms - outcome.started_at_ms);
  const writing_ms = request.stream ? elapsed_ms - waited_ms : elapsed_ms;
  const tokens = usage?.output_tokens ?? 0;
  return {
    ...(request.stream && first_content_ms !== undefined && { first_content_ms: waited_ms }),
    ...(tokens > 0 && writing_ms > 0 && { tokens_per_s: tokens / (writing_ms / 1000) }),
  };
}

/**
 * Asks one route after the other, until one answers. What a model refuses may be taken by a fallback: its other routes are
 * passed over. Throws ApiError of the model that was asked last.
 */
async function tryRoutes<Priced extends PricedRequest>(
  parts: TryParts,
  routes: readonly CallRoute<Priced>[],
  attempt: (route: CallRoute<Priced>) => Promise<Attempted>,
  { caller, outcome, writer }: AttemptContext,
): Promise<Buffer | undefined> {
  const troubles = new Map<string, ModelTrouble>();
  let last: { priced: Priced; trouble: ModelTrouble } | undefined;
  for (const call_route of routes) {
    const { name, route, priced } = call_route;
    const trouble = troubles.get(priced.model.id) ?? { failures: [] };
    if (trouble.refusal) continue;
    troubles.set(priced.model.id, trouble);
    last = { priced, trouble };
    const begun_at_ms = performance.now();
    const why = whyOf(priced, outcome);
    const tried = { route: name, model: priced.model.id, why };
    const since_ms = () => Math.round(performance.now() - begun_at_ms);
    if (caller.gone.aborted) {
      await parts.health.releaseProbe(name, priced.caller.account.id);
      return undefined;
    }
    let attempted;
    try {
      if (priced.route_reason !== undefined) {
        writer.headers[route_header] = name;
        writer.headers[route_reason_header] = why;
      }
      const traced = { outcome, content: caller.content };
      attempted = await traceAttempt(priced, call_route, traced, () => attempt(call_route));
    } catch (error) {
      // The caller's own mistake says nothing about the route.
      outcome.attempts.push({ ...tried, outcome: 'failed', reason: 'input refused', duration_ms: since_ms() });
      await parts.health.releaseProbe(name, priced.caller.account.id);
      if (!(error instanceof ApiError) || error.type !== 'invalid_request') throw error;
      trouble.refusal = error;
      continue;
    }
    if (attempted.answered) {
      outcome.route = route;
      const { upstream_id } = outcome;
      outcome.attempts.push({
        ...tried,
        outcome: 'answered',
        ...(upstream_id !== undefined && { upstream_id }),
        duration_ms: since_ms(),
      });
      parts.speeds.note(name, speedOf(priced, outcome, begun_at_ms));
      await noteAnswer(parts.health, priced, name, outcome, attempted.is_not_route_fault);
      return attempted.whole;
    }
    const { failure } = attempted;
    trouble.failures.push(failure);
    outcome.attempts.push({ ...tried, outcome: 'failed', reason: failure.reason, duration_ms: since_ms() });
    if (failure.may_cost) parts.track(noteLost(parts, priced, route, outcome.attempts.length));
    if (caller.gone.aborted) {
      await parts.health.releaseProbe(name, priced.caller.account.id);
      return undefined;
    }
    await noteFailure(parts, priced, name, failure);
  }
  assert(last, 'a call has a route');
  const is_spent = [...troubles.values()].some(({ failures }) => failures.some((failure) => failure.is_spent));
  throw last.trouble.refusal ?? allFailed(last.priced, last.trouble.failures, is_spent);
}

/** The failures of the routes of a model; `refusal`: it takes no such request, on whichever route. */
type ModelTrouble = { failures: RouteFailure[]; refusal?: ApiError };

/** Notes what an answer says of its route. */
async function noteAnswer(
  health: RouteHealth,
  priced: PricedRequest,
  name: string,
  { error, is_complete }: ChatOutcome,
  is_not_route_fault = false,
): Promise<void> {
  const account_id = priced.caller.account.id;
  if (error && !is_not_route_fault)
    return health.failed(name, account_id, { cause: error.kind === 'timeout' ? 'timeout' : 'upstream_error' });
  return is_complete ? health.succeeded(name, account_id) : health.releaseProbe(name, account_id);
}

async function noteFailure(
  { health, log }: Pick<TryParts, 'health' | 'log'>,
  priced: PricedRequest,
  name: string,
  failure: RouteFailure,
): Promise<void> {
  // Perhaps a setting is missing, or it is down: these words are our own, and say what to do.
  const is_unreachable = failure.reason.startsWith('unreachable:');
  const reason = is_unreachable ? failure.reason : withoutWords(failure.reason);
  log[is_unreachable ? 'warn' : 'info'](
    { request_id: priced.request_id, route: name, reason },
    'a route gave no answer',
  );
  const account_id = priced.caller.account.id;
  if (failure.simulated || failure.refusal || failure.is_not_route_fault) return health.releaseProbe(name, account_id);
  const pause_ms = failure.rejected_credentials ? credentials_pause_ms : failure.retry_after_ms;
  await health.failed(name, account_id, { cause: failure.cause, ...(pause_ms !== undefined && { pause_ms }) });
}

/** Returns the error for a call whose routes all failed: never an upstream's own text about our account. */
function allFailed({ model: { id } }: PricedRequest, failures: readonly RouteFailure[], is_spent: boolean): ApiError {
  const [refusal] = failures.map((failure) => failure.refusal);
  if (refusal && failures.every((failure) => failure.refusal)) return refusal;
  const last = failures.at(-1);
  // SDKs repeat what failed, twice and unasked: the operator would pay for three long answers that nobody gets.
  const repeat: Record<string, string> = is_spent ? { 'x-should-retry': 'false' } : {};
  if (last?.cause === 'timeout') return new ApiError('timeout', `${id} did not answer in time.`, { headers: repeat });
  const waits_ms = failures.map((failure) => failure.retry_after_ms);
  const all_limited = waits_ms.every((wait_ms) => wait_ms !== undefined);
  const least_ms = Math.min(...waits_ms.map((wait_ms) => wait_ms ?? 0));
  const headers = { ...repeat, ...(all_limited && least_ms > 0 && { 'retry-after': retryAfter(least_ms) }) };
  const message = last?.public_message ?? `${id} could not be reached on any route. Try again shortly.`;
  return new ApiError('upstream_error', message, { headers, ...(all_limited && { code: 'rate_limit_exceeded' }) });
}

/** Sends the caller of a silent stream signs of life; the first one also begins the answer. */
function startHeartbeat(priced: PricedRequest, writer: StreamWriter, { gone }: ChatCaller): { stop(): void } {
  const bytes = priced.request.style.caller?.heartbeat;
  const timer = setInterval(() => {
    if (bytes && !gone.aborted && !writer.is_full && performance.now() - writer.written_at_ms >= heartbeat_ms)
      writer.write(bytes);
  }, heartbeat_ms / 15);
  return { stop: () => clearInterval(timer) };
}
