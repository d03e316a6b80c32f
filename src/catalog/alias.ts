import type { Rational } from '../money/money.ts';
import { highestPrice, priceOf } from './price.ts';
import type { Model, Unit } from './model.ts';
import type { CatalogFile } from './schema.ts';

/** A name of the operator's for one or several chat models: each conversation stays with one of them. */
export type Alias = {
  readonly id: string;
  readonly name: string;
  /** For people; absent: it says which models there are. */
  readonly description?: string;
  /** In their order. */
  readonly weighted_models: readonly WeightedModel[];
  /** The other models are asked if that of the conversation does not answer. */
  readonly has_fallbacks: boolean;
};

/** The part of the conversations that a model gets. */
export type WeightedModel = { readonly model: string; readonly weight: number };

/** The aliases of a file that has been checked, by their names. */
export function aliasesIn({ aliases = {} }: CatalogFile): ReadonlyMap<string, Alias> {
  return new Map(
    Object.entries(aliases).map(([id, { name = id, description, models, fallbacks = false }]) => {
      const weighted_models = models.map(({ model, weight = 1 }) => ({ model, weight }));
      return [
        id,
        { id, name, ...(description !== undefined && { description }), weighted_models, has_fallbacks: fallbacks },
      ];
    }),
  );
}

type Offer = { readonly models: ReadonlyMap<string, Model>; readonly aliases: ReadonlyMap<string, Alias> };

/** Returns the alias of this name; an id goes before it. */
export function aliasNamed({ models, aliases }: Offer, name: string): Alias | undefined {
  return models.has(name) ? undefined : aliases.get(name);
}

/** Returns the models of an alias that are offered now, with their weights. */
export function modelsOf(
  { models }: Pick<Offer, 'models'>,
  { weighted_models }: Alias,
): { model: Model; weight: number }[] {
  return weighted_models.flatMap(({ model: id, weight }) => {
    const model = models.get(id);
    return model?.kind === 'chat' ? [{ model, weight }] : [];
  });
}

/** A model as lists show it; an alias is shown as one, with the models behind it as members. */
export type ListedModel = { readonly model: Model; readonly members: readonly Model[] };

/** All that callers may name, in the order of lists: models, then aliases that have any. Hidden models are among them. */
export function listedModels(offer: Offer): ListedModel[] {
  const aliases = [...offer.aliases.keys()].flatMap((name) => listedAlias(offer, name) ?? []);
  return [...[...offer.models.values()].map((model) => ({ model, members: [model] })), ...aliases];
}

/** An alias as lists show it; undefined if there is none of this name, or none of its models is offered. */
export function listedAlias(offer: Offer, name: string): ListedModel | undefined {
  const alias = aliasNamed(offer, name);
  const members = alias ? modelsOf(offer, alias).map(({ model }) => model) : [];
  const [first, ...others] = members;
  return alias && first ? { model: shownAs(alias, first, others), members } : undefined;
}

/** The price is that of the most expensive model, by output and then by input; limits and capabilities are those that all have. */
function shownAs({ id, name, description }: Alias, first: Model, others: readonly Model[]): Model {
  const {
    changed: _,
    retirement: __,
    ...shown
  } = others.reduce((highest, other) => (isMoreExpensive(other, highest) ? other : highest), first);
  const members = [first, ...others];
  return {
    ...shown,
    id,
    name,
    aliases: [],
    description: description ?? `Answered by ${members.map((member) => member.id).join(' or ')}.`,
    owned_by: first.owned_by,
    created: Math.max(...members.map(({ created }) => created)),
    limits: leastLimits(members),
    capabilities: first.capabilities.filter((each) => members.every(({ capabilities }) => capabilities.includes(each))),
    routes: members.flatMap(({ routes }) => routes),
    hidden: false,
  };
}

function isMoreExpensive(model: Model, other: Model): boolean {
  for (const unit of ['output_token', 'input_token'] as const) {
    const [price, before] = [priceIn(model, unit), priceIn(other, unit)];
    const difference = price.numerator * before.denominator - before.numerator * price.denominator;
    if (difference !== 0n) return difference > 0n;
  }
  return false;
}

function priceIn({ price }: Model, unit: Unit): Rational {
  return highestPrice(price.filter((row) => row.unit === unit).map(priceOf));
}

function leastLimits(members: readonly Model[]): Model['limits'] {
  const names = Object.keys(members[0]?.limits ?? {}).filter((name) => members.every(({ limits }) => name in limits));
  return Object.fromEntries(names.map((name) => [name, Math.min(...members.map(({ limits }) => limits[name] ?? 0))]));
}
