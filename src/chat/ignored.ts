import type { Model } from '../catalog/model.ts';
import { allowanceOf, allowedBetas, betasIn, ignoredFields, type Allowance } from '../styles/allowed.ts';
import type { Betas, CallerCodec } from '../styles/codec.ts';
import type { PricedChatRequest } from './priced-request.ts';

/** The caller's request. */
type Sent = { headers: Record<string, string> };

/** More names than this nobody reads in a header. */
const names_max = 20;

const plain_name = /^[\w.-]{1,64}$/;

/** The caller's headers that go on to a route's upstream of the same style, without betas that have prices of their own. */
export function headersFor(
  { caller: { betas } }: CallerCodec,
  model: Pick<Model, 'price'>,
  options: Parameters<typeof allowanceOf>[0],
  { headers }: Sent,
): Record<string, string> {
  const written = betas && headers[betas.header];
  if (!betas || written === undefined) return headers;
  const { [betas.header]: _, ...rest } = headers;
  const allowed = allowedBetas(betas, written, allowanceOf(options), hasLongPrices(model));
  return allowed.length === 0 ? rest : { ...rest, [betas.header]: allowed.join(',') };
}

/** Tells the caller which members of its body and which betas no route of the model is given. */
export function ignoredHeader(
  { request, model }: PricedChatRequest,
  { headers }: Sent,
): Record<string, string> | undefined {
  const { members, betas } = request.style.caller;
  const allowances = model.routes.map(({ options }) => allowanceOf(options));
  const fields = ignoredFields(members, request.body, allowances);
  const names = [...fields, ...ignoredBetas(betas, model, headers, allowances)].filter((name) => plain_name.test(name));
  return names.length === 0 ? undefined : { 'x-ignored-fields': names.slice(0, names_max).join(', ') };
}

function ignoredBetas(
  betas: Betas | undefined,
  model: Model,
  headers: Sent['headers'],
  allowances: readonly Allowance[],
): string[] {
  const written = betas && headers[betas.header];
  if (!betas || written === undefined) return [];
  const has_long_prices = hasLongPrices(model);
  const passed = new Set(allowances.flatMap((allowance) => allowedBetas(betas, written, allowance, has_long_prices)));
  return betasIn(written).filter((beta) => !passed.has(beta));
}

/** Prompts above a length have prices. */
function hasLongPrices({ price }: Pick<Model, 'price'>): boolean {
  return price.some(({ above_input_tokens }) => above_input_tokens !== undefined);
}
