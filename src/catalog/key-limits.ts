import type { Caller } from '../accounts/authenticate.ts';
import type { WindowName } from '../limits/window.ts';
import type { Settings } from './model.ts';

/** The requests that a key may make in a minute, of one kind: its own limit where that is lower than the service's. */
export function limitOfKey(
  { limits }: Pick<Settings, 'limits'>,
  { key }: Pick<Caller, 'key'>,
  window: WindowName,
): number {
  const { generate_per_minute, chat_per_minute, other_per_minute } = limits;
  const of_service = { generate: generate_per_minute, chat: chat_per_minute, other: other_per_minute }[window];
  return Math.min(of_service, key.requests_per_minute ?? of_service);
}
