import { readFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { resolveSecret } from '../config.ts';
import { systemClock, type Clock } from '../lib/clock.ts';
import { NoAnswer, withTimeLimit } from '../lib/time-limit.ts';
import { counted } from '../lib/counted.ts';
import { aliasesIn, type Alias } from './alias.ts';
import { buildModels, buildProvider } from './build.ts';
import { addedPart, key_reference } from './added/part.ts';
import { nothing_added, type AddedCatalog } from './added/rows.ts';
import { builtinCatalog } from './builtin.ts';
import { stranded, type Surroundings } from './check-settings.ts';
import { checkDefaultCatalog, defaultModels, defaultPart, defaultProviders } from './default.ts';
import { readCatalogFile, type FileReadResult } from './file.ts';
import { optionFilesBeside } from './option-files.ts';
import { atTime } from './dated.ts';
import type { Kind, Model, ProviderConfig, Settings } from './model.ts';
import { withOverrides, type Override } from './overrides.ts';
import { CatalogError, showPath, showProblem, type Problem } from './problem.ts';
import { resolveTexts } from './provider-secrets.ts';
import type { CatalogFile, ProviderEntry } from './schema.ts';
import { settingsOf } from './settings.ts';

/**
 * Models, providers and settings: the offer, its routes and its prices. A catalogue never changes: a reload or
 * an operator's override makes a new one.
 */
export type Catalog = {
  readonly settings: Settings;
  /** By id, in the order of the file, then the default ones, the sandbox last. */
  readonly models: ReadonlyMap<string, Model>;
  /** By name: names of the operator's for several chat models. */
  readonly aliases: ReadonlyMap<string, Alias>;
  /** By name; those whose secret is set and whose adapter there is. */
  readonly providers: ReadonlyMap<string, ProviderConfig>;
  /** Names of the providers of the default catalogue that have a key. */
  readonly keyed_providers: readonly string[];
  /** By id: models that have ended. They take nothing new; what they have accepted goes on. */
  readonly retired: ReadonlyMap<string, Model>;
  readonly warnings: readonly Problem[];
  /** Names of what operators added in the dashboard and is not in use, with the reason: by `provider NAME` and `model ID`. */
  readonly unused: ReadonlyMap<string, string>;
  /** Names of the providers of the file. */
  readonly file_providers: readonly string[];
};

export type CatalogOptions = {
  /** A `medley.yaml`; absent: the default catalogue and the sandbox. */
  config_file?: string | undefined;
  /** Names of the adapters that there are. */
  adapters: readonly string[];
  /** Can this adapter run models of this kind? All of them, if not given. */
  canServe?: (adapter: string, kind: Kind) => boolean;
  /** Checks the options of a route with its adapter; absent: no check. */
  checkOptions?: NonNullable<Surroundings['checkOptions']>;
  checkProvider?: NonNullable<Surroundings['checkProvider']>;
  fileOptions?: NonNullable<Surroundings['fileOptions']>;
  takesMedia?: NonNullable<Surroundings['takesMedia']>;
  publishedLimits?: NonNullable<Surroundings['publishedLimits']>;
  /** The value behind `env:NAME` or `file:/path`; of this process, if not given. */
  secret?: (reference: string) => string | undefined;
  /** Number of accounts of each currency; a catalogue that lacks one of the currencies is rejected. */
  currencies_in_use?: ReadonlyMap<string, number>;
  /** Rows that operators added in the dashboard, beside the file. */
  added?: AddedCatalog;
};

export type ReloadResult = { ok: boolean; message: string; problems: readonly Problem[] };

export type CatalogHolder = {
  readonly current: Catalog;
  /** The catalogue as it is configured: with the prices of all dates, the models that have ended, and without overrides. */
  readonly configured: Catalog;
  /** Reads the file again. One with a mistake is rejected whole, and the catalogue stays as it was. */
  reload(): Promise<ReloadResult>;
  /**
   * From now on a catalogue must keep the currencies that accounts have. Throws CatalogError, which
   * names those that are missing, if the current one does not.
   */
  keepCurrencies(inUse: () => Promise<ReadonlyMap<string, number>>): Promise<void>;
  /** From now on this clock says which prices hold and which models have ended. */
  keepTime(clock: Clock): void;
  /** From now on this is what operators changed, over whatever the file says. */
  override(overrides: readonly Override[]): void;
  /** From now on this is what operators added, beside the file. */
  add(added: AddedCatalog): void;
};

/** Opens the catalogue. Throws CatalogError, which tells every mistake, if the file has one. */
export async function openCatalog(options: CatalogOptions): Promise<CatalogHolder> {
  let loaded = needed(await load(options));
  let added = options.added ?? nothing_added;
  const view = openView(loaded.make(added));
  let inUse: (() => Promise<ReadonlyMap<string, number>>) | undefined;
  const loadAgain = async () => load(inUse ? { ...options, currencies_in_use: await inUse() } : options);
  const reload = async (): Promise<ReloadResult> => {
    const again = await loadAgain().catch((error: unknown) => rejected([`it could not be checked: ${error}`], []));
    if ('message' in again) return again;
    if (!again.ok) {
      const mistakes = again.problems.filter(({ severity }) => severity === 'error').map(showProblem);
      return rejected(mistakes, again.problems);
    }
    loaded = again;
    const catalog = loaded.make(added);
    const changes = changesOf(view.configured, catalog);
    view.configure(catalog);
    const { models, providers, warnings } = catalog;
    const hint =
      options.config_file === undefined ? '. No file is read: start the service with MEDLEY_CONFIG=FILE' : '';
    const warning_lines = warnings.map((problem) => `\nwarning: ${showProblem(problem)}`);
    return {
      ok: true,
      message: `${counted(models.size, 'model')}, ${counted(providers.size, 'provider')}; ${changes}${hint}${warning_lines.join('')}`,
      problems: warnings,
    };
  };
  return {
    get current() {
      return view.current;
    },
    get configured() {
      return view.configured;
    },
    reload,
    keepCurrencies: async (read) => {
      inUse = read;
      loaded = needed(await loadAgain());
      view.configure(loaded.make(added));
    },
    keepTime: (clock) => view.keepTime(clock),
    override: (overrides) => view.override(overrides),
    add: (next) => {
      added = next;
      view.configure(loaded.make(added));
    },
  };
}

/** The catalogue of a file as it is now: at this time, with what operators changed. */
function openView(configured: Catalog) {
  let overrides: readonly Override[] = [];
  let clock = systemClock;
  let current = configured;
  let until_ms = 0;
  const refresh = () => {
    const now = atTime(configured, clock.now());
    until_ms = now.until_ms;
    current = withOverrides(now.catalog, overrides);
  };
  return {
    get current() {
      if (clock.now() >= until_ms) refresh();
      return current;
    },
    get configured() {
      return configured;
    },
    configure: (catalog: Catalog) => {
      configured = catalog;
      refresh();
    },
    keepTime: (time: Clock) => {
      clock = time;
      refresh();
    },
    override: (changed: readonly Override[]) => {
      overrides = changed;
      refresh();
    },
  };
}

/** Lists the names that a reload has changed, for the operator who asked for it. */
function changesOf(before: Catalog, after: Catalog): string {
  const parts = [
    ...difference('models', before.models, after.models),
    ...difference('aliases', before.aliases, after.aliases),
    ...difference('providers', before.providers, after.providers),
    ...(JSON.stringify(plain(before.settings)) === JSON.stringify(plain(after.settings)) ? [] : ['settings changed']),
  ];
  return parts.length === 0 ? 'nothing changed' : parts.join('; ');
}

function difference<T>(what: string, before: ReadonlyMap<string, T>, after: ReadonlyMap<string, T>): string[] {
  const added = [...after.keys()].filter((name) => !before.has(name));
  const removed = [...before.keys()].filter((name) => !after.has(name));
  const changed = [...after].filter(
    ([name, one]) => before.has(name) && JSON.stringify(plain(one)) !== JSON.stringify(plain(before.get(name))),
  );
  return [
    ['added', added] as const,
    ['removed', removed] as const,
    ['changed', changed.map(([name]) => name)] as const,
  ].flatMap(([verb, names]) => (names.length === 0 ? [] : [`${what} ${verb}: ${shortList(names)}`]));
}

const names_shown_max = 10;

function shortList(names: readonly string[]): string {
  const more = names.length - names_shown_max;
  return names.slice(0, names_shown_max).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** JSON has no maps. */
function plain(value: unknown): unknown {
  if (value instanceof Map) return [...value];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, one instanceof Map ? [...one] : one]));
}

function rejected(reasons: string[], problems: readonly Problem[]): ReloadResult {
  return { ok: false, message: `rejected, the old configuration stays:\n${reasons.join('\n')}`, problems };
}

function needed(loaded: Loaded): Loaded & { ok: true } {
  if (loaded.ok) return loaded;
  throw new CatalogError(loaded.problems.filter(({ severity }) => severity === 'error'));
}

/** Returns the lines of `config check`: `file:line:col path: message`. */
export async function checkCatalogFile(
  path: string,
  options: Omit<CatalogOptions, 'config_file'>,
): Promise<{ errors: string[]; warnings: string[] }> {
  const surroundings = surroundingsOf(options);
  const reading = await readFrom(path, surroundings);
  if (!reading.ok) return linesOf(reading.problems);
  if (!options.added) return linesOf(reading.warnings);
  const { content, unused } = addedPart(options.added, reading.content, surroundings);
  const lines = linesOf(withoutAliasesOf(content.models, reading.content, reading.warnings));
  lines.warnings.push(...[...unused].map(([what, reason]) => `added in the dashboard: ${what}: ${reason}`));
  return lines;
}

/** Leaves out the warnings that the model of an alias is missing where it was added in the dashboard. */
function withoutAliasesOf(
  added: CatalogFile['models'],
  { aliases }: CatalogFile,
  warnings: readonly Problem[],
): Problem[] {
  const there = new Set(added?.map(({ id }) => id));
  const paths = Object.entries(aliases ?? {}).flatMap(([name, { models }]) =>
    models.flatMap(({ model }, index) =>
      there.has(model) ? [showPath(['aliases', name, 'models', index, 'model'])] : [],
    ),
  );
  return warnings.filter(({ path }) => !paths.includes(path));
}

/** The same of the default catalogue, whatever keys there are. */
export function checkDefaults(options: Omit<CatalogOptions, 'config_file'>): { errors: string[]; warnings: string[] } {
  return linesOf(checkDefaultCatalog(surroundingsOf(options)));
}

function linesOf(problems: readonly Problem[]): { errors: string[]; warnings: string[] } {
  const of = (severity: Problem['severity']) => problems.filter((one) => one.severity === severity).map(showProblem);
  return { errors: of('error'), warnings: of('warning') };
}

/** The source of a model's definition: the file goes first, then the default catalogue, then the sandbox. */
export type Origin = 'file' | 'added' | 'default' | 'sandbox';

export type Survey = {
  /** Every model that is switched on, with all its routes, whether or not they can be used. */
  models: readonly { origin: Origin; model: Model }[];
  /** All providers that these routes may name. */
  providers: ReadonlyMap<string, ProviderEntry>;
  /** The catalogue in use. */
  catalog: Catalog;
};

/** Builds the catalogue as it is with every key. Throws CatalogError with all mistakes if the file has one. */
export async function surveyCatalog(options: CatalogOptions): Promise<Survey> {
  const surroundings = surroundingsOf(options);
  const { config_file } = options;
  const reading = config_file === undefined ? nothing_read : await readFrom(config_file, surroundings);
  if (!reading.ok) throw new CatalogError(reading.problems);
  const file = reading.content;
  const parts = partsOf(file, { ...surroundings, secret: () => 'set' }, nothing_added).parts;
  const { base_currency } = settingsOf(file);
  return {
    models: parts.flatMap(([origin, part]) =>
      buildModels(part, { base_currency, usable: () => true }).map((model) => ({ origin, model })),
    ),
    providers: new Map(parts.toReversed().flatMap(([, part]) => Object.entries(part.providers ?? {}))),
    catalog: makeCatalog(file, reading.warnings, surroundings, nothing_added),
  };
}

/** Without a file the default catalogue is there. */
const without_file: CatalogFile = { version: 1, catalog: { default: true } };
const nothing_read: FileReadResult = { ok: true, content: without_file, warnings: [] };

/** `make`: the catalogue of the file with what operators added beside it. */
type Loaded = { ok: true; make(added: AddedCatalog): Catalog } | { ok: false; problems: Problem[] };

async function load(options: CatalogOptions): Promise<Loaded> {
  const surroundings = surroundingsOf(options);
  const { config_file } = options;
  if (config_file === undefined) return loadBuiltin(surroundings);
  const reading = await readFrom(config_file, surroundings);
  if (!reading.ok) return reading;
  return { ok: true, make: (added) => makeCatalog(reading.content, reading.warnings, surroundings, added) };
}

function loadBuiltin(surroundings: Surroundings): Loaded {
  const { currencies } = settingsOf(without_file);
  const missing = stranded([...currencies.keys()], surroundings.currencies_in_use);
  if (missing.length === 0) return { ok: true, make: (added) => makeCatalog(without_file, [], surroundings, added) };
  const place = { file: 'built-in catalogue', line: 1, col: 1, path: showPath(['currencies']) };
  const problems = missing.map((message): Problem => {
    return { severity: 'error', ...place, message: `${message} Name it in a file, and the file in MEDLEY_CONFIG.` };
  });
  return { ok: false, problems };
}

function surroundingsOf(options: CatalogOptions): Surroundings {
  return {
    adapters: options.adapters,
    canServe: options.canServe ?? (() => true),
    ...(options.checkOptions && { checkOptions: options.checkOptions }),
    ...(options.checkProvider && { checkProvider: options.checkProvider }),
    ...(options.fileOptions && { fileOptions: options.fileOptions }),
    ...(options.takesMedia && { takesMedia: options.takesMedia }),
    ...(options.publishedLimits && { publishedLimits: options.publishedLimits }),
    secret: options.secret ?? resolveSecret,
    default_providers: defaultProviders(),
    default_models: defaultModels,
    ...(options.currencies_in_use && { currencies_in_use: options.currencies_in_use }),
  };
}

async function readFrom(path: string, surroundings: Surroundings): Promise<FileReadResult> {
  const below = relative(process.cwd(), path);
  const file = below === '' || below.startsWith('..') ? path : below;
  let text: string;
  try {
    const late = `${file} does not answer (${read_limit_ms / 1_000} s): is it a pipe, or on a network disk that is away? Correct MEDLEY_CONFIG.`;
    text = await withTimeLimit(read_limit_ms, readFile(path, 'utf8'), late);
  } catch (error) {
    if (error instanceof NoAnswer) throw error;
    const reason = whyUnreadable(error);
    const problem: Problem = {
      severity: 'error',
      file,
      line: 1,
      col: 1,
      path: showPath([]),
      message: `cannot be read: ${reason}.`,
    };
    return { ok: false, problems: [problem] };
  }
  return readCatalogFile(text, file, { ...surroundings, readOptionFile: optionFilesBeside(path) });
}

const read_limit_ms = 10_000;

function whyUnreadable(error: unknown): string {
  switch (error instanceof Error && 'code' in error ? error.code : undefined) {
    case 'ENOENT':
    case 'ENOTDIR':
      return 'there is no such file (ENOENT). Correct its path; medley.example.yaml shows how to write one';
    case 'EISDIR':
      return 'it is a folder (EISDIR). Name the file in it';
    case 'EACCES':
    case 'EPERM':
      return 'this user may not read it (EACCES). Allow it by chmod or chown';
    default:
      return error instanceof Error ? error.message : String(error);
  }
}

function makeCatalog(file: CatalogFile, warnings: Problem[], surroundings: Surroundings, added: AddedCatalog): Catalog {
  const settings = settingsOf(file);
  const { parts, problems, unused } = partsOf(file, surroundings, added);
  const providers = new Map(
    parts.toReversed().flatMap(([origin, part]) => {
      const keyOf = origin === 'added' ? (name: string) => added.keys.get(name) : undefined;
      return usableProviders(part, surroundings, keyOf);
    }),
  );
  const usable = (name: string, kind: Kind) => {
    const provider = providers.get(name);
    return provider !== undefined && surroundings.canServe(provider.adapter, kind);
  };
  const models = parts.flatMap(([, part]) => buildModels(part, { base_currency: settings.base_currency, usable }));
  const [, [, added_part], [, defaults]] = parts;
  const keyed_providers = Object.keys(defaults.providers ?? {});
  return {
    settings,
    models: new Map(models.map((model) => [model.id, model])),
    aliases: aliasesIn(file),
    providers,
    keyed_providers,
    retired: new Map(),
    warnings: [...withoutAliasesOf(added_part.models, file, warnings), ...problems],
    unused,
    file_providers: Object.keys(file.providers ?? {}),
  };
}

type Parts = [['file', CatalogFile], ['added', CatalogFile], ['default', CatalogFile], ['sandbox', CatalogFile]];

/** Returns the parts of a catalogue; an earlier part wins where names are the same. */
function partsOf(file: CatalogFile, surroundings: Surroundings, added: AddedCatalog) {
  const { content, problems, unused } = addedPart(added, file, surroundings);
  const taken = [...(content.models ?? []), ...(file.models ?? [])];
  const sandbox = file.sandbox === false ? { version: 1 as const } : withoutModels(builtinCatalog(), taken);
  const defaults = defaultPart(file, surroundings);
  const parts: Parts = [
    ['file', file],
    ['added', content],
    ['default', withoutModels(defaults, content.models ?? [])],
    ['sandbox', sandbox],
  ];
  return { parts, problems, unused };
}

/** A file, or an operator, may define a model that comes along anew. */
function withoutModels(part: CatalogFile, taken: readonly { id: string }[]): CatalogFile {
  if (taken.length === 0) return part;
  const redefined = new Set(taken.map(({ id }) => id));
  return { ...part, models: (part.models ?? []).filter((model) => !redefined.has(model.id)) };
}

/** `keyOf`: the keys of providers that are added, which stand behind no reference. */
function usableProviders(
  file: CatalogFile,
  { adapters, secret, publishedLimits }: Surroundings,
  keyOf?: (name: string) => string | undefined,
): [string, ProviderConfig][] {
  return Object.entries(file.providers ?? {}).flatMap(([name, entry]): [string, ProviderConfig][] => {
    const own = (reference: string) => (reference === key_reference ? keyOf?.(name) : undefined);
    const texts = resolveTexts(entry, keyOf ? (reference) => own(reference) ?? secret(reference) : secret);
    if (!adapters.includes(entry.adapter) || !texts) return [];
    return [[name, buildProvider(name, entry, texts, publishedLimits?.(entry.adapter) ?? {})]];
  });
}
