import type { Caller } from '../accounts/authenticate.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { JsonObject, Model, Route } from '../catalog/model.ts';
import { ApiError } from '../errors.ts';
import { readBytes } from '../lib/read-bytes.ts';
import type { Providers } from '../providers/open.ts';
import { InputRefused, type ChatProvider, type ChatReply, type WholeCall } from '../providers/provider.ts';
import { allowanceOf, allowedBody, refuseFields } from '../styles/allowed.ts';
import type { Members } from '../styles/codec.ts';
import type { Usage } from '../styles/conversation.ts';
import { scopeEndUsers } from '../styles/end-users.ts';
import type { InputSize } from '../styles/input-size.ts';
import { answer_bytes_max, type AttemptContext } from './attempt.ts';
import { abandoned, failed, failureOf, type AttemptResult } from './attempt-result.ts';
import { AttemptTimeouts } from './attempt-timeouts.ts';
import { labelsOf } from './labels.ts';
import { countInput, estimateInput, mostInput, pricingOf } from './price.ts';
import type { PricedRequest } from './priced-request.ts';
import { refusedInput } from './refused.ts';

/** Calls that are no chat and are answered in one piece: embeddings, reranking, moderation. */

/** The answer in the bytes for the caller, and what the upstream reports of it. */
export type WholeAnswer = { bytes: Buffer; usage: Partial<Usage>; upstream_id?: string | undefined };

/** The part of such a call that depends on its kind. */
export type WholeKind<Priced extends PricedRequest> = {
  /** Completes a sentence about a provider without this kind: `makes no embeddings`. */
  readonly lacks: string;
  senderOf(provider: ChatProvider): ((call: WholeCall, signal: AbortSignal) => Promise<ChatReply>) | undefined;
  /** Throws ApiError 400 for what the route does not take. */
  bodyFor(priced: Priced, route: Route): JsonObject;
  /** Throws or rejects with Error if the bytes are no answer to the request. */
  read(priced: Priced, bytes: Buffer): WholeAnswer | Promise<WholeAnswer>;
};

/** The parts of the app that asking a route for a whole answer takes. */
export type WholeParts = {
  readonly providers: Pick<Providers, 'chat'>;
  readonly secret: string;
  readonly stopping: AbortSignal;
};

/** A request for such a call, as its endpoint hands it over. */
export type WholeRequest = { caller: Caller; request_id: string; body: Record<string, unknown> | undefined };

/** The input of such a call. `more_*`: tokens that its texts do not show. */
export type WholeInput = { size: InputSize; more_estimated?: number; more_counted?: number };

/** Prices a request whose answer costs nothing but its input. */
export function priceWhole<Request extends PricedRequest['request'] & { body: JsonObject }>(
  { current }: CatalogHolder,
  { caller, request_id }: WholeRequest,
  model: Model,
  request: Request,
  { size, more_estimated = 0, more_counted = 0 }: WholeInput,
): PricedRequest & { request: Request } {
  const pricing = pricingOf(model, caller.account.currency, current.settings);
  return {
    caller,
    request_id,
    request,
    labels: labelsOf(request.body),
    model,
    pricing,
    hold_pricing: pricing,
    input_tokens_estimated: estimateInput(size) + more_estimated,
    input_tokens_most: mostInput(size) + more_estimated,
    input_tokens_counted: countInput(size) + more_counted,
    output: { bound: 0, most: 0, usual: 0, least: 0, sent_min: 0 },
    max_tokens: 0,
  };
}

/** Asks one route. Throws ApiError 400 for what is the caller's own mistake. */
export async function attemptWhole<Priced extends PricedRequest>(
  { providers, secret, stopping }: WholeParts,
  kind: WholeKind<Priced>,
  priced: Priced,
  route: Route,
  { caller, outcome }: AttemptContext,
): Promise<AttemptResult> {
  const provider = providers.chat(route.provider);
  const send = provider && kind.senderOf(provider);
  if (!send) return failed({ cause: 'upstream_error', reason: `${route.provider} ${kind.lacks}` });
  const { timeout_ms, options, upstream_model } = route;
  let body: JsonObject;
  try {
    body = scopeEndUsers(kind.bodyFor(priced, route), { account_id: priced.caller.account.id, secret });
  } catch (refusal) {
    if (!(refusal instanceof ApiError)) throw refusal;
    return failed({ cause: 'upstream_error', reason: refusal.message, refusal });
  }
  const timeouts = new AttemptTimeouts(route.timeout_ms, false, caller.gone, stopping);
  if (timeouts.signal.aborted) {
    timeouts.stop();
    return failed({
      cause: 'upstream_error',
      reason: 'the caller left before the route was asked',
      is_not_route_fault: true,
    });
  }
  const onLeave = () => {
    outcome.is_gone = true;
    caller.memory.release();
  };
  timeouts.begin({ onLeave, isReadOn: () => true });
  let is_simulated: boolean | undefined;
  try {
    const call = { request_id: priced.request_id, model: upstream_model, body, timeout_ms, options };
    const reply = await send(call, timeouts.signal);
    is_simulated = reply.simulated;
    const answer = await kind.read(priced, await readBytes(reply.body, answer_bytes_max));
    outcome.usage = answer.usage;
    outcome.upstream_id = answer.upstream_id;
    outcome.is_complete = true;
    outcome.has_content = true;
    outcome.first_content_ms = Math.round(performance.now() - outcome.started_at_ms);
    return timeouts.is_left ? { answered: true } : { answered: true, whole: answer.bytes };
  } catch (error) {
    if (error instanceof InputRefused) throw refusedInput(error, priced.model);
    const ended = abandoned(error, timeouts, outcome);
    if (ended) return ended;
    return failed({ ...failureOf(error, timeouts), ...(is_simulated !== undefined && { simulated: is_simulated }) });
  } finally {
    timeouts.stop();
  }
}

/** The body as it came, without what no upstream of the style knows. Throws ApiError 400 for what costs more than it should. */
export function plainBody(members: Members, body: JsonObject, { options, upstream_model }: Route): JsonObject {
  const allowance = allowanceOf(options);
  refuseFields(body, allowance);
  return { ...allowedBody(members, body, allowance), model: upstream_model };
}
