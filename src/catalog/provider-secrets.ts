import { assert } from '../lib/assert.ts';
import { google_scope, type Credentials, type ProviderConfig } from './model.ts';
import { proxyReference, proxySecrets, resolveProxy } from './provider-connection.ts';
import type { ProviderEntry } from './schema.ts';

type Secrets = (reference: string) => string | undefined;

/** The texts that a provider's requests carry, with the values of those that are references. */
export type ProviderTexts = {
  api_key?: string;
  headers?: Record<string, string>;
  query?: Record<string, string>;
  credentials?: Credentials;
  proxy?: string;
  tls?: NonNullable<ProviderConfig['tls']>;
  /** Values behind references in headers, query, credentials, proxy and TLS: no message may show them. */
  secrets?: string[];
};

const is_reference = /^(?:env|file):/;

/** Every reference of a provider to a secret, with its place in the entry. */
function referencesOf({
  api_key,
  headers = {},
  query = {},
  credentials = {},
  proxy = '',
  tls = {},
}: ProviderEntry): { reference: string; at: string[] }[] {
  const groups: [string[], Record<string, string>][] = [
    [['headers'], headers],
    [['query'], query],
    ...Object.entries(credentials).map(([kind, members]): [string[], Record<string, string>] => [
      ['credentials', kind],
      textsIn(members),
    ]),
    [['tls'], tls],
  ];
  const texts = groups.flatMap(([place, members]) =>
    Object.entries(members).map(([name, reference]) => ({ reference, at: [...place, name] })),
  );
  const key = api_key === undefined ? [] : [{ reference: api_key, at: ['api_key'] }];
  const in_proxy = proxyReference(proxy);
  if (in_proxy !== undefined) key.push({ reference: in_proxy, at: ['proxy'] });
  return [...key, ...texts.filter(({ reference }) => is_reference.test(reference))];
}

/** Members that are texts: templates of headers have no references. */
function textsIn(members: object): Record<string, string> {
  return Object.fromEntries(Object.entries(members).filter(([, text]) => typeof text === 'string'));
}

/** The first reference behind which there is nothing: the provider cannot be used. */
export function missingSecret(entry: ProviderEntry, secret: Secrets): { reference: string; at: string[] } | undefined {
  return referencesOf(entry).find(({ reference }) => secret(reference) === undefined);
}

/** Fills in the references of a provider; undefined if a secret is missing. */
export function resolveTexts(entry: ProviderEntry, secret: Secrets): ProviderTexts | undefined {
  if (missingSecret(entry, secret)) return undefined;
  const { api_key, headers, query, credentials, tls } = entry;
  const proxy = entry.proxy === undefined ? undefined : resolveProxy(entry.proxy, secret);
  const resolved = (text: string) => (is_reference.test(text) ? (secret(text) ?? '') : text);
  const all = (texts: Record<string, string>, lower: boolean) =>
    Object.fromEntries(
      Object.entries(texts).map(([name, text]) => [lower ? name.toLowerCase() : name, resolved(text)] as const),
    );
  const in_texts = referencesOf(entry).filter(({ at: [place, name] }) => place !== 'api_key' && !isPublic(place, name));
  const in_proxy = proxy === undefined ? [] : proxySecrets(proxy);
  const secrets = [...in_texts.map(({ reference }) => resolved(reference)), ...in_proxy];
  return {
    ...(api_key !== undefined && { api_key: resolved(api_key) }),
    ...(headers && { headers: all(headers, true) }),
    ...(query && { query: all(query, false) }),
    ...(credentials && { credentials: resolveCredentials(credentials, resolved) }),
    ...(proxy !== undefined && { proxy }),
    ...(tls && { tls: all(tls, false) }),
    ...(secrets.length > 0 && { secrets }),
  };
}

/** Certificates are shown to everybody. */
function isPublic(place: string | undefined, name: string | undefined): boolean {
  return place === 'tls' && name !== 'key';
}

function resolveCredentials(
  { aws, google, oauth, tencent, volcengine, hmac }: NonNullable<ProviderEntry['credentials']>,
  resolved: (text: string) => string,
): Credentials {
  const all = <Texts extends object>(texts: Texts): Texts =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, resolved(String(text))])) as Texts;
  if (aws) {
    const { region, service = 'bedrock', access_key_id, secret_access_key } = aws;
    const is_own = access_key_id !== undefined && secret_access_key !== undefined;
    const own = is_own && { access_key_id: resolved(access_key_id), secret_access_key: resolved(secret_access_key) };
    return { kind: 'aws', region, service, ...own };
  }
  if (google) {
    const { service_account, external_account, scope = google_scope } = google;
    if (external_account !== undefined) {
      return { kind: 'google', external_account: resolved(external_account), scope };
    }
    return { kind: 'google', service_account: resolved(service_account ?? ''), scope };
  }
  if (tencent) return { kind: 'tencent', ...all(tencent) };
  if (volcengine) return { kind: 'volcengine', ...all(volcengine) };
  if (hmac) {
    const { secret, key_id, headers = {}, query = {}, ...settings } = hmac;
    const names = { secret: resolved(secret), ...(key_id !== undefined && { key_id: resolved(key_id) }) };
    const usual = { algorithm: 'sha256', encoding: 'hex', timestamp: 'seconds' } as const;
    return { kind: 'hmac', ...usual, ...settings, ...names, headers, query };
  }
  assert(oauth, 'credentials were checked');
  return { kind: 'oauth', ...oauth, client_secret: resolved(oauth.client_secret) };
}
