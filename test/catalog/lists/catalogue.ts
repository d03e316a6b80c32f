import { readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { surveyCatalog } from '../../../src/catalog/catalog.ts';
import { dayOf } from '../../../src/catalog/dated.ts';
import { compareWithList, type Comparison } from '../../../src/catalog/lists/compare.ts';
import {
  knownExplanations,
  sortExplained,
  type Explanations,
  type SortedComparison,
} from '../../../src/catalog/lists/explained.ts';
import { list_forms, readList, type ListForm } from '../../../src/catalog/lists/index.ts';
import { ListError } from '../../../src/catalog/lists/listed.ts';
import { isObject, type Json, type Model, type PriceRow } from '../../../src/catalog/model.ts';
import { adapterFacts } from '../../../src/providers/facts.ts';
import { adapters } from '../../../src/providers/index.ts';

/**
 * Compares every model of the default catalogue with lists that others keep: the program of `npm run catalogue`, and what
 * its test calls.
 */

/** The text of a list, and where it is from. */
export type List = { form: ListForm; place: string; text: string };

/** The models of LiteLLM's list that the default catalogue has too. `npm run catalogue -- --write` makes it again. */
const stored_list = new URL('litellm-defaults.json', import.meta.url);

/** Addresses of the lists. Read in November 2026. */
const public_lists = {
  litellm: 'https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json',
  openrouter: 'https://openrouter.ai/api/v1/models',
  'models.dev': 'https://models.dev/api.json',
} as const satisfies Partial<Record<ListForm, string>>;

export function storedLists(): List[] {
  return [
    { form: 'litellm', place: 'test/catalog/lists/litellm-defaults.json', text: readFileSync(stored_list, 'utf8') },
  ];
}

/** Returns the models of the default catalogue, those that have ended too, with all their dates. */
export async function defaultCatalogue(): Promise<Model[]> {
  const { models } = await surveyCatalog({ ...adapterFacts(adapters), config_file: undefined });
  return models.flatMap(({ origin, model }) => (origin === 'default' ? [model] : []));
}

type Compared = { list: List; comparison: Comparison; sorted: SortedComparison };

export function compareAll(
  models: readonly Model[],
  lists: readonly List[],
  day: string,
  explanations: Explanations = knownExplanations(),
): Compared[] {
  return lists.map((list) => {
    const comparison = compareWithList(models, readList(list.form, list.text), { day, form: list.form });
    return { list, comparison, sorted: sortExplained(comparison, list.form, explanations) };
  });
}

/** Says whether nothing is left to look at. */
export function isInOrder(compared: readonly Compared[]): boolean {
  return compared.every(({ sorted }) =>
    [sorted.unexplained, sorted.unexplained_absences, sorted.stale].every((each) => each.length === 0),
  );
}

/** A line for each model, then one for each difference. */
export function reportOf(models: readonly Model[], compared: readonly Compared[]): string {
  return [...models.map((model) => lineOf(model, compared)), '', ...compared.flatMap(differencesOf)].join('\n');
}

function lineOf(
  { id, price, price_source, created, retirement, routes }: Model,
  compared: readonly Compared[],
): string {
  const ends = retirement === undefined ? '' : `, ends ${retirement.on}`;
  const prices = price.map(priceText).join(', ');
  const source = price_source === undefined ? 'no source' : `read ${price_source.date}`;
  const states = compared.map(({ list, sorted, comparison }) => {
    const differences = [...sorted.explained, ...sorted.unexplained].filter(({ model }) => model === id);
    const absent = comparison.unlisted.filter(({ model }) => model === id);
    const count = comparison.in_list.get(id) ?? 0;
    if (differences.length > 0) return `${list.form}: ${differences.length} differ`;
    if (count === 0) return `${list.form}: not there`;
    return `${list.form}: equal${absent.length === 0 ? '' : ` (${count} of ${routes.length} routes)`}`;
  });
  return `${id}: since ${new Date(created * 1000).toISOString().slice(0, 10)}${ends}; ${prices}; ${source}; ${states.join('; ')}`;
}

function priceText({ unit, amount, per, when, above_input_tokens, from }: PriceRow): string {
  const conditions = Object.entries(when ?? {}).map(([field, value]) => `${field} ${[value].flat().join('|')}`);
  if (above_input_tokens !== undefined) conditions.push(`above ${above_input_tokens}`);
  if (from !== undefined) conditions.push(`from ${from}`);
  return `${amount} for ${per === 1 ? '' : `${per} `}${unit}${conditions.length === 0 ? '' : ` (${conditions.join(', ')})`}`;
}

function differencesOf({ list, comparison, sorted }: Compared): string[] {
  const { explained, unexplained, explained_absences, unexplained_absences, stale } = sorted;
  const show = ({ model, what, ours, theirs }: { model: string; what: string; ours: string; theirs: string }) =>
    `${model} ${what}: ${ours} here, ${theirs} in the list`;
  return [
    `${list.form}, ${list.place}: ${comparison.compared} routes compared, ${explained.length} differences and ${explained_absences.length} absences explained, ${unexplained.length + unexplained_absences.length} not.`,
    ...explained.map((one) => `  explained: ${show(one)}. ${one.reason}`),
    ...explained_absences.map(
      (one) => `  explained: ${one.provider} ${one.upstream_model} is not there. ${one.reason}`,
    ),
    ...unexplained.map((one) => `  NOT EXPLAINED: ${show(one)}.`),
    ...unexplained_absences.map((one) => `  NOT EXPLAINED: ${one.provider} ${one.upstream_model} is not there.`),
    ...stale.map((one) => `  EXPLAINS NOTHING: ${JSON.stringify(one)}`),
  ];
}

/** The parts of a full list of LiteLLM that the default catalogue has. */
export function storedPart(models: readonly Model[], text: string, from: string): string {
  const list: Json = JSON.parse(text);
  const upstream_models = new Set(models.flatMap(({ routes }) => routes.map(({ upstream_model }) => upstream_model)));
  const providers = new Set<Json | undefined>();
  const part = Object.entries(isObject(list) ? list : {}).flatMap(([id, entry]): [string, Json][] => {
    if (!isObject(entry)) return [];
    const provider = entry['litellm_provider'];
    const name = id.startsWith(`${String(provider)}/`) ? id.slice(String(provider).length + 1) : id;
    const is_first = !providers.has(provider) && always_stored.has(String(provider));
    if (!upstream_models.has(name) && !is_first) return [];
    providers.add(provider);
    return [[id, Object.fromEntries(Object.entries(entry).filter(([member]) => stored_members.test(member)))]];
  });
  return `${JSON.stringify({ _: { from }, ...Object.fromEntries(part) }, null, 1)}\n`;
}

/** One model of each of these is stored in any case, so that the absence of the others shows. */
const always_stored = new Set(['replicate', 'minimax', 'volcengine', 'recraft', 'assemblyai', 'black_forest_labs']);

const stored_members =
  /^(litellm_provider|mode|max_input_tokens|max_output_tokens|deprecation_date|successor_model|.*cost.*)$/;

/** Reads a list from a file or an address. Rejects with Error, which names the place, for what is no such list. */
async function readPlace(form: ListForm, place: string): Promise<List> {
  try {
    const text = await textAt(place);
    readList(form, text);
    return { form, place, text };
  } catch (error) {
    if (error instanceof ListError) throw new Error(`${place} ${error.message}`, { cause: error });
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${place} could not be read: ${reason}`, { cause: error });
  }
}

async function textAt(place: string): Promise<string> {
  if (!/^https?:/.test(place)) return readFileSync(place, 'utf8');
  const answer = await fetch(place, { signal: AbortSignal.timeout(60_000) });
  if (!answer.ok) throw new ListError(`answered ${answer.status}.`);
  return answer.text();
}

/** Reads the lists of today. One that cannot be read leaves the others as they are, and is named. */
export async function readLatest(
  addresses: Partial<Record<ListForm, string>> = public_lists,
): Promise<{ lists: List[]; unread: string[] }> {
  const latest: { lists: List[]; unread: string[] } = { lists: [], unread: [] };
  for (const [form, place] of Object.entries(addresses)) {
    if (!isForm(form)) continue;
    try {
      latest.lists.push(await readPlace(form, place));
    } catch (error) {
      latest.unread.push(error instanceof Error ? error.message : String(error));
    }
  }
  return latest;
}

function isForm(form: string): form is ListForm {
  return Object.hasOwn(list_forms, form);
}

async function run(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { latest: { type: 'boolean' }, write: { type: 'boolean' } },
  });
  const [form, place] = positionals;
  if ((form === undefined) !== (place === undefined) || (form !== undefined && !isForm(form))) {
    process.stderr.write(`${'Usage: npm run catalogue [-- FORM FILE|URL] [--latest] [--write]'}\n`);
    return 2;
  }
  const models = await defaultCatalogue();
  const chosen = form !== undefined && place !== undefined && isForm(form) ? [await readPlace(form, place)] : [];
  const latest = values.latest ? await readLatest() : { lists: [], unread: [] };
  for (const line of latest.unread) process.stderr.write(`${line}\n`);
  const lists = [...chosen, ...latest.lists];
  if (values.latest && lists.length === 0) return 1; // the stored list is not one of today
  const full = lists.find((list) => list.form === 'litellm');
  if (values.write && full) writeFileSync(stored_list, storedPart(models, full.text, basename(full.place)));
  const compared = compareAll(models, lists.length === 0 ? storedLists() : lists, dayOf(Date.now()));
  process.stdout.write(`${reportOf(models, compared)}\n`);
  return isInOrder(compared) && latest.unread.length === 0 ? 0 : 1;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  process.exitCode = await run().catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  });
}
