import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Tx } from '../../../src/db/database.ts';
import { okBody, type Someone } from '../../dashboard/people.ts';
import type { TestApp } from '../../helpers/app.ts';
import { browserOf, type Browser, type Seen } from '../../helpers/person.ts';
import { earlierTotp, secretOf, totpOf } from '../../helpers/totp.ts';
import { password, personWith, startServiceWithMail } from '../service-with-mail.ts';

let test: TestApp;
let stop: () => Promise<void>;

beforeAll(async () => {
  ({ test, stop } = await startServiceWithMail());
});

afterAll(() => stop());

let place = 0;
let from: Record<string, string>;

// Tries are counted by address.
beforeEach(() => void (from = { 'x-forwarded-for': `198.18.2.${++place}` }));

async function turnOn(who: Someone): Promise<string> {
  const { totpURI } = okBody<{ totpURI: string }>(await who.post('/auth/two-factor/enable', { password }, from));
  const secret = secretOf(totpURI);
  okBody(await who.post('/auth/two-factor/verify-totp', { code: await earlierTotp(secret) }, from));
  return secret;
}

const setPassword = async (db: Pick<Tx, 'query'>, { user_id }: Someone) =>
  db.query(`update auth.account set password = $2 where "userId" = $1`, [user_id, `${'0'.repeat(32)}:00`]);

const sessionsOf = async ({ user_id }: Someone) =>
  test.app.db.query('select 1 from auth.session where "userId" = $1', [user_id]);

/** Signs in by the password; `work` runs once it was right, and before there is a session. */
async function signInWhile(browser: Browser, email: string, work: (tx: Tx) => Promise<unknown>): Promise<Seen> {
  const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  const { answering } = await test.app.db.tx(async (tx) => {
    await tx.query('lock table auth.session in share mode');
    const answer = browser.post('/auth/sign-in/email', { email, password }, from);
    await expect.poll(async () => (await test.app.db.query(waiting)).length).toBe(1);
    await work(tx);
    return { answering: answer };
  });
  return answering;
}

describe('a sign-in that was under way', () => {
  it('when the password was replaced opens nothing', async () => {
    const who = await personWith(test, 'replaced@example.com', from);
    const browser = browserOf(test.url);
    const { status, text } = await signInWhile(browser, 'replaced@example.com', (tx) => setPassword(tx, who));
    expect([status, text]).toEqual([401, expect.stringContaining('has just changed')]);
    expect((await browser.get('/dash/me')).status).toBe(401);
    expect(await sessionsOf(who)).toEqual([]);
  });

  it('when the password was replaced does not go on with a code either', async () => {
    const who = await personWith(test, 'code@example.com', from);
    const secret = await turnOn(who);
    const browser = browserOf(test.url);
    expect((await signInWhile(browser, 'code@example.com', (tx) => setPassword(tx, who))).status).toBe(401);
    expect((await browser.post('/auth/two-factor/verify-totp', { code: totpOf(secret) }, from)).status).toBe(401);
    expect(await sessionsOf(who)).toEqual([]);
  });

  it('when a second factor was turned on opens nothing without it', async () => {
    const who = await personWith(test, 'factor@example.com', from);
    const browser = browserOf(test.url);
    const turnOnAtOnce = (tx: Tx) =>
      tx.query('update auth."user" set "twoFactorEnabled" = true where id = $1', [who.user_id]);
    expect((await signInWhile(browser, 'factor@example.com', turnOnAtOnce)).status).toBe(401);
    expect(await sessionsOf(who)).toEqual([]);
  });

  it('when nothing of it changed goes on', async () => {
    await personWith(test, 'same@example.com', from);
    const browser = browserOf(test.url);
    expect((await signInWhile(browser, 'same@example.com', async () => undefined)).status).toBe(200);
    expect((await browser.get('/dash/me')).status).toBe(200);
  });
});

it('a password that is replaced while its hash waits turns no second factor off', async () => {
  const { password_hashes } = test.app.limits;
  const who = await personWith(test, 'waits@example.com', from);
  await turnOn(who);
  const taken = Array.from({ length: password_hashes.bound }, () => password_hashes.tryAcquire(''));
  const answering = who.post('/auth/two-factor/disable', { password }, from);
  await expect.poll(() => password_hashes.state.waiting).toBe(1);
  await setPassword(test.app.db, who);
  for (const permit of taken) permit?.release();
  expect((await answering).status).toBe(400);
  const factors = await test.app.db.query('select "twoFactorEnabled" as is_on from auth."user" where id = $1', [
    who.user_id,
  ]);
  expect(factors).toEqual([{ is_on: true }]);
  expect(await sessionsOf(who)).toEqual([]);
});
