import { ApiError } from '../errors.ts';
import { assert } from '../lib/assert.ts';
import { withoutWords } from '../lib/without-words.ts';
import { credentials_pause_ms, type RouteHealth } from '../routing/health.ts';
import type { RouteSpeeds, Speed } from '../routing/speeds.ts';
import type { AttemptContext } from './attempt.ts';
import type { AttemptResult, RouteFailure } from './attempt-result.ts';
import type { ChatOutcome } from './outcome.ts';
import { default_reason } from './preferences.ts';
import type { PricedRequest } from './priced-request.ts';
import { retryAfter, type CallRoute } from './routes.ts';
import { traceAttempt } from './trace.ts';
import { noteLost, type LostCostParts } from './upstream.ts';

/** The routes of a call, asked one after the other. */

/** The parts of the app that asking the routes of a call takes. */
type TryParts = LostCostParts & {
  readonly health: RouteHealth;
  readonly speeds: RouteSpeeds;
  track(work: Promise<unknown>): void;
};

const route_header = 'x-route';
const route_reason_header = 'x-route-reason';

/**
 * Asks one route after the other, until one answers. What a model refuses may be taken by a fallback: its other routes are
 * passed over. Throws ApiError of the model that was asked last.
 */
export async function tryRoutes<Priced extends PricedRequest>(
  parts: TryParts,
  routes: readonly CallRoute<Priced>[],
  attempt: (route: CallRoute<Priced>) => Promise<AttemptResult>,
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
    return health.noteFailure(name, account_id, { cause: error.kind === 'timeout' ? 'timeout' : 'upstream_error' });
  return is_complete ? health.noteSuccess(name, account_id) : health.releaseProbe(name, account_id);
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
  await health.noteFailure(name, account_id, { cause: failure.cause, ...(pause_ms !== undefined && { pause_ms }) });
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
