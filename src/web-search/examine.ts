import { isObject, type WebSearchSettings } from '../catalog/model.ts';
import { resolveSecret } from '../config.ts';
import type { Guard } from '../net/guard.ts';
import { reasonOf, searchWeb, sendToApi } from './search.ts';

/** State of the search API; `detail` is a sentence for the operator. */
type SearchHealth = { readonly ok: boolean; readonly detail: string };

/** A word that harms nobody. */
const query = { text: 'medley', allowed_domains: [], blocked_domains: [] };

/**
 * Asks the operator's search API whether it answers, at no cost: SearXNG by a search, since it is the operator's own;
 * Tavily by `GET /usage`, which takes no credits (docs.tavily.com, read on 2026-11-28). Brave and Exa have no call that
 * checks a key for nothing: they are asked, by one search, only where `may_cost`.
 */
export async function examineSearch(
  guard: Guard,
  settings: WebSearchSettings,
  { may_cost, signal }: { may_cost: boolean; signal: AbortSignal },
): Promise<SearchHealth> {
  const { api } = settings;
  const key = settings.api_key === undefined ? '' : resolveSecret(settings.api_key);
  if (key === undefined) return { ok: false, detail: `${api}: its key (${settings.api_key}) is not set` };
  if (may_cost || api === 'searxng') return examineBySearch(guard, settings, signal);
  if (api === 'tavily') return examineUsage(guard, settings, key, signal);
  return { ok: true, detail: `${api}: not asked, since a search costs; doctor --search asks once` };
}

async function examineBySearch(guard: Guard, settings: WebSearchSettings, signal: AbortSignal): Promise<SearchHealth> {
  const searched = await searchWeb(guard, settings, query, signal);
  if ('results' in searched) return { ok: true, detail: `${settings.api} answers searches` };
  return { ok: false, detail: `${settings.api}: ${searched.reason}; ${advice}` };
}

async function examineUsage(
  guard: Guard,
  settings: WebSearchSettings,
  key: string,
  signal: AbortSignal,
): Promise<SearchHealth> {
  const { api, base_url } = settings;
  const request = { method: 'GET', url: `${base_url}/usage`, headers: { authorization: `Bearer ${key}` } } as const;
  try {
    const { status, answer } = await sendToApi(guard, settings, request, signal);
    if (status !== 200) return { ok: false, detail: `${api}: the search API answered ${status}; ${advice}` };
    if (!isJsonObject(answer)) return { ok: false, detail: `${api}: the answer cannot be read; ${advice}` };
    return { ok: true, detail: `${api} takes the key; no search was made` };
  } catch (error) {
    if (signal.aborted) throw error;
    return { ok: false, detail: `${api}: ${reasonOf(error)}; ${advice}` };
  }
}

const advice = 'see tools.web_search in medley.yaml: base_url and api_key';

function isJsonObject(bytes: Buffer): boolean {
  try {
    return isObject(JSON.parse(bytes.toString('utf8')));
  } catch {
    return false;
  }
}
