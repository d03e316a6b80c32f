import { entryOf, type EntryOptions } from '../../catalog/lists/entry.ts';
import type { ListForm } from '../../catalog/lists/index.ts';
import { isListedKind, type ListedKind, type ListedModel } from '../../catalog/lists/listed.ts';
import type { Kind, PriceRow, ProviderConfig } from '../../catalog/model.ts';
import type { ModelEntry } from '../../catalog/schema.ts';
import type { Guard } from '../../net/guard.ts';

/** The models that a provider offers, by its own list, for an operator who chooses among them. */

/** `entry`: the model as medley.yaml would have it, at the provider's own prices; undefined if it cannot be described so. */
export type OfferedModel = {
  upstream_model: string;
  name?: string;
  /** Undefined: of no kind that can be added. */
  kind: Kind | undefined;
  context_tokens?: number;
  entry(naming: NamingOptions, kind: Kind): ModelEntry | undefined;
};

export type NamingOptions = Pick<EntryOptions, 'provider' | 'prefix' | 'source'>;

export type OfferRequest = {
  /** The form of the list, where the provider has one of its own. */
  form: ListForm | undefined;
  /** A path that a wrong key does not open; undefined: the list. */
  key_path: string | undefined;
  signal: AbortSignal;
};

/** Reads the list of an upstream; undefined if there is none at its address. Throws OfferError. */
export type ListModels = (
  config: ProviderConfig,
  parts: { guard: Guard },
  request: OfferRequest,
) => Promise<OfferedModel[] | undefined>;

/** A model whose price is asked for. */
export type PriceQuery = { readonly upstream_model: string; readonly kind: Kind };

/**
 * Reads what an upstream says that models cost, in US dollars, by their names; models of which it says nothing that has a
 * unit here are absent. Throws OfferError.
 */
export type ReadPrices = (
  config: ProviderConfig,
  parts: { guard: Guard },
  request: { models: readonly PriceQuery[]; signal: AbortSignal },
) => Promise<ReadonlyMap<string, PriceRow>>;

/** A list that cannot be read. The message is a sentence; `field` is what the operator may correct. */
export class OfferError extends Error {
  override name = 'OfferError';
  readonly field: 'api_key' | 'base_url' | 'allow_private';
  /** Of the answer, if it was one that says no. */
  readonly status: number | undefined;

  constructor(field: OfferError['field'], message: string, status?: number) {
    super(message);
    this.field = field;
    this.status = status;
  }
}

/** Returns the models of a list as those that can be added. */
export function offeredOf(listed: readonly ListedModel[]): OfferedModel[] {
  return listed.map((model) => {
    const { upstream_model, name, context_tokens } = model;
    return {
      upstream_model,
      ...(name !== undefined && { name }),
      ...(context_tokens !== undefined && { context_tokens }),
      kind: model.kind === 'other' ? undefined : model.kind,
      entry: (naming, kind) => {
        if (!isListedKind(kind)) return undefined;
        return entryOf({ ...model, kind }, { ...naming, margin: '1', options: {} });
      },
    };
  });
}

/** A model that no list names: all that is known of it is what the operator says. */
export function unlistedModel(upstream_model: string, kind: Exclude<ListedKind, 'other'>): OfferedModel {
  const [model] = offeredOf([{ upstream_model, kind, capabilities: ['streaming'], price: [] }]);
  return model ?? { upstream_model, kind, entry: () => undefined };
}
