import { openGuard } from '../net/guard.ts';
import { openProber } from '../storage/probe.ts';
import type { Adapter } from './provider.ts';

/**
 * Whether routes of this adapter can be given files of the caller's: what an instance says that is configured with
 * nothing and calls nobody. For whoever checks a file before there are keys.
 */
export function takesMedia(adapter: Adapter | undefined): boolean {
  if (!adapter?.open) return false;
  const config = { name: 'unset', adapter: 'unset', base_url: 'https://unset.invalid', allow_private: false };
  const provider = adapter.open({ ...config, api_key: 'unset:unset' }, { guard: openGuard(), prober: openProber() });
  void provider.close?.();
  return provider.media !== undefined;
}
