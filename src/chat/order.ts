import type { Caller } from '../accounts/authenticate.ts';
import type { App } from '../app.ts';
import type { Model } from '../catalog/model.ts';
import { freezePricing, type Pricing } from '../catalog/price.ts';
import { ApiError } from '../errors.ts';
import { inputSize, readAsk, type Ask, type InputSize } from '../styles/ask.ts';
import type { Style } from '../styles/conversation.ts';
import { estimateInput } from './price.ts';

/** A chat request that has passed all checks that need no database. */
export type ChatOrder = {
  caller: Caller;
  request_id: string;
  ask: Ask;
  model: Model;
  pricing: Pricing;
  input_size: InputSize;
  input_tokens_estimated: number;
  /** What upstreams are told; never more than the model's maximum. */
  max_tokens: number;
  /** Held for, over all answers. */
  output_tokens_held: number;
};

const max_output_tokens_default = 131_072;

/** Reads a body of either chat path. Throws ApiError: 400 naming the field, 404 for the model. */
export function readOrder(
  app: App,
  style: Style,
  call: { caller: Caller; request_id: string; body: Record<string, unknown> | undefined },
): ChatOrder {
  const ask = readAsk(style, call.body ?? {});
  const model = findModel(app, ask.model);
  const { settings } = app.catalog.current;
  const { max_output_tokens = max_output_tokens_default, default_output_tokens = 4_096 } = model.limits;
  const max_tokens = Math.min(ask.max_tokens ?? max_output_tokens, max_output_tokens);
  const input_size = inputSize(ask);
  return {
    caller: call.caller,
    request_id: call.request_id,
    ask,
    model,
    pricing: freezePricing(model, {}, call.caller.account.currency, settings),
    input_size,
    input_tokens_estimated: estimateInput(input_size),
    max_tokens,
    output_tokens_held: ask.n * Math.min(ask.max_tokens ?? default_output_tokens, max_tokens),
  };
}

/** The chat model of this name, or 404; a media model's 404 names the right endpoint. */
export function findModel(app: App, id: string): Model {
  const model = app.catalog.current.models.get(id);
  const shown = JSON.stringify(id.slice(0, 128));
  if (!model) {
    throw new ApiError('not_found', `There is no model ${shown}. GET /v1/models lists the models.`, { param: 'model' });
  }
  if (model.kind === 'chat') return model;
  const message = `${shown} is ${model.kind === 'video' ? 'a' : 'an'} ${model.kind} model: use POST /v1/generate.`;
  throw new ApiError('not_found', message, { param: 'model' });
}
