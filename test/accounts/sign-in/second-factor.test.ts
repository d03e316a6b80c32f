import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { ownerOfNew, signInAs, okBody, type Someone } from '../../dashboard/people.ts';
import type { TestApp } from '../../helpers/app.ts';
import type { MailServer } from '../../helpers/mail-server.ts';
import { browserOf, type Browser } from '../../helpers/person.ts';
import { earlierTotp, secretOf, totpOf } from '../../helpers/totp.ts';
import { password, personWith, startServiceWithMail } from '../service-with-mail.ts';

let server: MailServer;
let test: TestApp;
let stop: () => Promise<void>;

beforeAll(async () => {
  ({ test, server, stop } = await startServiceWithMail());
});

afterAll(() => stop());

let place = 0;
let from: Record<string, string>;

// Tries are counted by address.
beforeEach(() => void (from = { 'x-forwarded-for': `198.18.0.${++place}` }));

async function turnOn(
  who: Browser,
  codeOf: (secret: string) => string | Promise<string> = totpOf,
): Promise<{ secret: string; code: string; codes: string[] }> {
  const enabled = await who.post('/auth/two-factor/enable', { password }, from);
  const { totpURI, backupCodes: codes } = okBody<{ totpURI: string; backupCodes: string[] }>(enabled);
  const secret = secretOf(totpURI);
  const code = await codeOf(secret);
  okBody(await who.post('/auth/two-factor/verify-totp', { code }, from));
  return { secret, code, codes };
}

/** Somebody who has given their password and is asked for a code. */
async function askedForCode(email: string): Promise<Browser> {
  const browser = browserOf(test.url);
  expect((await browser.post('/auth/sign-in/email', { email, password }, from)).json).toMatchObject({
    twoFactorRedirect: true,
  });
  return browser;
}

const giveCode = async (browser: Browser, code: string) =>
  browser.post('/auth/two-factor/verify-totp', { code, trustDevice: true }, from);

const isIn = async (browser: Browser) => (await browser.get('/dash/me')).status === 200;

async function mailTo(email: string, subject: string): Promise<string> {
  const find = () => server.mails.find((mail) => mail.to.includes(email) && mail.subject === subject);
  return (await vi.waitUntil(find, { timeout: 120_000 })).text;
}

describe('a code of an authenticator', () => {
  it('counts once: neither it nor an earlier one lets anybody in again', async () => {
    const who = await personWith(test, 'once@example.com', from);
    const { secret } = await turnOn(who, earlierTotp);
    const code = totpOf(secret);
    const [first, thief] = [await askedForCode('once@example.com'), await askedForCode('once@example.com')];
    expect((await giveCode(first, code)).status).toBe(200);
    const again = await giveCode(thief, code);
    expect(again).toMatchObject({
      status: 401,
      json: { message: 'This code has been used. Wait for the next one.' },
    });
    expect((await giveCode(thief, totpOf(secret, -1))).status).toBe(401);
    expect(await isIn(thief)).toBe(false);
    expect((await giveCode(thief, totpOf(secret, 1))).status).toBe(200);
    expect(await isIn(thief)).toBe(true);
  });

  it('lets one in of several who give it at the same moment', async () => {
    const who = await personWith(test, 'moment@example.com', from);
    const { secret } = await turnOn(who, earlierTotp);
    const browsers = [];
    for (let number = 0; number < 4; number++) browsers.push(await askedForCode('moment@example.com'));
    const code = totpOf(secret);
    const answers = await Promise.all(browsers.map((browser) => giveCode(browser, code)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401, 401, 401]);
  });

  it('that turned the second factor on signs nobody in', async () => {
    const who = await personWith(test, 'on@example.com', from);
    const { code } = await turnOn(who);
    expect((await giveCode(await askedForCode('on@example.com'), code)).status).toBe(401);
  });
});

describe('other sessions end, and a mail says why,', () => {
  const elsewhereAs = async (who: Someone) => signInAs(test, who.user_id, who.account_id);

  it('with a second factor that is turned on, and with one that is turned off', async () => {
    const who = await personWith(test, 'sessions@example.com', from);
    const other = await elsewhereAs(who);
    await turnOn(who);
    expect([await isIn(who), await isIn(other)]).toEqual([true, false]);
    const text = await mailTo('sessions@example.com', 'The second factor of your sign-in on Medley is on');
    expect(text).toContain(`From the address: ${from['x-forwarded-for']}`);
    const third = await elsewhereAs(who);
    okBody(await who.post('/auth/two-factor/disable', { password }, from));
    expect([await isIn(who), await isIn(third)]).toEqual([true, false]);
    await mailTo('sessions@example.com', 'The second factor of your sign-in on Medley is off');
  });

  it('with a new password, asked for or not', async () => {
    const who = await personWith(test, 'password@example.com', from);
    const other = await elsewhereAs(who);
    const change = { currentPassword: password, newPassword: 'another horse battery', revokeOtherSessions: false };
    okBody(await who.post('/auth/change-password', change, from));
    expect([await isIn(who), await isIn(other)]).toEqual([true, false]);
    await mailTo('password@example.com', 'Your password on Medley has changed');
  });

  it('with a password that was chosen by a link', async () => {
    const who = await personWith(test, 'reset@example.com', from);
    okBody(await browserOf(test.url).post('/auth/request-password-reset', { email: 'reset@example.com' }, from));
    const token = /token=(\S+)/.exec(await mailTo('reset@example.com', 'A new password for Medley'))?.[1];
    const reset = { token, newPassword: 'another horse battery' };
    okBody(await browserOf(test.url).post('/auth/reset-password', reset, from));
    expect(await isIn(who)).toBe(false);
    await mailTo('reset@example.com', 'Your password on Medley has changed');
  });

  it('with a first password', async () => {
    const who = await ownerOfNew(test);
    const other = await elsewhereAs(who);
    okBody(await who.post('/auth/set-up', { email: 'fresh@example.com', name: 'Zoe', password }, from));
    expect([await isIn(who), await isIn(other)]).toEqual([true, false]);
  });

  it('with signing out everywhere, which ends trusted browsers and sign-ins that wait for a code, too', async () => {
    const who = await personWith(test, 'trusted@example.com', from);
    const { secret } = await turnOn(who, earlierTotp);
    const trusted = await askedForCode('trusted@example.com');
    okBody(await giveCode(trusted, totpOf(secret)));
    await trusted.post('/auth/sign-out');
    const credentials = { email: 'trusted@example.com', password };
    okBody(await trusted.post('/auth/sign-in/email', credentials, from));
    expect(await isIn(trusted)).toBe(true); // without a code
    const waiting = await askedForCode('trusted@example.com');
    const { ended } = okBody<{ ended: number }>(await who.post('/dash/sessions/end-others', {}, from));
    expect(ended).toBe(1);
    expect([await isIn(who), await isIn(trusted)]).toEqual([true, false]);
    expect((await giveCode(waiting, totpOf(secret, 1))).status).toBe(401);
    const again = await trusted.post('/auth/sign-in/email', credentials, from);
    expect(again.json).toMatchObject({ twoFactorRedirect: true });
    await mailTo('trusted@example.com', 'You were signed out of Medley everywhere else');
  });

  it('but new backup codes and one that was used are only mailed', async () => {
    const who = await personWith(test, 'backup@example.com', from);
    const { codes } = await turnOn(who);
    const browser = await askedForCode('backup@example.com');
    okBody(await browser.post('/auth/two-factor/verify-backup-code', { code: codes[0] }, from));
    await mailTo('backup@example.com', 'A backup code was used to sign in to Medley');
    okBody(await who.post('/auth/two-factor/generate-backup-codes', { password }, from));
    await mailTo('backup@example.com', 'You have new backup codes for Medley');
    expect([await isIn(who), await isIn(browser)]).toEqual([true, true]);
  });
});

it('a second factor that is on is not replaced by another one: it is turned off first', async () => {
  const who = await personWith(test, 'replaced@example.com', from);
  await turnOn(who);
  expect((await who.post('/auth/two-factor/enable', { password }, from)).status).toBe(409);
});

describe('a password that is easy to guess', () => {
  it('is refused where one is chosen first, changed, or chosen by a link, and stays out of the answer', async () => {
    const fresh = await ownerOfNew(test);
    const easy = await fresh.post(
      '/auth/set-up',
      { email: 'e@example.com', name: 'Zoe', password: 'password123' },
      from,
    );
    expect([easy.status, easy.text]).toEqual([400, expect.stringMatching(/This password is common/)]);
    const own = { email: 'zoe.miller@example.com', name: 'Zoe', password: 'Zoe.Miller99' };
    expect((await fresh.post('/auth/set-up', own, from)).text).toMatch(/your name or your e-mail address/);

    const who = await personWith(test, 'easy.person@example.com', from);
    const change = { currentPassword: password, newPassword: 'qwertyuiop' };
    const changed = await who.post('/auth/change-password', change, from);
    expect([changed.status, changed.text]).toEqual([400, expect.stringMatching(/This password is common/)]);
    okBody(await browserOf(test.url).post('/auth/request-password-reset', { email: 'easy.person@example.com' }, from));
    const token = /token=(\S+)/.exec(await mailTo('easy.person@example.com', 'A new password for Medley'))?.[1];
    const reset = (newPassword: string) =>
      browserOf(test.url).post('/auth/reset-password', { token, newPassword }, from);
    expect((await reset('easy-person-2026')).text).toMatch(/your name or your e-mail address/);
    expect((await reset('another horse battery')).status).toBe(200);
  });

  it('still answers a sign-in as any other wrong password', async () => {
    const credentials = { email: 'nobody@example.com', password: 'password123' };
    expect((await browserOf(test.url).post('/auth/sign-in/email', credentials, from)).status).toBe(401);
  });
});
