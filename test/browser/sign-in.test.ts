import type { BrowserContext, Page, Route } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { makeLoginLink } from '../../src/accounts/sign-in/login-links.ts';
import { ownerOfNew, signInAs, okBody, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, watchedPage } from '../helpers/dashboard.ts';
import { byNight, depth } from '../helpers/depth.ts';
import { startMailServer, type MailServer } from '../helpers/mail-server.ts';
import { earlierTotp, secretOf, totpOf } from '../helpers/totp.ts';

/** Every way in, from where a person begins: an address that was typed, a link, a tab that was left open. */
let server: MailServer;
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let anna: Someone;
let context: BrowserContext;
let page: Page;
let problems: string[];
let client = 0;

const password = 'correct horse battery';
const limit = { timeout: 300_000 };

beforeAll(async () => {
  server = await startMailServer();
  const mail = `mail: { url: "${server.reference}", from: "Medley <medley@example.com>" }`;
  const yaml = `version: 1\n${mail}\nserver: { trusted_proxies: [127.0.0.1/32] }\n`;
  service = await startTestApp({ worker: false, yaml });
  chromium = await launchBrowser();
  anna = await personWith('anna@example.com', 'Anna');
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
  await server?.stop();
});

beforeEach(async () => {
  client += 1; // tries are counted by address
  const extraHTTPHeaders = { 'x-forwarded-for': `203.0.113.${client}` };
  context = await contextOf(chromium.browser, { reducedMotion: 'reduce', extraHTTPHeaders });
  ({ page, problems } = await watchedPage(context, service.url));
});

afterEach(async () => {
  await context.close();
  if (problems.length > 0) throw new Error(problems.join('\n'));
});

/** An account of its own, named after its owner, who signs in with this address. */
async function personWith(email: string, name: string): Promise<Someone> {
  const who = await ownerOfNew(service, `Account of ${name}`);
  okBody(await who.post('/auth/set-up', { email, name, password }));
  const token = new URL(await mailedTo(email)).searchParams.get('token');
  okBody(await who.post('/auth/confirm-email', { token }));
  return who;
}

const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true });

/** Fills the form of the sign-in page, which has to be there. */
async function givePassword(email = 'anna@example.com', word = password): Promise<void> {
  await heading('Sign in').waitFor();
  await page.getByLabel('E-mail address').fill(email);
  await page.locator('input[type=password]').fill(word);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Returns the current address, without that of the service. */
const place = () => page.url().slice(service.url.length);

async function expectHomeOf(name: string): Promise<void> {
  await heading('Home').waitFor();
  expect(place()).toBe('/');
  await page.getByRole('button', { name: `You: ${name}` }).waitFor();
}

/** The newest link of the mails to this address, of this page. */
async function mailedTo(email: string, path = '/'): Promise<string> {
  const newest = () => server.mails.findLast(({ to, text }) => to.includes(email) && text.includes(path))?.text;
  await vi.waitUntil(newest, { timeout: 120_000 }); // also before the first test
  return /https?:\S+/.exec(newest() ?? '')?.[0] ?? '';
}

test('the right password leads from the address of the service to Home', limit, async () => {
  await page.goto(service.url);
  await givePassword('anna@example.com', 'not the password');
  await page.getByRole('alert').waitFor();
  await givePassword();
  await expectHomeOf('Anna');
});

test('the right password leads from the address of a page to that page with its whole query', limit, async () => {
  await page.goto(`${service.url}/activity?tab=chats&model=sandbox%2Fchat`);
  await givePassword();
  await heading('Activity').waitFor();
  expect(place()).toBe('/activity?tab=chats&model=sandbox%2Fchat');
  await page.reload();
  await heading('Activity').waitFor();
});

test('an address that asks to be led somewhere else leads to Home', limit, async () => {
  const all = [
    '//evil.example/x',
    '/\\evil.example',
    'https://evil.example',
    '/x/..//evil.example',
    '/sign-in?next=/keys',
    'keys',
  ];
  for (const next of all.slice(0, depth(1, all.length))) {
    await context.clearCookies();
    await page.goto(`${service.url}/sign-in?next=${encodeURIComponent(next)}`);
    await givePassword();
    await expectHomeOf('Anna');
  }
});

test('a person whose session ended in an open tab signs in and is on the requested page', limit, async () => {
  await page.goto(service.url);
  await givePassword();
  await expectHomeOf('Anna');
  // What the click asks for arrives behind the end of the session, of which the page may learn by itself, too.
  const held: Route[] = [];
  let is_held = true;
  await page.route('**/dash/**', (route) => (is_held ? void held.push(route) : route.continue()));
  await page.getByRole('link', { name: 'API keys' }).first().click();
  await service.app.db.query('delete from auth.session where "userId" = $1', [anna.user_id]);
  is_held = false;
  await Promise.all(held.map((route) => route.continue()));
  await givePassword();
  await heading('API keys').waitFor();
  expect(place()).toBe('/keys');
});

byNight(() => {
  test('a person whose session ends in a form goes to the sign-in page and back', limit, async () => {
    await page.goto(`${service.url}/webhooks?tab=setup`);
    await givePassword();
    await page.getByRole('button', { name: 'Reveal' }).waitFor();
    await service.app.db.query('delete from auth.session where "userId" = $1', [anna.user_id]);
    await page.getByRole('button', { name: 'Reveal' }).click();
    await givePassword();
    await page.getByRole('button', { name: 'Reveal' }).waitFor();
    expect(place()).toBe('/webhooks?tab=setup');
  });
});

test('a second factor leads from the address of a page to that page', limit, async () => {
  const two = await personWith('two@example.com', 'Two');
  const { totpURI } = okBody<{ totpURI: string }>(await two.post('/auth/two-factor/enable', { password }));
  okBody(await two.post('/auth/two-factor/verify-totp', { code: totpOf(secretOf(totpURI)) }));
  await page.goto(`${service.url}/usage?by=key`);
  await givePassword('two@example.com');
  await heading('Second factor').waitFor();
  await page.getByLabel('Code').fill('000000');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Code').fill(totpOf(secretOf(totpURI), 1));
  await page.getByRole('button', { name: 'Continue' }).click();
  await heading('Usage').waitFor();
  expect(place()).toBe('/usage?by=key');
});

test('a sign-in link leads to Home once and says so when it is opened again', limit, async () => {
  const link = await makeLoginLink(service.app.db, service.url, anna.user_id, new Date());
  await page.goto(service.url); // this browser has been told that nobody is here
  await heading('Sign in').waitFor();
  await page.goto(link);
  await expectHomeOf('Anna');
  await page.goto(link);
  await heading('You are signed in').waitFor();
  await page.getByRole('link', { name: 'Go to the dashboard' }).click();
  await expectHomeOf('Anna');
  await context.clearCookies();
  await page.goto(link);
  await heading('This link no longer works').waitFor();
  await page.getByRole('link', { name: 'Sign in with a password' }).click();
  await givePassword();
  await expectHomeOf('Anna');
});

test('an invitation makes a member by the link of its mail', limit, async () => {
  anna = await signInAs(service, anna.user_id, anna.account_id); // tests before this one end her sessions
  okBody(await anna.post(`${anna.base}/team/invitations`, { email: 'new@example.com', role: 'viewer' }));
  const link = await mailedTo('new@example.com');
  await page.goto(service.url);
  await heading('Sign in').waitFor();
  await page.goto(link);
  await page.getByLabel('Your name').fill('Nina');
  await page.locator('input[type=password]').fill(password);
  await page.getByRole('button', { name: 'Join' }).click();
  await expectHomeOf('Nina');
  await page.getByText('Account of Anna').first().waitFor();
});

test('a forgotten password leads from the sign-in page to the mail, to a new password, and in', limit, async () => {
  await personWith('forgetful@example.com', 'Fred');
  await page.goto(`${service.url}/billing`);
  await heading('Sign in').waitFor();
  await page.getByRole('button', { name: 'Forgotten your password?' }).click();
  await page.getByLabel('E-mail address').fill('forgetful@example.com');
  await page.getByRole('button', { name: 'Send a link' }).click();
  await page.goto(await mailedTo('forgetful@example.com', '/reset-password'));
  await page.locator('input[type=password]').fill('another horse battery');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('link', { name: 'Sign in with it' }).click();
  await givePassword('forgetful@example.com', 'another horse battery');
  await expectHomeOf('Fred');
});

test('a browser of yesterday has no session and no account any more', limit, async () => {
  await page.goto(service.url);
  await givePassword();
  await expectHomeOf('Anna');
  await page.evaluate(`localStorage.setItem('medley.account', 'acct_gone'); sessionStorage.clear()`);
  await service.app.db.query(`update auth.session set "expiresAt" = now() - interval '1 hour' where "userId" = $1`, [
    anna.user_id,
  ]);
  await page.close();
  page = await context.newPage();
  await page.goto(`${service.url}/keys`);
  await givePassword();
  await heading('API keys').waitFor();
  await expect.poll(() => page.getByText('Account of Anna').count()).toBeGreaterThan(0);
});

test('a person who is signed in is not asked again', limit, async () => {
  await page.goto(service.url);
  await givePassword();
  await expectHomeOf('Anna');
  await page.goto(`${service.url}/sign-in?next=%2Fbilling`);
  await heading('Billing').waitFor();
  expect(place()).toBe('/billing');
});

test('a person who signs in after somebody else sees nothing of theirs', limit, async () => {
  await personWith('ben@example.com', 'Ben');
  await page.goto(`${service.url}/settings?tab=security`);
  await givePassword();
  await page.getByText('This one').waitFor();
  await page.getByRole('link', { name: 'Home' }).first().click();
  await expectHomeOf('Anna');
  await page.evaluate(`globalThis.seen = new Set(); new MutationObserver(() => {
    for (const word of ['Anna', 'anna@example.com']) if (document.body.innerText.includes(word)) globalThis.seen.add(word);
  }).observe(document.body, { childList: true, subtree: true, characterData: true })`);
  await page.getByRole('button', { name: 'You: Anna' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await heading('Sign in').waitFor();
  await page.evaluate('globalThis.seen.clear()');
  await givePassword('ben@example.com');
  await expectHomeOf('Ben');
  await page.getByRole('link', { name: 'Settings' }).first().click();
  await page.getByText('ben@example.com').first().waitFor();
  expect(await page.evaluate('[...globalThis.seen]')).toEqual([]);
});

test('a sign-in link by mail: from the sign-in page to the mail, and in, once', limit, async () => {
  await personWith('mailed@example.com', 'Mary');
  await page.goto(`${service.url}/billing`);
  await heading('Sign in').waitFor();
  await page.getByRole('button', { name: 'Mail me a link instead' }).click();
  await page.getByLabel('E-mail address').fill('mailed@example.com');
  await page.getByRole('button', { name: 'Send a link' }).click();
  const link = await mailedTo('mailed@example.com', 'by=mail');
  await page.goto(link);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expectHomeOf('Mary');
  await context.clearCookies();
  await page.goto(link);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await heading('This link no longer works').waitFor();
  await page.getByRole('link', { name: 'Back to signing in' }).click();
  await givePassword('mailed@example.com');
  await expectHomeOf('Mary');
});

byNight(() => {
  test('a sign-in link by mail asks for the second factor', limit, async () => {
    const who = await personWith('mailed.two@example.com', 'Tom');
    const { totpURI } = okBody<{ totpURI: string }>(await who.post('/auth/two-factor/enable', { password }));
    okBody(await who.post('/auth/two-factor/verify-totp', { code: await earlierTotp(secretOf(totpURI)) }));
    okBody(await who.post('/auth/sign-in/mail', { email: 'mailed.two@example.com' }));
    await page.goto(await mailedTo('mailed.two@example.com', 'by=mail'));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await heading('Second factor').waitFor();
    await page.getByLabel('Code').fill(totpOf(secretOf(totpURI)));
    await page.getByRole('button', { name: 'Continue' }).click();
    await expectHomeOf('Tom');
  });
});

byNight(() => {
  test('a lost app: a backup code lets one in, and the second factor is turned off and on again', limit, async () => {
    const who = await personWith('lost@example.com', 'Lena');
    const enabled = await who.post('/auth/two-factor/enable', { password });
    const { totpURI, backupCodes } = okBody<{ totpURI: string; backupCodes: string[] }>(enabled);
    okBody(await who.post('/auth/two-factor/verify-totp', { code: totpOf(secretOf(totpURI)) }));
    await page.goto(`${service.url}/settings?tab=security`);
    await givePassword('lost@example.com');
    await heading('Second factor').waitFor();
    await page.getByRole('button', { name: 'Use a backup code instead' }).click();
    await page.getByLabel('Backup code').fill(backupCodes[0] ?? '');
    await page.getByRole('button', { name: 'Continue' }).click();
    await heading('Settings').waitFor();
    await page.getByRole('button', { name: 'Turn off' }).click();
    await page.getByRole('dialog').locator('input[type=password]').fill(password);
    await page.getByRole('dialog').getByRole('button', { name: 'Turn off' }).click();
    await page.getByRole('button', { name: 'Turn on' }).click();
    await page.getByRole('dialog').locator('input[type=password]').fill(password);
    await page.getByRole('button', { name: 'Continue' }).click();
    const secret = await page.getByRole('dialog').locator('pre, code').first().innerText();
    await page.getByLabel('Code from the app').fill(totpOf(secret.trim()));
    await page.getByRole('dialog').getByRole('button', { name: 'Turn on' }).click();
    await page.getByRole('button', { name: 'I have saved them' }).click();
    await page.getByRole('button', { name: 'New backup codes' }).waitFor();
    expect((await who.get('/dash/me')).status).toBe(401); // signed out elsewhere
  });
});

test('an invitation to who has a password: signed in as another, as oneself, and used up', limit, async () => {
  const guest = await personWith('guest@example.com', 'Gus');
  anna = await signInAs(service, anna.user_id, anna.account_id);
  okBody(await anna.post(`${anna.base}/team/invitations`, { email: 'guest@example.com', role: 'viewer' }));
  const link = await mailedTo('guest@example.com', '/invitation');
  await page.goto(link);
  await page.getByRole('link', { name: 'Already have a password here? Sign in' }).click();
  await givePassword('guest@example.com');
  await page.getByRole('button', { name: 'Join', exact: true }).click();
  await expectHomeOf('Gus');
  const memberships = await guest.get('/dash/me');
  expect((memberships.json as { accounts: unknown[] }).accounts).toHaveLength(2);
  await page.goto(link);
  await page.getByText('This invitation was used').waitFor();
});

byNight(() => {
  test(
    'a password that many people use is refused in words, where one joins and where one chooses anew',
    limit,
    async () => {
      anna = await signInAs(service, anna.user_id, anna.account_id);
      okBody(await anna.post(`${anna.base}/team/invitations`, { email: 'weak@example.com', role: 'viewer' }));
      await page.goto(await mailedTo('weak@example.com', '/invitation'));
      await page.getByLabel('Your name').fill('Wes');
      await page.locator('input[type=password]').fill('password123');
      await page.getByRole('button', { name: 'Join' }).click();
      await page.getByText('This password is common').waitFor();
      await page.locator('input[type=password]').fill(password);
      await page.getByRole('button', { name: 'Join' }).click();
      await expectHomeOf('Wes');
    },
  );
});
