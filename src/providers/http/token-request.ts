import { isObject, type JsonObject, type ProviderConfig } from '../../catalog/model.ts';
import type { Guard } from '../../net/guard.ts';
import { NotStarted } from '../provider.ts';
import { openConnections, readRefusal } from './connections.ts';

/** A token for so long. */
export type Token = { text: string; until_ms: number };

/** A form, or JSON, and headers of its own. */
export type TokenRequest = { form: URLSearchParams } | { json: JsonObject; headers: Record<string, string> };

/** Asks an address of the operator's for a token. Throws NotStarted, without a word of what was sent. */
export type AskToken = (url: string, request: TokenRequest, names?: TokenNames) => Promise<Token>;

/** Members of the answer: the token, and its end as a date; without that `expires_in` seconds, by OAuth. */
export type TokenNames = { token: string; until?: string };

const connect_timeout_ms = 10_000;
const token_limit_ms = 10_000;
const answer_limits = { bytes_max: 65_536, wait_ms: token_limit_ms };
const usual_lifetime_s = 3_600;

/** Opens requests for tokens, which go by the proxy of their provider; the addresses are the operator's own words. */
export function openTokenRequests({ proxy }: ProviderConfig, guard: Guard, now: () => number): AskToken {
  const connections = openConnections(guard, { allow_private: true, ...(proxy !== undefined && { proxy }) });
  return async (url, request, names = { token: 'access_token' }) => {
    const { origin, host, pathname, search } = new URL(url);
    const is_form = 'form' in request;
    const headers = is_form
      ? { 'content-type': 'application/x-www-form-urlencoded' }
      : { 'content-type': 'application/json', ...request.headers };
    const sent = {
      method: 'POST' as const,
      path: pathname + search,
      headers: { accept: 'application/json', ...headers },
      body: is_form ? request.form.toString() : JSON.stringify(request.json),
      signal: AbortSignal.timeout(token_limit_ms),
    };
    let status: number;
    let body: JsonObject;
    try {
      const answer = await connections.to(origin, { connect_timeout_ms, keep_alive: false }).request(sent);
      status = answer.statusCode;
      body = objectIn(await readRefusal(answer.body, answer_limits));
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      throw new NotStarted('unreachable', `${host} could not be asked for a token: ${problem}`, { cause: error });
    }
    const token = body[names.token];
    if (status > 299 || typeof token !== 'string' || token === '') {
      const reason = status >= 500 || status === 429 ? 'unavailable' : 'rejected_credentials';
      throw new NotStarted(reason, `${host} gave no token: it answered ${status}`);
    }
    return { text: token, until_ms: endOf(body, names, now()) };
  };
}

function objectIn(bytes: Buffer): JsonObject {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return isObject(value) ? value : {};
  } catch {
    return {}; // its status says enough
  }
}

function endOf(body: JsonObject, { until }: TokenNames, now_ms: number): number {
  const end_ms = until === undefined ? Number.NaN : Date.parse(String(body[until]));
  if (Number.isFinite(end_ms)) return end_ms;
  const lifetime_s = Number(body['expires_in']);
  return now_ms + (lifetime_s > 0 ? lifetime_s : usual_lifetime_s) * 1000;
}
