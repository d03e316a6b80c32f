import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { readCatalogFile } from './file.ts';
import { withMargin } from './margin.ts';
import type { Surroundings } from './check-settings.ts';
import type { Problem } from './problem.ts';
import { missingSecret } from './provider-secrets.ts';
import type { CatalogFile, ModelEntry, ProviderEntry } from './schema.ts';

/**
 * The catalogue that comes along: models of the providers that people use, each there as soon as one of its
 * providers has a key. Its files are read when the first key is found, and not at all without one.
 */

/** Providers by http-queue, each with a file of its own. */
const vendor_files = [
  'stability',
  'ideogram',
  'xai-video',
  'wan',
  'seedance',
  'recraft',
  'assemblyai',
  'deepgram',
  'cartesia',
] as const;

const model_files = [
  'chat',
  'embedding',
  'rerank',
  'moderation',
  'image',
  'flux',
  'video',
  'audio',
  'gemini-interactions',
  ...vendor_files,
] as const;

type Providers = { readonly [name: string]: ProviderEntry };

let providers: Providers | undefined;
let models: readonly ModelEntry[] | undefined;

/** The providers of the default catalogue by name. */
export function defaultProviders(): Providers {
  providers ??= read('providers').providers ?? {};
  return providers;
}

/** Returns the shipped models, whatever keys there are. */
export function defaultModels(): readonly ModelEntry[] {
  models ??= model_files.flatMap((name) => read(name).models ?? []);
  return models;
}

/** Checking all of it takes longer than a start may: that is done by `config check --default` and the tests. */
function read(name: string): CatalogFile {
  const content: CatalogFile = parse(textOf(name));
  return content;
}

function textOf(name: string): string {
  return readFileSync(new URL(`./default/${name}.yaml`, import.meta.url), 'utf8');
}

/** Which providers of the default catalogue a file has switched on; `true`: all. */
function requestedProviders(file: CatalogFile): readonly string[] {
  const setting = file.catalog?.default ?? false;
  if (Array.isArray(setting)) return setting;
  return setting ? Object.keys(defaultProviders()) : [];
}

/**
 * Tells whether the provider refuses requests without a key: true at a vendor's own address, false at a
 * configured one.
 */
export function needsKey({ adapter, base_url }: Pick<ProviderEntry, 'adapter' | 'base_url'>): boolean {
  return base_url === undefined && Object.values(defaultProviders()).some((provider) => provider.adapter === adapter);
}

/** The variable of the environment that a provider's key is taken from. */
export function keyName({ api_key = '' }: ProviderEntry): string {
  return api_key.replace(/^(?:env|file):/, '');
}

/**
 * Returns the part of the default catalogue that is used with `file`: the providers that have a key, and the
 * models with a route over one of them. A provider or model of the same name in the file goes first; routes of
 * default models take the file's provider if it has the same protocol.
 */
export function defaultPart(
  file: CatalogFile,
  { adapters, secret }: Pick<Surroundings, 'adapters' | 'secret'>,
): CatalogFile {
  const own = file.providers ?? {};
  const entries = requestedProviders(file).flatMap((name): [string, ProviderEntry][] => {
    const entry = defaultProviders()[name];
    if (!entry || !adapters.includes(entry.adapter)) return [];
    const used = own[name] ?? entry;
    if (used.adapter !== entry.adapter) return [];
    return missingSecret(used, secret) ? [] : [[name, used]];
  });
  if (entries.length === 0) return { version: 1 };
  const usable = new Set(entries.map(([name]) => name));
  const redefined = new Set(file.models?.map(({ id }) => id));
  const offered = defaultModels().flatMap((model): ModelEntry[] => {
    const routes = model.routes.filter(({ provider }) => usable.has(provider));
    return redefined.has(model.id) || routes.length === 0 ? [] : [{ ...model, routes }];
  });
  return { version: 1, providers: Object.fromEntries(entries), models: withMargin(offered, file.catalog?.margin) };
}

/** Checks the default catalogue as `config check --default` does: every file as if it were an operator's. */
export function checkDefaultCatalog(surroundings: Surroundings): Problem[] {
  const surroundings_with_keys = { ...surroundings, secret: () => 'set', default_providers: defaultProviders() };
  return ['providers', ...model_files].flatMap((name) => {
    const reading = readCatalogFile(textOf(name), `default/${name}.yaml`, surroundings_with_keys);
    return reading.ok ? reading.warnings : reading.problems;
  });
}
