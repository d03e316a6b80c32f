import type { BrowserContext, CDPSession, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { memberOf, ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, signIn, sidewaysOf, violationsIn, watchedPage } from '../helpers/dashboard.ts';
import { localhost } from '../helpers/localhost.ts';

/** Passkeys in a browser, whose authenticator is one of its own for tests. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let context: BrowserContext;
let page: Page;
let problems: string[];
let cdp: CDPSession;

const limit = { timeout: 300_000 };
const password = 'correct horse battery';

beforeAll(async () => {
  service = await startTestApp({ worker: false, env: await localhost() });
  chromium = await launchBrowser();
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

beforeEach(async () => {
  context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
  ({ page, problems } = await watchedPage(context, service.url));
  cdp = await context.newCDPSession(page);
  await cdp.send('WebAuthn.enable', { enableUI: false });
});

afterEach(async () => {
  await context.close();
  if (problems.length > 0) throw new Error(problems.join('\n'));
});

/** A device with a fingerprint, which its person gives at once. */
async function addDevice(): Promise<void> {
  await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
}

/** Passkeys are asked for by the button alone: the device for tests would choose one at once. */
const withoutOffers = () => page.addInitScript('delete PublicKeyCredential.isConditionalMediationAvailable');

async function personOf(email: string): Promise<Someone> {
  const who = await ownerOfNew(service, `Account of ${email}`);
  okBody(await who.post('/auth/set-up', { email, name: 'Zoe', password }));
  return who;
}

const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true });
const button = (name: string) => page.getByRole('button', { name, exact: true });
const dialog = (name: string) => page.getByRole('dialog', { name, exact: true });

/** On the page of security. */
async function addPasskey(name: string): Promise<void> {
  await button('Add a passkey').click();
  await dialog('Add a passkey').getByLabel('Name').fill(name);
  await dialog('Add a passkey').getByRole('button', { name: 'Continue' }).click();
  await button(`Remove ${name}`).waitFor();
}

async function giveFirstFactor(email: string): Promise<void> {
  await page.getByLabel('E-mail address').fill(email);
  await page.locator('input[type=password]').fill(password);
  await button('Sign in').click();
}

test('a person adds a passkey, signs in with it alone, renames and removes it', limit, async () => {
  const who = await personOf('ada@example.com');
  await addDevice();
  await withoutOffers();
  await signIn(page, service.app, who.user_id, '/settings?tab=security');
  await addPasskey('My laptop');
  expect(await violationsIn(page)).toEqual([]);
  await page.setViewportSize({ width: 390, height: 800 });
  expect(await sidewaysOf(page)).toBe(0);
  await page.setViewportSize({ width: 1280, height: 900 });
  await context.clearCookies();
  await page.goto(`${service.url}/keys`);
  await heading('Sign in').waitFor();
  await button('Sign in with a passkey').click();
  await heading('API keys').waitFor();
  await page.goto(`${service.url}/settings?tab=security`);
  await button('Rename My laptop').click();
  await dialog('Rename the passkey').getByLabel('Name').fill('Old laptop');
  await dialog('Rename the passkey').getByRole('button', { name: 'Save' }).click();
  await button('Remove Old laptop').click();
  await dialog('Remove Old laptop?').getByRole('button', { name: 'Remove' }).click();
  await page.getByText('You have none yet.').waitFor();
  await context.clearCookies();
  await page.goto(service.url);
  await button('Sign in with a passkey').click();
  await page.getByText('not known here').waitFor();
  expect(await violationsIn(page)).toEqual([]);
});

test('whoever has no passkey on this device reads so, and signs in another way', limit, async () => {
  await personOf('bob@example.com');
  await addDevice();
  await page.setViewportSize({ width: 390, height: 800 });
  await page.goto(service.url);
  await button('Sign in with a passkey').click();
  await page.getByText('No passkey was chosen').waitFor();
  expect(await sidewaysOf(page)).toBe(0);
  await giveFirstFactor('bob@example.com');
  await heading('Home').waitFor();
});

test('a device that has a passkey of a person already is not asked to make another', limit, async () => {
  const who = await personOf('cid@example.com');
  await addDevice();
  await signIn(page, service.app, who.user_id, '/settings?tab=security');
  await addPasskey('First');
  await button('Add a passkey').click();
  await dialog('Add a passkey').getByRole('button', { name: 'Continue' }).click();
  await dialog('Add a passkey').getByText('This device has a passkey of yours already.').waitFor();
  await expect.poll(() => button('Remove First').count()).toBe(1);
});

test('a passkey is chosen in the field for the e-mail address, where the browser offers it there', limit, async () => {
  const who = await personOf('dee@example.com');
  await addDevice();
  await signIn(page, service.app, who.user_id, '/settings?tab=security');
  const offers: boolean = await page.evaluate(
    `PublicKeyCredential.isConditionalMediationAvailable?.() ?? Promise.resolve(false)`,
  );
  expect(offers).toBe(true);
  await addPasskey('My phone');
  await context.clearCookies();
  await page.goto(`${service.url}/usage`);
  await heading('Usage').waitFor(); // the device for tests chooses at once
});

test(
  'a member who has signed in with a password gives their passkey where an account asks for a second factor',
  limit,
  async () => {
    const owner = await ownerOfNew(service, 'Acme');
    const member = await memberOf(service, owner, 'viewer');
    okBody(await member.post('/auth/set-up', { email: 'eve@example.com', name: 'Eve', password }));
    await addDevice();
    await withoutOffers();
    await signIn(page, service.app, member.user_id, '/settings?tab=security');
    await addPasskey('My key');
    await service.app.db.query('update accounts set second_factor_required = true where id = $1', [owner.account_id]);
    await context.clearCookies();
    await page.goto(`${service.url}/usage`);
    await giveFirstFactor('eve@example.com');
    await heading('A second factor first').waitFor();
    expect(await violationsIn(page)).toEqual([]);
    await button('Confirm with a passkey').click();
    await heading('Usage').waitFor();
  },
);

test('an act that asks who is there goes on after a passkey', limit, async () => {
  const who = await personOf('fay@example.com');
  await addDevice();
  await signIn(page, service.app, who.user_id, '/settings?tab=security');
  await addPasskey('My key');
  await page.goto(`${service.url}/keys`);
  await button('Create a key').first().click();
  await dialog('Create a key').getByLabel('Name').fill('From the dialog');
  await service.app.db.query(
    `update auth.session set "createdAt" = now() - interval '1 hour', "provedAt" = null where "userId" = $1`,
    [who.user_id],
  );
  await dialog('Create a key').getByRole('button', { name: 'Create' }).click();
  await dialog('Is it still you?').waitFor();
  expect(await violationsIn(page)).toEqual([]);
  await button('Confirm with a passkey').click();
  await page
    .getByText(/mdl_\w{36}/)
    .first()
    .waitFor();
});

test(
  'whoever signed in with the password alone gives a passkey before they change how one signs in',
  limit,
  async () => {
    const who = await personOf('gil@example.com');
    await addDevice();
    await withoutOffers();
    await signIn(page, service.app, who.user_id, '/settings?tab=security');
    await addPasskey('My key');
    await context.clearCookies();
    await page.goto(`${service.url}/settings?tab=security`);
    await giveFirstFactor('gil@example.com');
    await button('Remove My key').click();
    await dialog('Remove My key?').getByRole('button', { name: 'Remove' }).click();
    const question = dialog('Is it still you?');
    await question.getByText('You signed in without a passkey').waitFor();
    expect(await question.locator('input[type=password]').count()).toBe(0);
    expect(await violationsIn(page)).toEqual([]);
    await button('Confirm with a passkey').click();
    await page.getByText('You have none yet.').waitFor();
  },
);
