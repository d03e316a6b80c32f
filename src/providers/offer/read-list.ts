import { ListError, type ListedModel } from '../../catalog/lists/listed.ts';
import type { JsonObject, ProviderConfig } from '../../catalog/model.ts';
import { GuardError, type Guard } from '../../net/guard.ts';
import { openUpstream, type Answer, type Upstream } from '../http/http.ts';
import { textIn } from '../http/reading.ts';
import { OfferError } from './offer.ts';

type Place = {
  config: ProviderConfig & { base_url: string };
  guard: Guard;
  /** With the key. */
  headers: Record<string, string>;
  /** Of the list, below the address. */
  path: string;
  query?: Record<string, string>;
  /** Throws ListError for what is no such list. */
  read(text: string): ListedModel[];
  /** Read before, where the list is for everybody. */
  key_path?: string | undefined;
  signal: AbortSignal;
};

/** OpenRouter's list has two megabytes. */
const list_bytes_max = 16_000_000;
const limit_ms = 20_000;

/** Reads the list of models of an upstream by the guarded connector. Throws OfferError, whose message is for the operator. */
export async function readUpstreamList(place: Place): Promise<ListedModel[]> {
  const { config, guard, headers, path, query, read, key_path } = place;
  const upstream = openUpstream(config, { guard }, { headers });
  const signal = AbortSignal.any([place.signal, AbortSignal.timeout(limit_ms)]);
  try {
    if (key_path !== undefined) await get(upstream, config, { path: key_path, signal });
    const answer = await get(upstream, config, { path, signal, ...(query && { query }) });
    return listIn(answer, read, config.base_url + path);
  } finally {
    void upstream.close();
  }
}

/** Reads a JSON object of an upstream by the guarded connector; undefined for a 404. Throws OfferError. */
export async function readUpstreamObject(
  place: Omit<Place, 'read' | 'key_path' | 'signal'>,
  stopped: AbortSignal,
): Promise<JsonObject | undefined> {
  const { config, guard, headers, path, query } = place;
  const upstream = openUpstream(config, { guard }, { headers });
  const signal = AbortSignal.any([stopped, AbortSignal.timeout(limit_ms)]);
  try {
    return objectIn(await get(upstream, config, { path, signal, ...(query && { query }) }), config.base_url + path);
  } catch (error) {
    if (error instanceof OfferError && error.status === 404) return undefined;
    throw error;
  } finally {
    void upstream.close();
  }
}

function objectIn(answer: Answer, url: string): JsonObject {
  try {
    return answer.object();
  } catch {
    throw new OfferError('base_url', `The answer of ${url} is no JSON object.`);
  }
}

async function get(
  upstream: Upstream,
  { base_url, api_key, allow_private }: Place['config'],
  request: { path: string; query?: Record<string, string>; signal: AbortSignal },
): Promise<Answer> {
  const url = base_url + request.path;
  let answer: Answer;
  try {
    answer = await upstream.call({ method: 'GET', ...request, answer_bytes_max: list_bytes_max });
  } catch (error) {
    throw failureOf(error, url, { signal: request.signal, allow_private });
  }
  if (!answer.ok) throw refusalOf(answer, url, api_key !== undefined, upstream.secrets);
  return answer;
}

function failureOf(
  error: unknown,
  url: string,
  { signal, allow_private }: { signal: AbortSignal; allow_private: boolean },
): OfferError {
  const { host } = new URL(url);
  if (error instanceof GuardError) {
    switch (error.code) {
      case 'address_refused':
        if (allow_private) return new OfferError('base_url', `${host} may not be called: ${causeOf(error)}.`);
        return new OfferError(
          'allow_private',
          `${host} has a private address. If the server is your own, tick “The server is in my own network”.`,
        );
      case 'dns':
        return new OfferError(
          'base_url',
          `There is no host ${host}, or its name cannot be looked up. Check the address.`,
        );
      case 'tls':
        return new OfferError('base_url', `The certificate of ${host} is not valid: ${causeOf(error)}.`);
      case 'timeout':
        return new OfferError('base_url', `${host} does not answer. Check the address, and that the server runs.`);
      case 'connect':
        return new OfferError(
          'base_url',
          `${host} takes no connection. Check the address and its port, and that the server runs.`,
        );
      default:
        return new OfferError('base_url', `${host} broke off: ${causeOf(error)}.`);
    }
  }
  if (signal.aborted) return new OfferError('base_url', `${host} did not send its list within ${limit_ms / 1000} s.`);
  return new OfferError('base_url', `The answer of ${url} could not be read: ${causeOf(error)}.`);
}

function causeOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
}

function refusalOf(answer: Answer, url: string, has_key: boolean, secrets: readonly string[]): OfferError {
  const { status } = answer;
  if (status === 401 || status === 403) {
    const text = has_key ? 'The provider does not take this key' : 'The provider wants a key';
    return new OfferError('api_key', `${text}${reasonIn(answer, secrets)} (${status}).`);
  }
  if (status === 404 || status === 405) {
    return new OfferError('base_url', `There is nothing at ${url} (${status}). Check the path of the address.`, status);
  }
  if (status >= 300 && status < 400) {
    return new OfferError('base_url', `${url} leads elsewhere (${status}). Give the address where it ends.`);
  }
  if (status === 429)
    return new OfferError('api_key', 'The provider takes no more requests of this key for now (429). Try again later.');
  return new OfferError('base_url', `The provider answered ${status}${reasonIn(answer, secrets)}. Try again later.`);
}

const reason_length_max = 160;

/** The provider's own words, if they have no secret in them. */
function reasonIn(answer: Answer, secrets: readonly string[]): string {
  let text: string | undefined;
  try {
    const { error, message } = answer.object();
    text = typeof error === 'object' && error !== null && !Array.isArray(error) ? textIn(error, 'message') : undefined;
    text ??= typeof error === 'string' ? error : typeof message === 'string' ? message : undefined;
  } catch {
    return '';
  }
  if (text === undefined || text.trim() === '' || secrets.some((secret) => text.includes(secret))) return '';
  return `: ${text.trim().slice(0, reason_length_max).replace(/\.$/, '')}`;
}

function listIn(answer: Answer, read: Place['read'], url: string): ListedModel[] {
  try {
    return read(answer.text());
  } catch (error) {
    if (!(error instanceof ListError)) throw error;
    throw new OfferError('base_url', `${url} ${error.message} Check the path of the address.`);
  }
}
