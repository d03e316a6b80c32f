import { expect, it } from 'vitest';
import { closedFor } from '../../../src/providers/http/request-windows.ts';

const now_ms = Date.parse('2026-11-25T12:00:00Z');

it.each([
  [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '30' }, 30_000],
  [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(now_ms / 1000 + 20) }, 20_000],
  [{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '1m2s' }, 60_000],
  [{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '250ms' }, 250],
  [{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '1.5s' }, 1_500],
  [{ 'ratelimit-remaining': '0', 'ratelimit-reset': '7' }, 7_000],
])('a window of requests that is used up is closed until its end, a minute at most: %j', (headers, wait_ms) => {
  expect(closedFor(headers, now_ms)).toBe(wait_ms);
});

it.each([
  {},
  { 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': '30' },
  { 'x-ratelimit-remaining': '0' },
  { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': 'soon' },
  { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '0' },
  { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(now_ms / 1000 - 20) },
  { 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '30s' },
])('a window that is open, or of which nothing is known, closes nothing: %j', (headers) => {
  expect(closedFor(headers, now_ms)).toBeUndefined();
});
