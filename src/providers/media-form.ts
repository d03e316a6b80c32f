import { openGuard } from '../net/guard.ts';
import { openProber } from '../storage/probe.ts';
import type { Adapter } from './provider.ts';

/**
 * Tells whether routes of this adapter take files of the caller. It asks an unconfigured instance that calls
 * nobody, so that a file can be checked before there are keys.
 */
export function takesMedia(adapter: Adapter | undefined): boolean {
  if (!adapter?.open) return false;
  const config = { name: 'unset', adapter: 'unset', base_url: 'https://unset.invalid', allow_private: false };
  const provider = adapter.open({ ...config, api_key: 'unset:unset' }, { guard: openGuard(), prober: openProber() });
  void provider.close?.();
  return provider.media !== undefined;
}
