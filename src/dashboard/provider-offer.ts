import { listCurrencyRate, shippedEntry } from '../catalog/added/part.ts';
import type { AddedProvider } from '../catalog/added/rows.ts';
import { defaultModels } from '../catalog/default.ts';
import { knownPresets } from '../catalog/presets.ts';
import { resolveTexts } from '../catalog/provider-secrets.ts';
import { buildProvider } from '../catalog/build.ts';
import type { ProviderConfig, Settings } from '../catalog/model.ts';
import type { PriceEntry } from '../catalog/schema.ts';
import type { Guard } from '../net/guard.ts';
import { OfferError, type OfferedModel } from '../providers/offer/offer.ts';
import { adapters } from '../providers/index.ts';
import { ApiError, invalidField } from '../errors.ts';
import type { PriceView } from './views/models.ts';

/** Models that a provider of the dashboard has to offer. */

/** A provider that is stored, or is to be. */
export type OfferingProvider = Pick<AddedProvider, 'name' | 'preset' | 'entry'>;

/** Lists the models of a provider by its own words; undefined if its adapter cannot ask for them. Throws ApiError naming a field. */
export async function readOffer(
  offering: OfferingProvider,
  api_key: string | undefined,
  { guard, signal }: { guard: Guard; signal: AbortSignal },
): Promise<OfferedModel[] | undefined> {
  const { preset, entry } = offering;
  const server = preset === null ? undefined : knownPresets()[preset];
  const list = adapters[entry.adapter]?.listModels;
  if (!list || server?.no_list) return undefined;
  try {
    return await list(
      configOf(offering, api_key),
      { guard },
      { form: server?.list, key_path: server?.key_path, signal },
    );
  } catch (error) {
    throw error instanceof OfferError ? invalidField(error.field, error.message) : error;
  }
}

/** Returns a provider with its key, as its adapter takes it. */
export function configOf({ name, entry }: OfferingProvider, api_key: string | undefined): ProviderConfig {
  const texts = resolveTexts(entry, () => undefined) ?? {};
  return buildProvider(name, entry, { ...texts, ...(api_key !== undefined && { api_key }) }, {});
}

/** Tells whether reading the list says that the key is right. */
export function checksKeys({ preset, entry }: OfferingProvider): boolean {
  const server = preset === null ? undefined : knownPresets()[preset];
  if (server?.no_list || adapters[entry.adapter]?.listModels === undefined) return false;
  return server?.public_list === undefined || server.key_path !== undefined;
}

/** Lists the models of the default catalogue with a route over this provider. */
export function shippedOffer({ preset }: Pick<OfferingProvider, 'preset'>) {
  return defaultModels().flatMap((model) => shippedEntry(model.id, { preset }) ?? []);
}

/** Rows of a price as a page shows them. */
export function priceViews(rows: readonly PriceEntry[] | undefined, currency: string): PriceView[] {
  return (rows ?? []).map(({ unit, amount, per, when, above_input_tokens }) => ({
    unit,
    amount: amount.replace(/^(\d+)$/, '$1.00').replace(/\.(\d)$/, '.$10'),
    per: per ?? 1,
    currency,
    ...(when && { when }),
    ...(above_input_tokens !== undefined && { above_input_tokens }),
  }));
}

/** Amount of US dollars that one unit of the base currency is; null if none of them counts here. */
export function usdRate({ currencies }: Pick<Settings, 'currencies'>): string | null {
  return listCurrencyRate({ currencies: Object.fromEntries(currencies) }) ?? null;
}

/** The 404 for a provider that was not added here. To be thrown. */
export function noProvider(): ApiError {
  return new ApiError('not_found', 'There is no such provider among those that were added here.', { param: 'name' });
}
