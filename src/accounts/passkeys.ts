import type { Db, Queryable } from '../db/database.ts';
import { newId } from '../lib/ids.ts';
import { spendChallenge, type Challenge } from './passkey-challenges.ts';
import { hasOtherWay, type UsableWays } from './ways-in.ts';

/** Passkeys of people: rows with the public keys. What authenticators sign is checked in passkey-ceremonies.ts. */

export const passkeys_max = 20;
export const passkey_name_max = 60;

export type Passkey = {
  id: string;
  name: string;
  /** Of the service when it was made: browsers offer it there alone. */
  host: string;
  is_synced: boolean;
  created_at: Date;
  used_at: Date | null;
};

/** The passkeys of a person, oldest first. */
export async function listPasskeys(db: Queryable, user_id: string): Promise<Passkey[]> {
  return db.query<Passkey>(
    'select id, name, host, is_synced, created_at, used_at from passkeys where user_id = $1 order by created_at, id',
    [user_id],
  );
}

/** A passkey as browsers are asked for it, or asked not to make it again. */
export type PasskeyRef = { credential_id: Buffer; transports: string[] };

export async function refsOfPasskeys(db: Queryable, user_id: string, host: string): Promise<PasskeyRef[]> {
  return db.query<PasskeyRef>('select credential_id, transports from passkeys where user_id = $1 and host = $2', [
    user_id,
    host,
  ]);
}

/** A passkey that an authenticator has made. */
export type NewPasskey = {
  user_id: string;
  name: string;
  host: string;
  credential_id: Buffer;
  public_key: Buffer;
  counter: number;
  transports: readonly string[];
  is_synced: boolean;
};

/** `used`: the challenge was answered before; `taken`: it is somebody's already. */
export type AddedPasskey = { outcome: 'done'; id: string } | { outcome: 'used' | 'too_many' | 'taken' };

/** Adds a passkey, and uses up the challenge that it answers. */
export async function addPasskey(db: Db, passkey: NewPasskey, challenge: Challenge, now: Date): Promise<AddedPasskey> {
  const { user_id, name, host, credential_id, public_key, counter, transports, is_synced } = passkey;
  return db.tx<AddedPasskey>(async (tx) => {
    if (!(await spendChallenge(tx, challenge))) return { outcome: 'used' };
    await tx.query('select 1 from auth."user" where id = $1 for update', [user_id]);
    const others = await tx.query('select 1 from passkeys where user_id = $1', [user_id]);
    if (others.length >= passkeys_max) return { outcome: 'too_many' };
    const id = newId('passkey', now.getTime());
    const rows = await tx.query(
      `insert into passkeys
         (id, user_id, credential_id, public_key, counter, host, transports, is_synced, name, created_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict (credential_id) do nothing returning id`,
      [id, user_id, credential_id, public_key, counter, host, transports, is_synced, name, now],
    );
    return rows.length === 1 ? { outcome: 'done', id } : { outcome: 'taken' };
  });
}

/** Gives a passkey another name. Returns the one before; undefined if this person has no such passkey. */
export async function renamePasskey(
  db: Queryable,
  { user_id, id }: { user_id: string; id: string },
  name: string,
): Promise<string | undefined> {
  const rows = await db.query<{ before: string }>(
    `update passkeys p set name = $3 from (select id, name as before from passkeys where id = $2 for update) b
      where p.id = b.id and p.user_id = $1 returning before`,
    [user_id, id, name],
  );
  return rows[0]?.before;
}

/** `last`: there would be no way in without it. */
export type RemovedPasskey = { outcome: 'done'; name: string } | { outcome: 'missing' | 'last' };

/** Removes a passkey of a person, unless it is their last way in. */
export async function removePasskey(
  db: Db,
  { user_id, id }: { user_id: string; id: string },
  usable: UsableWays,
): Promise<RemovedPasskey> {
  return db.tx<RemovedPasskey>(async (tx) => {
    await tx.query('select 1 from auth."user" where id = $1 for update', [user_id]);
    const [passkey] = await tx.query<{ name: string; host: string }>(
      'select name, host from passkeys where id = $2 and user_id = $1',
      [user_id, id],
    );
    if (!passkey) return { outcome: 'missing' };
    const is_way = passkey.host === usable.passkey_host;
    if (is_way && !(await hasOtherWay(tx, { user_id, but: id }, usable))) return { outcome: 'last' };
    await tx.query('delete from passkeys where id = $1', [id]);
    return { outcome: 'done', name: passkey.name };
  });
}

/** A passkey with its key, as its authenticator named it. */
export type StoredPasskey = { id: string; user_id: string; name: string; public_key: Buffer; transports: string[] };

export async function findPasskey(
  db: Queryable,
  credential_id: Buffer,
  host: string,
): Promise<StoredPasskey | undefined> {
  const rows = await db.query<StoredPasskey>(
    `select id, user_id, name, public_key, transports from passkeys where credential_id = $1 and host = $2`,
    [credential_id, host],
  );
  return rows[0];
}

/** `copied`: its counter is not above the last one, so that two authenticators have the key. */
export type PasskeyUse = 'done' | 'used' | 'copied';

/** Notes that a passkey has answered this challenge. Nothing is changed where it does not count. */
export async function usePasskey(
  db: Db,
  { id, counter }: { id: string; counter: number },
  challenge: Challenge,
  now: Date,
): Promise<PasskeyUse> {
  return db.tx<PasskeyUse>(async (tx) => {
    if (!(await spendChallenge(tx, challenge))) return 'used';
    const rows = await tx.query(
      `update passkeys set counter = $2, used_at = $3
        where id = $1 and (counter < $2 or (counter = 0 and $2 = 0)) returning id`,
      [id, counter, now],
    );
    return rows.length === 1 ? 'done' : 'copied';
  });
}
