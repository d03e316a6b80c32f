import assert from 'node:assert/strict';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openIssuers } from '../../../src/accounts/sign-in/issuers.ts';
import { startIssuer, type IssuerImitation, type IssuerPerson, type Misbehaviour } from '../../helpers/issuer.ts';
import { startTestApp, type TestApp } from '../../helpers/app.ts';
import { startMailServer, type MailServer } from '../../helpers/mail-server.ts';
import { whileLocked } from '../../helpers/locked.ts';
import { browserOf, type Browser } from '../../helpers/person.ts';
import { earlierTotp, secretOf, totpOf } from '../../helpers/totp.ts';
import { memberOf, ownerOfNew, signInAs, okBody, type Someone } from '../../dashboard/people.ts';

/** People who come by an issuer, as far as HTTP goes; the browser has a test of its own. */
let mails: MailServer;
let issuer: IssuerImitation;
let test: TestApp;
let clients = 0;

const password = 'correct horse battery';

const yamlWith = (settings: string, more = '') => `version: 1
mail: { url: "${mails.reference}", from: "Medley <medley@example.com>" }
server: { trusted_proxies: [127.0.0.1/32] }
sign_in:
  ${more}
  issuers:
    example: { issuer: "${issuer.url}", name: Example, client_id: medley, client_secret: "${issuer.reference}"${settings} }
`;

beforeAll(async () => {
  [mails, issuer] = await Promise.all([startMailServer(), startIssuer()]);
  test = await startTestApp({ worker: false, yaml: yamlWith('') });
});

afterAll(async () => {
  await test?.stop();
  await Promise.all([mails?.stop(), issuer?.stop()]);
});

afterEach(async () => {
  issuer.person = undefined;
  issuer.misbehaves = undefined;
  issuer.claims_at_userinfo = false;
  await test.configure(yamlWith(''));
});

const from = () => ({ 'x-forwarded-for': `203.0.113.${(clients += 1) % 250}` });

/** Presses the button; returns the address at the issuer. */
async function begin(browser: Browser, body: object = {}, id = 'example'): Promise<string> {
  return okBody<{ url: string }>(await browser.post('/auth/issuer/start', { issuer: id, ...body }, from())).url;
}

/** Is at the issuer as this person, and comes back. Returns the path and the query of the page at the end. */
async function answer(browser: Browser, url: string): Promise<URL> {
  const there = await fetch(url, { redirect: 'manual' });
  const back = (there.headers.get('location') ?? '').slice(test.url.length);
  const { status, headers } = await browser.get(back, from());
  expect(status).toBeLessThan(304);
  const page = new URL(headers.get('location') ?? '');
  expect(page.origin).toBe(new URL(test.url).origin);
  return page;
}

async function come(person: IssuerPerson | undefined, browser = browserOf(test.url), body: object = {}) {
  issuer.person = person;
  const page = await answer(browser, await begin(browser, body));
  const problem = page.searchParams.get('problem');
  return { browser, page: page.pathname + page.search, problem };
}

const emailOf = async (browser: Browser) => {
  const { json, status } = await browser.get('/dash/me');
  return status === 200 ? (json as { user: { email: string } }).user.email : undefined;
};

/** Somebody whose address is proved here. */
async function knownPerson(email: string, is_proved = true): Promise<Someone> {
  const who = await ownerOfNew(test);
  okBody(await who.post('/auth/set-up', { email, name: 'Zoe', password }));
  await test.app.db.query('update auth."user" set email = $2, "emailVerified" = $3 where id = $1', [
    who.user_id,
    email,
    is_proved,
  ]);
  return who;
}

describe('an issuer that proves the address of a person', () => {
  it('signs in whoever has proved the same address here, tells them by mail, and knows them from then on', async () => {
    await knownPerson('anna@example.com');
    const { browser, page } = await come(
      { sub: 'a1', email: 'Anna@Example.com', email_verified: true },
      browserOf(test.url),
      { next: '/activity?tab=chats' },
    );
    expect(page).toBe('/activity?tab=chats');
    expect(await emailOf(browser)).toBe('anna@example.com');
    await expect.poll(() => mails.mails.map(({ text }) => text).join()).toContain('Example signs you in to Medley');
    const [linked] = await test.app.db.query(
      `select actor, details from audit_entries where action = 'person.link_sign_in'`,
    );
    expect(linked).toEqual({ actor: 'anna@example.com', details: { issuer: 'Example', email: 'anna@example.com' } });
    const again = await come({ sub: 'a1', email: 'new-address@example.com', email_verified: false });
    expect(await emailOf(again.browser)).toBe('anna@example.com');
  });

  it('is asked with PKCE, state and nonce, and its tokens are not stored', async () => {
    await knownPerson('pia@example.com');
    await come({ sub: 'p1', email: 'pia@example.com', email_verified: true });
    const query = issuer.authorization_queries.at(-1);
    expect(query?.get('code_challenge_method')).toBe('S256');
    for (const name of ['state', 'nonce', 'code_challenge']) expect(query?.get(name)?.length).toBeGreaterThan(30);
    expect(query?.get('redirect_uri')).toBe(`${test.url}/auth/issuer/callback/example`);
    const rows = await test.app.db.query(
      `select "accessToken", "refreshToken", "idToken" from auth.account where "accountId" = 'p1'`,
    );
    expect(rows).toEqual([{ accessToken: null, refreshToken: null, idToken: null }]);
  });

  it('may have the address at userinfo only', async () => {
    await knownPerson('uma@example.com');
    issuer.claims_at_userinfo = true;
    const { browser } = await come({ sub: 'u1', email: 'uma@example.com', email_verified: 'true' });
    expect(await emailOf(browser)).toBe('uma@example.com');
    issuer.misbehaves = 'userinfo of somebody else';
    expect((await come({ sub: 'u2', email: 'uma@example.com', email_verified: true })).problem).toBe('answer');
  });

  it('asks for the second factor of who has one, and leaves nothing behind before the code', async () => {
    const who = await knownPerson('fay@example.com');
    const { totpURI } = okBody<{ totpURI: string }>(await who.post('/auth/two-factor/enable', { password }, from()));
    const secret = secretOf(totpURI);
    okBody(await who.post('/auth/two-factor/verify-totp', { code: await earlierTotp(secret) }, from()));
    const { browser, page } = await come({ sub: 'f1', email: 'fay@example.com', email_verified: true });
    expect(page).toBe('/sign-in?step=code&next=%2F');
    expect(await emailOf(browser)).toBeUndefined();
    expect(await test.app.db.query(`select 1 from auth.account where "accountId" = 'f1'`)).toEqual([]);
    okBody(await browser.post('/auth/two-factor/verify-totp', { code: totpOf(secret) }, from()));
    expect(await emailOf(browser)).toBe('fay@example.com');
  });

  it('signs in, and is not connected with, who has passkeys and has given none', async () => {
    const who = await knownPerson('kim@example.com');
    await test.app.db.query(
      `insert into passkeys (id, user_id, credential_id, public_key, counter, host, transports, is_synced, name, created_at)
         values ('pk_1', $1, 'a', 'b', 0, 'localhost', '{}', false, 'Key', now())`,
      [who.user_id],
    );
    const { browser } = await come({ sub: 'kim', email: 'kim@example.com', email_verified: true });
    expect(await emailOf(browser)).toBe('kim@example.com');
    expect((await who.get('/dash/sign-ins')).json).toMatchObject({ data: [] });
  });

  it('is as good as a second factor where the operator trusts it with that', async () => {
    const who = await knownPerson('gus@example.com');
    await test.app.db.query('update auth."user" set "twoFactorEnabled" = true where id = $1', [who.user_id]);
    await test.configure(yamlWith(', trusts_second_factor: true'));
    const { browser } = await come({ sub: 'g1', email: 'gus@example.com', email_verified: true });
    expect(await emailOf(browser)).toBe('gus@example.com');
  });
});

describe('an address that is not proved', () => {
  it('at the issuer leads to nobody, known here or not', async () => {
    await knownPerson('victim@example.com');
    for (const email of ['victim@example.com', 'nobody@example.com'])
      for (const email_verified of [false, 'false', undefined]) {
        const { browser, problem } = await come({
          sub: 'evil',
          email,
          ...(email_verified !== undefined && { email_verified }),
        });
        expect(problem).toBe('email_unproved');
        expect(await emailOf(browser)).toBeUndefined();
      }
  });

  it('here leads to nobody: who entered it first may be somebody else', async () => {
    await knownPerson('held@example.com', false);
    const { problem } = await come({ sub: 'h1', email: 'held@example.com', email_verified: true });
    expect(problem).toBe('email_known');
  });

  it('is taken for proved from an issuer of the operator’s own', async () => {
    await knownPerson('olga@example.com');
    await test.configure(yamlWith(', verified_emails: true'));
    const { browser } = await come({ sub: 'o1', email: 'olga@example.com' });
    expect(await emailOf(browser)).toBe('olga@example.com');
  });

  it('does not matter to who connects the issuer themselves', async () => {
    const who = await knownPerson('lea@example.com');
    const { url } = okBody<{ url: string }>(await who.post('/auth/issuer/link', { issuer: 'example' }, from()));
    issuer.person = { sub: 'l1', email: 'other@example.org', email_verified: false };
    expect((await answer(who, url)).search).toBe('?tab=security');
    const { browser } = await come({ sub: 'l1' });
    expect(await emailOf(browser)).toBe('lea@example.com');
  });
});

describe('somebody who comes while the tables of the login do not answer', () => {
  it('reads on the page to try again, and comes in then', async () => {
    await knownPerson('eve@example.com');
    const person = { sub: 'e1', email: 'eve@example.com', email_verified: true };
    await whileLocked(test.app.db, 'auth.session', async () => {
      expect((await come(person)).page).toBe('/sign-in?problem=away');
    });
    expect(await emailOf((await come(person)).browser)).toBe('eve@example.com');
  });
});

describe('somebody new', () => {
  const newcomer = { sub: 'n1', name: 'Nina\u0007 New', email: 'nina@example.com', email_verified: true };

  it('is refused, by default', async () => {
    expect((await come(newcomer)).problem).toBe('unknown_person');
    expect(await test.app.db.query(`select 1 from auth."user" where email = 'nina@example.com'`)).toEqual([]);
  });

  it('gets an account of their own, without money, where the operator wants it', async () => {
    await test.configure(yamlWith(', auto_create: account'));
    const { browser } = await come(newcomer);
    const me = okBody<{ user: { name: string }; accounts: { id: string; role: string }[] }>(
      await browser.get('/dash/me'),
    );
    expect([me.user.name, me.accounts.map(({ role }) => role)]).toEqual(['Nina  New', ['owner']]);
    const balance = okBody<{ available: { amount: string } }>(
      await browser.get(`/dash/accounts/${me.accounts[0]?.id}/balance`),
    );
    expect(balance.available.amount).toBe('0.00');
  });

  it('joins an account with a role, where the operator wants that', async () => {
    const owner = await ownerOfNew(test);
    await test.configure(yamlWith(`, auto_create: join, join: { account: ${owner.account_id}, role: developer }`));
    const { browser } = await come({ sub: 'j1', email: 'jo@example.com', email_verified: true });
    const me = okBody<{ accounts: { id: string; role: string }[] }>(await browser.get('/dash/me'));
    expect(me.accounts).toMatchObject([{ id: owner.account_id, role: 'developer' }]);
    await test.configure(yamlWith(', auto_create: join, join: { account: acct_00000000000000000000000000 }'));
    expect((await come({ sub: 'j2', email: 'jim@example.com', email_verified: true })).problem).toBe('unknown_person');
  });

  it('comes by an invitation of their address, and presses its button', async () => {
    const owner = await ownerOfNew(test);
    okBody(await owner.post(`${owner.base}/team/invitations`, { email: 'Ivy@example.com', role: 'billing' }));
    const { browser, page } = await come({ sub: 'i1', email: 'ivy@example.com', email_verified: true });
    const id = new URL(page, test.url).searchParams.get('id') ?? '';
    okBody(await browser.post(`/dash/invitations/${id}/accept`));
    const me = okBody<{ accounts: { role: string }[] }>(await browser.get('/dash/me'));
    expect(me.accounts.map(({ role }) => role)).toEqual(['billing']);
  });

  it('is kept out by their domain, as everybody is', async () => {
    await test.configure(yamlWith(', auto_create: account, email_domains: [example.com]'));
    expect((await come({ sub: 'd1', email: 'a@evil.example', email_verified: true })).problem).toBe('email_domain');
    expect((await come({ sub: 'd1', email: 'a@sub.example.com', email_verified: true })).problem).toBe('email_domain');
    expect((await come({ sub: 'd1', email: 'a@example.com', email_verified: false })).problem).toBe('email_unproved');
    expect((await come({ sub: 'd1' })).problem).toBe('email_missing');
    expect((await come({ sub: 'd1', email: 'dan@example.com', email_verified: true })).problem).toBeNull();
  });
});

describe('an answer that cannot be trusted', () => {
  const wrong: [Misbehaviour, string][] = [
    ['wrong nonce', 'answer'],
    ['wrong audience', 'answer'],
    ['wrong issuer', 'answer'],
    ['wrong signature', 'answer'],
    ['unsigned', 'answer'],
    ['signed with the secret', 'answer'],
    ['another authorized party', 'answer'],
    ['no ID token', 'answer'],
    ['code refused', 'answer'],
    ['answers as another issuer', 'answer'],
    ['expired', 'clock'],
    ['from the future', 'clock'],
    ['token endpoint 500', 'unreachable'],
    ['token endpoint silent', 'unreachable'],
  ];

  it.each(wrong)('(%s) signs nobody in, and the page is told "%s"', async (misbehaviour, problem) => {
    issuer.misbehaves = misbehaviour;
    const { browser, ...rest } = await come({ sub: 'a1', email: 'anna@example.com', email_verified: true });
    expect(rest.problem).toBe(problem);
    expect(await emailOf(browser)).toBeUndefined();
  });

  it('of a person who declined says so', async () => {
    expect((await come(undefined)).page).toBe('/sign-in?problem=denied&issuer=example&next=%2F');
  });

  it('is an old one where a fresh one was asked for', async () => {
    issuer.misbehaves = 'old password';
    const { problem } = await come({ sub: 'a1' }, browserOf(test.url), { fresh: true });
    expect(problem).toBe('not_fresh');
    expect(issuer.authorization_queries.at(-1)?.get('prompt')).toBe('login');
  });

  it('is one for another browser, for nobody, or a second time', async () => {
    await knownPerson('max@example.com');
    issuer.person = { sub: 'm1', email: 'max@example.com', email_verified: true };
    const mine = browserOf(test.url);
    const there = await fetch(await begin(mine), { redirect: 'manual' });
    const back = (there.headers.get('location') ?? '').slice(test.url.length);
    const problemOf = async (browser: Browser) =>
      new URL((await browser.get(back, from())).headers.get('location') ?? '').searchParams.get('problem');
    expect(await problemOf(browserOf(test.url))).toBe('expired');
    expect(await problemOf(mine)).toBeNull();
    expect(await problemOf(mine)).toBe('expired');
    expect((await mine.get('/auth/issuer/callback/example', from())).headers.get('location')).toContain(
      'problem=expired',
    );
  });

  it('leads to pages of this service alone', async () => {
    await knownPerson('ned@example.com');
    const person = { sub: 'ned', email: 'ned@example.com', email_verified: true };
    for (const next of ['//evil.example', '/\\evil.example', 'https://evil.example', '/x/..//evil.example', 7])
      expect((await come(person, browserOf(test.url), { next })).page).toBe('/');
  });
});

it('an issuer whose keys are new is asked for them again, but not at the will of strangers', async () => {
  let now_ms = Date.now();
  const client = openIssuers({ guard: test.app.guard, now: () => new Date(now_ms) });
  const settings = test.app.catalog.current.settings.sign_in.issuers[0];
  assert(settings);
  issuer.person = { sub: 'k1' };
  const comes = async () => {
    const [redirect_uri, state, nonce, verifier] = [`${test.url}/x`, 's', 'n', 'v'];
    const handshake = { redirect_uri, state, nonce, verifier, fresh: false };
    const there = await fetch(await client.begin(settings, handshake), { redirect: 'manual' });
    const code = new URL(there.headers.get('location') ?? '').searchParams.get('code') ?? '';
    return client.identify(settings, { ...handshake, code, iss: undefined });
  };
  expect((await comes()).subject).toBe('k1');
  issuer.rotateKeys();
  await expect(comes()).rejects.toThrow('no key of the issuer fits');
  now_ms += 11_000;
  expect((await comes()).subject).toBe('k1');
});

describe('a connection', () => {
  it('is listed, and ended by who has proved themselves, but not the last way in', async () => {
    const who = await knownPerson('una@example.com');
    await come({ sub: 'una', email: 'una@example.com', email_verified: true });
    const { data } = okBody<{ data: { id: string; name: string; email: string }[] }>(await who.get('/dash/sign-ins'));
    expect(data).toMatchObject([{ name: 'Example', email: 'una@example.com', issuer_id: 'example' }]);
    const path = `/dash/sign-ins/${data[0]?.id}`;
    const other = await memberOf(test, who, 'viewer');
    expect((await other.send('DELETE', path)).status).toBe(404);
    await test.app.db.query(`delete from auth.account where "userId" = $1 and "providerId" = 'credential'`, [
      who.user_id,
    ]);
    expect((await who.send('DELETE', path)).status).toBe(409);
    await test.configure(yamlWith('', 'password: true'));
    await test.app.db.query(
      `insert into auth.account (id, "accountId", "providerId", "userId", password, "updatedAt") values ('x', $1, 'credential', $1, 'x', now())`,
      [who.user_id],
    );
    okBody(await who.send('DELETE', path));
    expect((await come({ sub: 'una' })).problem).toBe('email_missing');
  });

  it('is of one person: nobody else can be connected with the same', async () => {
    await knownPerson('rob@example.com');
    await come({ sub: 'rob', email: 'rob@example.com', email_verified: true });
    const other = await knownPerson('sue@example.com');
    const { url } = okBody<{ url: string }>(await other.post('/auth/issuer/link', { issuer: 'example' }, from()));
    issuer.person = { sub: 'rob' };
    expect((await answer(other, url)).searchParams.get('problem')).toBe('linked_elsewhere');
  });

  it('asks for a recent proof, and for the session that began it', async () => {
    const who = await knownPerson('tom@example.com');
    const link = () => who.post('/auth/issuer/link', { issuer: 'example' }, from());
    const { url } = okBody<{ url: string }>(await link());
    await test.app.db.query(
      `update auth.session set "createdAt" = now() - interval '16 min', "provedAt" = null where "userId" = $1`,
      [who.user_id],
    );
    expect((await link()).status).toBe(403);
    await test.app.db.query('delete from auth.session where "userId" = $1', [who.user_id]);
    issuer.person = { sub: 'tom' };
    expect((await answer(who, url)).searchParams.get('problem')).toBe('expired');
  });
});

describe('a service without passwords', () => {
  it('takes none, makes none, and says what to do instead', async () => {
    await knownPerson('val@example.com');
    await test.configure(yamlWith('', 'password: false'));
    const browser = browserOf(test.url);
    for (const path of [
      '/sign-in/email',
      '/set-up',
      '/join',
      '/change-password',
      '/request-password-reset',
      '/reset-password',
    ]) {
      const { status, text } = await browser.post(`/auth${path}`, { email: 'val@example.com', password }, from());
      expect([path, status, text]).toEqual([path, 403, expect.stringContaining('Sign in with Example.')]);
    }
    const { browser: val } = await come({ sub: 'val', email: 'val@example.com', email_verified: true });
    expect(await emailOf(val)).toBe('val@example.com');
    expect((await val.post('/auth/prove', { password }, from())).status).toBe(403);
    const textOf = () =>
      mails.mails.find(({ to, text }) => to.includes('val@example.com') && /signs you in/.test(text));
    await expect.poll(textOf).toMatchObject({ text: expect.stringContaining('sign out everywhere else in Settings') });
    expect(textOf()?.text).not.toContain('password');
  });

  it('asks whoever has one for a recent proof instead, to turn a second factor on, renew its codes and turn it off', async () => {
    const who = await knownPerson('quinn@example.com');
    const hasPassword = async () => ((await who.get('/dash/me')).json as { user: { has_password: boolean } }).user;
    expect(await hasPassword()).toMatchObject({ has_password: true });
    await test.configure(yamlWith('', 'password: false'));
    expect(await hasPassword()).toMatchObject({ has_password: false });
    const provedAt = (time: string) =>
      test.app.db.query(`update auth.session set "provedAt" = ${time} where "userId" = $1`, [who.user_id]);
    for (const path of ['enable', 'generate-backup-codes', 'disable']) {
      const act = (body: object) => who.post(`/auth/two-factor/${path}`, body, from());
      await provedAt(`now() - interval '16 min'`);
      expect((await act({ password })).json).toMatchObject({ error: { code: 'proof_required' } });
      await provedAt('now()');
      const { totpURI } = okBody<{ totpURI?: string }>(await act({}));
      if (totpURI === undefined) continue;
      const code = await earlierTotp(secretOf(totpURI));
      okBody(await who.post('/auth/two-factor/verify-totp', { code }, from()));
    }
  });

  it('still has links of the operator: who comes by one connects an issuer, and has its address', async () => {
    await test.configure(yamlWith('', 'password: false'));
    const who = await ownerOfNew(test);
    const { url } = okBody<{ url: string }>(await who.post('/auth/issuer/link', { issuer: 'example' }, from()));
    issuer.person = { sub: 'wes', email: 'wes@example.com', email_verified: true };
    await answer(who, url);
    expect(await emailOf(who)).toBe('wes@example.com');
  });
});

it('a person without a password sets up a second factor with a recent proof instead', async () => {
  await test.configure(yamlWith(', auto_create: account'));
  const { browser } = await come({ sub: 'xia', email: 'xia@example.com', email_verified: true });
  const enable = () => browser.post('/auth/two-factor/enable', { password: '' }, from());
  await test.app.db.query(`update auth.session set "createdAt" = now() - interval '16 min', "provedAt" = null`);
  expect((await enable()).json).toMatchObject({ error: { code: 'proof_required' } });
  const again = await come({ sub: 'xia' }, browser);
  expect(again.problem).toBeNull();
  expect(okBody<{ totpURI: string }>(await enable()).totpURI).toMatch(/^otpauth:/);
});

it('a sign-in at an issuer is proof of who is there since the time at which they gave their password there', async () => {
  await test.configure(yamlWith(', auto_create: account'));
  const ruth = { sub: 'ruth', email: 'ruth@example.com', email_verified: true };
  issuer.misbehaves = 'old password';
  const { browser } = await come(ruth);
  expect(await emailOf(browser)).toBe('ruth@example.com');
  const enable = () => browser.post('/auth/two-factor/enable', {}, from());
  expect((await enable()).json).toMatchObject({ error: { code: 'proof_required' } });
  issuer.misbehaves = undefined;
  expect((await come(ruth, browser, { fresh: true })).problem).toBeNull();
  expect(okBody<{ totpURI: string }>(await enable()).totpURI).toMatch(/^otpauth:/);
});

describe('GitHub', () => {
  const yaml = () => `version: 1
sign_in:
  issuers:
    github: { issuer: "${issuer.url}", client_id: medley, client_secret: "${issuer.reference}" }
`;

  it('names people by their number and their proved primary address', async () => {
    await knownPerson('octo@example.com');
    await test.configure(yaml());
    const browser = browserOf(test.url);
    issuer.person = { sub: '583231', name: 'Octo', email: 'octo@example.com', email_verified: true };
    expect((await answer(browser, await begin(browser, {}, 'github'))).pathname).toBe('/');
    expect(await emailOf(browser)).toBe('octo@example.com');
  });

  it('may have an address that is not proved, and an answer that is none', async () => {
    await test.configure(yaml());
    const browser = browserOf(test.url);
    issuer.person = { sub: '7', email: 'octo@example.com', email_verified: false };
    const first = await answer(browser, await begin(browser, {}, 'github'));
    expect(first.searchParams.get('problem')).toBe('email_unproved');
    issuer.misbehaves = 'code refused';
    const second = await answer(browser, await begin(browser, {}, 'github'));
    expect(second.searchParams.get('problem')).toBe('answer');
  });
});

describe('an issuer that cannot be used', () => {
  it.each(['discovery 500', 'discovery of another issuer'] as const)(
    '(%s) is said to be out of reach',
    async (misbehaviour) => {
      const other = await startIssuer(); // nobody remembers what it said before
      try {
        other.misbehaves = misbehaviour;
        await test.configure(`version: 1
sign_in:
  issuers:
    example: { issuer: "${other.url}", name: Example, client_id: medley, client_secret: "${other.reference}" }
`);
        const refused = await browserOf(test.url).post('/auth/issuer/start', { issuer: 'example' });
        expect([refused.status, refused.json]).toEqual([
          502,
          { message: expect.stringContaining('Example cannot be reached.') },
        ]);
        other.misbehaves = undefined; // a failure is not remembered
        okBody(await browserOf(test.url).post('/auth/issuer/start', { issuer: 'example' }));
      } finally {
        await other.stop();
      }
    },
  );

  it('does not keep others from signing in', async () => {
    const who = await ownerOfNew(test);
    await test.configure(`version: 1
sign_in:
  issuers:
    example: { issuer: "http://127.0.0.1:9", client_id: medley, client_secret: "${issuer.reference}" }
`);
    expect((await browserOf(test.url).post('/auth/issuer/start', { issuer: 'example' })).status).toBe(502);
    await signInAs(test, who.user_id, who.account_id);
  });
});
