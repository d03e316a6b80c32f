import { makeBatcher } from '../db/batcher.ts';
import type { Queryable } from '../db/database.ts';
import { ApiError } from '../errors.ts';
import { hashKey, isKeyText } from './keys.ts';

/** Who calls: the account that pays, and the key that was shown. */
export type Caller = {
  account: { id: string; name: string; currency: string; status: 'active' | 'blocked' };
  key: { id: string; name: string };
};

/** The two headers that may carry a key (DECISIONS, Authentication). */
export type KeyHeaders = { authorization?: string | undefined; 'x-api-key'?: string | undefined };

export type Authenticator = {
  /** The caller, or ApiError 401. */
  authenticate(headers: KeyHeaders): Promise<Caller>;
  /** Drops everything remembered, at most a second of look-ups; NOTIFY leads here. */
  forget(): void;
};

/** A deleted or blocked key must be so on every node within a second, even if a NOTIFY is lost. */
const cache_ms = 900;
const cache_entries_max = 20_000;

const message = 'Invalid API key. Send it as "Authorization: Bearer <API_KEY>".';

type Remembered = { caller: Promise<Caller | undefined>; until_ms: number };

/**
 * Looks keys up by their hash and remembers each caller for less than a second; that a key is unknown
 * is not remembered, so a new one works at once and guesses do not fill the memory. `elapsed_ms` is
 * a monotonic clock, so that a step of the wall clock cannot keep a deleted key alive.
 */
export function makeAuthenticator(db: Queryable, elapsed_ms: () => number = () => performance.now()): Authenticator {
  const cache = new Map<string, Remembered>(); // oldest first
  const find = makeBatcher<Buffer, Caller | undefined>({ together: (hashes) => findCallers(db, hashes) });

  const lookUp = (text: string): Promise<Caller | undefined> => {
    const hash = hashKey(text);
    const name = hash.toString('base64');
    const now_ms = elapsed_ms();
    const known = cache.get(name);
    if (known && known.until_ms > now_ms) return known.caller;
    const made = { caller: find(hash), until_ms: now_ms + cache_ms };
    cache.delete(name);
    cache.set(name, made);
    for (const [oldest] of cache) {
      if (cache.size <= cache_entries_max) break;
      cache.delete(oldest);
    }
    const forgetThis = () => void (cache.get(name) === made && cache.delete(name));
    made.caller.then((caller) => caller ?? forgetThis(), forgetThis);
    return made.caller;
  };

  return {
    authenticate: async (headers) => {
      const text = keyOf(headers);
      if (text === undefined || !isKeyText(text)) throw new ApiError('unauthenticated', message);
      const caller = await lookUp(text);
      if (!caller) throw new ApiError('unauthenticated', message);
      return caller;
    },
    forget: () => cache.clear(),
  };
}

/** If Authorization is there, it alone decides: some set-ups send a stale x-api-key beside it. */
function keyOf(headers: KeyHeaders): string | undefined {
  if (headers.authorization !== undefined) return /^bearer +(\S+) *$/i.exec(headers.authorization)?.[1];
  return headers['x-api-key'];
}

type Row = {
  hash: Buffer;
  key_id: string;
  key_name: string;
  id: string;
  name: string;
  currency: string;
  status: 'active' | 'blocked';
};

/** Of each hash its caller: keys asked for in the same moment share a round trip. */
async function findCallers(db: Queryable, hashes: readonly Buffer[]): Promise<(Caller | undefined)[]> {
  const rows = await db.query<Row>(
    `select k.hash, k.id as key_id, k.name as key_name, a.id, a.name, a.currency, a.status
       from api_keys k join accounts a on a.id = k.account_id 
      where k.hash = any($1) and (k.deleted_at is null or k.deleted_at > now())`,
    [hashes],
  );
  const found = new Map(rows.map((row) => [row.hash.toString('latin1'), row]));
  return hashes.map((hash) => {
    const row = found.get(hash.toString('latin1'));
    if (!row) return undefined;
    const { key_id, key_name, hash: _, ...account } = row;
    return { account, key: { id: key_id, name: key_name } };
  });
}
