import type { Account } from '../accounts/accounts.ts';
import type { Caller } from '../accounts/authenticate.ts';
import { createKey, listKeys, type ApiKey } from '../accounts/keys.ts';
import type { WindowName } from '../limits/window.ts';
import { windowError } from '../api/window-headers.ts';
import type { App } from '../app.ts';
import { million } from '../money/money.ts';
import { playground_key } from './home.ts';

/** What the playground may spend in a month until somebody sets another limit: a slip of the mouse costs no fortune. */
const limit_month = 5n * million;

/**
 * The caller for whom the playground runs models: a key of the account like any other, in its lists, its limits and
 * its usage, whose text nobody was ever told. Made when it is first needed.
 */
export async function playgroundCaller(app: App, account: Account): Promise<Caller> {
  const { id, name, currency, status } = account;
  const key = await keyOf(app, id);
  return { account: { id, name, currency, status }, key: { id: key.id, name: key.name } };
}

const making = new WeakMap<App, Map<string, Promise<ApiKey>>>();

async function keyOf(app: App, account_id: string): Promise<ApiKey> {
  const known = await findKey(app, account_id);
  if (known) return known;
  const underway = making.get(app) ?? new Map<string, Promise<ApiKey>>();
  making.set(app, underway);
  const begun = underway.get(account_id);
  if (begun) return begun;
  const made = makeKey(app, account_id).finally(() => underway.delete(account_id));
  underway.set(account_id, made);
  return made;
}

async function findKey(app: App, account_id: string): Promise<ApiKey | undefined> {
  const keys = await listKeys(app.db, account_id);
  return keys.find(({ name, deleted_at }) => name === playground_key && deleted_at === null);
}

async function makeKey(app: App, account_id: string): Promise<ApiKey> {
  const now = new Date(app.clock.now());
  const other = await findKey(app, account_id); // made while we looked
  return other ?? (await createKey(app.db, { account_id, name: playground_key, limit_month }, now)).key;
}

/** Counts a request of the playground as one of its key is counted on `/v1`. Throws ApiError 429. */
export async function takeWindow(app: App, { key }: Caller, window: WindowName): Promise<void> {
  const { generate_per_minute, chat_per_minute, other_per_minute } = app.catalog.current.settings.limits;
  const limits = { generate: generate_per_minute, chat: chat_per_minute, other: other_per_minute };
  const taken = await app.windows.take(window, key.id, limits[window], performance.now());
  if (!taken.ok) throw windowError(window, taken);
}
