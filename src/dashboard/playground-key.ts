import { limitOfKey } from '../catalog/key-limits.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Clock } from '../lib/clock.ts';
import type { Db } from '../db/database.ts';
import type { Account } from '../accounts/accounts.ts';
import type { Authenticator, Caller } from '../accounts/authenticate.ts';
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

/** The parts of the app that counting a request takes. */
type WindowParts = {
  readonly catalog: CatalogHolder;
  readonly windows: Windows;
  readonly authenticator: Pick<Authenticator, 'noteUse'>;
};

/** Counts a request of the playground as one of its key is counted on `/v1`. Throws ApiError 429. */
export async function takeWindow(
  { catalog, windows, authenticator }: WindowParts,
  caller: Caller,
  window: WindowName,
): Promise<void> {
  const limit = limitOfKey(catalog.current.settings, caller, window);
  const taken = await windows.take(window, caller.key.id, limit, performance.now());
  if (!taken.ok) throw windowError(window, taken, caller.key);
  if (window !== 'other') authenticator.noteUse(caller.key.id); // estimates are no use
}
