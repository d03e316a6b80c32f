import { readFile } from 'node:fs/promises';
import { hashPassword } from 'better-auth/crypto';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { createAccount } from '../../../src/accounts/accounts.ts';
import { backlog_max, HashingBusy, openHashing, usual_cost } from '../../../src/accounts/sign-in/hashing.ts';
import { makeLoginLink } from '../../../src/accounts/sign-in/login-links.ts';
import { ownerOf } from '../../../src/accounts/members.ts';
import { startTestApp, type TestApp } from '../../helpers/app.ts';
import { browserOf } from '../../helpers/person.ts';

let test: TestApp;
const password = 'correct horse battery';
const email = 'ada@example.com';
const now = () => new Date();
const yaml = 'version: 1\nserver: { trusted_proxies: [127.0.0.1/32] }\n';

beforeAll(async () => {
  test = await startTestApp({ worker: false, password_cost: usual_cost, yaml });
  const { db } = test.app;
  const account = await createAccount(db, { name: 'Own', currency: 'USD', initial_credit: 0n }, now());
  const link = await makeLoginLink(db, test.url, await ownerOf(db, account.id, now()), now());
  const browser = browserOf(test.url);
  await browser.post('/auth/sign-in/link', { token: new URL(link).searchParams.get('token') });
  await browser.post('/auth/set-up', { name: 'Ada', email, password });
});

afterAll(() => test.stop());

/** From an address of its own, as the limits of one address are not what this is about. */
function signIn(number: number) {
  const from = { 'x-forwarded-for': `192.0.2.${number}` };
  return browserOf(test.url).post('/auth/sign-in/email', { email: `p${number}@example.com`, password }, from);
}

it('files are read while forty people sign in', async () => {
  let answered = 0;
  const count = () => void (answered += 1);
  const all = Array.from({ length: 40 }, async (_, index) => signIn(index + 1).then(count));
  await Promise.race(all); // hashing is under way for the others
  for (let times = 0; times < 5; times++) await readFile(import.meta.filename);
  expect(answered, 'they are read before the last one is answered').toBeLessThan(40);
  await Promise.all(all);
});

it('a password that the login library hashed still works, and a wrong one does not', async () => {
  const hashing = openHashing();
  onTestFinished(() => hashing.close());
  const stored = await hashPassword(password);
  expect(await hashing.verify(stored, password)).toBe(true);
  expect(await hashing.verify(stored, `${password}!`)).toBe(false);
  expect(await hashing.verify(await hashing.hash('pass\u{fb01}word'), 'passfiword')).toBe(true); // NFKC, as the library has it
});

it('passwords beyond the backlog are refused, those in it are hashed, and so are the next ones', async () => {
  const hashing = openHashing({ timeout_ms: 120_000, cost: 1_024 }); // also where hashing is slow
  onTestFinished(() => hashing.close());
  const outcomes = await Promise.allSettled(Array.from({ length: backlog_max + 20 }, () => hashing.hash(password)));
  const refused = outcomes.filter(({ status }) => status === 'rejected');
  expect(refused.length).toBeGreaterThanOrEqual(17);
  expect(refused.length).toBeLessThanOrEqual(20);
  for (const each of refused) expect(each).toMatchObject({ reason: expect.any(HashingBusy) });
  expect(await hashing.hash(password)).toMatch(/^[0-9a-f]{32}:[0-9a-f]{128}$/);
});

it('a password that waits too long is given up, and the one that is being hashed is not', async () => {
  const hashing = openHashing({ timeout_ms: 1 });
  onTestFinished(() => hashing.close());
  const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => hashing.hash(password)));
  expect(outcomes.map(({ status }) => status)).toEqual([...Array(2).fill('fulfilled'), ...Array(8).fill('rejected')]);
});

it('a sign-in beyond the backlog gets 503 with Retry-After', async () => {
  const { password_hashes } = test.app.limits;
  const leaving = new AbortController();
  const taken = Array.from({ length: password_hashes.bound }, () => password_hashes.tryAcquire(''));
  const waiting = Array.from({ length: backlog_max }, () => password_hashes.acquire('', { signal: leaving.signal }));
  const refused = await signIn(100);
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toBe('5');
  expect(refused.json).toMatchObject({ message: expect.stringContaining('Try again') });
  leaving.abort();
  await Promise.all(waiting);
  for (const permit of taken) permit?.release();
  expect((await signIn(101)).status).toBe(401);
});
