// isolated: it stops the monotonic clock of its process
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { okBody } from '../../dashboard/people.ts';
import type { TestApp } from '../../helpers/app.ts';
import { stopElapsing, testClock } from '../../helpers/clock.ts';
import type { MailServer } from '../../helpers/mail-server.ts';
import { browserOf, type Browser } from '../../helpers/person.ts';
import { secretOf, totpOf } from '../../helpers/totp.ts';
import { password, personWith, startServiceWithMail } from '../service-with-mail.ts';

/** Somebody tries the passwords of an address, from many places. */
let server: MailServer;
let test: TestApp;
let stop: () => Promise<void>;

beforeAll(async () => {
  const clock = testClock();
  clock.stop(Date.now()); // what has to wait still has to, however slow this machine is
  stopElapsing(true); // and what was counted in the last minute still counts
  ({ test, server, stop } = await startServiceWithMail({}, { clock }));
});

afterAll(() => stop());

beforeEach(() => void (server.mails.length = 0));

let place = 0;

/** An address that nobody has come from yet. */
const elsewhere = () => ({ 'x-forwarded-for': `198.18.${Math.floor(++place / 250)}.${place % 250}` });

const signIn = (browser: Browser, email: string, word: string, from: Record<string, string>) =>
  browser.post('/auth/sign-in/email', { email, password: word }, from);

/** So many wrong tries that the address is refused from everywhere; a few at once, which a busy database takes, too. */
async function attack(email: string): Promise<void> {
  const guess = () => signIn(browserOf(test.url), email, 'a wrong guess', elsewhere());
  const statuses: number[] = [];
  while (statuses.length < 120 && !statuses.includes(429)) {
    const answers = await Promise.all(Array.from({ length: 5 }, guess));
    statuses.push(...answers.map(({ status }) => status));
  }
  expect(statuses.indexOf(429)).toBeGreaterThan(90);
  expect((await signIn(browserOf(test.url), email, password, elsewhere())).status).toBe(429);
}

async function linkTo(email: string): Promise<URL> {
  const find = () => server.mails.find(({ to, subject }) => to.includes(email) && subject.includes('link to sign in'));
  const mail = await vi.waitUntil(find, { timeout: 120_000 });
  return new URL(/https?:\S+/.exec(mail.text)?.[0] ?? '');
}

describe('after a hundred wrong tries from many places', () => {
  let trusted: Browser;
  let other: Browser;

  beforeAll(async () => {
    await personWith(test, 'zoe@example.com', elsewhere());
    await personWith(test, 'first@example.com', elsewhere());
    [trusted, other] = [browserOf(test.url), browserOf(test.url)];
    for (const [browser, email] of [
      [trusted, 'zoe@example.com'],
      [other, 'first@example.com'],
    ] as const) {
      okBody(await signIn(browser, email, password, elsewhere()));
      await browser.post('/auth/sign-out');
    }
    await attack('zoe@example.com');
  });

  it('the owner signs in from a browser that signed in before', async () => {
    expect((await signIn(trusted, 'zoe@example.com', 'not my password', elsewhere())).status).toBe(401);
    expect((await signIn(trusted, 'zoe@example.com', password, elsewhere())).status).toBe(200);
    expect((await trusted.get('/dash/me')).status).toBe(200);
  });

  it('the cookie of a browser of another address is no help, nor is one that was made up', async () => {
    const [cookie = ''] = other.set_cookies.filter((text) => text.startsWith('medley.browser='));
    expect(cookie).toMatch(/HttpOnly; SameSite=Lax/);
    expect((await signIn(other, 'zoe@example.com', password, elsewhere())).status).toBe(429);
    const forged = { ...elsewhere(), cookie: `medley.browser=aaaaaaaaaaaaaaaa.${'A'.repeat(43)}` };
    expect((await signIn(browserOf(test.url), 'zoe@example.com', password, forged)).status).toBe(429);
  });

  it('the owner signs in by a link from their mail, in a browser that was never here', async () => {
    const fresh = browserOf(test.url);
    okBody(await fresh.post('/auth/sign-in/mail', { email: 'Zoe@example.com' }, elsewhere()));
    const token = (await linkTo('zoe@example.com')).searchParams.get('token');
    expect((await fresh.post('/auth/sign-in/link', { token }, elsewhere())).status).toBe(200);
    expect((await fresh.get('/dash/me')).json).toMatchObject({ user: { email: 'zoe@example.com' } });
    expect((await browserOf(test.url).post('/auth/sign-in/link', { token }, elsewhere())).status).toBe(401);
  });
});

describe('a browser that signed in before', () => {
  it('has a few tries, then waits longer and longer', async () => {
    await personWith(test, 'tries@example.com', elsewhere());
    const own = browserOf(test.url);
    await signIn(own, 'tries@example.com', password, elsewhere());
    await own.post('/auth/sign-out');
    const statuses = [];
    for (let guess = 0; guess < 7; guess++) {
      statuses.push((await signIn(own, 'tries@example.com', `wrong password ${guess}`, elsewhere())).status);
    }
    expect(statuses.slice(0, 5)).toEqual([401, 401, 401, 401, 401]);
    expect(statuses.at(-1)).toBe(429);
  });
});

describe('a link by mail', () => {
  it('asks for the second factor', async () => {
    const who = await personWith(test, 'factor@example.com', elsewhere());
    const { totpURI } = okBody<{ totpURI: string }>(
      await who.post('/auth/two-factor/enable', { password }, elsewhere()),
    );
    const code = (steps: number) => totpOf(secretOf(totpURI), steps);
    okBody(await who.post('/auth/two-factor/verify-totp', { code: code(0) }, elsewhere()));
    const fresh = browserOf(test.url);
    okBody(await fresh.post('/auth/sign-in/mail', { email: 'factor@example.com' }, elsewhere()));
    const token = (await linkTo('factor@example.com')).searchParams.get('token');
    const followed = await fresh.post('/auth/sign-in/link', { token }, elsewhere());
    expect(followed.json).toEqual({ twoFactorRedirect: true });
    expect((await fresh.get('/dash/me')).status).toBe(401);
    expect((await fresh.post('/auth/two-factor/verify-totp', { code: '000000' }, elsewhere())).status).toBe(401);
    okBody(await fresh.post('/auth/two-factor/verify-totp', { code: code(1) }, elsewhere()));
    expect((await fresh.get('/dash/me')).json).toMatchObject({ user: { email: 'factor@example.com' } });
  });

  it('goes to proved addresses only, and the answer is the same for all', async () => {
    const unproved = await personWith(test, 'unproved@example.com', elsewhere());
    await test.app.db.query('update auth."user" set "emailVerified" = false where id = $1', [unproved.user_id]);
    await personWith(test, 'proved@example.com', elsewhere());
    const answers = [];
    for (const email of ['unproved@example.com', 'nobody@example.com', 'proved@example.com']) {
      const { status, text } = await browserOf(test.url).post('/auth/sign-in/mail', { email }, elsewhere());
      answers.push({ status, text });
    }
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    await linkTo('proved@example.com');
    const links = server.mails.filter(({ subject }) => subject.includes('link to sign in'));
    expect(links.flatMap(({ to }) => to)).toEqual(['proved@example.com']);
  });

  it('is sent to one address three times a minute, wherever it is asked for', async () => {
    const ask = (path: string) => browserOf(test.url).post(path, { email: 'flood@example.com' }, elsewhere());
    const paths = ['/auth/sign-in/mail', '/auth/request-password-reset', '/auth/sign-in/mail'];
    for (const path of paths) expect((await ask(path)).status).toBe(200);
    for (const path of paths.slice(0, 2)) {
      const refused = await ask(path);
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    }
  });
});

it('a mail that confirms an address is one of the three a minute', async () => {
  const asking = await personWith(test, 'asking@example.com', elsewhere());
  const ask = () => asking.post('/auth/email', { email: ' Many@example.com ' }, elsewhere());
  for (const _ of [1, 2, 3]) expect((await ask()).status).toBe(200);
  expect((await ask()).status).toBe(429);
  expect(
    (await browserOf(test.url).post('/auth/sign-in/mail', { email: 'many@example.com' }, elsewhere())).status,
  ).toBe(429);
});

it('addresses of one IPv6 /56 are one place for all limits of signing in', async () => {
  const from = (number: number) => ({ 'x-forwarded-for': `2001:db8:aa:bb${number.toString(16).padStart(2, '0')}::1` });
  const statuses = [];
  for (let number = 0; number < 7; number++) {
    statuses.push(
      (await signIn(browserOf(test.url), 'six@example.com', `wrong password ${number}`, from(number))).status,
    );
  }
  expect(statuses.slice(0, 5)).toEqual([401, 401, 401, 401, 401]);
  expect(statuses.at(-1)).toBe(429);
  const next = { 'x-forwarded-for': '2001:db8:aa:cc00::1' };
  expect((await signIn(browserOf(test.url), 'six@example.com', 'wrong password', next)).status).toBe(401);
  // The library's own limit counts by address alone, whatever e-mail is tried.
  const others = [];
  for (let number = 0; number < 12; number++) {
    const at = { 'x-forwarded-for': `2001:db8:dd:ee${number.toString(16).padStart(2, '0')}::1` };
    others.push((await signIn(browserOf(test.url), `p${number}@example.com`, 'wrong password', at)).status);
  }
  expect(others.at(-1)).toBe(429);
});
