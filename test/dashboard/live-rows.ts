import { vi } from 'vitest';
import type { Someone } from './people.ts';

/** Somebody's page with live rows. `seen`: its events so far; `end` resolves when the stream is over. */
export type LivePage = { response: Response; seen: { count: number }; end: Promise<void>; close(): Promise<void> };

/** Opens a page with live rows of the service at this address. */
export async function openLivePage(url: string, { base, set_cookies }: Someone): Promise<LivePage> {
  const cookie = set_cookies.map((each) => each.split(';')[0]).join('; ');
  const stop = new AbortController();
  const ask = () => fetch(`${url}${base}/activity/events`, { headers: { cookie }, signal: stop.signal });
  let response = await ask();
  while (response.status === 503) response = await ask(); // a busy database
  const seen = { count: 0 };
  const end = (async () => {
    for await (const chunk of response.body ?? []) {
      seen.count += new TextDecoder().decode(chunk).split('event: changed').length - 1;
    }
  })().catch(() => undefined);
  return { response, seen, end, close: () => (stop.abort(), end) };
}

/** Resolves when a page has had more events than this. */
export async function moreEvents({ seen }: LivePage, than: number): Promise<void> {
  await vi.waitUntil(() => seen.count > than, { timeout: 120_000 });
}
