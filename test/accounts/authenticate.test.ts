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

/** An authenticator whose clock the test turns, and which counts its look-ups. */
function withClock() {
  const clock = { elapsed_ms: 5_000, lookups: 0 };
  const counting: Queryable = {
    query: (text, values) => {
      clock.lookups += 1;
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
      account: { id: account.id, name: 'Ada', currency: 'PLN', status: 'active' },
      key: { id: key.id, name: 'k' },
    };
    for (const headers of [
      { authorization: `Bearer ${text}` },
      { authorization: `bearer ${text}` },
      { authorization: `BEARER   ${text}  ` },
      { 'x-api-key': text },
      { authorization: `Bearer ${text}`, 'x-api-key': 'stale' },
      { authorization: undefined, 'x-api-key': text },
    ]) {
      expect(await authenticator.authenticate(headers)).toEqual(caller);
    }
  });

  test('of each of several keys and accounts for what it is', async () => {
    const { authenticator } = withClock();
    const other = await createAccount(database.db, { name: 'Bob', currency: 'USD', initial_credit: 0n }, now);
    const [first, second] = [await newKey(), await newKey()];
    const third = await createKey(database.db, { account_id: other.id, name: 'b', limit_month: null }, now);
    const who = async (text: string) => {
      const caller = await authenticator.authenticate({ 'x-api-key': text });
      return [caller.account.id, caller.key.id];
    };
    expect(await who(first.text)).toEqual([account.id, first.key.id]);
    expect(await who(second.text)).toEqual([account.id, second.key.id]);
    expect(await who(third.text)).toEqual([other.id, third.key.id]);
  });

  test('of a blocked account too: what it may do is for the caller of this function to decide', async () => {
    const { authenticator } = withClock();
    const blocked = await createAccount(database.db, { name: 'Eve', currency: 'USD', initial_credit: 0n }, now);
    const { text } = await createKey(database.db, { account_id: blocked.id, name: 'e', limit_month: null }, now);
    await setAccountStatus(database.db, blocked.id, 'blocked');
    expect((await authenticator.authenticate({ 'x-api-key': text })).account.status).toBe('blocked');
  });
});

describe('a key is refused with one and the same message', () => {
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
      { 'x-api-key': '' },
      { 'x-api-key': `Bearer ${text}` },
      { 'x-api-key': `${text}, ${text}` },
      { 'x-api-key': newKeyText() },
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

  test('in Authorization, whatever x-api-key says', async () => {
    const { authenticator } = withClock();
    const { text } = await newKey();
    for (const authorization of ['', 'Bearer', 'Basic x', `Bearer ${newKeyText()}`]) {
      await expect(authenticator.authenticate({ authorization, 'x-api-key': text })).rejects.toMatchObject(refused);
    }
  });
});

describe('what is remembered', () => {
  test('is never older than a second: a deleted key is refused by then without any message', async () => {
    const { authenticator, clock } = withClock();
    const { key, text } = await newKey();
    const headers = { 'x-api-key': text };
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

  test('is one look-up for many requests at once, and a new one each second under steady load', async () => {
    const { authenticator, clock } = withClock();
    const headers = { 'x-api-key': (await newKey()).text };
    await Promise.all(Array.from({ length: 50 }, () => authenticator.authenticate(headers)));
    expect(clock.lookups).toBe(1);
    // Being asked for does not make an answer any younger.
    for (let i = 0; i < 50; i++) {
      clock.elapsed_ms += 100;
      await authenticator.authenticate(headers);
    }
    expect(clock.lookups).toBeGreaterThanOrEqual(1 + 5);
    expect(clock.lookups).toBeLessThanOrEqual(1 + 6);
  });

  test('is dropped by forget', async () => {
    const { authenticator } = withClock();
    const { key, text } = await newKey();
    await authenticator.authenticate({ 'x-api-key': text });
    await deleteKey(database.db, key.id, now);
    authenticator.forget();
    await expect(authenticator.authenticate({ 'x-api-key': text })).rejects.toMatchObject(refused);
  });

  test('is never that a key is unknown: it works as soon as it is made', async () => {
    const { authenticator } = withClock();
    const { key, text } = await newKey();
    await database.db.query('update api_keys set deleted_at = $2 where id = $1', [key.id, now]);
    await expect(authenticator.authenticate({ 'x-api-key': text })).rejects.toMatchObject(refused);
    await database.db.query('update api_keys set deleted_at = null where id = $1', [key.id]);
    expect((await authenticator.authenticate({ 'x-api-key': text })).key.id).toBe(key.id);
  });

  test('is no failed look-up: the next request tries again', async () => {
    const { text } = await newKey();
    let broken = true;
    const flaky: Queryable = {
      query: (sql, values) =>
        broken ? Promise.reject(new Error('connection refused')) : database.db.query(sql, values),
    };
    const authenticator = makeAuthenticator(flaky, () => 0);
    await expect(authenticator.authenticate({ 'x-api-key': text })).rejects.toThrow('connection refused');
    broken = false;
    expect((await authenticator.authenticate({ 'x-api-key': text })).account.id).toBe(account.id);
  });

  test('is at most 20,000 keys: older ones are forgotten, not all at once', async () => {
    let lookups = 0;
    const row = { key_id: 'k', key_name: 'k', id: 'a', name: 'a', currency: 'USD', status: 'active' };
    const everybody: Queryable = {
      query: <T>(_: string, [hashes]: readonly unknown[] = []) => {
        const asked = hashes as Buffer[];
        lookups += asked.length;
        return Promise.resolve(asked.map((hash) => ({ ...row, hash })) as T[]);
      },
    };
    const authenticator = makeAuthenticator(everybody, () => 0);
    const texts = Array.from({ length: 20_001 }, newKeyText);
    for (const text of texts) await authenticator.authenticate({ 'x-api-key': text });
    expect(lookups).toBe(20_001);
    await authenticator.authenticate({ 'x-api-key': texts.at(-1) });
    await authenticator.authenticate({ 'x-api-key': texts[1] });
    expect(lookups).toBe(20_001);
    await authenticator.authenticate({ 'x-api-key': texts[0] });
    expect(lookups).toBe(20_002);
  });
});
