import type { ProviderConfig } from '../../catalog/model.ts';

type Config = Pick<ProviderConfig, 'api_key' | 'headers' | 'query' | 'secrets'>;

/** Headers, query and secrets that an operator adds to every request of a provider. */
export type OwnTexts = {
  /** The headers of a request, the operator's in place of others with their names. */
  headers(headers: Record<string, string>): Record<string, string>;
  /** The path of a request with the operator's query after its own. */
  path(path: string): string;
  /** Texts that no message may contain: the key, and the parts of one that has two. */
  readonly secrets: readonly string[];
};

/** Reads what a provider's configuration adds to its requests. */
export function ownTexts({ api_key, headers: own, query, secrets = [] }: Config): OwnTexts {
  const search = new URLSearchParams(query).toString();
  return {
    headers: (headers) => (own ? { ...headers, ...own } : headers),
    path: (path) => (search === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${search}`),
    secrets: [...partsOf(api_key), ...secrets],
  };
}

/** A key of two parts, `ACCESS:SECRET`, is as secret in its parts. */
function partsOf(api_key: string | undefined): string[] {
  if (api_key === undefined) return [];
  return [api_key, ...api_key.split(':').filter((part) => part.length >= 8 && part !== api_key)];
}
