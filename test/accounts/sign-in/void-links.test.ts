import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeLoginLink } from '../../../src/accounts/sign-in/login-links.ts';
import type { Me } from '../../../src/dashboard/views/common.ts';
import { okBody, ownerOfNew, type Someone } from '../../dashboard/people.ts';
import { startTestApp, type TestApp } from '../../helpers/app.ts';
import { browserOf } from '../../helpers/person.ts';
import { secretOf, totpOf } from '../../helpers/totp.ts';
import { startServiceWithMail } from '../service-with-mail.ts';

let test: TestApp;

beforeAll(async () => {
  test = await startTestApp({ worker: false });
});

afterAll(() => test.stop());

const first = 'correct horse battery';
const second = 'another horse battery';

async function withPassword(email: string): Promise<Someone> {
  const who = await ownerOfNew(test);
  await who.post('/auth/set-up', { email, name: 'Somebody', password: first });
  return who;
}

let requests = 0;

type Links = { sign_in: string; reset: string };

async function signInToken(who: Someone): Promise<string> {
  const link = await makeLoginLink(test.app.db, test.url, who.user_id, new Date());
  return new URL(link).searchParams.get('token') ?? '';
}

const follow = async (token: string) => (await browserOf(test.url).post('/auth/sign-in/link', { token })).status;

/** Returns the links that somebody may have read: one that signs in, and one for a new password. */
async function linksOf(who: Someone, email: string): Promise<Links> {
  const sign_in = await signInToken(who);
  await test.app.login.answer({
    method: 'POST',
    path: '/request-password-reset',
    query: '',
    headers: { 'content-type': 'application/json', origin: test.url },
    body: Buffer.from(JSON.stringify({ email })),
    address: `192.0.2.${(requests += 1)}`, // each may ask three times a minute
  });
  const [row] = await test.app.db.query<{ token: string }>(
    `select replace(identifier, 'reset-password:', '') as token from auth.verification
      where value = $1 and identifier like 'reset-password:%' order by "createdAt" desc limit 1`,
    [who.user_id],
  );
  return { sign_in, reset: row?.token ?? '' };
}

async function tryOut({ sign_in, reset }: Links): Promise<number[]> {
  const newPassword = 'the thief knows it';
  const { status } = await browserOf(test.url).post('/auth/reset-password', { token: reset, newPassword });
  return [status, await follow(sign_in)];
}

describe('older sign-in links', () => {
  it('are void once the password has been changed', async () => {
    const who = await withPassword('changed@example.com');
    const before = await linksOf(who, 'changed@example.com');
    const change = { currentPassword: first, newPassword: second };
    expect((await who.post('/auth/change-password', change)).status).toBe(200);
    expect(await tryOut(before)).toEqual([400, 401]);
  });

  it('are void once one of them has set a new password', async () => {
    const who = await withPassword('reset@example.com');
    const before = await linksOf(who, 'reset@example.com');
    const used = await linksOf(who, 'reset@example.com');
    const reset = { token: used.reset, newPassword: second };
    expect((await browserOf(test.url).post('/auth/reset-password', reset)).status).toBe(200);
    expect(await tryOut(before)).toEqual([400, 401]);
    expect(await tryOut(used)).toEqual([400, 401]);
  });

  it('are void once there is a first password', async () => {
    const who = await ownerOfNew(test);
    const before = await signInToken(who);
    await who.post('/auth/set-up', { email: 'fresh@example.com', name: 'Somebody', password: first });
    expect(await follow(before)).toBe(401);
  });

  it('are void once there is a first password, where the address waits for its proof', async () => {
    const mailing = await startServiceWithMail();
    try {
      const who = await ownerOfNew(mailing.test);
      const link = await makeLoginLink(mailing.test.app.db, mailing.test.url, who.user_id, new Date());
      okBody(await who.post('/auth/set-up', { email: 'later@example.com', name: 'Somebody', password: first }));
      const token = new URL(link).searchParams.get('token');
      expect((await browserOf(mailing.test.url).post('/auth/sign-in/link', { token })).status).toBe(401);
      const { user } = okBody<Me>(await who.get('/dash/me'));
      expect(user.email_claim).toBe('later@example.com');
    } finally {
      await mailing.stop();
    }
  });

  it('are void once one of them has set the first password of somebody who comes by an issuer', async () => {
    const who = await withPassword('issuer@example.com');
    await test.app.db.query(
      `update auth.account set "providerId" = 'https://issuer.example', "accountId" = 'x', password = null where "userId" = $1`,
      [who.user_id],
    );
    const before = await linksOf(who, 'issuer@example.com');
    const used = await linksOf(who, 'issuer@example.com');
    const reset = { token: used.reset, newPassword: second };
    expect((await browserOf(test.url).post('/auth/reset-password', reset)).status).toBe(200);
    expect(await tryOut(before)).toEqual([400, 401]);
  });

  it('are void once a second factor is turned on, and once it is turned off', async () => {
    const who = await withPassword('factor@example.com');
    const of_somebody_else = await signInToken(await withPassword('other@example.com'));
    const before = await linksOf(who, 'factor@example.com');
    const { json } = await who.post('/auth/two-factor/enable', { password: first });
    const code = totpOf(secretOf((json as { totpURI: string }).totpURI));
    expect((await who.post('/auth/two-factor/verify-totp', { code })).status).toBe(200);
    expect(await tryOut(before)).toEqual([400, 401]);

    const meanwhile = await signInToken(who);
    expect((await who.post('/auth/two-factor/disable', { password: first })).status).toBe(200);
    expect(await follow(meanwhile)).toBe(401);
    expect(await follow(of_somebody_else)).toBe(200);
  });

  it('remain valid when only a name changes', async () => {
    const who = await withPassword('renamed@example.com');
    const before = await signInToken(who);
    expect((await who.post('/auth/update-user', { name: 'Renamed' })).status).toBe(200);
    expect(await follow(before)).toBe(200);
  });
});
