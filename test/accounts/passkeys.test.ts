import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { makeLoginLink } from '../../src/accounts/sign-in/login-links.ts';
import type { Me } from '../../src/dashboard/views/common.ts';
import type { PasskeysView } from '../../src/dashboard/views/settings.ts';
import { memberOf, ownerOfNew, signInAs, okBody, type Someone } from '../dashboard/people.ts';
import type { TestApp } from '../helpers/app.ts';
import {
  makeAuthenticator,
  type AssertionAsked,
  type Authenticator,
  type CreationAsked,
  type Deviations,
} from '../helpers/authenticator.ts';
import { localhost } from '../helpers/localhost.ts';
import type { MailServer } from '../helpers/mail-server.ts';
import { browserOf, type Browser, type Seen } from '../helpers/person.ts';
import { secretOf, totpOf } from '../helpers/totp.ts';
import { password, personWith, startServiceWithMail } from './service-with-mail.ts';

/** Passkeys as far as HTTP goes, with an authenticator in software; the browser has a test of its own. */
let server: MailServer;
let test: TestApp;
let yaml: string;
let stop: () => Promise<void>;

beforeAll(async () => {
  ({ test, server, yaml, stop } = await startServiceWithMail(await localhost()));
});

afterAll(() => stop());

let place = 0;
let from: Record<string, string>;

// Tries are counted by address.
beforeEach(() => void (from = { 'x-forwarded-for': `198.18.1.${(place += 1)}` }));

async function add(who: Browser, name = 'Key', deviations: Deviations = {}): Promise<[Authenticator, Seen]> {
  const device = makeAuthenticator(test.url);
  const request = okBody<CreationAsked>(await who.post('/dash/passkeys/start'));
  return [device, await who.post('/dash/passkeys', { name, credential: device.create(request, deviations) })];
}

/** Somebody who has a password, and a passkey on this device. */
async function withPasskey(email: string): Promise<[Someone, Authenticator]> {
  const who = await personWith(test, email, from);
  const [device, answer] = await add(who);
  okBody(answer);
  return [who, device];
}

const start = async (browser: Browser) => okBody<AssertionAsked>(await browser.post('/auth/passkey/start', {}, from));

async function signIn(device: Authenticator, deviations: Deviations = {}, browser = browserOf(test.url)) {
  const request = await start(browser);
  const { status } = await browser.post('/auth/sign-in/passkey', device.get(request, deviations), from);
  return { browser, status };
}

const isIn = async (browser: Browser) => (await browser.get('/dash/me')).status === 200;

const codeOf = ({ json }: Seen) => (json as { error?: { code?: string } } | undefined)?.error?.code;

const lineOf = async (who: Browser) => okBody<PasskeysView>(await who.get('/dash/passkeys'));

async function byPassword(email: string): Promise<Browser> {
  const browser = browserOf(test.url);
  okBody(await browser.post('/auth/sign-in/email', { email, password }, from));
  return browser;
}

async function mailTo(email: string, subject: string): Promise<string> {
  const find = () => server.mails.find((mail) => mail.to.includes(email) && mail.subject === subject);
  return (await vi.waitUntil(find, { timeout: 120_000 })).text;
}

async function anHourLater({ user_id }: Someone): Promise<void> {
  await test.app.db.query(
    `update auth.session set "createdAt" = now() - interval '1 hour', "provedAt" = null where "userId" = $1`,
    [user_id],
  );
}

describe('a passkey', () => {
  it('is added, listed, renamed and removed; its person hears of it, and the audit log has it', async () => {
    const email = 'ada@example.com';
    const [who, device] = await withPasskey(email);
    await mailTo(email, 'A passkey signs you in to Medley from now on');
    const [line] = (await lineOf(who)).data;
    expect(line).toMatchObject({ name: 'Key', used_at: null, is_synced: false, other_host: null });
    const path = `/dash/passkeys/${line?.id}`;
    okBody(await who.send('PATCH', path, { name: 'Blue key' }));
    expect((await signIn(device)).status).toBe(200);
    expect((await lineOf(who)).data).toMatchObject([{ name: 'Blue key', used_at: expect.any(String) }]);
    okBody(await who.send('DELETE', path));
    await mailTo(email, 'A passkey signs you in to Medley no longer');
    expect((await lineOf(who)).data).toEqual([]);
    expect((await signIn(device)).status).toBe(401);
    const entries = await test.app.db.query(
      `select action, details from audit_entries where user_id = $1 and action like 'passkey.%' order by id`,
      [who.user_id],
    );
    expect(entries).toEqual([
      { action: 'passkey.add', details: { name: 'Key' } },
      { action: 'passkey.rename', details: { name: 'Blue key', name_before: 'Key' } },
      { action: 'passkey.remove', details: { name: 'Blue key' } },
    ]);
  });

  it('asks for an authenticator that knows its user, and for no statement about it', async () => {
    const who = await personWith(test, 'bea@example.com', from);
    const request = okBody<Record<string, unknown>>(await who.post('/dash/passkeys/start'));
    expect(request).toMatchObject({
      rp: { id: 'localhost', name: 'Medley' },
      attestation: 'none',
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    });
    expect((request['pubKeyCredParams'] as { alg: number }[]).map(({ alg }) => alg)).toEqual([-8, -7, -257]);
  });

  it('is added twenty times at most, and never twice', async () => {
    const [who, device] = await withPasskey('cid@example.com');
    const request = okBody<CreationAsked & { excludeCredentials: { id: string }[] }>(
      await who.post('/dash/passkeys/start'),
    );
    expect(request.excludeCredentials.map(({ id }) => id)).toEqual([device.id]);
    expect((await who.post('/dash/passkeys', { name: 'Again', credential: device.create(request) })).status).toBe(409);
    await test.app.db.query(
      `insert into passkeys select 'p' || n || $1, user_id, sha256((n || $1)::bytea), public_key, counter, host, transports,
         is_synced, name, created_at from passkeys, generate_series(1, 19) n where user_id = $1`,
      [who.user_id],
    );
    const [, refused] = await add(who);
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('20 passkeys')]);
  });

  it('is refused where its answer does not fit', async () => {
    const who = await personWith(test, 'dan@example.com', from);
    const other = await personWith(test, 'eli@example.com', from);
    const wrong: Deviations[] = [
      { origin: 'http://evil.example' },
      { rp_id: 'evil.example' },
      { is_verified: false },
      { type: 'webauthn.get' },
    ];
    for (const deviations of wrong)
      expect([deviations, (await add(who, 'X', deviations))[1].status]).toEqual([deviations, 400]);
    const { challenge } = okBody<CreationAsked>(await other.post('/dash/passkeys/start'));
    expect((await add(who, 'X', { challenge }))[1].status).toBe(409);
    for (const credential of [undefined, null, 'x', {}, { type: 'public-key', id: '=', response: {} }])
      expect((await who.post('/dash/passkeys', { name: 'X', credential })).status).toBe(400);
    for (const name of ['', ' ', 'a\0b', 'x'.repeat(61), 1]) {
      const request = okBody<CreationAsked>(await who.post('/dash/passkeys/start'));
      const credential = makeAuthenticator(test.url).create(request);
      expect((await who.post('/dash/passkeys', { name, credential })).status).toBe(400);
    }
    expect((await lineOf(who)).data).toEqual([]);
  });

  it('of somebody else is not there', async () => {
    const [who] = await withPasskey('fay@example.com');
    const [stranger] = await withPasskey('gus@example.com');
    const path = `/dash/passkeys/${(await lineOf(who)).data[0]?.id}`;
    expect((await stranger.send('PATCH', path, { name: 'Mine' })).status).toBe(404);
    expect((await stranger.send('DELETE', path)).status).toBe(404);
    expect((await stranger.send('DELETE', '/dash/passkeys/%00')).status).toBe(404);
    expect((await lineOf(who)).data).toMatchObject([{ name: 'Key' }]);
  });

  it('goes with its person', async () => {
    const [who] = await withPasskey('hal@example.com');
    await test.app.db.query('delete from auth."user" where id = $1', [who.user_id]);
    expect(await test.app.db.query('select 1 from passkeys where user_id = $1', [who.user_id])).toEqual([]);
  });
});

describe('signing in by a passkey', () => {
  it('needs no address and no password, and is two factors', async () => {
    const [who, device] = await withPasskey('ida@example.com');
    await test.app.db.query('update accounts set second_factor_required = true where id = $1', [who.account_id]);
    const weak = await byPassword('ida@example.com');
    expect(codeOf(await weak.get(`${who.base}/balance`))).toBe('second_factor_required');
    const { browser } = await signIn(device);
    okBody(await browser.get(`${who.base}/balance`));
    expect(okBody<Me>(await browser.get('/dash/me')).accounts).toMatchObject([{ needs_second_factor: false }]);
  });

  it('asks for no code of an authenticator app, which a password alone does', async () => {
    const [who, device] = await withPasskey('jan@example.com');
    await test.app.db.query('update auth."user" set "twoFactorEnabled" = true where id = $1', [who.user_id]);
    const { browser, status } = await signIn(device);
    expect([status, await isIn(browser)]).toEqual([200, true]);
    const request = browserOf(test.url);
    const answer = await request.post('/auth/sign-in/email', { email: 'jan@example.com', password }, from);
    expect(answer.json).toMatchObject({ twoFactorRedirect: true });
  });

  it('is refused for an answer that is not to this page, this challenge or this person', async () => {
    const [, device] = await withPasskey('kim@example.com');
    const [victim] = await withPasskey('lea@example.com');
    const other_key = makeAuthenticator(test.url);
    const before = await start(browserOf(test.url));
    const wrong: Deviations[] = [
      { origin: 'https://evil.example' },
      { origin: test.url.replace('localhost', '127.0.0.1') },
      { rp_id: 'evil.example' },
      { type: 'webauthn.create' },
      { is_verified: false },
      { user_handle: Buffer.from(victim.user_id).toString('base64url') },
      { user_handle: null },
      { challenge: before.challenge },
      { challenge: Buffer.alloc(56).toString('base64url') },
      { challenge: 'AAAA' },
    ];
    for (const deviations of wrong) {
      const { status, browser } = await signIn(device, deviations);
      expect([deviations, status, await isIn(browser)]).toEqual([deviations, 401, false]);
    }
    expect((await signIn(other_key)).status).toBe(401);
    expect((await signIn(device)).status).toBe(200);
  });

  it('takes an answer once, in the browser that asked, and not after five minutes', async () => {
    const [, device] = await withPasskey('max@example.com');
    const browser = browserOf(test.url);
    const answer = device.get(await start(browser));
    const stranger = browserOf(test.url);
    expect((await stranger.post('/auth/sign-in/passkey', answer, from)).status).toBe(401);
    await start(stranger);
    expect((await stranger.post('/auth/sign-in/passkey', answer, from)).status).toBe(401);
    okBody(await browser.post('/auth/sign-in/passkey', answer, from));
    expect((await browser.post('/auth/sign-in/passkey', answer, from)).status).toBe(401);
    const late = device.get(await start(browser));
    const begun_ms = test.app.clock.now(); // that of the service: it may be ahead of the machine's by milliseconds
    vi.spyOn(test.app.clock, 'now').mockReturnValue(begun_ms + 5 * 60_000 + 1);
    const refused = await browser.post('/auth/sign-in/passkey', late, from);
    vi.restoreAllMocks();
    expect([refused.status, refused.text]).toEqual([401, expect.stringContaining('longer than 5 minutes')]);
  });

  it('takes one of two answers that come at the same moment', async () => {
    const [, device] = await withPasskey('ned@example.com');
    const browser = browserOf(test.url);
    const answer = device.get(await start(browser));
    const both = await Promise.all([1, 2].map(() => browser.post('/auth/sign-in/passkey', answer, from)));
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 401]);
  });

  it('refuses a counter that does not grow, and its person and the audit log hear of the copy', async () => {
    const [who, device] = await withPasskey('oda@example.com');
    expect((await signIn(device, { counter: 7 })).status).toBe(200);
    for (const counter of [7, 3, 0]) expect((await signIn(device, { counter })).status).toBe(401);
    await mailTo('oda@example.com', 'A passkey of yours was refused on Medley: there may be a copy of it');
    const entries = await test.app.db.query(
      `select details from audit_entries where user_id = $1 and action = 'passkey.refuse'`,
      [who.user_id],
    );
    expect(entries).toEqual([{ details: { name: 'Key' } }, { details: { name: 'Key' } }, { details: { name: 'Key' } }]);
    expect((await signIn(device, { counter: 8 })).status).toBe(200);
  });

  it('takes a counter that stays at zero, which synchronised passkeys have', async () => {
    const [, device] = await withPasskey('pam@example.com');
    for (let times = 0; times < 2; times += 1) expect((await signIn(device, { counter: 0 })).status).toBe(200);
  });

  it('tells nobody who has one: the question has no names, and every wrong answer has one text', async () => {
    const [, device] = await withPasskey('quin@example.com');
    const request = await start(browserOf(test.url));
    expect(request).toMatchObject({ allowCredentials: [], rpId: 'localhost', userVerification: 'required' });
    const texts = new Set<string>();
    for (const [key, deviations] of [
      [makeAuthenticator(test.url), {}],
      [device, { is_verified: false }],
      [device, { origin: 'https://evil.example' }],
    ] as const) {
      const browser = browserOf(test.url);
      const answer = key.get(await start(browser), deviations);
      const { json } = await browser.post('/auth/sign-in/passkey', answer, from);
      texts.add((json as { message: string }).message);
    }
    expect([...texts]).toEqual([expect.stringContaining('not known here')]);
  });

  it('works on another node than the one that asked, which knows used answers, too', async () => {
    const [, device] = await withPasskey('rob@example.com');
    const node = await test.beside({ yaml, env: { MEDLEY_BASE_URL: test.url } });
    const browser = browserOf(test.url);
    const answer = device.get(await start(browser));
    const cookie = browser.set_cookies.map((line) => line.split(';')[0]).join('; ');
    const send = async (at: string) => {
      const headers = { cookie, origin: test.url, 'content-type': 'application/json', ...from };
      const body = JSON.stringify(answer);
      const { status } = await fetch(`${at}/auth/sign-in/passkey`, { method: 'POST', headers, body });
      return status;
    };
    expect([await send(node.app.local_url()), await send(test.url)]).toEqual([200, 401]);
    await node.stop();
  });

  it('is tried twenty times a minute from one address', async () => {
    const browser = browserOf(test.url);
    const statuses: number[] = [];
    for (let tries = 0; tries < 21; tries += 1)
      statuses.push((await browser.post('/auth/sign-in/passkey', {}, from)).status);
    expect([statuses.slice(0, 20).every((status) => status === 401), statuses[20]]).toEqual([true, 429]);
  });
});

describe('a proof by a passkey', () => {
  const prove = async (who: Browser, device: Authenticator, deviations: Deviations = {}) => {
    const request = okBody<AssertionAsked>(await who.post('/dash/passkeys/proof/start'));
    return who.post('/dash/passkeys/proof', device.get(request, deviations));
  };

  it('lets an act go on, and gives the session its second factor', async () => {
    const [who, device] = await withPasskey('sam@example.com');
    const weak = await signInAs(test, who.user_id, who.account_id);
    await test.app.db.query('update auth.session set "hasTwoFactors" = null where "userId" = $1', [who.user_id]);
    await anHourLater(who);
    const makeKey = () => weak.post(`${weak.base}/keys`, { name: 'A key' });
    expect(codeOf(await makeKey())).toBe('proof_required');
    expect((await prove(weak, device, { origin: 'https://evil.example' })).status).toBe(400);
    expect((await prove(weak, device, { is_verified: false })).status).toBe(400);
    expect(codeOf(await makeKey())).toBe('proof_required');
    okBody(await prove(weak, device));
    expect((await makeKey()).status).toBe(201);
    await test.app.db.query('update accounts set second_factor_required = true where id = $1', [who.account_id]);
    okBody(await weak.get(`${who.base}/balance`));
  });

  it('is of this person and this session alone', async () => {
    const [who, device] = await withPasskey('tom@example.com');
    const [stranger, other_device] = await withPasskey('uta@example.com');
    expect((await prove(who, other_device)).status).toBe(400);
    const request = okBody<AssertionAsked>(await who.post('/dash/passkeys/proof/start'));
    const answer = device.get(request);
    const again = await signInAs(test, who.user_id, who.account_id);
    expect((await stranger.post('/dash/passkeys/proof', answer)).status).toBe(400);
    expect((await again.post('/dash/passkeys/proof', answer)).status).toBe(400);
    okBody(await who.post('/dash/passkeys/proof', answer));
    expect((await who.post('/dash/passkeys/proof', answer)).status).toBe(400);
    const signing_in = device.get(await start(browserOf(test.url)));
    expect((await who.post('/dash/passkeys/proof', signing_in)).status).toBe(400);
    const newcomer = await ownerOfNew(test);
    expect((await newcomer.post('/dash/passkeys/proof/start')).status).toBe(409);
  });
});

describe('somebody with a stolen password of a person with a passkey', () => {
  it('changes no factor without that passkey', async () => {
    const [who, device] = await withPasskey('vic@example.com');
    const thief = await byPassword('vic@example.com');
    const path = `/dash/passkeys/${(await lineOf(who)).data[0]?.id}`;
    const acts = () => [
      thief.post('/dash/passkeys/start'),
      thief.post('/dash/passkeys', { name: 'Mine', credential: {} }),
      thief.send('DELETE', path),
      thief.post('/auth/two-factor/enable', { password }, from),
    ];
    for (const answer of await Promise.all(acts()))
      expect([answer.status, codeOf(answer)]).toEqual([403, 'passkey_required']);
    const request = okBody<AssertionAsked>(await thief.post('/dash/passkeys/proof/start'));
    okBody(await thief.post('/dash/passkeys/proof', device.get(request)));
    okBody(await thief.send('DELETE', path));
  });

  it('turns on no authenticator that they had begun before there was a passkey', async () => {
    const who = await personWith(test, 'ute@example.com', from);
    const thief = await byPassword('ute@example.com');
    const begin = await thief.post('/auth/two-factor/enable', { password }, from);
    const code = totpOf(secretOf(okBody<{ totpURI: string }>(begin).totpURI));
    const [device, added] = await add(who);
    okBody(added);
    const confirm = () => thief.post('/auth/two-factor/verify-totp', { code }, from);
    const refused = await confirm();
    expect([refused.status, codeOf(refused)]).toEqual([403, 'passkey_required']);
    const request = okBody<AssertionAsked>(await thief.post('/dash/passkeys/proof/start'));
    okBody(await thief.post('/dash/passkeys/proof', device.get(request)));
    okBody(await confirm());
  });

  it('differs from that person with a link of the operator, which is the way back', async () => {
    const [who] = await withPasskey('wim@example.com');
    const lost = browserOf(test.url);
    const link = await makeLoginLink(test.app.db, test.url, who.user_id, new Date());
    okBody(await lost.post('/auth/sign-in/link', { token: new URL(link).searchParams.get('token') }, from));
    okBody(await lost.send('DELETE', `/dash/passkeys/${(await lineOf(lost)).data[0]?.id}`));
    expect((await lineOf(lost)).data).toEqual([]);
    expect(await isIn(who)).toBe(false); // whoever has the device may be somebody else
  });
});

describe('the last way in', () => {
  it('is never removed, be it a passkey or another service', async () => {
    const [who] = await withPasskey('xia@example.com');
    const path = `/dash/passkeys/${(await lineOf(who)).data[0]?.id}`;
    await test.app.db.query(
      `update auth.account set "providerId" = 'https://issuer.example', "accountId" = 'x' where "userId" = $1`,
      [who.user_id],
    );
    const refused = await who.send('DELETE', path);
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('last way to sign in')]);
    const [linked] = okBody<{ data: { id: string }[] }>(await who.get('/dash/sign-ins')).data;
    okBody(await who.send('DELETE', `/dash/sign-ins/${linked?.id}`));
    expect((await who.send('DELETE', path)).status).toBe(409);
  });

  it('is set up before the first passkey', async () => {
    const newcomer = await ownerOfNew(test);
    expect((await newcomer.post('/dash/passkeys/start')).status).toBe(409);
  });
});

describe('where there are no passkeys', () => {
  it('the operator has switched them off', async () => {
    const [who, device] = await withPasskey('yan@example.com');
    await test.configure(`${yaml}sign_in: { passkeys: false }\n`);
    const browser = browserOf(test.url);
    for (const path of ['/auth/passkey/start', '/auth/sign-in/passkey'])
      expect(codeOf(await browser.post(path, {}, from))).toBe('no_passkeys');
    expect(okBody<{ passkeys: boolean }>(await browser.get('/dash/sign-in')).passkeys).toBe(false);
    expect((await who.post('/dash/passkeys/start')).status).toBe(409);
    const { is_on, data } = await lineOf(who);
    expect([is_on, data.length]).toEqual([false, 1]);
    const again = await byPassword('yan@example.com');
    okBody(await again.send('DELETE', `/dash/passkeys/${data[0]?.id}`));
    await test.configure(yaml);
    expect((await signIn(device)).status).toBe(401);
  });

  it.each([
    ['http://127.0.0.1:3000', 'a name only, not at the IP address 127.0.0.1'],
    ['http://medley.example.com', 'over https only'],
    ['https://[::1]', 'a name only, not at the IP address [::1]'],
  ])('the service is at %s, and says so', async (base_url, reason) => {
    const [who] = await withPasskey(`at-${place}@example.com`);
    const node = await test.beside({ yaml, env: { MEDLEY_BASE_URL: base_url } });
    const headers = { ...from, origin: new URL(base_url).origin };
    const there = browserOf(node.app.local_url());
    const answer = await there.post('/auth/passkey/start', {}, headers);
    expect([answer.status, answer.text]).toEqual([409, expect.stringContaining(reason)]);
    expect(okBody<{ passkeys: boolean }>(await there.get('/dash/sign-in')).passkeys).toBe(false);
    const link = await makeLoginLink(test.app.db, test.url, who.user_id, new Date());
    const token = new URL(link).searchParams.get('token');
    okBody(await there.post('/auth/sign-in/link', { token }, headers));
    const view = await lineOf(there);
    expect(view.obstacle).toContain(reason);
    expect(view.data).toMatchObject([{ other_host: 'localhost' }]);
    await node.stop();
  });

  it('nobody has signed in', async () => {
    const nobody = browserOf(test.url);
    for (const path of ['/dash/passkeys/start', '/dash/passkeys', '/dash/passkeys/proof/start', '/dash/passkeys/proof'])
      expect((await nobody.post(path, {})).status).toBe(401);
    expect((await nobody.get('/dash/passkeys')).status).toBe(401);
  });
});

it('a member who has a passkey counts as one with a second factor', async () => {
  const owner = await ownerOfNew(test);
  const member = await memberOf(test, owner, 'viewer');
  okBody(await member.post('/auth/set-up', { email: 'zed@example.com', name: 'Zed', password }, from));
  okBody((await add(member))[1]);
  const { members } = okBody<{ members: { user_id: string; two_factor: boolean }[] }>(
    await owner.get(`${owner.base}/team`),
  );
  expect(members.find(({ user_id }) => user_id === member.user_id)?.two_factor).toBe(true);
});
