import { ApiError } from '../errors.ts';
import { networkOf } from '../net/address.ts';
import type { LocalWindows } from '../limits/window.ts';
import type { PublicEndpoint, RequestHead } from './endpoint.ts';

/**
 * Judges a request that needs no key, before anything of its body is read: how often its address comes, then what the
 * endpoint sees in its head. Throws ApiError.
 */
export function admitStranger<App>(
  { app, address_windows, elapsed_ms }: { app: App; address_windows: LocalWindows; elapsed_ms: () => number },
  { path, per_minute_per_address, admit }: PublicEndpoint<App>,
  head: RequestHead,
): void {
  if (per_minute_per_address !== undefined) {
    const name = `address ${networkOf(head.address)} ${path}`;
    const taken = address_windows.take('other', name, per_minute_per_address, elapsed_ms());
    if (!taken.ok) throw tooManyRequests(per_minute_per_address, taken.retry_after_ms);
  }
  admit?.(app, head);
}

function tooManyRequests(limit: number, retry_after_ms: number): ApiError {
  const seconds = Math.ceil(retry_after_ms / 1000);
  const message = `Too many requests from this address: at most ${limit} per minute here. Try again in ${seconds} s.`;
  return new ApiError('rate_limit', message, { headers: { 'retry-after': String(seconds) } });
}
