import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAccount } from '../../../src/accounts/accounts.ts';
import { usual_cost } from '../../../src/accounts/sign-in/hashing.ts';
import { makeLoginLink } from '../../../src/accounts/sign-in/login-links.ts';
import { addMember, firstOperator, ownerOf } from '../../../src/accounts/members.ts';
import { startTestApp, type TestApp } from '../../helpers/app.ts';
import { browserOf, type Browser } from '../../helpers/person.ts';
import { secretOf, totpOf } from '../../helpers/totp.ts';

let test: TestApp;
let own: string;
let foreign: string;

const now = () => new Date();
const password = 'correct horse battery';
const trusting = 'version: 1\nserver: { trusted_proxies: [127.0.0.1/32] }\n';

beforeAll(async () => {
  test = await startTestApp({ worker: false, password_cost: usual_cost });
  own = (await createAccount(test.app.db, { name: 'Own', currency: 'USD', initial_credit: 0n }, now())).id;
  foreign = (await createAccount(test.app.db, { name: 'Foreign', currency: 'USD', initial_credit: 0n }, now())).id;
});

afterAll(() => test.stop());

/** Somebody who has just followed their link. */
async function arrive(user_id: string): Promise<Browser> {
  const browser = browserOf(test.url);
  const link = await makeLoginLink(test.app.db, test.url, user_id, now());
  const token = new URL(link).searchParams.get('token');
  expect((await browser.post('/auth/sign-in/link', { token })).status).toBe(200);
  return browser;
}

describe('a sign-in link', () => {
  it('signs its person in once', async () => {
    const user_id = await ownerOf(test.app.db, own, now());
    const link = await makeLoginLink(test.app.db, test.url, user_id, now());
    const token = new URL(link).searchParams.get('token');
    const browser = browserOf(test.url);
    const answers = await Promise.all([1, 2, 3].map(() => browser.post('/auth/sign-in/link', { token })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401, 401]);
    const me = await browser.get('/dash/me');
    expect(me.json).toMatchObject({ user: { id: user_id, is_new: true, is_operator: false } });
    expect(me.json).toMatchObject({ accounts: [{ id: own, name: 'Own', role: 'owner' }] });
  });

  it('expires', async () => {
    const user_id = await ownerOf(test.app.db, own, now());
    const link = await makeLoginLink(test.app.db, test.url, user_id, now(), 0);
    const token = new URL(link).searchParams.get('token');
    expect((await browserOf(test.url).post('/auth/sign-in/link', { token })).status).toBe(401);
  });

  it.each([undefined, '', null, [], 'x'.repeat(200), 'unknown'])('is refused as %j', async (token) => {
    const answer = await browserOf(test.url).post('/auth/sign-in/link', { token });
    expect([400, 401]).toContain(answer.status);
    expect(answer.cookies).toEqual([]);
  });
});

describe('a person', () => {
  it('sets an address and a password, and signs in with them from then on', async () => {
    const operator = await firstOperator(test.app.db, own, now());
    const browser = await arrive(operator);
    const fields = { email: 'Op@Example.com', name: 'Olga', password };
    expect((await browser.post('/auth/set-up', { ...fields, password: 'short' })).status).toBe(400);
    expect((await browser.post('/auth/set-up', fields)).status).toBe(200);
    expect((await browser.post('/auth/set-up', fields)).status).toBe(409);
    expect((await browser.post('/auth/sign-out')).status).toBe(200);
    expect((await browser.get('/dash/me')).status).toBe(401);

    const again = browserOf(test.url);
    expect(
      (await again.post('/auth/sign-in/email', { email: 'op@example.com', password: 'wrong password' })).status,
    ).toBe(401);
    expect((await again.post('/auth/sign-in/email', { email: 'op@example.com', password })).status).toBe(200);
    const me = await again.get('/dash/me');
    expect(me.json).toMatchObject({
      user: { email: 'op@example.com', name: 'Olga', is_operator: true, is_new: false },
    });
  });

  it('cannot sign up, create organisations or become an operator alone', async () => {
    const browser = await arrive(await ownerOf(test.app.db, own, now()));
    const mail = { email: 'new@example.com', password, name: 'New' };
    expect((await browser.post('/auth/sign-up/email', mail)).status).toBe(404);
    expect((await browser.post('/auth/organization/create', { name: 'x', slug: 'x' })).status).toBe(404);
    await browser.post('/auth/update-user', { isOperator: true });
    expect((await browser.get('/dash/me')).json).toMatchObject({ user: { is_operator: false } });
  });
});

describe('a second factor', () => {
  it('is required once it is set up', async () => {
    const browser = await arrive(await ownerOf(test.app.db, foreign, now()));
    const who = { email: 'two@example.com', password };
    await browser.post('/auth/set-up', { ...who, name: 'Two' });
    const enabled = await browser.post('/auth/two-factor/enable', { password });
    const { totpURI: uri, backupCodes: codes } = enabled.json as { totpURI: string; backupCodes: string[] };
    expect(codes.length).toBeGreaterThan(5);
    expect((await browser.post('/auth/two-factor/verify-totp', { code: totpOf(secretOf(uri)) })).status).toBe(200);

    const again = browserOf(test.url);
    const first = await again.post('/auth/sign-in/email', who);
    expect(first.json).toMatchObject({ twoFactorRedirect: true });
    expect((await again.get('/dash/me')).status).toBe(401);
    expect((await again.post('/auth/two-factor/verify-totp', { code: '000000' })).status).toBe(401);
    expect((await again.post('/auth/two-factor/verify-backup-code', { code: codes[0] })).status).toBe(200);
    expect((await again.get('/dash/me')).json).toMatchObject({ user: { two_factor: true } });
  });
});

describe('dashboard requests', () => {
  it('from other sites change nothing', async () => {
    const browser = await arrive(await ownerOf(test.app.db, own, now()));
    const foreign_origin = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    expect((await browser.post('/auth/sign-out', {}, foreign_origin)).status).toBe(403);
    expect((await browser.get('/dash/me')).status).toBe(200);
  });

  it('with an API key reach nothing of the dashboard, and sessions reach nothing of the API', async () => {
    const client = await test.client();
    expect((await client.call('GET', '/dash/me')).status).toBe(401);
    const browser = await arrive(await ownerOf(test.app.db, own, now()));
    expect((await browser.get('/v1/balance')).status).toBe(401);
  });

  it('have cookies that scripts cannot read and that are limited to https when the address is https', async () => {
    const browser = await arrive(await ownerOf(test.app.db, own, now()));
    const [cookie = ''] = browser.set_cookies.filter((text) => text.startsWith('medley.session_token='));
    expect(cookie).toMatch(/HttpOnly/i);
    expect(cookie).toMatch(/SameSite=Lax/i);
  });
});

describe('a session', () => {
  it('of who comes back within its week lasts another one, and so does its cookie, whatever the answer is', async () => {
    const { db } = test.app;
    const user_id = await ownerOf(db, own, now());
    const browser = await arrive(user_id);
    const age = (days: number) =>
      db.query(`update auth.session set "expiresAt" = now() + $2 * interval '1 day' where "userId" = $1`, [
        user_id,
        7 - days,
      ]);
    const daysLeft = async () => {
      const [row] = await db.query<{ days: number }>(
        `select max(extract(epoch from "expiresAt" - now()) / 86400)::float8 as days from auth.session where "userId" = $1`,
        [user_id],
      );
      return row?.days ?? 0;
    };
    await age(0.5);
    expect((await browser.get('/dash/me')).cookies).toEqual([]);
    for (const path of ['/dash/me', `/dash/accounts/${own}/keys?nonsense=1`, '/dash/accounts/acct_none/keys']) {
      await age(5);
      expect((await browser.get('/status.json')).cookies).toEqual([]);
      expect(await daysLeft()).toBeLessThan(2.1); // no cookie, no longer session
      const { cookies } = await browser.get(path);
      expect(cookies).toEqual([expect.stringMatching(/^medley\.session_token=.*Max-Age=604800/)]);
      expect(await daysLeft()).toBeGreaterThan(6.9);
    }
    expect((await browser.get('/dash/me')).cookies).toEqual([]);
    expect((await browser.get('/dash/me')).status).toBe(200);
  });
});

describe('members', () => {
  it('see the accounts that they belong to', async () => {
    const user_id = await ownerOf(test.app.db, own, now());
    await addMember(test.app.db, { account_id: foreign, user_id, role: 'viewer' }, now());
    const { json } = await (await arrive(user_id)).get('/dash/me');
    expect(json).toMatchObject({
      accounts: [
        { id: own, role: 'owner' },
        { id: foreign, role: 'viewer', rights: ['read'] },
      ],
    });
  });
});

// The last: it uses up what this address may try in a minute.
describe('somebody who guesses passwords', () => {
  it('locks nobody out who comes from elsewhere', async () => {
    const behind = await startTestApp({ worker: false, yaml: trusting });
    try {
      const { id } = await createAccount(behind.app.db, { name: 'Own', currency: 'USD', initial_credit: 0n }, now());
      const at = (address: string) => ({ 'x-forwarded-for': address });
      const owner = browserOf(behind.url);
      const link = await makeLoginLink(behind.app.db, behind.url, await ownerOf(behind.app.db, id, now()), now());
      const token = new URL(link).searchParams.get('token');
      await owner.post('/auth/sign-in/link', { token }, at('203.0.113.1'));
      const who = { email: 'known@example.com', password };
      expect((await owner.post('/auth/set-up', { ...who, name: 'K' }, at('203.0.113.1'))).status).toBe(200);
      const guesses = [];
      for (let guess = 0; guess < 12; guess++) {
        const guessed = { ...who, password: `guess ${guess} 12345` };
        guesses.push(await browserOf(behind.url).post('/auth/sign-in/email', guessed, at('198.51.100.66')));
      }
      expect(guesses.map(({ status }) => status)).toContain(429);
      const elsewhere = await browserOf(behind.url).post('/auth/sign-in/email', who, at('203.0.113.7'));
      expect(elsewhere.status).toBe(200);
    } finally {
      await behind.stop();
    }
  });

  it('gets an error for NUL, signed in or not', async () => {
    const answer = await browserOf(test.url).post('/auth/reset-password', { token: 'a\0', newPassword: password });
    expect(answer).toMatchObject({ status: 400, json: { error: { param: 'token' } } });
    const owner = await arrive(await ownerOf(test.app.db, own, now()));
    const lists = ['tasks?model=%00', 'chats?key=%00', 'usage?model=%00', 'usage/charges.csv?model=%00'];
    for (const list of lists) expect((await owner.get(`/dash/accounts/${own}/${list}`)).status).toBe(400);
  });

  it('gets at most ten guesses a minute from one address', async () => {
    const answers = [];
    for (let guess = 0; guess < 12; guess++) {
      const browser = browserOf(test.url);
      answers.push(
        await browser.post('/auth/sign-in/email', { email: 'many@example.com', password: `guess ${guess} 12345` }),
      );
    }
    const refused = answers.filter(({ status }) => status === 429);
    expect(answers.length - refused.length).toBeLessThanOrEqual(10);
    for (const { headers } of refused) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  });
});
