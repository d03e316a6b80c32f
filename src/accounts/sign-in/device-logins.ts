import { createHmac, randomBytes, randomInt } from 'node:crypto';
import { sha256 } from '../../lib/sha256.ts';
import type { Db, Queryable } from '../../db/database.ts';
import type { Money } from '../../money/money.ts';
import { networkOf } from '../../net/address.ts';
import { audit } from '../audit.ts';
import { findAccount } from '../accounts.ts';
import { no_rules, type Scope } from '../key-rules.ts';
import { insertKey, type ApiKey } from '../keys.ts';
import { membershipIn } from '../members.ts';
import { rightsOf } from '../roles.ts';

/**
 * Keys for programs without a browser, by the device authorization grant (RFC 8628): the program shows a short code, a
 * person who has signed in types it into the dashboard and gives the program a key of one of their accounts.
 */

export const lifetime_ms = 10 * 60_000;
export const interval_s = 5;

/** A program that asks so much earlier than it may has a clock of its own. */
const tolerance_ms = 1_000;

/** Rows stay for a while, so that a program that comes late hears that its code has expired. */
const remembered_ms = 10 * 60_000;

const waiting_of_network_max = 20;
const waiting_max = 20_000;

/** Consonants without Y: they make no words, and none looks like another (RFC 8628, 6.1). 8 of them are 34 bits. */
const letters = 'BCDFGHJKLMNPQRSTVWXZ';

/** A program that asks for a key. */
export type NewDeviceLogin = { client: string; device: string; scopes: readonly Scope[] | null; address: string };

export type DeviceCodes = { device_code: string; user_code: string };

function userHashOf(secret: string, letters_of_code: string): Buffer {
  return createHmac('sha256', secret).update(`device login\0${letters_of_code}`).digest();
}

/** Returns the letters of a code as it was typed: in small letters, with other signs between them. */
function lettersOf(user_code: string): string {
  return user_code.toUpperCase().replaceAll(/[^A-Z]/g, '');
}

/** Writes down who asks. Undefined where too many wait, of this network or of all. */
export async function beginDeviceLogin(
  { db, secret }: { db: Queryable; secret: string },
  { client, device, scopes, address }: NewDeviceLogin,
  now: Date,
): Promise<DeviceCodes | undefined> {
  const device_code = randomBytes(32).toString('base64url');
  const text = Array.from({ length: 8 }, () => letters[randomInt(letters.length)]).join('');
  const rows = await db.query(
    `insert into device_logins
       (device_hash, user_hash, client, device, scopes, address, network, created_at, expires_at, interval_s)
     select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
      where (select count(*) from (select from device_logins where network = $7 and expires_at > $8 limit $11) n) < $11
        and (select count(*) from (select from device_logins where expires_at > $8 limit $12) n) < $12
     on conflict (user_hash) do nothing returning device_hash`,
    [
      sha256(device_code),
      userHashOf(secret, text),
      client,
      device,
      scopes,
      address,
      networkOf(address),
      now,
      new Date(now.getTime() + lifetime_ms),
      interval_s,
      waiting_of_network_max,
      waiting_max,
    ],
  );
  if (rows.length === 0) return undefined;
  return { device_code, user_code: `${text.slice(0, 4)}-${text.slice(4)}` };
}

/** A program that waits, as the person who typed its code sees it. */
export type WaitingProgram = {
  client: string;
  device: string;
  scopes: readonly Scope[] | null;
  address: string;
  created_at: Date;
  expires_at: Date;
};

/** Returns the program that shows this code; undefined if none does, or it has its answer already. */
export async function findDeviceLogin(
  { db, secret }: { db: Queryable; secret: string },
  user_code: string,
  now: Date,
): Promise<WaitingProgram | undefined> {
  const rows = await db.query<WaitingProgram>(
    `select client, device, scopes, address, created_at, expires_at from device_logins
      where user_hash = $1 and decision is null and expires_at > $2`,
    [userHashOf(secret, lettersOf(user_code)), now],
  );
  return rows[0];
}

/** The key that a person gives to the program. */
export type GivenKey = { account_id: string; name: string; limit_month: Money | null; expires_at: Date | null };

/** Decides, once; without a key the program is refused. False if there is nothing to decide any more. */
export async function decideDeviceLogin(
  { db, secret }: { db: Queryable; secret: string },
  user_code: string,
  { user_id, key }: { user_id: string; key: GivenKey | undefined },
  now: Date,
): Promise<boolean> {
  const rows = await db.query(
    `update device_logins set decision = $3, user_id = $4, account_id = $5, key_name = $6, limit_month = $7,
            key_expires_at = $8
      where user_hash = $1 and decision is null and expires_at > $2 returning user_hash`,
    [
      userHashOf(secret, lettersOf(user_code)),
      now,
      key ? 'approved' : 'denied',
      user_id,
      key?.account_id ?? null,
      key?.name ?? null,
      key?.limit_month ?? null,
      key?.expires_at ?? null,
    ],
  );
  return rows.length === 1;
}

/** The answer to a program that asks for its key; errors have the names of RFC 8628, 3.5. */
export type DevicePoll =
  | { error: 'authorization_pending' | 'slow_down' | 'access_denied' | 'expired_token' | 'invalid_grant' }
  | { error: undefined; key: ApiKey; text: string; account_name: string };

type Row = {
  device_hash: Buffer;
  client: string;
  device: string;
  scopes: Scope[] | null;
  address: string;
  expires_at: Date;
  interval_s: number;
  polled_at: Date | null;
  decision: 'approved' | 'denied' | null;
  user_id: string;
  account_id: string;
  key_name: string;
  limit_month: Money | null;
  key_expires_at: Date | null;
};

/**
 * Answers a program. The key is made here, in the transaction that ends its waiting: its text is stored nowhere, and a
 * code gives one key.
 */
export async function pollDeviceLogin(
  db: Db,
  { device_code, client }: { device_code: string; client: string },
  now: Date,
): Promise<DevicePoll> {
  return db.tx<DevicePoll>(async (tx) => {
    const [row] = await tx.query<Row>('select * from device_logins where device_hash = $1 for update', [
      sha256(device_code),
    ]);
    if (!row || row.client !== client) return { error: 'invalid_grant' };
    if (row.decision === 'approved' && row.key_expires_at !== null && row.key_expires_at <= now)
      row.decision = 'denied';
    if (row.decision === null || row.expires_at <= now) return { error: await waitOf(tx, row, now) };
    await tx.query('delete from device_logins where device_hash = $1', [row.device_hash]);
    return row.decision === 'denied' ? { error: 'access_denied' } : makeKey(tx, row, now);
  });
}

async function waitOf(
  tx: Queryable,
  { device_hash, expires_at, polled_at, interval_s: interval }: Row,
  now: Date,
): Promise<'expired_token' | 'slow_down' | 'authorization_pending'> {
  if (expires_at <= now) return 'expired_token';
  const early = polled_at !== null && now.getTime() < polled_at.getTime() + interval * 1000 - tolerance_ms;
  const next_s = Math.min(60, early ? interval + 5 : interval);
  await tx.query('update device_logins set polled_at = $2, interval_s = $3 where device_hash = $1', [
    device_hash,
    now,
    next_s,
  ]);
  return early ? 'slow_down' : 'authorization_pending';
}

/** The person may have lost the right to make keys since they decided. */
async function makeKey(tx: Queryable, row: Row, now: Date): Promise<DevicePoll> {
  const { account_id, user_id, client, device, address } = row;
  const [account, own] = [await findAccount(tx, account_id), await membershipIn(tx, user_id, account_id)];
  if (!account || !own || own.projects || !rightsOf(own).includes('keys')) return { error: 'access_denied' };
  const rules = { ...no_rules, scopes: row.scopes, expires_at: row.key_expires_at };
  const key = { account_id, name: row.key_name, limit_month: row.limit_month, rules, member_id: row.user_id };
  const created = await insertKey(tx, key, now);
  const [user] = await tx.query<{ id: string; email: string }>('select id, email from auth."user" where id = $1', [
    user_id,
  ]);
  const details = { name: row.key_name, client, device, ...(row.scopes && { scopes: row.scopes }) };
  await audit(tx, { account_id, user, action: 'key.create', subject: created.key.id, details, address, now });
  return { error: undefined, ...created, account_name: account.name };
}

/** Removes programs that wait no longer. */
export async function removeOldDeviceLogins(db: Queryable, now: Date): Promise<void> {
  await db.query('delete from device_logins where expires_at < $1', [new Date(now.getTime() - remembered_ms)]);
}
