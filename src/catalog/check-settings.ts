import { isIP } from 'node:net';
import { addressAllowed } from '../net/address.ts';
import { rational } from '../money/money.ts';
import { isObject, type Json, type JsonObject, type Kind, type ProviderLimits } from './model.ts';
import type { Path } from './problem.ts';
import { sent_words, signed_words, unknownSignedWords } from './hmac-words.ts';
import { checkConnection } from './provider-connection.ts';
import { missingSecret } from './provider-secrets.ts';
import type { Report } from './report.ts';
import type { ProviderEntry } from './schema.ts';
import { suggestion } from './shape.ts';

/** Facts of this version and machine, passed in from above. */
export type Surroundings = {
  /** Names of the adapters that there are. */
  adapters: readonly string[];
  /** Can this adapter run models of this kind? */
  canServe(adapter: string, kind: Kind): boolean;
  /** Checks the `options` and the `output` of a route with its adapter. */
  checkOptions?(
    adapter: string,
    kind: Kind,
    options: JsonObject,
    output: JsonObject,
    input_fields?: readonly string[],
  ): OptionProblem[];
  /** Names of the options of this adapter's routes that may name a JSON file. */
  fileOptions?(adapter: string): readonly string[];
  /** Reads a JSON file that a route names. Throws OptionFileError. Absent: there are no files beside the text. */
  readOptionFile?(path: string): Json;
  /** Checks the settings of a provider with its adapter. */
  checkProvider?(entry: ProviderEntry): OptionProblem[];
  /** Can this adapter hand on files of the caller's? */
  takesMedia?(adapter: string): boolean;
  /** The published limits of the adapter's upstream. */
  publishedLimits?(adapter: string): ProviderLimits;
  /** The value behind `env:NAME` or `file:/path`. */
  secret(reference: string): string | undefined;
  /** Providers of the default catalogue, which files that switch it on may name. */
  default_providers?: { readonly [name: string]: ProviderEntry };
  /** Its models, read when they are asked for. */
  default_models?: () => readonly { id: string; kind: Kind }[];
  /** Number of accounts of each currency, if known: the file must keep these currencies. */
  currencies_in_use?: ReadonlyMap<string, number>;
};

export const sandbox_name = 'sandbox';

/**
 * `known_names`: the field is none of these names, which is only worth a warning. `at`: where the field is within the
 * route, if it is not one of its options themselves.
 */
export type OptionProblem = { field: string; message: string; known_names?: readonly string[]; at?: Path };

export function checkCurrencies(currencies: JsonObject, report: Report): void {
  const iso_codes = Intl.supportedValuesOf('currency');
  for (const [index, [code, rate]] of Object.entries(currencies).entries()) {
    const path = ['currencies', code];
    if (typeof rate !== 'string' || report.hasError(path)) continue;
    if (!iso_codes.includes(code)) {
      report.error(path, `is not a known currency. ${suggestion(code, iso_codes) ?? ''}`.trimEnd(), 'key');
    }
    const value = rational(rate);
    if (index === 0 && value?.numerator !== value?.denominator) {
      report.error(path, 'must be "1": the first currency is the base of all prices.');
    }
  }
}

/** Accounts whose currency is gone could create nothing any more. */
export function checkStranded(currencies: readonly string[], surroundings: Surroundings, report: Report): void {
  for (const message of stranded(currencies, surroundings.currencies_in_use))
    report.error(['currencies'], message, 'key');
}

/** One sentence for each currency that accounts have and that is not among `currencies`. */
export function stranded(currencies: readonly string[], in_use: ReadonlyMap<string, number> = new Map()): string[] {
  return [...in_use]
    .filter(([code]) => !currencies.includes(code))
    .map(
      ([code, accounts]) =>
        `${code} is missing, and ${accounts} account${accounts === 1 ? ' has' : 's have'} it. Add it with its rate. An account that never had money or work can be deleted: medley account delete ACCOUNT.`,
    );
}

/** Names in `catalog.default` that are none; answers the providers that the file may use without defining them. */
export function checkDefaults(
  value: unknown,
  { default_providers = {} }: Surroundings,
  report: Report,
): [string, ProviderEntry][] {
  const names = Object.keys(default_providers);
  if (!Array.isArray(value)) return value === true ? Object.entries(default_providers) : [];
  for (const [index, name] of value.entries()) {
    if (typeof name !== 'string' || names.includes(name)) continue;
    const hint = suggestion(name, names) ?? `There are: ${names.join(', ')}.`;
    report.error(['catalog', 'default', index], `is not a provider of the default catalogue. ${hint}`);
  }
  return Object.entries(default_providers).filter(([name]) => value.includes(name));
}

/** Checks one provider; false if its routes cannot be used. */
export function checkProvider(
  name: string,
  provider: ProviderEntry,
  options: { sandbox: boolean; surroundings: Surroundings },
  report: Report,
): boolean {
  const path = ['providers', name, 'adapter'];
  const { adapter } = provider;
  const { adapters } = options.surroundings;
  if (name === sandbox_name && options.sandbox && adapter !== sandbox_name) {
    report.error(path, 'the name belongs to the built-in sandbox: choose another, or set sandbox: false.');
    return false;
  }
  if (adapters.includes(adapter)) {
    checkPrivate(name, provider, report);
    checkPlainKeys(name, provider, report);
    checkCredentials(name, provider, report);
    for (const { field, message } of options.surroundings.checkProvider?.(provider) ?? [])
      report.error(['providers', name, field], message);
    const has_secrets = hasSecret(name, provider, options.surroundings, report);
    if (has_secrets) checkConnection(name, provider, options.surroundings.secret, report);
    return has_secrets;
  }
  const hint = suggestion(adapter, adapters) ?? `There are: ${adapters.join(', ')}.`;
  report.error(path, `is not an adapter. ${hint}`);
  return false;
}

/** One kind, and not beside a key: both would stand in the same header. */
function checkCredentials(name: string, { credentials, api_key }: ProviderEntry, report: Report): void {
  if (!credentials) return;
  const path = ['providers', name, 'credentials'];
  if (Object.keys(credentials).length !== 1)
    report.error(path, 'must be one of aws, google, oauth, tencent, volcengine and hmac.');
  if (api_key !== undefined) report.error(path, 'stand in place of api_key: give one of the two.', 'key');
  const { aws, google, hmac } = credentials;
  if (hmac) checkHmac([...path, 'hmac'], hmac, report);
  if (google && (google.service_account === undefined) === (google.external_account === undefined)) {
    report.error([...path, 'google'], 'must have service_account or external_account.');
  }
  if (aws && (aws.access_key_id === undefined) !== (aws.secret_access_key === undefined)) {
    report.error([...path, 'aws'], 'access_key_id and secret_access_key go together.');
  }
}

/** Templates of a signature: their names, and whether it is sent at all. */
function checkHmac(
  path: Path,
  { text, headers = {}, query = {} }: NonNullable<NonNullable<ProviderEntry['credentials']>['hmac']>,
  report: Report,
): void {
  const check = (at: Path, template: string, allowed: readonly string[]) => {
    if (report.hasError(at)) return;
    const [first] = unknownSignedWords(template, allowed);
    if (first === undefined) return;
    const list = allowed.map((word) => `$${word}`).join(', ');
    report.error(at, `has ${first}, which is none of ${list}; a dollar sign is written $$.`);
  };
  check([...path, 'text'], text, signed_words);
  for (const [name, template] of Object.entries(headers)) check([...path, 'headers', name], template, sent_words);
  for (const [name, template] of Object.entries(query)) check([...path, 'query', name], template, sent_words);
  const sent = [...Object.values(headers), ...Object.values(query)];
  if (!sent.some((template) => /\$signature(?![A-Za-z0-9_])/.test(template)))
    report.error(path, 'sends the signature nowhere: name $signature in one of its headers, or in its query.');
}

/** Headers that are there to carry a key. */
const key_headers = /^(?:authorization|api-key|x-api-key|x-goog-api-key|ocp-apim-subscription-key|cookie)$/i;

function checkPlainKeys(name: string, { headers = {} }: ProviderEntry, report: Report): void {
  for (const [header, text] of Object.entries(headers)) {
    if (!key_headers.test(header) || /^(?:env|file):/.test(text)) continue;
    const message =
      'is a key in plain text: write env:NAME or file:/path, since secrets are never written in this file.';
    report.error(['providers', name, 'headers', header], message);
  }
}

/** An upstream of one's own, such as Ollama or vLLM: without the setting its address is refused at every call. */
function checkPrivate(name: string, { base_url, allow_private }: ProviderEntry, report: Report): void {
  const path = ['providers', name, 'base_url'];
  if (base_url === undefined || allow_private === true || report.hasError(path) || !URL.canParse(base_url)) return;
  const host = new URL(base_url).hostname.replace(/^\[|\]$/g, '');
  const is_name = !isIP(host) && !/(^|\.)localhost$/.test(host);
  if (is_name || addressAllowed(host, { allow: [], allow_private: false })) return;
  report.warn(
    path,
    `${host} is not a public address, so nothing is sent there. If this upstream is your own, set allow_private: true for ${name}.`,
  );
}

/** Mail without an address is only worth a warning: links can be handed over. */
export function checkMail(reference: unknown, surroundings: Surroundings, report: Report): void {
  const path = ['mail', 'url'];
  if (typeof reference !== 'string' || report.hasError(path) || surroundings.secret(reference) !== undefined) return;
  report.warn(path, `${missing(reference)}: no mail is sent.`);
}

/** Contradictions in `storage`, and secrets that are not there, without which the service does not start. */
export function checkStorage(storage: unknown, surroundings: Surroundings, report: Report): void {
  const s3 = isObject(storage) ? storage['s3'] : undefined;
  if (!isObject(storage) || !isObject(s3)) return;
  const path = ['storage', 's3'];
  if (storage['shared'] === true) {
    report.error(
      ['storage', 'shared'],
      'says something of the disk, but the files are in a bucket: remove one of them.',
    );
  }
  const names = ['access_key_id', 'secret_access_key'];
  const [missing_name, ...both] = names.filter((name) => s3[name] === undefined);
  if (missing_name !== undefined && both.length === 0) {
    report.error(path, `${missing_name} is missing: access_key_id and secret_access_key go together.`);
  }
  for (const name of names) {
    const reference = s3[name];
    if (typeof reference !== 'string' || report.hasError([...path, name])) continue;
    if (surroundings.secret(reference) !== undefined) continue;
    report.warn([...path, name], `${missing(reference)}: the service does not start.`);
  }
  if (s3['kms_key_id'] !== undefined && !String(s3['encryption']).startsWith('aws:kms')) {
    report.error([...path, 'kms_key_id'], 'needs encryption: aws:kms or aws:kms:dsse beside it.');
  }
}

function checkImageTool(tools: unknown, models: readonly string[] | undefined, report: Report): void {
  const images = isObject(tools) ? tools['image_generation'] : undefined;
  const name = isObject(images) ? images['model'] : undefined;
  if (typeof name !== 'string' || !models || models.includes(name) || name.startsWith(`${sandbox_name}/`)) return;
  const message = `is no model of this file: no images are made. ${suggestion(name, models) ?? ''}`.trimEnd();
  report.warn(['tools', 'image_generation', 'model'], message);
}

/** A search API without its address or key answers nothing. */
export function checkTools(
  tools: unknown,
  models: readonly string[] | undefined,
  surroundings: Surroundings,
  report: Report,
): void {
  checkImageTool(tools, models, report);
  const search = isObject(tools) ? tools['web_search'] : undefined;
  const path = ['tools', 'web_search'];
  if (!isObject(search) || report.hasError(path)) return;
  const { api, base_url, api_key } = search;
  if (api === 'searxng') {
    if (base_url === undefined) report.error(path, 'base_url is missing: it is the address of your own SearXNG.');
  } else if (api_key === undefined) {
    report.error(path, `api_key is missing: ${String(api)} answers nobody without one.`);
  }
  if (typeof api_key === 'string' && surroundings.secret(api_key) === undefined)
    report.warn([...path, 'api_key'], `${missing(api_key)}: models are not given the search.`);
  const named = Array.isArray(search['models']) ? search['models'] : [];
  for (const [index, name] of named.entries())
    if (models && typeof name === 'string' && !models.includes(name))
      report.warn([...path, 'models', index], `is no model of this file. ${suggestion(name, models) ?? ''}`.trimEnd());
}

function hasSecret(name: string, provider: ProviderEntry, surroundings: Surroundings, report: Report): boolean {
  const absent = missingSecret(provider, surroundings.secret);
  if (!absent) return true;
  report.warn(['providers', name, ...absent.at], `${missing(absent.reference)}: the routes of ${name} are not used.`);
  return false;
}

/** Says why there is no value behind a reference. */
export function missing(reference: string): string {
  return reference.startsWith('env:')
    ? `the environment variable ${reference.slice('env:'.length)} is not set`
    : `${reference.slice('file:'.length)} cannot be read, or is empty`;
}
