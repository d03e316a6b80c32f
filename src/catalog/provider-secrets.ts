import type { ProviderEntry } from './schema.ts';

type Secrets = (reference: string) => string | undefined;

/** The texts that a provider's requests carry, with the values of those that are references. */
export type ProviderTexts = {
  api_key?: string;
  headers?: Record<string, string>;
  query?: Record<string, string>;
  /** Values behind references in headers and query: no message may show them. */
  secrets?: string[];
};

const is_reference = /^(?:env|file):/;

/** Every reference of a provider to a secret, with its place in the entry. */
export function referencesOf({
  api_key,
  headers = {},
  query = {},
}: ProviderEntry): { reference: string; at: string[] }[] {
  const groups = { headers, query };
  const texts = Object.entries(groups).flatMap(([group, members]) =>
    Object.entries(members).map(([name, reference]) => ({ reference, at: [group, name] })),
  );
  const key = api_key === undefined ? [] : [{ reference: api_key, at: ['api_key'] }];
  return [...key, ...texts.filter(({ reference }) => is_reference.test(reference))];
}

/** The first reference behind which there is nothing: the provider cannot be used. */
export function missingSecret(entry: ProviderEntry, secret: Secrets): { reference: string; at: string[] } | undefined {
  return referencesOf(entry).find(({ reference }) => secret(reference) === undefined);
}

/** Fills in the references of a provider; undefined if a secret is missing. */
export function resolveTexts(entry: ProviderEntry, secret: Secrets): ProviderTexts | undefined {
  if (missingSecret(entry, secret)) return undefined;
  const { api_key, headers, query } = entry;
  const resolved = (text: string) => (is_reference.test(text) ? (secret(text) ?? '') : text);
  const all = (texts: Record<string, string>, lower: boolean) =>
    Object.fromEntries(
      Object.entries(texts).map(([name, text]) => [lower ? name.toLowerCase() : name, resolved(text)] as const),
    );
  const in_texts = referencesOf(entry).filter(({ at }) => at[0] !== 'api_key');
  const secrets = in_texts.map(({ reference }) => resolved(reference));
  return {
    ...(api_key !== undefined && { api_key: resolved(api_key) }),
    ...(headers && { headers: all(headers, true) }),
    ...(query && { query: all(query, false) }),
    ...(secrets.length > 0 && { secrets }),
  };
}
