import { KeyRuleError } from '../accounts/key-rule-error.ts';
import { ApiError } from '../errors.ts';
import { aliasNamed, type Alias } from './alias.ts';
import type { Model } from './model.ts';
import { modelNamed, type NamedModels } from './names.ts';

/**
 * Models that a key may use: a list of ids, of aliases of the operator, which mean the models behind them, and of prefixes
 * such as `acme/*`. Null or absent: all, also those of later.
 */
export type KeyModels = readonly string[] | null | undefined;

type Offer = NamedModels & { readonly aliases: ReadonlyMap<string, Alias> };

const entries_max = 100;

/** Returns whether a key of this list may use the model. */
export function isModelAllowed({ models, aliases }: Omit<Offer, 'retired'>, list: KeyModels, id: string): boolean {
  if (!list) return true;
  return list.some((entry) => {
    if (entry === id) return true;
    if (entry.endsWith('/*')) return id.startsWith(entry.slice(0, -1));
    return aliasNamed({ models, aliases }, entry)?.weighted_models.some(({ model }) => model === id) === true;
  });
}

/** Returns the ids and the beginnings of ids that a list stands for, also those of models that have ended; undefined for all. */
export function idsOfList(
  offer: Omit<Offer, 'retired'>,
  list: KeyModels,
): { ids: readonly string[]; prefixes: readonly string[] } | undefined {
  if (!list) return undefined;
  const prefixes = list.filter((entry) => entry.endsWith('/*')).map((entry) => entry.slice(0, -1));
  const behind = list.flatMap((entry) => aliasNamed(offer, entry)?.weighted_models.map(({ model }) => model) ?? []);
  return { ids: [...list, ...behind], prefixes };
}

/** Refuses a model that the key may not use; `name` is what the caller calls it. Throws ApiError 403. */
export function checkModelAllowed(
  offer: Omit<Offer, 'retired'>,
  key: { readonly models?: KeyModels },
  { id }: Pick<Model, 'id'>,
  param = 'model',
): void {
  if (!isModelAllowed(offer, key.models, id)) throw modelRefused(id, key.models, param);
}

const shown_max = 8;

/** The 403 for a model or an alias that a key may not use. To be thrown. */
export function modelRefused(name: string, list: KeyModels, param: string): ApiError {
  const entries = list ?? [];
  const more = entries.length > shown_max ? ` and ${entries.length - shown_max} more` : '';
  const message =
    `This key may not use ${name}: its rule allows ${entries.slice(0, shown_max).join(', ')}${more}. ` +
    'GET /v1/models lists its models. Use one of them or another key, or change the rule of the key.';
  return new ApiError('forbidden', message, {
    param,
    code: 'model_not_allowed',
    headers: { 'x-should-retry': 'false' },
    refusal: { reason: 'model_not_allowed', model: name },
  });
}

/** Returns the part of an offer that lists show to a key. */
export function offerOfKey<O extends Pick<Offer, 'models' | 'aliases'>>(
  offer: O,
  { models: list }: { readonly models?: KeyModels },
): Pick<Offer, 'models' | 'aliases'> {
  if (!list) return offer;
  return {
    models: new Map([...offer.models].filter(([id]) => isModelAllowed(offer, list, id))),
    aliases: offer.aliases,
  };
}

/**
 * Reads the list of a key; null for none. Another name of a model becomes its id. What matches no model is refused, unless
 * it is in the list that the key has: its model may have ended meanwhile. Throws KeyRuleError.
 */
export function readKeyModels(offer: Offer, value: unknown, present: KeyModels): readonly string[] | null {
  if (value === null || (Array.isArray(value) && value.length === 0)) return null;
  if (!Array.isArray(value) || value.length > entries_max)
    throw new KeyRuleError(`must be a list of at most ${entries_max} models; null allows all.`);
  return [...new Set(value.map((entry) => readEntry(offer, entry, present)))];
}

function readEntry(offer: Offer, value: unknown, present: KeyModels): string {
  const entry = typeof value === 'string' ? value.trim() : '';
  if (present?.includes(entry)) return entry;
  if (/^[^*]+\/\*$/.test(entry)) {
    const prefix = entry.slice(0, -1);
    for (const id of offer.models.keys()) if (id.startsWith(prefix)) return entry;
  } else if (entry !== '' && !entry.includes('*')) {
    if (aliasNamed(offer, entry)) return entry;
    try {
      return modelNamed(offer, entry, 'models').id;
    } catch (error) {
      if (error instanceof ApiError) throw new KeyRuleError(`must have names of models: ${error.message}`);
      throw error;
    }
  }
  const shown = JSON.stringify(entry.slice(0, 60));
  throw new KeyRuleError(
    `must have ids such as acme/small, or beginnings such as acme/* that a model has, not ${shown}.`,
  );
}
