import { rational } from '../../money/money.ts';
import { defaultModels } from '../default.ts';
import { readCatalogFile } from '../file.ts';
import { multiplied } from '../margin.ts';
import { routeOptionsOf } from '../presets.ts';
import type { Problem } from '../problem.ts';
import type { CatalogFile, ModelEntry, PriceEntry, ProviderEntry } from '../schema.ts';
import { default_currencies } from '../settings.ts';
import type { Surroundings } from '../check-settings.ts';
import type { AddedCatalog, AddedModel, AddedProvider } from './rows.ts';

/** The part of a catalogue that operators add in the dashboard. What is broken in it is left out, and stops nothing. */

/** List prices are in this currency. */
export const list_currency = 'USD';

export type AddedPart = {
  content: CatalogFile;
  /** Broken rows. */
  problems: Problem[];
  /** The reasons why providers and models are not in use, by `provider NAME` and `model ID`. */
  unused: ReadonlyMap<string, string>;
};

/** A name in the place of a secret; the part has none. */
export const key_reference = 'env:KEY_OF_THE_DASHBOARD';

/** Parts that are collected over all providers. */
type Collected = {
  providers: Record<string, ProviderEntry>;
  models: ModelEntry[];
  problems: Problem[];
  unused: Map<string, string>;
};

type Facts = Omit<Surroundings, 'secret' | 'default_providers'>;

/** Returns the part that is used with `file`, whose names go first. */
export function addedPart(added: AddedCatalog, file: CatalogFile, facts: Facts): AddedPart {
  const collected: Collected = { providers: {}, models: [], problems: [], unused: new Map() };
  for (const provider of added.providers) {
    try {
      addPart(collected, provider, { added, file, facts });
    } catch {
      leaveOut(collected, `provider ${provider.name}`, not_ours); // a hand may have written anything into a row
    }
  }
  const { providers, models, problems, unused } = collected;
  return { content: { version: 1, providers, models }, problems, unused };
}

const not_ours = 'is not as this version of Medley writes it. Remove it and add it again.';

function addPart(
  { providers, models, ...collected }: Collected,
  provider: AddedProvider,
  { added, file, facts }: { added: AddedCatalog; file: CatalogFile; facts: Facts },
): void {
  const { unused } = collected;
  const { name } = provider;
  const reason = unusable(provider, added, file);
  if (reason !== undefined) {
    if (reason.is_problem) leaveOut(collected, `provider ${name}`, reason.text);
    else unused.set(`provider ${name}`, reason.text);
    return;
  }
  const rows = added.models.filter((model) => model.provider === name);
  const checked = checkedPart(provider, rows, file, facts);
  for (const [what, text] of checked.unused) leaveOut(collected, what, text);
  if (checked.entry === undefined) return;
  if (file.providers?.[name]) unused.set(`provider ${name}`, in_file);
  else providers[name] = checked.entry;
  const own_models = new Set(file.models?.map(({ id }) => id));
  for (const model of checked.models) {
    if (own_models.has(model.id)) unused.set(`model ${model.id}`, 'medley.yaml has a model of this id, which is used.');
    else models.push(model);
  }
}

/** Leaves out what is broken, and warns of it. */
function leaveOut({ problems, unused }: Pick<Collected, 'problems' | 'unused'>, what: string, text: string): void {
  unused.set(what, text);
  problems.push({ severity: 'warning', file: 'added in the dashboard:', line: 0, col: 0, path: what, message: text });
}

const in_file = 'medley.yaml has a provider of this name, which is used.';

type Reason = { text: string; is_problem: boolean };

function unusable(
  { name, entry, last_four, is_off }: AddedProvider,
  added: AddedCatalog,
  file: CatalogFile,
): Reason | undefined {
  if (is_off) return { text: 'Switched off.', is_problem: false };
  const in_its_place = file.providers?.[name];
  if (in_its_place) {
    if (in_its_place.adapter === entry.adapter) return undefined;
    return { text: `${in_file} It speaks another protocol, so the models here are not offered.`, is_problem: false };
  }
  if (last_four === null || added.keys.get(name) !== undefined || added.ignores_keys) return undefined;
  return { text: 'its key cannot be read with MEDLEY_SECRET. Paste the key again.', is_problem: true };
}

type Checked = { entry: ProviderEntry | undefined; models: ModelEntry[]; unused: [string, string][] };

/** Returns what passes the checks of a file. A row may have become wrong: by a new version, or by a hand. */
function checkedPart(
  provider: AddedProvider,
  rows: readonly AddedModel[],
  file: CatalogFile,
  surroundings: Facts,
): Checked {
  const { name } = provider;
  const unused: [string, string][] = [];
  const entry = withKey(provider);
  const entries = rows.flatMap((row): ModelEntry[] => {
    const model = readRow(provider, row, file);
    if (typeof model !== 'string') return [model];
    unused.push([`model ${row.id}`, model]);
    return [];
  });
  const { currencies } = file;
  const part = {
    version: 1,
    ...(currencies && { currencies }),
    sandbox: false,
    providers: { [name]: entry },
    models: entries,
  };
  const mistakes = mistakesIn(part, surroundings);
  const wrong = new Map<number, string>();
  for (const { path, message } of mistakes) {
    const index = /^models\[(\d+)\]/.exec(path)?.[1];
    if (index !== undefined) wrong.set(Number(index), `${path.replace(/^models\[\d+\]\.?/, '')} ${message}`.trim());
    else return { entry: undefined, models: [], unused: [...unused, [`provider ${name}`, `${path}: ${message}`]] };
  }
  for (const [index, message] of wrong) unused.push([`model ${entries[index]?.id}`, message]);
  return { entry, models: entries.filter((_, index) => !wrong.has(index)), unused };
}

function readRow(provider: AddedProvider, row: AddedModel, file: CatalogFile): ModelEntry | string {
  try {
    return modelOf(provider, row, file);
  } catch {
    return not_ours;
  }
}

/** A check of 400 models takes 0.2 s, and every reload of the file and every change of a row asks for all providers. */
const checks = new Map<string, Problem[]>();
const checks_max = 64;

function mistakesIn(part: object, surroundings: Facts): Problem[] {
  const text = JSON.stringify(part);
  const checked = checks.get(text);
  if (checked) return checked;
  const reading = readCatalogFile(text, 'dashboard', { ...surroundings, secret: () => 'set' });
  const mistakes = reading.ok ? [] : reading.problems.filter(({ severity }) => severity === 'error');
  const [oldest] = checks.keys();
  if (checks.size >= checks_max && oldest !== undefined) checks.delete(oldest);
  checks.set(text, mistakes);
  return mistakes;
}

function withKey({ entry, last_four }: AddedProvider): ProviderEntry {
  const { api_key: _, ...rest } = entry;
  return last_four === null ? rest : { ...rest, api_key: key_reference };
}

/** The model of a row as medley.yaml would have it, or why there is none. */
export function modelOf(
  provider: AddedProvider,
  row: AddedModel,
  file: Pick<CatalogFile, 'currencies'>,
): ModelEntry | string {
  const listed = row.shipped === null ? row.entry : shippedEntry(row.shipped, provider);
  if (!listed) return `${row.shipped} is not in the default catalogue of this version.`;
  const rate = listCurrencyRate(file);
  const margin = row.margin ?? provider.margin;
  const price =
    row.price ?? (rate === undefined ? undefined : (listed.price ?? []).map((each) => priced(each, margin, rate)));
  if (price === undefined)
    return `its list price is in ${list_currency}, which is not among currencies. Type a price, or add ${list_currency} to currencies.`;
  const options = routeOptionsOf(provider.preset, provider.entry);
  return {
    ...listed,
    id: row.id,
    price,
    routes: listed.routes.map((route) => {
      const all = listed.kind === 'chat' ? { ...options, ...route.options } : route.options;
      const cost = rate === undefined ? undefined : route.cost?.map((each) => ({ ...each, currency: list_currency }));
      const { options: _, cost: __, cost_source: ___, ...rest } = route;
      const has_options = all !== undefined && Object.keys(all).length > 0;
      return {
        ...rest,
        provider: provider.name,
        ...(has_options && { options: all }),
        ...(cost && { cost, ...(route.cost_source && { cost_source: route.cost_source }) }),
      };
    }),
  };
}

/** Tells whether the operator may say what the provider asks for a model: no list has said it. */
export function mayTypeListPrice({ entry }: AddedModel): boolean {
  return entry !== null && entry.price_source === undefined;
}

/** A model of the default catalogue, with its routes over the provider that this one is. */
export function shippedEntry(id: string, { preset }: Pick<AddedProvider, 'preset'>): ModelEntry | undefined {
  const model = defaultModels().find((one) => one.id === id);
  const routes = model?.routes.filter(({ provider }) => provider === preset) ?? [];
  return model && routes.length > 0 ? { ...model, routes } : undefined;
}

/** Amount of the list currency that one unit of the base currency is; undefined if it is none of the file's. */
export function listCurrencyRate({
  currencies = default_currencies,
}: Pick<CatalogFile, 'currencies'>): string | undefined {
  return Object.entries<string>(currencies).find(([code]) => code === list_currency)?.[1];
}

function priced(row: PriceEntry, margin: string, rate: string): PriceEntry {
  return { ...row, amount: divided(multiplied(row.amount, margin), rate) };
}

const places = 12;

/** The quotient of two decimal texts, rounded up at the twelfth digit of its fraction. */
function divided(amount: string, rate: string): string {
  const [a, b] = [rational(amount), rational(rate)];
  if (!a || !b || b.numerator === 0n) return amount;
  const above = a.numerator * b.denominator * 10n ** BigInt(places);
  const below = a.denominator * b.numerator;
  const digits = ((above + below - 1n) / below).toString().padStart(places + 1, '0');
  const fraction = digits.slice(-places).replace(/0+$/, '');
  return `${digits.slice(0, -places)}.${fraction.padEnd(2, '0')}`;
}
