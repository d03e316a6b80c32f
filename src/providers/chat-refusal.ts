import { InputRefused, NotStarted } from './provider.ts';
import { scrub } from './scrub.ts';

/** An answer that is no 2xx. */
export type Refusal = { status: number; retry_after: string | undefined; body: string };

const policy = /content_policy|content_filter|moderation|safety|responsible_ai/i;
const flagged = /content_policy|content_filter|moderation|flagged/i;

/**
 * An upstream that does not want us, in its own code or at the very start of its message: what follows may
 * be the caller's words, such as the name of a tool, and nobody may close a route with those.
 */
const codes_about_us =
  /^(insufficient_quota|billing_error|billing_hard_limit_reached|invalid_api_key|authentication_error)$/i;
const messages_about_us =
  /^(your credit balance|you exceeded your current quota|you have run out of credits|insufficient credits|payment required|api key not valid|(incorrect|invalid) api key)/i;

/** What only names something of the caller's that is not there, rather than a model of ours. */
const not_a_model = /\b(file|container|skill|image|attachment)s?\b/i;

/**
 * What a refusal means: the caller's own mistake (InputRefused, with the upstream's words), or ours or the
 * upstream's trouble (NotStarted: another route may be tried). 404 is a model that is gone.
 */
export function refusalError(refusal: Refusal, secrets: readonly string[]): NotStarted | InputRefused {
  const { status, body } = refusal;
  const told = messageOf(body);
  const words = `${told.code} ${told.type} ${told.message}`;
  const about_us =
    [told.code, told.type].some((code) => codes_about_us.test(code)) || messages_about_us.test(told.message);
  const detail = `answered ${status}${told.message === '' ? '' : `: ${scrub(told.message, secrets)}`}`;
  if (isCallersMistake(status, told, words) && !about_us) {
    const message = scrub(told.message, secrets) || 'The model provider refused the request.';
    return new InputRefused(
      policy.test(words) || status === 403 ? 'content_policy_violation' : 'invalid_request',
      message,
    );
  }
  if (status === 401 || status === 402 || status === 403 || (about_us && status < 500))
    return new NotStarted('rejected_credentials', detail);
  if (status === 429)
    return new NotStarted('rate_limited', detail, { retry_after_ms: retryAfter(refusal.retry_after) });
  if (status === 504 || status === 408) return new NotStarted('timeout', detail);
  return new NotStarted('unavailable', detail, retryOptions(refusal.retry_after));
}

/** 403 is how some say that an input was flagged; 404 may mean a file; 431 are the caller's own betas. */
function isCallersMistake(status: number, { message }: Told, words: string): boolean {
  if (status === 403) return flagged.test(words);
  if (status === 404) return not_a_model.test(message) && !/\bmodel/i.test(words);
  return status === 400 || status === 413 || status === 422 || status === 431;
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
