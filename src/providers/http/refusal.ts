import { isRecord } from '../../lib/is-record.ts';
import { InputRefused, NotStarted, type RunState, type WaitBasis } from '../provider.ts';
import { overflowOf, type UpstreamError } from './overflow.ts';
import { scrub } from './scrub.ts';

/** An answer that is no 2xx. */
export type Refusal = {
  status: number;
  retry_after: string | undefined;
  /** Until the upstream's window of requests ends, by its headers. */
  window_ms?: number | undefined;
  body: string;
};

/** Error texts of one upstream, beside those of all. */
export type Hints = {
  /** A code, a type or words that mean: the content is not wanted. */
  moderation?: RegExp;
  /** A code, a type or the start of the words that mean: it is our key, our balance, our permission. */
  about_us?: RegExp;
  /** A code, a type or words that mean: the upstream's own trouble, whatever the status is. */
  unavailable?: RegExp;
  /** A code, a type or words of a failed run that mean: the caller's own mistake. */
  callers?: RegExp;
  /** The answer to the submit is the result. */
  is_synchronous?: boolean;
};

/** The reported error of a run that started and failed. */
export type RunTrouble = { code?: string; message?: string };

/** Fields are called `safety_tolerance` and the like: those are no word about a content. */
const policy =
  /content[_ ](?:policy|filter|management)|moderation|\bsafety(?:\b|_violation)|responsible_?ai|usage (?:policy|policies|guidelines)|content exists risk|data_?inspection|considered high risk/i;
const flagged = /content_policy|content_filter|moderation|flagged|usage guidelines/i;

/**
 * An upstream that does not want us, in its own code or at the very start of its message: what follows may
 * be the caller's words, such as the name of a tool, and nobody may close a route with those.
 */
const codes_about_us =
  /^(insufficient_quota|billing_error|billing_hard_limit_reached|invalid_api_key|authentication_error)$/i;
const messages_about_us =
  /^(your credit balance|you exceeded your current quota|you have run out of credits|insufficient credits|payment required|api key not valid|(incorrect|invalid) api key)/i;

/**
 * One request that alone is more than our limit of tokens per minute. It never fits, and no customer's large
 * prompts may keep the small ones of all others waiting.
 */
const too_large = /^request too large\b/i;

/** Names of the caller's own things that can be missing: such an error is not about a model of ours. */
const not_a_model = /\b(file|container|skill|image|attachment)s?\b/i;

/**
 * Returns the meaning of a refusal: the caller's mistake (InputRefused, with the upstream's message), or ours
 * or the upstream's trouble (NotStarted: another route may be tried). 404 is a model that is gone.
 */
export function refusalError(
  refusal: Refusal,
  secrets: readonly string[],
  hints: Hints = {},
): NotStarted | InputRefused {
  const { status } = refusal;
  const reason = upstreamErrorOf(refusal.body);
  // Who says when to come back speaks of a pace, in whatever words.
  const about_us = isAboutUs(reason, hints) && !(status === 429 && waitIn(refusal.body) !== undefined);
  const is_theirs = says(hints.unavailable, reason);
  const detail = `answered ${status}${reason.message === '' ? '' : `: ${scrub(reason.message, secrets)}`}`;
  if (isCallersMistake(status, reason, hints) && !about_us && !is_theirs) {
    const message = scrub(reason.message, secrets) || 'The model provider refused the request.';
    if (isModeration(reason, hints) || status === 403) return new InputRefused('content_policy_violation', message);
    return new InputRefused('invalid_request', message, { overflow: overflowOf(reason) });
  }
  if (!is_theirs && (status === 401 || status === 402 || status === 403 || (about_us && status < 500)))
    return new NotStarted('rejected_credentials', detail);
  if (status === 429 && too_large.test(reason.message))
    return new NotStarted('refused', detail, { is_not_route_fault: true });
  if (status === 429) return new NotStarted('rate_limited', detail, waitOf(refusal));
  if (status === 504 || status === 408) return new NotStarted('timeout', detail);
  return new NotStarted('unavailable', detail, retryOptions(refusal));
}

/** Returns the state of a run that started and failed: the caller gets the reason only if it lies in the request. */
export function runFailure(
  trouble: RunTrouble,
  secrets: readonly string[],
  hints: Hints = {},
): RunState & { phase: 'failed' } {
  const { code = '', message = '' } = trouble;
  const upstream_reason: UpstreamError = { code, type: '', message };
  const reason = scrub(message, secrets);
  const own = [code, reason].filter((text) => text !== '').join(': ');
  const failed = { phase: 'failed', ...(own !== '' && { upstream_words: own }) } as const;
  if (isModeration(upstream_reason, hints)) {
    const words = reason || 'The model provider found the content unfit.';
    return { ...failed, type: 'content_policy_violation', message: words };
  }
  if (says(hints.callers, upstream_reason)) {
    return { ...failed, type: 'invalid_request', message: reason || 'The model could not work with this input.' };
  }
  return { ...failed, type: 'upstream_error', message: 'The model provider could not finish the run.' };
}

function isModeration(error: UpstreamError, { moderation }: Hints): boolean {
  return says(policy, error) || says(moderation, error);
}

/** Tells whether one of its parts contains a word of `pattern`. */
function says(pattern: RegExp | undefined, { code, type, message }: UpstreamError): boolean {
  return pattern !== undefined && [code, type, message].some((part) => pattern.test(part));
}

function isAboutUs({ code, type, message }: UpstreamError, hints: Hints): boolean {
  if (codes_about_us.test(code) || codes_about_us.test(type) || messages_about_us.test(message)) return true;
  const start = hints.about_us && new RegExp(`^(?:${hints.about_us.source})`, hints.about_us.flags);
  return start !== undefined && [code, type, message].some((text) => start.test(text));
}

/** 403 is how some say that an input was flagged; 404 may mean a file; 431 are the caller's own betas. */
function isCallersMistake(status: number, error: UpstreamError, { moderation }: Hints): boolean {
  const words = wordsOf(error);
  if (status === 403) return says(flagged, error) || says(moderation, error);
  if (status === 404) return not_a_model.test(error.message) && !/\bmodel/i.test(words);
  return status === 400 || status === 413 || status === 422 || status === 431;
}

function retryOptions(refusal: Refusal): { retry_after_ms?: number; wait_basis?: WaitBasis } {
  return refusal.retry_after === undefined ? {} : waitOf(refusal);
}

/** Returns the time to wait after a refusal for fullness, and its source. */
export function waitOf(refusal: Refusal): { retry_after_ms: number; wait_basis: WaitBasis } {
  const { retry_after, window_ms, body } = refusal;
  if (retry_after === undefined && waitIn(body) === undefined)
    return window_ms === undefined
      ? { retry_after_ms: retry_default_ms, wait_basis: 'guess' }
      : { retry_after_ms: window_ms, wait_basis: 'window' };
  return { retry_after_ms: retryAfter(refusal), wait_basis: 'requested' };
}

const retry_default_ms = 5_000;
const retry_max_ms = 300_000;

/** Some say it only in words, "Your rate limit resets in ~30s.", or in details, `"retryDelay": "34.4s"`. */
const waits_in_body = [/\bresets? in ~?(\d+(?:\.\d+)?) ?s/i, /"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"/];

/** A quota of the whole day, of which some say the time of that of the minute. */
const daily_quota = /"quotaId"\s*:\s*"[^"]*PerDay/;

function waitIn(body: string): string | undefined {
  if (daily_quota.test(body)) return String(retry_max_ms / 1000);
  return waits_in_body.map((form) => form.exec(body)?.[1]).find((text) => text !== undefined);
}

/** Returns the pause that the upstream asks for: the header's seconds or date (RFC 9110, 10.2.3), or its message's. */
export function retryAfter({ retry_after: header, body }: Refusal): number {
  const text = header ?? waitIn(body);
  if (text === undefined) return retry_default_ms;
  const seconds = Number(text);
  const wait_ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(wait_ms) && wait_ms > 0 ? Math.min(wait_ms, retry_max_ms) : retry_default_ms;
}

function wordsOf({ code, type, message }: UpstreamError): string {
  return `${code} ${type} ${message}`;
}

const no_error: UpstreamError = { message: '', type: '', code: '' };

/**
 * The error of an answer in any of the shapes that are about: `{error: {…}}`, `{error: text}`, `{error: code,
 * message}`, `{message}`, `{detail}` as a text, an object or a list of `{loc, msg, type}`, `{title}`, `{msg}`,
 * `{errors: [text]}`.
 */
export function upstreamErrorOf(body: string): UpstreamError {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return no_error; // HTML of a proxy, or nothing
  }
  const first: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  if (!isRecord(first)) return no_error;
  const { error, detail } = first;
  if (typeof error === 'string') return errorWithText(error, errorInRecord(first));
  if (isRecord(error)) return errorInRecord(error);
  if (isRecord(detail)) return errorInRecord(detail);
  return Array.isArray(detail) ? errorInList(detail) : errorInRecord(first);
}

/** An `error` that is a text is the message, or the code of a message beside it. */
function errorWithText(error: string, fields: UpstreamError): UpstreamError {
  if (fields.message === '') return { ...fields, message: error };
  return { ...fields, code: fields.code === '' ? error : fields.code };
}

function errorInRecord(record: Record<string, unknown>): UpstreamError {
  const { errors } = record;
  const message = ['message', 'detail', 'msg', 'title'].map((name) => textOf(record[name])).find((text) => text !== '');
  return {
    message: message ?? (Array.isArray(errors) ? errors.map(textOf).join('; ') : ''),
    type: textOf(record['type'] ?? record['error_type'] ?? record['status']),
    code: reasonIn(record['details']) ?? textOf(record['code']),
  };
}

/** Google's errors have their status for a code, and what it is about in one of their details. */
function reasonIn(details: unknown): string | undefined {
  const list = Array.isArray(details) ? details.filter(isRecord) : [];
  return list.map(({ reason }) => textOf(reason)).find((reason) => reason !== '');
}

const field_errors_max = 8;

/** Reads a validator's list of field errors: `prompt: field required`. */
function errorInList(details: unknown[]): UpstreamError {
  const field_errors = details.filter(isRecord).slice(0, field_errors_max);
  const message = field_errors.map(({ loc, msg }) => {
    const field = Array.isArray(loc)
      ? loc
          .filter((part) => part !== 'body')
          .map(textOf)
          .join('.')
      : '';
    return field === '' ? textOf(msg) : `${field}: ${textOf(msg)}`;
  });
  return { message: message.join('; '), type: textOf(field_errors[0]?.['type']), code: '' };
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
