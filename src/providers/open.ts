import { isDeepStrictEqual } from 'node:util';
import type { Catalog } from '../catalog/catalog.ts';
import type { ProviderConfig } from '../catalog/model.ts';
import type { Adapter, AdapterParts, ChatProvider, Provider } from './provider.ts';

/** The configured upstreams, by name. They follow the catalogue. */
export type Providers = {
  get(name: string): Provider | undefined;
  chat(name: string): ChatProvider | undefined;
};

type OpenProvider = { config: ProviderConfig; media?: Provider | undefined; chat?: ChatProvider | undefined };

/**
 * Whoever took a provider before a reload still begins with it: the files of an input may be fetched for minutes
 * first, and a connection that is closed meanwhile would fail the task as if nobody knew whether it was sent.
 */
export const retire_after_ms = 15 * 60_000;

/**
 * Opens the providers of the catalogue. When the catalogue changes, those whose configuration is the same stay open
 * with their connections and threads, and the others are closed after `retire_after_ms`: an operator may change an
 * override every second, and a sandbox provider alone has a thread of 30 MB.
 */
export function openProviders(
  catalog: { readonly current: Pick<Catalog, 'providers'> },
  adapters: Record<string, Adapter>,
  parts: AdapterParts,
): Providers & { close(): Promise<void> } {
  let opened_for: ReadonlyMap<string, ProviderConfig> | undefined;
  let opened = new Map<string, OpenProvider>();
  const retired = new Set<OpenProvider>();

  const open = (config: ProviderConfig): OpenProvider => {
    const adapter = adapters[config.adapter];
    return { config, media: adapter?.open?.(config, parts), chat: adapter?.openChat?.(config, parts) };
  };
  const retire = (provider: OpenProvider) => {
    retired.add(provider);
    const end = () => {
      if (retired.delete(provider)) void close(provider);
    };
    setTimeout(end, retire_after_ms).unref();
  };
  const current = () => {
    if (opened_for === catalog.current.providers) return opened;
    opened_for = catalog.current.providers;
    const before = opened;
    opened = new Map();
    for (const [name, config] of opened_for) {
      const same = before.get(name);
      const is_same = same !== undefined && isDeepStrictEqual(same.config, config);
      opened.set(name, is_same ? same : open(config));
    }
    for (const [name, provider] of before) if (opened.get(name) !== provider) retire(provider);
    return opened;
  };

  return {
    get: (name) => current().get(name)?.media,
    chat: (name) => current().get(name)?.chat,
    close: async () => {
      const all = [...retired, ...opened.values()];
      retired.clear();
      await Promise.all(all.map(close));
    },
  };
}

async function close({ media, chat }: OpenProvider): Promise<void> {
  await Promise.all([media?.close?.(), chat?.close?.()]);
}
