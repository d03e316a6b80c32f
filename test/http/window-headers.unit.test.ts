import { describe, expect, test } from 'vitest';
import { shortDuration, windowError, windowHeaders } from '../../src/http/window-headers.ts';

describe('shortDuration', () => {
  test.each([
    [0, '0s'],
    [1, '1s'],
    [1_000, '1s'],
    [1_001, '2s'],
    [59_001, '1m0s'],
    [60_001, '1m1s'],
    [360_000, '6m0s'],
  ])('writes %i ms as %s', (duration_ms, text) => expect(shortDuration(duration_ms)).toBe(text));
});

describe('a refusal by a rate limit', () => {
  const taken = { ok: false, limit: 60, remaining: 0, reset_ms: 12_001, retry_after_ms: 12_001 };

  test('says whose limit it is and when to retry, in whole seconds rounded up', () => {
    const error = windowError('generate', taken, { id: 'key_1' });
    expect([error.status, error.type]).toEqual([429, 'rate_limit']);
    expect(error.message).toBe(
      'Too many requests with this key: at most 60 per minute on POST /v1/generate. Try again in 13 s.',
    );
    expect(error.extras.headers).toEqual({ 'retry-after': '13' });
    expect(windowHeaders(taken)).toEqual({
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-requests': '13s',
    });
  });
});
