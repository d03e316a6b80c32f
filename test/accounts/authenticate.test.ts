import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAccount, setAccountStatus, type Account } from '../../src/accounts/accounts.ts';
import { makeAuthenticator, type Caller } from '../../src/accounts/authenticate.ts';
import { createKey, deleteKey, newKeyText, type ApiKey } from '../../src/accounts/keys.ts';
import type { Queryable } from '../../src/db/database.ts';
import { ApiError } from '../../src/errors.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

const now = new Date('2026-11-15T12:00:00Z');

let database: TestDatabase;
let account: Account;
beforeAll(async () => {
  database = await testDatabase();
  account = await createAccount(database.db, { name: 'Ada', currency: 'PLN', initial_credit: 0n }, now);
});
afterAll(() => database.drop());

function newKey(): Promise<{ key: ApiKey; text: string }> {
  return createKey(database.db, { account_id: account.id, name: 'k', limit_month: null }, now);
}

/** An authenticator whose clock the test turns, and which counts its look-ups and its questions after changes. */
function withClock() {
  const clock = { elapsed_ms: 5_000, lookups: 0, checks: 0 };
  const counting: Queryable = {
    query: (text, values) => {
      clock[text.includes('api_keys') ? 'lookups' : 'checks'] += 1;
      return database.db.query(text, values);
    },
  };
  return { clock, authenticator: makeAuthenticator(counting, () => clock.elapsed_ms) };
}

const refused = { kind: 'unauthenticated', status: 401, type: 'authentication_error' };

describe('a key is accepted', () => {
  test('in Authorization with any spelling of Bearer, and in x-api-key', async () => {
    const { authenticator } = withClock();
    const { key, text } = await newKey();
    const caller: Caller = {
      account: { id: account.id, name: 'Ada', currency: 'PLN', status: 'active', keeps_responses: true },
      key: { id: key.id, name: 'k' },
    };
    for (const headers of [
      { authorization: `Bearer ${text}` },
      { authorization: `bearer ${text}` },
      { authorization: `BEARER   ${text}  ` },
      { api_key: text },
      { authorization: `Bearer ${text}`, api_key: 'stale' },
      { authorization: undefined, api_key: text },
    ]) {
      expect(await authenticator.authenticate(headers)).toEqual(caller);
    }
  });

  test('as itself beside other keys and accounts', async () => {
    const { authenticator } = withClock();
    const other = await createAccount(database.db, { name: 'Bob', currency: 'USD', initial_credit: 0n }, now);
    const [first, second] = [await newKey(), await newKey()];
    const third = await createKey(database.db, { account_id: other.id, name: 'b', limit_month: null }, now);
    const who = async (text: string) => {
      const caller = await authenticator.authenticate({ api_key: text });
      return [caller.account.id, caller.key.id];
    };
    expect(await who(first.text)).toEqual([account.id, first.key.id]);
    expect(await who(second.text)).toEqual([account.id, second.key.id]);
    expect(await who(third.text)).toEqual([other.id, third.key.id]);
  });

  test('for a blocked account, too, whose rights the caller of this function checks', async () => {
    const { authenticator } = withClock();
    const blocked = await createAccount(database.db, { name: 'Eve', currency: 'USD', initial_credit: 0n }, now);
    const { text } = await createKey(database.db, { account_id: blocked.id, name: 'e', limit_month: null }, now);
    await setAccountStatus(database.db, blocked.id, 'blocked');
    expect((await authenticator.authenticate({ api_key: text })).account.status).toBe('blocked');
  });
});

describe('a key is refused with the same message', () => {
  test('when it is missing, malformed, unknown or deleted', async () => {
    const { authenticator, clock } = withClock();
    const { text } = await newKey();
    const deleted = await newKey();
    await deleteKey(database.db, deleted.key.id, now);
    const messages = new Set<string>();
    for (const headers of [
      {},
      { authorization: '' },
      { authorization: 'Bearer' },
      { authorization: 'Bearer ' },
      { authorization: text },
      { authorization: `Basic ${text}` },
      { authorization: `Bearer ${text} ${text}` },
      { authorization: `Bearer\t${text}` },
      { authorization: `Bearer ${text.slice(0, -1)}` },
      { api_key: '' },
      { api_key: `Bearer ${text}` },
      { api_key: `${text}, ${text}` },
      { api_key: newKeyText() },
      { authorization: `Bearer ${newKeyText()}` },
      { authorization: `Bearer ${deleted.text}` },
    ]) {
      const error: unknown = await authenticator.authenticate(headers).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ApiError);
      expect(error, JSON.stringify(headers)).toMatchObject(refused);
      if (error instanceof Error) messages.add(error.message);
    }
    expect(messages.size).toBe(1);
    expect(clock.lookups, 'only what has the form of a key is looked up').toBe(3);
  });

  test('in Authorization, whatever x-api-key contains', async () => {
    const { authenticator } = withClock();
    const { text } = await newKey();
    for (const authorization of ['', 'Bearer', 'Basic x', `Bearer ${newKeyText()}`]) {
      await expect(authenticator.authenticate({ authorization, api_key: text })).rejects.toMatchObject(refused);
    }
  });
});

describe('the cache of keys', () => {
  test('is at most a second old, so that a deleted key is refused by then without a message', async () => {
    const { authenticator, clock } = withClock();
    const { key, text } = await newKey();
    const headers = { api_key: text };
    await authenticator.authenticate(headers);
    await deleteKey(database.db, key.id, now);
    const answers: boolean[] = [];
    for (let age_ms = 0; age_ms <= 1_000; age_ms += 100) {
      clock.elapsed_ms = 5_000 + age_ms;
      answers.push(
        await authenticator.authenticate(headers).then(
          () => true,
          () => false,
        ),
      );
    }
    expect(answers[0], 'it is remembered at all').toBe(true);
    expect(answers.at(-1)).toBe(false);
    expect(answers.lastIndexOf(true)).toBeLessThan(answers.indexOf(false));
  });

  test('makes one look-up for many requests at once, and checks only for changes while nothing changes', async () => {
    const { authenticator, clock } = withClock();
    const headers = { api_key: (await newKey()).text };
    await Promise.all(Array.from({ length: 50 }, () => authenticator.authenticate(headers)));
    expect(clock).toMatchObject({ lookups: 1, checks: 1 });
    // Being asked for does not make an answer any younger.
    for (let i = 0; i < 50; i++) {
      clock.elapsed_ms += 100;
      await authenticator.authenticate(headers);
      await Promise.resolve();
    }
    expect(clock.lookups).toBe(1);
    expect(clock.checks, 'in 5 s, at most 900 ms apart').toBeGreaterThanOrEqual(1 + 5);
    expect(clock.checks, 'and not much more often').toBeLessThanOrEqual(1 + 12);
  });

  test.each([
    ['the name of a key', 'update api_keys set name = $2 where account_id = $1', 'renamed'],
    ['the name of an account', 'update accounts set name = $2 where id = $1', 'renamed'],
    ['its status', 'update accounts set status = $2 where id = $1', 'blocked'],
  ])('is read again when %s has changed', async (_, statement, value) => {
    const { authenticator, clock } = withClock();
    const own = await createAccount(database.db, { name: 'old', currency: 'USD', initial_credit: 0n }, now);
    const { text } = await createKey(database.db, { account_id: own.id, name: 'old', limit_month: null }, now);
    const before = await authenticator.authenticate({ api_key: text });
    await database.db.query(statement, [own.id, value]);
    clock.elapsed_ms += 999;
    const after = await authenticator.authenticate({ api_key: text });
    expect(JSON.stringify(before)).not.toContain(value);
    expect(JSON.stringify(after)).toContain(value);
  });

  test('drops a key at the time when the key ends', async () => {
    const { authenticator, clock } = withClock();
    const { key, text } = await newKey();
    const headers = { api_key: text };
    await database.db.query("update api_keys set deleted_at = now() + interval '1 hour' where id = $1", [key.id]);
    await authenticator.authenticate(headers);
    clock.elapsed_ms += 1_800_000;
    expect((await authenticator.authenticate(headers)).key.id).toBe(key.id);
    clock.elapsed_ms += 1_800_000;
    await expect(authenticator.authenticate(headers)).rejects.toMatchObject(refused);
  });

  test('asks early for changes, so that nobody waits for the answer', async () => {
    const { authenticator, clock } = withClock();
    const { key, text } = await newKey();
    const headers = { authorization: `Bearer ${text}` };
    const caller = await authenticator.authenticate(headers);
    clock.elapsed_ms += 899;
    expect(await authenticator.authenticate(headers)).toEqual(caller);
    expect(clock.checks, 'it asks early whether anything has changed').toBe(2);
    await database.db.query('update api_keys set deleted_at = now() where id = $1', [key.id]);
    clock.elapsed_ms += 900;
    await expect(authenticator.authenticate(headers)).rejects.toMatchObject(refused);
  });

  test('no longer answers for a key that has ended, and looks it up again after forget', async () => {
    const { authenticator, clock } = withClock();
    const { key, text } = await newKey();
    const headers = { api_key: text };
    await database.db.query("update api_keys set deleted_at = now() + interval '1 hour' where id = $1", [key.id]);
    expect((await authenticator.authenticate(headers)).key.id).toBe(key.id);
    clock.elapsed_ms += 3_600_000;
    await expect(authenticator.authenticate(headers)).rejects.toMatchObject(refused);
    const other = await newKey();
    await authenticator.authenticate({ api_key: other.text });
    await database.db.query("update api_keys set name = 'renamed' where id = $1", [other.key.id]);
    authenticator.invalidate();
    expect((await authenticator.authenticate({ api_key: other.text })).key.name).toBe('renamed');
  });

  test('ignores the result of a look-up that began long ago', async () => {
    const clock = { elapsed_ms: 0 };
    let late: Promise<unknown> | undefined;
    const slow: Queryable = {
      query: async <T>(sql: string, values?: readonly unknown[]) => {
        const rows = await database.db.query<T>(sql, values);
        if (sql.includes('callers_version')) await late;
        return rows;
      },
    };
    const authenticator = makeAuthenticator(slow, () => clock.elapsed_ms);
    const { key, text } = await newKey();
    await authenticator.authenticate({ api_key: text });
    const { promise, resolve } = Promise.withResolvers<void>();
    late = promise;
    clock.elapsed_ms = 500;
    await authenticator.authenticate({ api_key: text }); // asks in the background, and reads what is so now
    clock.elapsed_ms = 1_500;
    const answer = authenticator.authenticate({ api_key: text });
    await deleteKey(database.db, key.id, now);
    late = undefined;
    resolve();
    await expect(answer).rejects.toMatchObject(refused);
  });

  test('is emptied by forget', async () => {
    const { authenticator } = withClock();
    const { key, text } = await newKey();
    await authenticator.authenticate({ api_key: text });
    await deleteKey(database.db, key.id, now);
    authenticator.invalidate();
    await expect(authenticator.authenticate({ api_key: text })).rejects.toMatchObject(refused);
  });

  test('never stores that a key is unknown, so that a new key works at once', async () => {
    const { authenticator } = withClock();
    const { key, text } = await newKey();
    await database.db.query('update api_keys set deleted_at = $2 where id = $1', [key.id, now]);
    await expect(authenticator.authenticate({ api_key: text })).rejects.toMatchObject(refused);
    await database.db.query('update api_keys set deleted_at = null where id = $1', [key.id]);
    expect((await authenticator.authenticate({ api_key: text })).key.id).toBe(key.id);
  });

  test('never stores a failed look-up, so that the next request tries again', async () => {
    const { text } = await newKey();
    let broken = true;
    const flaky: Queryable = {
      query: (sql, values) =>
        broken ? Promise.reject(new Error('connection refused')) : database.db.query(sql, values),
    };
    const authenticator = makeAuthenticator(flaky, () => 0);
    await expect(authenticator.authenticate({ api_key: text })).rejects.toThrow('connection refused');
    broken = false;
    expect((await authenticator.authenticate({ api_key: text })).account.id).toBe(account.id);
  });

  test('holds at most 20,000 keys and drops older ones, but not all at once', async () => {
    let lookups = 0;
    const row = { key_id: 'k', key_name: 'k', id: 'a', name: 'a', currency: 'USD', status: 'active', left_ms: null };
    const everybody: Queryable = {
      query: <T>(_: string, [hashes]: readonly unknown[] = []) => {
        if (hashes === undefined) return Promise.resolve([{ version: 0n }] as T[]);
        const lookup = hashes as Buffer[];
        lookups += lookup.length;
        return Promise.resolve(lookup.map((hash) => ({ ...row, hash })) as T[]);
      },
    };
    const authenticator = makeAuthenticator(everybody, () => 0);
    const texts = Array.from({ length: 20_001 }, newKeyText);
    for (const text of texts) await authenticator.authenticate({ api_key: text });
    expect(lookups).toBe(20_001);
    await authenticator.authenticate({ api_key: texts.at(-1) });
    await authenticator.authenticate({ api_key: texts[1] });
    expect(lookups).toBe(20_001);
    await authenticator.authenticate({ api_key: texts[0] });
    expect(lookups).toBe(20_002);
  });
});
