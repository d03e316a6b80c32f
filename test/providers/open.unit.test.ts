import { afterEach, expect, test, vi } from 'vitest';
import { openProviders, retire_after_ms } from '../../src/providers/open.ts';
import type { ProviderConfig } from '../../src/catalog/model.ts';
import { openGuard } from '../../src/net/guard.ts';
import type { Adapter, Provider } from '../../src/providers/provider.ts';
import { prober } from '../helpers/prober.ts';

afterEach(() => vi.useRealTimers());

/** An adapter that writes down which providers it opens and closes. */
function recordingAdapter() {
  const events: string[] = [];
  const open = ({ name }: ProviderConfig): Provider => {
    events.push(`open ${name}`);
    return {
      start: () => Promise.reject(new Error('never started')),
      poll: () => Promise.reject(new Error('never polled')),
      close: async () => void events.push(`close ${name}`),
    };
  };
  const adapter: Adapter = { serves: () => true, open };
  return { adapter, events };
}

const config = (name: string, base_url = 'https://upstream.example'): ProviderConfig => {
  return { name, adapter: 'recording', base_url, allow_private: false };
};

const byName = (...configs: ProviderConfig[]) => new Map(configs.map((each) => [each.name, each]));

/** A catalogue whose providers the test replaces. */
function openWith(...configs: ProviderConfig[]) {
  const { adapter, events } = recordingAdapter();
  let providers_now = byName(...configs);
  const catalog = {
    get current() {
      return { providers: providers_now };
    },
  };
  const providers = openProviders(catalog, { recording: adapter }, { guard: openGuard(), prober });
  const change = (...after: ProviderConfig[]) => (providers_now = byName(...after));
  return { providers, events, change };
}

test('a provider whose configuration is the same stays open when the catalogue is built anew', () => {
  const { providers, events, change } = openWith(config('one'), config('two'));
  const one = providers.get('one');
  for (let i = 0; i < 50; i++) {
    change(config('one'), config('two'));
    expect(providers.get('one')).toBe(one);
  }
  expect(events).toEqual(['open one', 'open two']);
});

test('a provider whose configuration changed, or that is gone, is closed after a quarter of an hour', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { providers, events, change } = openWith(config('one'), config('two'), config('three'));
  const one = providers.get('one');
  change(config('one', 'https://elsewhere.example'), config('two'));
  expect(providers.get('one')).not.toBe(one);
  expect(providers.get('three')).toBeUndefined();
  await vi.advanceTimersByTimeAsync(retire_after_ms - 1);
  expect(events).toEqual(['open one', 'open two', 'open three', 'open one']);
  await vi.advanceTimersByTimeAsync(1);
  expect(events.slice(4)).toEqual(['close one', 'close three']);
});

test('everything that is open, retired or not, is closed once with the service', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { providers, events, change } = openWith(config('one'), config('two'));
  providers.get('one');
  change(config('one', 'https://elsewhere.example'), config('two'));
  providers.get('one');
  await providers.close();
  await vi.advanceTimersByTimeAsync(retire_after_ms);
  expect(events.filter((event) => event.startsWith('close')).toSorted()).toEqual([
    'close one',
    'close one',
    'close two',
  ]);
});
