import type { AdminProviders, OfferedModelView } from '../../../../src/dashboard/views/admin-providers.ts';
import { typedPrice, type Amounts } from './provider-prices.ts';

/** Choices of an operator among offered models. */

export type Choice = { is_ticked: boolean; kind: string; amounts: Amounts };

/** The choice of a model that nobody touched. */
export function noChoice({ kind }: OfferedModelView): Choice {
  return { is_ticked: false, kind: kind ?? '', amounts: {} };
}

/** Tells whether its price has to be typed: the list has none for this kind, or none in a currency that counts here. */
export function needsPrice(model: OfferedModelView, { kind }: Choice, { usd_rate }: AdminProviders): boolean {
  return usd_rate === null || kind !== model.kind || model.list_price.length === 0;
}

/** Tells whether nothing is missing to add it. */
export function isReady(model: OfferedModelView, choice: Choice, view: AdminProviders): boolean {
  return !needsPrice(model, choice, view) || typedPrice(choice.kind, choice.amounts) !== undefined;
}

/** Returns the choice as it is sent. */
export function sentModel(model: OfferedModelView, choice: Choice, view: AdminProviders) {
  const { upstream_model, kinds } = model;
  const price = needsPrice(model, choice, view) ? typedPrice(choice.kind, choice.amounts) : undefined;
  return { upstream_model, ...(kinds.length > 0 && { kind: choice.kind }), ...(price && { price }) };
}
