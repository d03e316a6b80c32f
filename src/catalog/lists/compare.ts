import { rational } from '../../money/money.ts';
import { rowsOn } from '../dated.ts';
import { isMediaKind, isObject, type Model, type PriceRow, type Route, type Unit } from '../model.ts';
import type { ListForm } from './index.ts';
import type { ListedModel } from './listed.ts';

/** A point in which a route and a list differ. */
export type Difference = {
  model: string;
  route: string;
  upstream_model: string;
  /** A unit of prices, perhaps `second at 720p` or `input_token above 200000`; or `retires`. */
  what: string;
  ours: string;
  theirs: string;
};

/** A route whose model a list does not have, although it has models of its provider. */
export type UnlistedRoute = { model: string; provider: string; upstream_model: string };

/** `in_list`: how many routes of a model the list has; models without one are left out. */
export type Comparison = {
  compared: number;
  in_list: Map<string, number>;
  differences: Difference[];
  unlisted: UnlistedRoute[];
};

/** The names of our providers in lists that have others for them. */
const provider_names: { readonly [form in ListForm]: { readonly [provider: string]: string } } = {
  litellm: {
    'gemini-interactions': 'gemini',
    together: 'together_ai',
    fireworks: 'fireworks_ai',
    jina: 'jina_ai',
    nvidia: 'nvidia_nim',
    bfl: 'black_forest_labs',
    runway: 'runwayml',
    'luma-dream-machine': 'luma',
    fal: 'fal_ai',
    'xai-video': 'xai',
    wan: 'dashscope',
    seedance: 'volcengine',
  },
  'models.dev': {
    gemini: 'google',
    'gemini-interactions': 'google',
    together: 'togetherai',
    fireworks: 'fireworks-ai',
    moonshot: 'moonshotai',
    'xai-video': 'xai',
    wan: 'alibaba',
  },
  openrouter: {},
  'openai-compatible': {},
};

/**
 * Compares costs and ends of models with a list, as they are on a day. A list with providers has a model under the
 * provider and the upstream's name; OpenRouter's has it under the name that a caller of it sends, which is that of our
 * default catalogue.
 */
export function compareWithList(
  models: readonly Model[],
  list: readonly ListedModel[],
  { day, form }: { day: string; form: ListForm },
): Comparison {
  const listed = new Map(list.map((one) => [keyOf(one.provider, one.upstream_model), one]));
  const providers = new Set(list.map(({ provider }) => provider));
  const comparison: Comparison = { compared: 0, in_list: new Map(), differences: [], unlisted: [] };
  for (const model of models) {
    for (const route of model.routes) {
      const key = placeIn(form, model, route, providers);
      if (key === undefined) continue;
      const theirs = listed.get(key);
      const { upstream_model, provider } = route;
      if (!theirs) comparison.unlisted.push({ model: model.id, provider, upstream_model });
      else {
        comparison.compared += 1;
        comparison.in_list.set(model.id, (comparison.in_list.get(model.id) ?? 0) + 1);
        comparison.differences.push(...differencesOf(model, route, theirs, day));
      }
    }
  }
  return comparison;
}

function keyOf(provider: string | undefined, upstream_model: string): string {
  return `${provider ?? ''} ${upstream_model}`;
}

/** Place of a route in a list; undefined: it has nothing of its provider. */
function placeIn(
  form: ListForm,
  { id, kind }: Model,
  { provider, upstream_model }: Route,
  providers: ReadonlySet<string | undefined>,
): string | undefined {
  if (form === 'openrouter') {
    if (provider === 'openrouter') return keyOf(undefined, upstream_model);
    return kind === 'chat' ? keyOf(undefined, id) : undefined;
  }
  const name = provider_names[form][provider] ?? provider;
  return providers.has(name) ? keyOf(name, upstream_model) : undefined;
}

function differencesOf(model: Model, route: Route, theirs: ListedModel, day: string): Difference[] {
  const place = { model: model.id, route: route.id, upstream_model: route.upstream_model };
  const our_rows = rowsOn(route.cost, day);
  const resolutions = { of: resolutionsOf(model), units: unitsByResolution([...our_rows, ...theirs.price]) };
  const [mine, other] = [amountsByName(our_rows, resolutions), amountsByName(theirs.price, resolutions)];
  const names = isMediaKind(model.kind) ? [...mine.keys()] : [...new Set([...mine.keys(), ...other.keys()])];
  const costs = names.flatMap((what): Difference[] => {
    const [ours, listed] = [mine.get(what), other.get(what)];
    if (ours && listed && areSame(ours, listed)) return [];
    return [{ ...place, what, ours: ours ? shown(ours) : 'nothing', theirs: listed ? shown(listed) : 'nothing' }];
  });
  const [ends = 'nothing', listed_end = 'nothing'] = [model.retirement?.on, theirs.retires];
  return ends === listed_end ? costs : [...costs, { ...place, what: 'retires', ours: ends, theirs: listed_end }];
}

/** Exact: a million tokens or characters, or one of another unit. */
type Amount = { numerator: bigint; denominator: bigint };

/** Resolutions that callers may choose, and units whose price depends on it on one side. */
type Resolutions = { of: readonly string[]; units: ReadonlySet<Unit> };

/**
 * Amounts by unit, step and resolution; of a resolution, the first row that fits it counts. Minutes are seconds here, and
 * prices of nothing are left out.
 */
function amountsByName(rows: readonly PriceRow[], { of, units }: Resolutions): Map<string, Amount> {
  const amounts = new Map<string, Amount>();
  for (const row of rows) {
    const { resolution, ...others } = row.when ?? {};
    const more = Object.entries(others).map(([field, value]) => `${field} ${[value].flat().join('|')}`);
    const step = row.above_input_tokens === undefined ? '' : ` above ${row.above_input_tokens}`;
    const name = [measureOf(row.unit) + step, ...more.toSorted()].join(', ');
    const fitting = of.filter((one) => resolution === undefined || hasWord(resolution, one));
    const is_plain = of.length === 0 || !units.has(measureOf(row.unit));
    const amount = amountOf(row);
    for (const each of is_plain ? [name] : fitting.map((one) => `${name} at ${one}`)) {
      if (amount && !amounts.has(each) && (!is_plain || resolution === undefined)) amounts.set(each, amount);
    }
  }
  for (const [name, { numerator }] of amounts) if (numerator === 0n) amounts.delete(name);
  return amounts;
}

function measureOf(unit: Unit): Unit {
  return unit === 'minute' ? 'second' : unit;
}

function hasWord(value: unknown, word: string): boolean {
  return [value].flat().some((one) => String(one).toLowerCase() === word.toLowerCase());
}

function unitsByResolution(rows: readonly PriceRow[]): Set<Unit> {
  return new Set(rows.flatMap(({ unit, when }) => (when?.['resolution'] === undefined ? [] : [measureOf(unit)])));
}

/** The resolutions that callers may choose. */
function resolutionsOf({ input_schema: { properties } }: Model): string[] {
  const field = isObject(properties) ? properties['resolution'] : undefined;
  const values = isObject(field) ? field['enum'] : undefined;
  return Array.isArray(values) ? values.map(String) : [];
}

function amountOf({ unit, amount, per }: PriceRow): Amount | undefined {
  const exact = rational(amount);
  const many = unit.endsWith('_token') || unit === 'character' ? 1_000_000n : 1n;
  const seconds = unit === 'minute' ? 60n : 1n;
  return exact && { numerator: exact.numerator * many, denominator: exact.denominator * BigInt(per) * seconds };
}

/** Returns both prices of one unit, if they differ. */
export function priceDifference(ours: PriceRow, theirs: PriceRow): { ours: string; theirs: string } | undefined {
  const [mine, other] = [amountOf(ours), amountOf(theirs)];
  if (!mine || !other || areSame(mine, other)) return undefined;
  return { ours: shown(mine), theirs: shown(other) };
}

/** Lists round: 0.0000611 stands for 0.22 divided by 3600. */
const rounding = 2_000n;

function areSame(a: Amount, b: Amount): boolean {
  const [left, right] = [a.numerator * b.denominator, b.numerator * a.denominator];
  const distance = left > right ? left - right : right - left;
  return distance * rounding <= right;
}

const shown_digits = 9;

function shown({ numerator, denominator }: Amount): string {
  const digits = String((numerator * 10n ** BigInt(shown_digits)) / denominator).padStart(shown_digits + 1, '0');
  const [whole, rest] = [digits.slice(0, -shown_digits), digits.slice(-shown_digits).replace(/0+$/, '')];
  return rest === '' ? whole : `${whole}.${rest}`;
}
