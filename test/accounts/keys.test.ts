import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { listKeys } from '../../src/accounts/key-list.ts';
import { createKey, deleteKey, hashKey, isKeyText, newKeyText, type ApiKey } from '../../src/accounts/keys.ts';
import { budgetsOf, setLimit } from '../../src/money/ledger.ts';
import { money_max } from '../../src/money/money.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

const now = new Date('2026-11-15T12:00:00Z');
const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

describe('the text of a key', () => {
  test('is mdl_, 30 random base62 characters and their CRC32 in 6 more', () => {
    for (let i = 0; i < 1_000; i++) {
      const text = newKeyText();
      const [, random = '', checksum = ''] = /^mdl_([0-9A-Za-z]{30})([0-9A-Za-z]{6})$/.exec(text) ?? [];
      const value = [...checksum].reduce((sum, character) => sum * 62 + base62.indexOf(character), 0);
      expect(value).toBe(crc32(random));
      expect(isKeyText(text)).toBe(true);
    }
  });

  test('is different each of 10,000 times, with every character at every position', () => {
    const texts = Array.from({ length: 10_000 }, newKeyText);
    expect(new Set(texts).size).toBe(10_000);
    for (let place = 4; place < 34; place++) {
      expect(new Set(texts.map((text) => text[place])).size).toBe(62);
    }
  });

  test('is invalid with one wrong, missing or added character', () => {
    const text = newKeyText();
    for (let place = 0; place < text.length; place++) {
      for (const other of ['a', 'Z', '0', '-', 'ł']) {
        if (text[place] === other) continue;
        expect(isKeyText(text.slice(0, place) + other + text.slice(place + 1)), `place ${place}`).toBe(false);
      }
      expect(isKeyText(text.slice(0, place) + text.slice(place + 1))).toBe(false);
    }
    for (const wrong of ['', 'mdl_', `${text} `, ` ${text}`, `${text}\n`, `${text}a`, text.toUpperCase()]) {
      expect(isKeyText(wrong)).toBe(false);
    }
  });
});

describe('the keys of an account', () => {
  let database: TestDatabase;
  let account_id: string;
  beforeAll(async () => {
    database = await testDatabase();
    account_id = (await createAccount(database.db, { name: 'a', currency: 'USD', initial_credit: 0n }, now)).id;
  });
  afterEach(() => expectExactBooks(database.db));

  const allKeys = async (whose: string) => (await listKeys(database.db, { account_id: whose, limit: 100 }, now)).keys;
  afterAll(() => database.drop());

  test('are stored as SHA-256 only, and their text is nowhere in the database', async () => {
    const { db } = database;
    const { key, text } = await createKey(db, { account_id, name: 'first', limit_month: null }, now);
    expect(key).toEqual({
      id: expect.stringMatching(/^key_/),
      account_id,
      name: 'first',
      kind: 'program',
      prefix: text.slice(0, 8),
      last_four: text.slice(-4),
      created_at: now,
      deleted_at: null,
      expires_at: null,
      scopes: null,
      addresses: null,
      models: null,
      requests_per_minute: null,
      last_used_at: null,
      use_noted_since: null,
      log_content: null,
      is_limited: false,
      playground_project: null,
    });
    const [row] = await db.query<{ hash: Buffer; whole: string }>(
      'select hash, row_to_json(k)::text as whole from api_keys k where id = $1',
      [key.id],
    );
    expect(row?.hash).toEqual(createHash('sha256').update(text).digest());
    expect(row?.hash).toEqual(hashKey(text));
    expect(row?.whole).not.toContain(text.slice(8, -4));
  });

  test('each have their own limit', async () => {
    const { db } = database;
    const mine = await createAccount(db, { name: 'b', currency: 'PLN', initial_credit: 0n }, now);
    const keys: ApiKey[] = [];
    for (const limit_month of [null, 0n, 5_000_000n, money_max]) {
      keys.push((await createKey(db, { account_id: mine.id, name: `limit ${limit_month}`, limit_month }, now)).key);
    }
    expect(await allKeys(mine.id)).toEqual(keys.toReversed());
    const ids = keys.map(({ id }) => id);
    const budgets = await budgetsOf(db, mine.id, now, ids);
    expect(budgets.toSorted((a, b) => (a.key_id < b.key_id ? -1 : 1))).toEqual(
      [null, 0n, 5_000_000n, money_max].map((limit_month, i) => ({
        key_id: keys[i]?.id,
        budget_id: keys[i]?.id,
        limit_month,
        spent: 0n,
        held: 0n,
        project_id: 'default',
      })),
    );
    expect(await setLimit(db, keys[0]?.id ?? '', 7n)).toBe(true);
    expect(await budgetsOf(db, mine.id, now, ids.slice(0, 1))).toMatchObject([{ limit_month: 7n }]);
  });

  test('are not created with a limit below zero or above the maximum, nor for an unknown account', async () => {
    const { db } = database;
    const before = await allKeys(account_id);
    for (const limit_month of [-1n, money_max + 1n]) {
      await expect(createKey(db, { account_id, name: 'x', limit_month }, now)).rejects.toThrow(
        'from zero to money_max',
      );
    }
    await expect(createKey(db, { account_id: 'acct_none', name: 'x', limit_month: null }, now)).rejects.toThrow(
      'foreign key',
    );
    expect(await allKeys(account_id)).toEqual(before);
  });

  test('are deleted once, stay in the list and cannot come back', async () => {
    const { db } = database;
    const { key } = await createKey(db, { account_id, name: 'gone', limit_month: null }, now);
    expect(await deleteKey(db, key.id, now)).toBe(true);
    expect(await deleteKey(db, key.id, new Date('2027-01-01'))).toBe(false);
    expect(await deleteKey(db, 'key_none', now)).toBe(false);
    expect((await allKeys(account_id)).find((each) => each.id === key.id)?.deleted_at).toEqual(now);
  });
});
