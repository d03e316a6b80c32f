import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { ListForm } from './lists/index.ts';
import type { ProviderEntry, RouteEntry } from './schema.ts';

/** A provider whose address and manners are known. */
export type Preset = {
  /** For people. */
  title: string;
  provider: ProviderEntry;
  /** The form of its list of models; absent: that of OpenAI's style. */
  list?: ListForm;
  /** Anybody may read its list, so that this says nothing of a key. */
  public_list?: true;
  /** A path below its address which a key that is wrong does not open; absent: the list. */
  key_path?: string;
  /** Begins the ids of its models; absent: its name and a slash. */
  prefix?: string;
  /** It has no list of models at the usual path. */
  no_list?: true;
  /** Options of routes over it, beyond those that all servers of the style have. */
  options?: NonNullable<RouteEntry['options']>;
};

type Content = { presets: { readonly [name: string]: Preset }; titles: { readonly [name: string]: string } };

let content: Content | undefined;

function read(): Content {
  content ??= parse(readFileSync(new URL('./default/presets.yaml', import.meta.url), 'utf8')) as Content;
  return content;
}

/** Returns what is known of providers by name. */
export function knownPresets(): { readonly [name: string]: Preset } {
  return read().presets;
}

/** Returns the name for people of a provider of the default catalogue, or of a protocol. */
export function shippedTitle(name: string): string {
  return read().titles[name] ?? name;
}

/** Returns the providers with a common API whose address is known, by name. */
export function providerPresets(): { readonly [name: string]: ProviderEntry } {
  return Object.fromEntries(Object.entries(knownPresets()).map(([name, { provider }]) => [name, provider]));
}

/** Returns the preset with this address; undefined if there is none. */
export function presetAt(base_url: string | undefined): Preset | undefined {
  const plain = (url: string | undefined) => url?.replace(/\/+$/, '');
  return Object.values(knownPresets()).find(({ provider }) => plain(provider.base_url) === plain(base_url));
}

/** Options that all servers of OpenAI's style need that are not OpenAI's own. */
const common_options = { max_tokens_field: 'max_tokens', developer_role: false };

type RouteOptions = NonNullable<RouteEntry['options']>;

/** Options of routes over a provider: those of the style, and those of the preset with this address. */
export function routeOptions(entry: ProviderEntry): RouteOptions {
  return optionsOf(entry, presetAt(entry.base_url));
}

/** The same where the preset is known by its name, whatever the address is. */
export function routeOptionsOf(preset: string | null, entry: ProviderEntry): RouteOptions {
  return preset === null ? routeOptions(entry) : optionsOf(entry, knownPresets()[preset]);
}

function optionsOf({ adapter, base_url }: ProviderEntry, preset: Preset | undefined): RouteOptions {
  if (adapter !== 'openai' || base_url === undefined) return {};
  return { ...common_options, ...preset?.options };
}
