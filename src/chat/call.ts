import type { Logger } from 'pino';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Route } from '../catalog/model.ts';
import type { Shares } from '../leases/shares.ts';
import type { Permit, Semaphore } from '../concurrency/semaphore.ts';
import { ApiError } from '../errors.ts';
import type { RouteSpeeds } from '../routing/speeds.ts';
import type { HoldRequest } from '../money/holds.ts';
import type { UpstreamUse } from '../money/upstream.ts';
import type { StreamError } from '../styles/codec.ts';
import { stopOf, type AttemptContext, type ChatCaller } from './attempt.ts';
import type { AttemptResult } from './attempt-result.ts';
import { confirmHold, takeHold, type CallHold, type HoldParts } from './hold.ts';
import type { CallStyle, PricedCall, PricedRequest, WithFallbacks } from './priced-request.ts';
import { newOutcome, type ChatOutcome } from './outcome.ts';
import type { StreamWriter } from './stream-writer.ts';
import { writeRecord, type RecordParts } from './record.ts';
import { tryRoutes } from './route-attempts.ts';
import { routesOf, type CallRoute, type Routing, type RoutingParts } from './routes.ts';
import type { TokensByModel } from './plan.ts';
import { chargeOf, settle, type Charge, type CallSettlement, type SettleParts } from './settle.ts';
import { inSpan } from '../tracing/tracer.ts';
import { useOf, type LostCostParts } from './upstream.ts';

/** Silence of a stream after which the caller gets a sign of life. */
const heartbeat_ms = 15_000;

/** A whole answer; undefined after a stream, and when the caller is gone. */
export type ChatResult = { whole: Buffer | undefined; charged: CallSettlement['charged'] };

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
    readonly noteSettled?: (settled: CallSettlement, recorded: Promise<void>) => void;
    track(work: Promise<unknown>): void;
  };

/** A call that has its hold and its permit, and whose end somebody else books: a response in the background. */
export type CallOwner = {
  readonly permit: Permit;
  readonly held: CallHold;
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
) => Promise<AttemptResult>;

/**
 * Runs one call: hold, the first route that gives content, relay, settle. Whatever becomes of the routes, the hold is
 * ended once, after them: at the price of the model that answered, where the call has fallbacks. Throws ApiError if
 * nothing has been sent yet; once the answer has begun, its last event is the error.
 */
export async function runCall<Priced extends PricedRequest>(
  parts: CallParts,
  priced: WithFallbacks<Priced>,
  attemptRoute: AttemptRoute<Priced>,
  { caller, writer, owner }: { caller: ChatCaller; writer: StreamWriter; owner?: CallOwner },
): Promise<ChatResult> {
  const permit = owner?.permit ?? (await takeCallPermit(parts, priced)); // ApiError 429
  const end = parts.begin(); // a caller who is gone does not keep the server from stopping, and the hold has to end
  let routing: Routing<Priced> | undefined;
  try {
    const created_at = new Date(parts.clock.now());
    const call = { parts, priced, context: { caller, outcome: newOutcome(), writer }, created_at };
    routing = await routesOf(parts, priced); // ApiError 502, 504
    const { routes, leaveProbe } = routing;
    if (leaveProbe) caller.memory.add(leaveProbe); // a probe of open routes ends with the first content
    const held = owner?.held ?? (await inSpan({ name: 'hold' }, () => reserve(parts, priced, routes))); // ApiError 402, 403
    const attempted = await attemptRoutes(call, routes, held, attemptRoute);
    if (owner) {
      await owner.end(endOf(call, attempted));
      return { whole: undefined, charged: 0n };
    }
    const { ended, settled } = await settleCall(call, held.hold, attempted);
    recordCall(call, ended, settled);
    caller.content?.end(attempted.whole);
    endAnswer(call);
    return { whole: attempted.whole, charged: settled.charged };
  } finally {
    routing?.leaveProbe?.();
    caller.content?.drop();
    permit.release();
    end();
  }
}

/** A call that has entered. Its outcome is filled in by its attempts. */
type OpenCall<Priced extends PricedRequest> = {
  readonly parts: CallParts;
  readonly priced: Priced;
  readonly context: AttemptContext;
  readonly created_at: Date;
};

/** The end of all attempts of a call. `priced`: as the model has it that was asked last. */
type LastAttempt<Priced extends PricedRequest> = { priced: Priced; whole: Buffer | undefined; total_ms: number };

/** Asks the routes that the hold pays, until one answers. An error is noted in the outcome, since the hold has to end. */
async function attemptRoutes<Priced extends PricedRequest>(
  { parts, priced, context }: OpenCall<Priced>,
  routes: readonly CallRoute<Priced>[],
  { hold, max_tokens }: CallHold,
  attemptRoute: AttemptRoute<Priced>,
): Promise<LastAttempt<Priced>> {
  const { caller, outcome, writer } = context;
  let asked_last: Priced = priced;
  let whole: Buffer | undefined;
  const attempt = async ({ route, priced: paid }: CallRoute<Priced>) => {
    await confirmHold(parts, priced, hold);
    asked_last = paid;
    noteTokens(writer, paid);
    return attemptRoute(paid, route, context);
  };
  const heartbeat = priced.request.stream ? startHeartbeat(priced, writer, caller) : undefined;
  try {
    const paid_routes = await paidRoutes(parts, routes, max_tokens);
    whole = await tryRoutes(parts, paid_routes, attempt, context);
  } catch (error) {
    outcome.error = error instanceof ApiError ? error : unexpected(parts.log, priced, error);
  }
  heartbeat?.stop();
  if (!outcome.is_complete && !outcome.is_gone) outcome.error ??= stopOf(caller);
  outcome.is_gone ||= caller.gone.aborted && !(priced.request.stream && outcome.is_complete); // many leave at [DONE]
  return { priced: asked_last, whole, total_ms: Math.round(performance.now() - outcome.started_at_ms) };
}

function endOf<Priced extends PricedRequest>(
  { parts, context: { outcome }, created_at }: OpenCall<Priced>,
  { priced, total_ms }: LastAttempt<Priced>,
): EndedCall {
  const charge = chargeOf(priced, outcome);
  const upstream = useOf(parts.catalog.current.settings, priced, outcome, charge);
  return { priced, outcome, charge, upstream, created_at, total_ms };
}

/** Ends the hold: with the charge, or without one. If that is impossible, a stream breaks off: the error is not in it. */
async function settleCall<Priced extends PricedRequest>(
  call: OpenCall<Priced>,
  hold: HoldRequest,
  attempted: LastAttempt<Priced>,
): Promise<{ ended: EndedCall; settled: CallSettlement }> {
  const { parts, priced, context } = call;
  try {
    const ended = endOf(call, attempted);
    const is_charged = !parts.keepEnd || (await parts.keepEnd({ ...ended, whole: attempted.whole, hold }));
    const charge = is_charged ? ended.charge : undefined;
    const { upstream } = ended;
    const settled = await inSpan({ name: 'settle' }, () => settle(parts, ended.priced, { hold, charge, upstream }));
    return { ended: { ...ended, charge }, settled };
  } catch (error) {
    parts.log.error({ request_id: priced.request_id, err: error }, 'a chat call could not be settled');
    if (!context.outcome.is_complete) context.writer.cut(); // the caller must not take it for a complete answer
    throw error;
  }
}

function recordCall<Priced extends PricedRequest>(
  { parts }: OpenCall<Priced>,
  { priced, outcome, charge, created_at, total_ms }: EndedCall,
  settled: CallSettlement,
): void {
  const recorded = writeRecord(parts, priced, { outcome, charge, ...settled, created_at, total_ms });
  parts.noteSettled?.(settled, recorded);
}

/** Ends the answer of a caller who is gone, or of a call with an error: throws it, or sends it as the last event. */
function endAnswer<Priced extends PricedRequest>({ priced, context, created_at }: OpenCall<Priced>): void {
  const { outcome, writer } = context;
  const { error } = outcome;
  if (outcome.is_gone) writer.cut();
  const { caller: style } = priced.request.style;
  if (error && !writer.is_open && !(priced.request.stream && isStreamed(error, style))) throw error;
  if (error && style) writer.write(style.errorEvent(streamError(error, priced, created_at)));
}

/** The `retry-after` of a refused call; the end of the key's other calls is unknown. */
const retry_after_s = 1;

/** Takes one of the permits that a key has on all nodes. Rejects with ApiError 429. */
export async function takeCallPermit(
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
function isStreamed({ extras: { code } }: ApiError, style: CallStyle['caller']): boolean {
  return code !== undefined && style?.streamed_codes?.includes(code) === true;
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
async function reserve(parts: ReserveParts, priced: PricedCall, [first]: readonly CallRoute[]): Promise<CallHold> {
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

/** Sends the caller of a silent stream signs of life; the first one also begins the answer. */
function startHeartbeat(priced: PricedRequest, writer: StreamWriter, { gone }: ChatCaller): { stop(): void } {
  const bytes = priced.request.style.caller?.heartbeat;
  const timer = setInterval(() => {
    if (bytes && !gone.aborted && !writer.is_full && performance.now() - writer.written_at_ms >= heartbeat_ms)
      writer.write(bytes);
  }, heartbeat_ms / 15);
  return { stop: () => clearInterval(timer) };
}
