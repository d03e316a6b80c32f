import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ownerOfNew, signInAs, okBody, type Someone } from '../../dashboard/people.ts';
import { startTestApp, type TestApp } from '../../helpers/app.ts';
import { startMailServer, type MailServer } from '../../helpers/mail-server.ts';
import { browserOf } from '../../helpers/person.ts';
import { secretOf, totpOf } from '../../helpers/totp.ts';

let server: MailServer;
let test: TestApp;
let inviter: Someone;

const password = 'correct horse battery';
const stolen = 'the other one has this';

beforeAll(async () => {
  server = await startMailServer();
  const mail = `mail: { url: "${server.reference}", from: "Medley <medley@example.com>" }`;
  const yaml = `version: 1\n${mail}\nserver: { trusted_proxies: [127.0.0.1/32] }\n`;
  test = await startTestApp({ worker: false, yaml });
  inviter = await ownerOfNew(test, 'Inviting');
});

afterAll(async () => {
  await test.stop();
  await server.stop();
});

let address = 0;

/** Tries are counted by address. */
const from = () => ({ 'x-forwarded-for': `203.0.113.${(address += 1)}` });

const signIn = async (email: string, word: string) =>
  browserOf(test.url).post('/auth/sign-in/email', { email, password: word }, from());

const mailsTo = (email: string) => server.mails.filter(({ to }) => to.includes(email));

/** The link of the newest mail to this address. */
async function linkTo(email: string, count = 1): Promise<URL> {
  await expect.poll(() => mailsTo(email).length).toBeGreaterThanOrEqual(count);
  return new URL(/https?:\S+/.exec(mailsTo(email).at(-1)?.text ?? '')?.[0] ?? '');
}

const confirm = async (link: URL) =>
  browserOf(test.url).post('/auth/confirm-email', { token: link.searchParams.get('token') }, from());

/** Somebody who claims this address. Waits for the mail about it: it is sent behind the answer. */
async function setUp(email: string, word = password): Promise<Someone> {
  const who = await ownerOfNew(test);
  const mails_before = mailsTo(email).length;
  okBody(await who.post('/auth/set-up', { email, name: 'Somebody', password: word }, from()));
  await expect.poll(() => mailsTo(email).length).toBeGreaterThan(mails_before);
  return who;
}

/** Joins by the mailed link of an invitation to this address. */
async function joinByMail(email: string, count = 1): Promise<number> {
  okBody(await inviter.post(`${inviter.base}/team/invitations`, { email, role: 'viewer' }));
  const { searchParams } = await linkTo(email, count);
  const body = { id: searchParams.get('id'), proof: searchParams.get('proof'), name: 'Owner', password };
  return (await browserOf(test.url).post('/auth/join', body, from())).status;
}

describe('an e-mail address', () => {
  it('counts once the link that was mailed to it has been followed, and not before', async () => {
    const who = await setUp('anna@example.com');
    expect((await signIn('anna@example.com', password)).status).toBe(401);
    expect((await who.get('/dash/me')).json).toMatchObject({
      user: { is_new: false, email_proved: false, email_claim: 'anna@example.com' },
      mails: true,
    });
    const link = await linkTo('anna@example.com');
    expect(link.pathname).toBe('/confirm-email');
    expect((await confirm(link)).json).toEqual({ email: 'anna@example.com' });
    expect((await confirm(link)).status).toBe(400);
    expect((await signIn('anna@example.com', password)).status).toBe(200);
    expect((await who.get('/dash/me')).json).toMatchObject({
      user: { email: 'anna@example.com', email_proved: true, email_claim: null },
    });
  });

  it("of somebody else cannot be taken: its owner is invited, joins and signs in without anybody else's factor", async () => {
    const thief = await setUp('victim@example.com', stolen);
    const { totpURI } = okBody<{ totpURI: string }>(await thief.post('/auth/two-factor/enable', { password: stolen }));
    okBody(await thief.post('/auth/two-factor/verify-totp', { code: totpOf(secretOf(totpURI)) }));
    expect(await joinByMail('victim@example.com', 2)).toBe(200);
    const own = await signIn('victim@example.com', password);
    expect([own.status, own.text.includes('twoFactorRedirect')]).toEqual([200, false]);
    expect((await signIn('victim@example.com', stolen)).status).toBe(401);
    const first = server.mails.find(({ to, text }) => to.includes('victim@example.com') && text.includes('confirm'));
    expect((await confirm(new URL(/https?:\S+/.exec(first?.text ?? '')?.[0] ?? ''))).status).toBe(400);
  });

  it('that was claimed without proof goes to whoever proves it, with or without a second factor', async () => {
    const holder = await setUp('old@example.com', stolen);
    const { totpURI } = okBody<{ totpURI: string }>(await holder.post('/auth/two-factor/enable', { password: stolen }));
    okBody(await holder.post('/auth/two-factor/verify-totp', { code: totpOf(secretOf(totpURI)) }));
    // as it was while the service sent no mail
    await test.app.db.query(`update auth."user" set email = 'old@example.com' where id = $1`, [holder.user_id]);
    expect((await signIn('old@example.com', stolen)).json).toMatchObject({ twoFactorRedirect: true });
    const owner = await setUp('old@example.com');
    expect((await confirm(await linkTo('old@example.com', 2))).status).toBe(200);
    expect((await signIn('old@example.com', stolen)).status).toBe(401);
    expect((await signIn('old@example.com', password)).json).not.toHaveProperty('twoFactorRedirect');
    expect((await owner.get('/dash/me')).json).toMatchObject({ user: { email: 'old@example.com' } });
    const again = await signInAs(test, holder.user_id, holder.account_id);
    expect((await again.get('/dash/me')).json).toMatchObject({
      user: { email: `${holder.user_id}@medley.invalid`, email_proved: false },
    });
  });

  it('that is proved stays with its owner when somebody else claims it, and the owner gets a mail without a link that moves it', async () => {
    okBody(await confirm(await linkTo((await setUp('kept@example.com')) && 'kept@example.com')));
    const other = await setUp('kept@example.com', stolen);
    const { pathname, searchParams } = await linkTo('kept@example.com', 2);
    expect([pathname, searchParams.has('token')]).toEqual(['/sign-in', false]);
    expect((await other.get('/dash/me')).json).toMatchObject({ user: { email_claim: 'kept@example.com' } });
    expect((await signIn('kept@example.com', password)).status).toBe(200);
    expect(await joinByMail('kept@example.com', 3)).toBe(409); // who has that mail may know
  });

  it.each([
    ['password', 'change-password', { currentPassword: password, newPassword: 'another horse battery' }],
    ['second factor', 'two-factor/enable', { password }],
    ['sign-out everywhere', 'end-others', undefined],
  ])('does not move any more by a link that is older than a new %s', async (_, act, body) => {
    const [own, other] = [`own-${act.length}@example.com`, `other-${act.length}@example.com`];
    const who = await setUp(own);
    okBody(await confirm(await linkTo(own)));
    okBody(await who.post('/auth/email', { email: other }, from()));
    const link = await linkTo(other);
    const answer = await who.post(body ? `/auth/${act}` : `/dash/sessions/${act}`, body, from());
    const { totpURI } = okBody<{ totpURI?: string }>(answer);
    if (totpURI !== undefined)
      okBody(await who.post('/auth/two-factor/verify-totp', { code: totpOf(secretOf(totpURI)) }, from()));
    expect((await confirm(link)).status).toBe(400);
    expect((await who.get('/dash/me')).json).toMatchObject({ user: { email: own, email_claim: null } });
  });

  it('that is the first one of somebody can still be confirmed after they have turned on a second factor', async () => {
    const who = await setUp('required@example.com');
    const { totpURI } = okBody<{ totpURI: string }>(await who.post('/auth/two-factor/enable', { password }, from()));
    okBody(await who.post('/auth/two-factor/verify-totp', { code: totpOf(secretOf(totpURI)) }, from()));
    expect((await confirm(await linkTo('required@example.com'))).status).toBe(200);
  });

  it('that is invited must be proved or come from the mail', async () => {
    const holder = await setUp('half@example.com');
    await test.app.db.query(`update auth."user" set email = 'half@example.com' where id = $1`, [holder.user_id]);
    const invited = okBody<{ link: string }>(
      await inviter.post(`${inviter.base}/team/invitations`, { email: 'half@example.com', role: 'viewer' }),
    );
    const shown = new URL(invited.link).searchParams;
    expect(shown.has('proof')).toBe(false);
    const path = `/dash/invitations/${shown.get('id')}/accept`;
    expect((await holder.post(path)).status).toBe(403);
    expect((await holder.post(path, { proof: 'x'.repeat(43) })).status).toBe(403);
    const { searchParams } = await linkTo('half@example.com', 2);
    expect((await holder.post(path, { proof: searchParams.get('proof') })).status).toBe(200);
  });
});

describe('the existence of an address is not revealed', () => {
  const expectSame = async (ask: (email: string) => Promise<{ status: number; text: string }>) => {
    const [existing, unknown] = [await ask('anna@example.com'), await ask('nobody@example.com')];
    expect([existing.status, existing.text]).toEqual([unknown.status, unknown.text]);
  };

  it('by claiming one, first or later', async () => {
    await expectSame(async (email) => {
      const who = await ownerOfNew(test);
      return who.post('/auth/set-up', { email, name: 'Somebody', password }, from());
    });
    const who = await setUp('curious@example.com');
    await expectSame(async (email) => who.post('/auth/email', { email }, from()));
  });

  it('by inviting one, or joining with the link that is shown', async () => {
    await expectSame(async (email) => {
      const invited = okBody<{ link: string }>(
        await inviter.post(`${inviter.base}/team/invitations`, { email, role: 'viewer' }),
      );
      const id = new URL(invited.link).searchParams.get('id');
      return browserOf(test.url).post('/auth/join', { id, name: 'Somebody', password }, from());
    });
  });

  it('by a wrong password, or by requesting a new one', async () => {
    await expectSame((email) => signIn(email, 'wrong password here'));
    await expectSame((email) => browserOf(test.url).post('/auth/request-password-reset', { email }, from()));
  });
});

describe('without mail', () => {
  it('an address counts for signing in as soon as it is entered, and is not proved', async () => {
    const without = await startTestApp({ worker: false });
    try {
      const who = await ownerOfNew(without);
      okBody(await who.post('/auth/set-up', { email: 'here@example.com', name: 'Somebody', password }));
      const signed_in = browserOf(without.url);
      okBody(await signed_in.post('/auth/sign-in/email', { email: 'here@example.com', password }));
      expect((await signed_in.get('/dash/me')).json).toMatchObject({ user: { email_proved: false }, mails: false });
      expect((await who.post('/auth/email', { email: 'there@example.com' })).status).toBe(409);
      const { link } = okBody<{ link: string }>(
        await who.post(`${who.base}/team/invitations`, { email: 'ola@example.com', role: 'viewer' }),
      );
      const id = new URL(link).searchParams.get('id');
      okBody(await browserOf(without.url).post('/auth/join', { id, name: 'Ola', password }));
      okBody(await browserOf(without.url).post('/auth/sign-in/email', { email: 'ola@example.com', password }));
    } finally {
      await without.stop();
    }
  });
});
