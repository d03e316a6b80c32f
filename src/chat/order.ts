import type { Caller } from '../accounts/authenticate.ts';
import type { App } from '../app.ts';
import type { Model } from '../catalog/model.ts';
import type { Pricing } from '../catalog/price.ts';
import { wrongKind } from '../catalog/wrong-kind.ts';
import { ApiError } from '../errors.ts';
import { inputSize, readAsk, type Ask } from '../styles/ask.ts';
import type { CallerStyle, CallStyle } from '../styles/conversation.ts';
import { findLinks, judgeLinks, type FoundLink } from '../styles/links.ts';
import { countInput, estimateInput, pricingOf } from './price.ts';

/** Kinds of models that answer in the call itself. */
export type CallKind = 'chat' | 'embedding';

/** What holding money, trying routes and settling have to know of a call, whatever is asked. */
export type CallOrder = {
  caller: Caller;
  request_id: string;
  ask: { readonly style: CallStyle; readonly stream: boolean; readonly n: number };
  model: Model;
  pricing: Pricing;
  /** For the hold. */
  input_tokens_estimated: number;
  /** For the charge, where the upstream tells none. */
  input_tokens_counted: number;
  /** What upstreams are told; never more than the model's maximum. */
  max_tokens: number;
  /** Held for, over all answers. */
  output_tokens_held: number;
};

/** A chat request that has passed all checks that need no database. */
export type ChatOrder = CallOrder & { ask: Ask; links: readonly FoundLink[] };

const max_output_tokens_default = 131_072;

/** Reads a body of either chat path. Throws ApiError: 400 naming the field, 404 for the model. */
export function readOrder(
  app: App,
  style: CallerStyle,
  call: { caller: Caller; request_id: string; body: Record<string, unknown> | undefined },
): ChatOrder {
  const ask = readAsk(style, call.body ?? {});
  const model = findModel(app, ask.model, 'chat');
  const links = findLinks(ask);
  judgeLinks(links, app.addressRules());
  const { settings } = app.catalog.current;
  const { max_output_tokens = max_output_tokens_default, default_output_tokens = 4_096 } = model.limits;
  const max_tokens = Math.min(ask.max_tokens ?? max_output_tokens, max_output_tokens);
  const input_size = inputSize(ask);
  return {
    caller: call.caller,
    request_id: call.request_id,
    ask,
    links,
    model,
    pricing: pricingOf(model, call.caller.account.currency, settings),
    input_tokens_estimated: estimateInput(input_size),
    input_tokens_counted: countInput(input_size),
    max_tokens,
    output_tokens_held: ask.n * Math.min(ask.max_tokens ?? default_output_tokens, max_tokens),
  };
}

/** The model of this name and kind, or 404; that of another kind's model names the right endpoint. */
export function findModel(app: App, id: string, kind: CallKind): Model {
  const model = app.catalog.current.models.get(id);
  const shown = JSON.stringify(id.slice(0, 128));
  if (!model) {
    throw new ApiError('not_found', `There is no model ${shown}. GET /v1/models lists the models.`, { param: 'model' });
  }
  if (model.kind !== kind) throw wrongKind(model);
  return model;
}
