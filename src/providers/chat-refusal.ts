import { InputRefused, NotStarted } from './provider.ts';
import { scrub } from './scrub.ts';

/** An answer that is no 2xx. */
export type Refusal = { status: number; retry_after: string | undefined; body: string };

const policy = /content_policy|content_filter|moderation|safety|responsible_ai/i;
const no_money =
  /insufficient_quota|billing|credit balance|out of credits|exceeded your current quota|payment required/i;
const bad_key = /invalid_api_key|api key not valid|incorrect api key|authentication/i;

/**
 * What a refusal means: the caller's own mistake (InputRefused, with the upstream's words), or ours or the
 * upstream's trouble (NotStarted: another route may be tried). 404 is a model that is gone.
 */
export function refusalError(refusal: Refusal, secrets: readonly string[]): NotStarted | InputRefused {
  const { status, body } = refusal;
  const told = messageOf(body);
  const words = `${told.code} ${told.type} ${told.message}`;
  const detail = `answered ${status}${told.message === '' ? '' : `: ${scrub(told.message, secrets)}`}`;
  if (status === 401 || status === 402 || status === 403) return new NotStarted('rejected_credentials', detail);
  if (status === 400 || status === 413 || status === 422) {
    if (no_money.test(words) || bad_key.test(words)) return new NotStarted('rejected_credentials', detail);
    const message = scrub(told.message, secrets) || 'The model provider refused the request.';
    return new InputRefused(policy.test(words) ? 'content_policy_violation' : 'invalid_request', message);
  }
  if (status === 429 && no_money.test(words)) return new NotStarted('rejected_credentials', detail);
  if (status === 429)
    return new NotStarted('rate_limited', detail, { retry_after_ms: retryAfter(refusal.retry_after) });
  if (status === 504 || status === 408) return new NotStarted('timeout', detail);
  return new NotStarted('unavailable', detail, retryOptions(refusal.retry_after));
}

function retryOptions(given: string | undefined): { retry_after_ms?: number } {
  return given === undefined ? {} : { retry_after_ms: retryAfter(given) };
}

const retry_default_ms = 5_000;
const retry_max_ms = 300_000;

/** Seconds, or a date (RFC 9110, 10.2.3). */
function retryAfter(given: string | undefined): number {
  if (given === undefined) return retry_default_ms;
  const seconds = Number(given);
  const wait_ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(given) - Date.now();
  return Number.isFinite(wait_ms) && wait_ms > 0 ? Math.min(wait_ms, retry_max_ms) : retry_default_ms;
}

type Told = { message: string; type: string; code: string };

/** The error of an answer in any of the shapes that are about: `{error: {…}}`, `{error: text}`, `{message}`, `{detail}`. */
function messageOf(body: string): Told {
  const none = { message: '', type: '', code: '' };
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return none; // HTML of a proxy, or nothing
  }
  const first: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  if (!isRecord(first)) return none;
  const { error } = first;
  if (typeof error === 'string') return { ...none, message: error };
  const told = isRecord(error) ? error : first;
  return {
    message: textOf(told['message'] ?? told['detail']),
    type: textOf(told['type'] ?? told['status']),
    code: textOf(told['code']),
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
