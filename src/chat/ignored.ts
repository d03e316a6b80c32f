import { allowanceOf, allowedBetas, betasIn, ignoredFields } from '../styles/allowed.ts';
import type { Model } from '../catalog/model.ts';
import type { ChatOrder } from './order.ts';

/** What came with the caller's request. */
type Sent = { headers: Record<string, string> };

/** More names than this nobody reads in a header. */
const names_max = 20;

const plain_name = /^[\w.-]{1,64}$/;

/** The caller's headers that go on to a route's upstream of the same style, without betas that have prices of their own. */
export function headersFor(
  model: Pick<Model, 'price'>,
  options: Parameters<typeof allowanceOf>[0],
  { headers }: Sent,
): Record<string, string> {
  const { 'anthropic-beta': written, ...rest } = headers;
  if (written === undefined) return headers;
  const betas = allowedBetas(written, allowanceOf(options), hasLongPrices(model));
  return betas.length === 0 ? rest : { ...rest, 'anthropic-beta': betas.join(',') };
}

/** Tells the caller which members of its body and which betas no route of the model is given. */
export function ignoredHeader({ ask, model }: ChatOrder, { headers }: Sent): Record<string, string> | undefined {
  const allowances = model.routes.map(({ options }) => allowanceOf(options));
  const fields = ignoredFields(ask.style, ask.body, allowances);
  const written = headers['anthropic-beta'] ?? '';
  const passed = new Set(allowances.flatMap((allowance) => allowedBetas(written, allowance, hasLongPrices(model))));
  const betas = betasIn(written).filter((beta) => !passed.has(beta));
  const names = [...fields, ...betas].filter((name) => plain_name.test(name));
  return names.length === 0 ? undefined : { 'x-ignored-fields': names.slice(0, names_max).join(', ') };
}

/** Prompts above a length have prices. */
function hasLongPrices({ price }: Pick<Model, 'price'>): boolean {
  return price.some(({ above_input_tokens }) => above_input_tokens !== undefined);
}
