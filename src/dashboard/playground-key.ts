import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Clock } from '../lib/clock.ts';
import type { Db } from '../db/database.ts';
import type { Account } from '../accounts/accounts.ts';
import type { Caller } from '../accounts/authenticate.ts';
import { findPlaygroundKey, openPlaygroundKey } from '../accounts/keys.ts';
import type { WindowName, Windows } from '../limits/window.ts';
import { windowError } from '../http/window-headers.ts';
import { million } from '../money/money.ts';

/** Monthly limit of the playground until somebody sets another one, so that a slip of the mouse stays cheap. */
const limit_month = 5n * million;

/**
 * The caller for whom the playground runs models: a key of the account like any other, in its lists, its limits and
 * its usage, whose text nobody was ever told. Made when it is first needed.
 */
export async function playgroundCaller({ db, clock }: { db: Db; clock: Clock }, account: Account): Promise<Caller> {
  const { id, name, currency, status, keeps_responses } = account;
  const key =
    (await findPlaygroundKey(db, id)) ??
    (await openPlaygroundKey(db, { account_id: id, name: 'Playground', limit_month }, new Date(clock.now())));
  return {
    account: { id, name, currency, status, keeps_responses },
    key: { id: key.id, name: key.name, ...(key.log_content && { log_content: key.log_content }) },
  };
}

/** Counts a request of the playground as one of its key is counted on `/v1`. Throws ApiError 429. */
export async function takeWindow(
  { catalog, windows }: { catalog: CatalogHolder; windows: Windows },
  { key }: Caller,
  window: WindowName,
): Promise<void> {
  const { generate_per_minute, chat_per_minute, other_per_minute } = catalog.current.settings.limits;
  const limits = { generate: generate_per_minute, chat: chat_per_minute, other: other_per_minute };
  const taken = await windows.take(window, key.id, limits[window], performance.now());
  if (!taken.ok) throw windowError(window, taken);
}
