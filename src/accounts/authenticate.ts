import { makeBatcher } from '../db/batcher.ts';
import type { Queryable } from '../db/database.ts';
import { ApiError } from '../errors.ts';
import type { ContentRules } from './content-rules.ts';
import { openKeyUses, type KeyUses, type KeyUsesParts } from './key-uses.ts';
import type { KeyRules } from './key-rules.ts';
import { hashKey, isKeyText } from './keys.ts';

/** The caller: the account that pays, and the key of the request. */
export type Caller = {
  account: { id: string; name: string; currency: string; status: 'active' | 'blocked'; keeps_responses?: boolean };
  /**
   * `rules`: what the pipeline checks of each call; absent for most keys, which have none. `budget_id`: of the key whose
   * budget this one shares, if it is not its own. `models`: the only ones that it may use.
   * `requests_per_minute`: a limit of its own, of each window. `log_content`: content of its chats is stored. `is_limited`:
   * it reaches nothing of the account but what keys of its project made.
   */
  key: {
    id: string;
    name: string;
    rules?: Pick<KeyRules, 'scopes' | 'addresses'>;
    budget_id?: string;
    models?: readonly string[];
    requests_per_minute?: number;
    log_content?: ContentRules;
    is_limited?: true;
  };
};

/** Headers that may carry a key beside `authorization`, as clients of different providers send it; the first one counts. */
export const key_headers = ['x-api-key', 'api-key', 'x-goog-api-key'] as const;

/** The text of the two that count: `authorization`, and the first of the others. */
export type KeyHeaders = { authorization?: string | undefined; api_key?: string | undefined };

export type Authenticator = {
  /** The caller, or ApiError 401. */
  authenticate(headers: KeyHeaders): Promise<Caller>;
  /** Drops everything remembered; NOTIFY leads here. */
  invalidate(): void;
  /** Notes a use of a key that came without its text. */
  noteUse(key_id: string): void;
};

/** A deleted or blocked key must be so on every node within a second, even if a NOTIFY is lost. */
const unchecked_ms_max = 900;
/** Asked for so early, the answer is there before anybody has to wait for it. */
const check_after_ms = 450;
const cache_entries_max = 20_000;

const message = 'Invalid API key. Send it as "Authorization: Bearer <API_KEY>".';

const expired_message = 'This API key has expired. Create another one, or give this one a later end.';

/**
 * Looks keys up by their hash and remembers the callers for as long as nothing about callers changes, which it
 * asks at least every 900 ms; that a key is unknown is not remembered, so a new one works at once and guesses
 * do not fill the memory. What is remembered is found by the text of the key, as every request brings it into this
 * memory anyway: to hash it again was 2 % of a chat call. `elapsed_ms` is a monotonic clock, so that a step of the
 * wall clock cannot keep a deleted key alive.
 */
export function makeAuthenticator(
  db: Queryable,
  elapsed_ms: () => number = () => performance.now(),
  uses: Pick<KeyUses, 'note'> = { note: () => {} },
): Authenticator {
  const cache = new Map<string, Promise<CachedCaller | undefined>>(); // oldest first
  const find = makeBatcher<Buffer, CachedCaller | undefined>({
    together: (hashes) => findCallers(db, hashes, elapsed_ms()),
    calls_max: 4,
  });
  const changes = watchChanges(db, elapsed_ms, () => cache.clear());

  const callerOf = (cached: CachedCaller | undefined) =>
    cached && cached.until_ms > elapsed_ms() ? cached.caller : undefined;

  const lookUp = (text: string): Promise<CachedCaller | undefined> => {
    const finding = find(hashKey(text));
    cache.set(text, finding);
    for (const [oldest] of cache) {
      if (cache.size <= cache_entries_max) break;
      cache.delete(oldest);
    }
    const invalidateThis = () => void (cache.get(text) === finding && cache.delete(text));
    finding.then((cached) => {
      if (!callerOf(cached)) invalidateThis();
    }, invalidateThis);
    return finding;
  };

  return {
    authenticate: async (headers) => {
      const text = keyOf(headers);
      const is_key = text !== undefined && (cache.has(text) || isKeyText(text));
      if (!is_key) throw new ApiError('unauthenticated', message);
      await changes.check(); // before the look-up, so that what is remembered is never older than the number
      const row = await (cache.get(text) ?? lookUp(text));
      const caller = callerOf(row);
      if (!caller) throw new ApiError('unauthenticated', row?.ends_by_rule ? expired_message : message);
      uses.note(caller.key.id);
      return caller;
    },
    invalidate: () => cache.clear(),
    noteUse: (key_id) => uses.note(key_id),
  };
}

/** Opens an authenticator that also writes the times at which keys were last used. */
export function openAuthenticator(parts: KeyUsesParts, onStop: (close: () => Promise<void>) => void): Authenticator {
  const uses = openKeyUses(parts);
  onStop(() => uses.close());
  return makeAuthenticator(parts.db, undefined, uses);
}

/** If Authorization is there, it alone decides: some set-ups send a stale key in another header beside it. */
function keyOf(headers: KeyHeaders): string | undefined {
  if (headers.authorization !== undefined) return /^bearer +(\S+) *$/i.exec(headers.authorization)?.[1];
  return headers.api_key;
}

/** `check` resolves when the number was seen less than 900 ms ago. A new number calls `onChange` first. */
function watchChanges(db: Queryable, elapsed_ms: () => number, onChange: () => void): { check(): Promise<void> } {
  let version: bigint | undefined;
  let checked_at_ms = Number.NEGATIVE_INFINITY;
  let checking: Promise<void> | undefined;
  const ask = async () => {
    const asked_at_ms = elapsed_ms();
    const [row] = await db.query<{ version: bigint }>('select version from callers_version');
    if (row?.version !== version) onChange();
    version = row?.version;
    checked_at_ms = asked_at_ms;
  };
  const share = () => (checking ??= ask().finally(() => (checking = undefined)));
  const unchecked_ms = () => elapsed_ms() - checked_at_ms;
  const check = async () => {
    if (unchecked_ms() < unchecked_ms_max) {
      if (unchecked_ms() >= check_after_ms) share().catch(() => undefined); // the next one hears of it
      return;
    }
    if (checking) await checking.catch(() => undefined); // it may have asked long ago
    if (unchecked_ms() >= unchecked_ms_max) await share();
  };
  return { check };
}

/**
 * A caller, and when its key ends on the clock of this process; it may have ended long ago. `ends_by_rule`: its end
 * is one of its rules, rather than an act of somebody.
 */
type CachedCaller = { caller: Caller; until_ms: number; ends_by_rule: boolean };

type Row = {
  hash: Buffer;
  key_id: string;
  key_name: string;
  budget_id: string | null;
  left_ms: number | null;
  ends_by_rule: boolean;
  scopes: KeyRules['scopes'];
  addresses: KeyRules['addresses'];
  models: KeyRules['models'];
  requests_per_minute: KeyRules['requests_per_minute'];
  log_content: KeyRules['log_content'];
  is_limited: boolean;
  id: string;
  name: string;
  currency: string;
  status: 'active' | 'blocked';
  keeps_responses: boolean;
};

const rows_of_keys = `
  select k.hash, k.id as key_id, k.name as key_name, k.budget_id, a.id, a.name, a.currency, a.status, a.keeps_responses,
         (extract(epoch from least(k.deleted_at, k.expires_at) - now()) * 1000)::float8 as left_ms,
         coalesce(k.expires_at < coalesce(k.deleted_at, 'infinity'), false) as ends_by_rule, k.scopes, k.addresses,
         k.models, k.requests_per_minute, k.log_content, k.is_limited
    from api_keys k join accounts a on a.id = k.account_id`;

/** Returns the caller whose key has this id, for what the key has begun; undefined if the key has ended. */
export async function callerOfKey(db: Queryable, account_id: string, key_id: string): Promise<Caller | undefined> {
  const rows = await db.query<Row>(`${rows_of_keys} where k.id = $1 and a.id = $2`, [key_id, account_id], 'brief');
  const row = rows[0];
  return row && (row.left_ms === null || row.left_ms > 0) ? callerIn(row) : undefined;
}

/** Returns the caller of each hash: keys asked for in the same moment share a round trip. */
async function findCallers(
  db: Queryable,
  hashes: readonly Buffer[],
  now_ms: number,
): Promise<(CachedCaller | undefined)[]> {
  const rows = await db.query<Row>(`${rows_of_keys} where k.hash = any($1)`, [hashes], 'brief');
  const row_by_hash = new Map(rows.map((row) => [row.hash.toString('latin1'), row]));
  return hashes.map((hash) => {
    const row = row_by_hash.get(hash.toString('latin1'));
    if (!row) return undefined;
    const { left_ms, ends_by_rule } = row;
    const until_ms = left_ms === null ? Number.POSITIVE_INFINITY : now_ms + left_ms;
    return { caller: callerIn(row), until_ms, ends_by_rule };
  });
}

function callerIn(row: Row): Caller {
  const { key_id, key_name, budget_id, left_ms: _, ends_by_rule: __, hash: ___, ...others } = row;
  const { scopes, addresses, models, requests_per_minute, log_content, is_limited, ...account } = others;
  const rules = (scopes ?? addresses) && { scopes, addresses };
  const key = {
    id: key_id,
    name: key_name,
    ...(rules && { rules }),
    ...(budget_id !== null && { budget_id }),
    ...(models && { models }),
    ...(requests_per_minute !== null && { requests_per_minute }),
    ...(log_content && { log_content }),
    ...(is_limited && { is_limited }),
  };
  return { account, key };
}
