import { ApiError } from '../errors.ts';
import type { WindowAnswer, WindowName } from '../limits/window.ts';

const scopes: Record<WindowName, string> = {
  generate: 'on POST /v1/generate',
  chat: 'on chat, embeddings, rankings and moderation together',
  other: 'on everything but generate, chat, embeddings, rankings and moderation',
};

/** Headers about its window that every response of a limited path has. */
export function windowHeaders(taken: WindowAnswer): Record<string, string> {
  return {
    'x-ratelimit-limit-requests': String(taken.limit),
    'x-ratelimit-remaining-requests': String(taken.remaining),
    'x-ratelimit-reset-requests': shortDuration(taken.reset_ms),
  };
}

/** 429 of the specification's `rate_limit`; says whose limit it is, not to be taken for an upstream's. */
export function windowError(
  window: WindowName,
  taken: WindowAnswer,
  { id, requests_per_minute }: { id: string; requests_per_minute?: number },
): ApiError {
  const seconds = Math.ceil(taken.retry_after_ms / 1000);
  const whose = taken.limit === requests_per_minute ? ', by the limit of the key itself' : '';
  const message = `Too many requests with this key: at most ${taken.limit} per minute ${scopes[window]}${whose}. Try again in ${seconds} s.`;
  return new ApiError('rate_limit', message, {
    headers: { 'retry-after': String(seconds) },
    refusal: { reason: 'rate_limit', key_id: id },
  });
}

/** `1s`, `59s`, `6m0s`: whole seconds, rounded up. */
export function shortDuration(duration_ms: number): string {
  const seconds = Math.ceil(duration_ms / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
