import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { CatalogFile, ProviderEntry, RouteEntry } from './schema.ts';

let presets: { readonly [name: string]: ProviderEntry } | undefined;

/** Providers with a common API whose address is known, by name. */
export function providerPresets(): { readonly [name: string]: ProviderEntry } {
  if (presets) return presets;
  const content: CatalogFile = parse(readFileSync(new URL('./default/presets.yaml', import.meta.url), 'utf8'));
  presets = content.providers ?? {};
  return presets;
}

/** Options of routes over a provider: what all servers of OpenAI's style take that are not OpenAI's own. */
export function routeOptions({ adapter, base_url }: ProviderEntry): NonNullable<RouteEntry['options']> {
  const is_common = adapter === 'openai' && base_url !== undefined;
  return is_common ? { max_tokens_field: 'max_tokens', developer_role: false } : {};
}
