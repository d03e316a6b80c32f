import type { Caller } from '../accounts/authenticate.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { JsonObject, Route } from '../catalog/model.ts';
import { ApiError } from '../errors.ts';
import { readBytes } from '../lib/read-bytes.ts';
import type { Providers } from '../providers/open.ts';
import { InputRefused } from '../providers/provider.ts';
import { allowanceOf, allowedBody, refuseFields } from '../styles/allowed.ts';
import { scopeEndUsers } from '../styles/end-users.ts';
import { embeddings, readEmbeddingRequest, renderEmbeddings, type EmbeddingRequest } from '../styles/embeddings.ts';
import { abandoned, answer_bytes_max, failed, failureOf, type Attempted, type ChatCaller } from './attempt.ts';
import { findModel, type PricedRequest } from './priced-request.ts';
import { refusedInput } from './refused.ts';
import type { ChatOutcome } from './outcome.ts';
import { countInput, estimateInput, mostInput, pricingOf } from './price.ts';
import { AttemptTimeouts } from './attempt-timeouts.ts';

/** A request for embeddings that has passed all checks that need no database. */
export type PricedEmbeddingRequest = PricedRequest & { request: EmbeddingRequest };

/** Reads a body of POST /v1/embeddings. Throws ApiError: 400 naming the field, 404 for the model. */
export function priceEmbeddingRequest(
  catalog: CatalogHolder,
  call: { caller: Caller; request_id: string; body: Record<string, unknown> | undefined },
): PricedEmbeddingRequest {
  const request = readEmbeddingRequest(call.body ?? {});
  const model = findModel(catalog, request.model, 'embedding');
  const pricing = pricingOf(model, call.caller.account.currency, catalog.current.settings);
  const size = { ...request.text_size, images: 0, documents: 0, document_bytes: 0 };
  return {
    caller: call.caller,
    request_id: call.request_id,
    request,
    model,
    pricing,
    hold_pricing: pricing,
    input_tokens_estimated: estimateInput(size) + request.tokens,
    input_tokens_most: mostInput(size) + request.tokens,
    input_tokens_counted: countInput(size) + request.tokens,
    output: { bound: 0, most: 0, usual: 0, least: 0, sent_min: 0 },
    max_tokens: 0,
  };
}

/** The parts of the app that asking a route for vectors takes. */
export type EmbeddingParts = {
  readonly providers: Pick<Providers, 'chat'>;
  readonly secret: string;
  readonly stopping: AbortSignal;
};

/** Asks one route for the vectors. Throws ApiError 400 for what is the caller's own mistake. */
export async function attemptEmbedding(
  { providers, secret, stopping }: EmbeddingParts,
  priced: PricedEmbeddingRequest,
  route: Route,
  caller: ChatCaller,
  outcome: ChatOutcome,
): Promise<Attempted> {
  const provider = providers.chat(route.provider);
  if (!provider?.embed) return failed({ cause: 'upstream_error', reason: `${route.provider} makes no embeddings` });
  const { request, request_id } = priced;
  const { timeout_ms, options, upstream_model } = route;
  let body: JsonObject;
  try {
    body = scopeEndUsers(bodyFor(request, route), { account_id: priced.caller.account.id, secret });
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
    const embeddings_request = { request_id, model: upstream_model, body, timeout_ms, options };
    const reply = await provider.embed(embeddings_request, timeouts.signal);
    is_simulated = reply.simulated;
    const bytes = await readBytes(reply.body, answer_bytes_max);
    const answer = await renderEmbeddings(request, bytes, priced.model.id, priced.input_tokens_counted);
    const { input_tokens } = answer;
    outcome.usage = { output_tokens: 0, ...(input_tokens !== undefined && { input_tokens }) };
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

/** As text, vectors are four times as long; so many would be more than an answer may have. */
const vectors_as_text_max = 256;

/** Throws ApiError 400 for what costs more than tokens. */
function bodyFor(request: EmbeddingRequest, { options, upstream_model }: Route): JsonObject {
  const allowance = allowanceOf(options);
  refuseFields(request.body, allowance);
  const body = { ...allowedBody(embeddings.members, request.body, allowance), model: upstream_model };
  return request.count > vectors_as_text_max ? { ...body, encoding_format: 'base64' } : body;
}
