import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { bringAxe, contextOf, sidewaysOf, violationsIn } from '../helpers/dashboard.ts';
import { startIssuer, type IssuerImitation } from '../helpers/issuer.ts';
import { earlierTotp, secretOf, totpOf } from '../helpers/totp.ts';

/** People who come by an issuer, from the address of the service that they typed. */
let issuer: IssuerImitation;
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let context: BrowserContext;
let page: Page;

const limit = { timeout: 300_000 };
const password = 'correct horse battery';

const yamlWith = (settings: string, more = '') => `version: 1
sign_in:
  ${more}
  issuers:
    example: { issuer: "${issuer.url}", name: Example, client_id: medley, client_secret: "${issuer.reference}"${settings} }
`;

beforeAll(async () => {
  issuer = await startIssuer();
  service = await startTestApp({ worker: false, yaml: yamlWith('') });
  chromium = await launchBrowser();
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
  await issuer?.stop();
});

beforeEach(async () => {
  context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
  page = await context.newPage();
});

afterEach(async () => {
  issuer.person = undefined;
  await context.close();
});

const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true });
const button = (name: string) => page.getByRole('button', { name, exact: true });

async function knownPerson(email: string, name: string): Promise<Someone> {
  const who = await ownerOfNew(service, `Account of ${name}`);
  okBody(await who.post('/auth/set-up', { email, name, password }));
  await service.app.db.query('update auth."user" set "emailVerified" = true where id = $1', [who.user_id]);
  return who;
}

test('a person presses the button of the issuer and is on the page that they asked for', limit, async () => {
  await knownPerson('anna@example.com', 'Anna');
  issuer.person = { sub: 'a1', email: 'anna@example.com', email_verified: true };
  await page.goto(`${service.url}/keys`);
  await heading('Sign in').waitFor();
  await bringAxe(page);
  expect(await violationsIn(page)).toEqual([]);
  await button('Sign in with Example').click();
  await heading('API keys').waitFor();
  expect(new URL(page.url()).pathname).toBe('/keys');
});

test('a person who declines reads so and signs in with their password instead', limit, async () => {
  await knownPerson('otto@example.com', 'Otto');
  await page.setViewportSize({ width: 390, height: 800 });
  await page.goto(service.url);
  await button('Sign in with Example').click();
  await page.getByText('You cancelled at Example.').waitFor();
  expect(await sidewaysOf(page)).toBe(0);
  await page.getByLabel('E-mail address').fill('otto@example.com');
  await page.locator('input[type=password]').fill(password);
  await button('Sign in').click();
  await heading('Home').waitFor();
});

test('a person with a second factor gives its code after the issuer', limit, async () => {
  const who = await knownPerson('fay@example.com', 'Fay');
  const { totpURI } = okBody<{ totpURI: string }>(await who.post('/auth/two-factor/enable', { password }));
  const secret = secretOf(totpURI);
  okBody(await who.post('/auth/two-factor/verify-totp', { code: await earlierTotp(secret) }));
  issuer.person = { sub: 'f1', email: 'fay@example.com', email_verified: true };
  await page.goto(`${service.url}/usage`);
  await button('Sign in with Example').click();
  await heading('Second factor').waitFor();
  await page.getByLabel('Code').fill(totpOf(secret));
  await button('Continue').click();
  await heading('Usage').waitFor();
  expect(new URL(page.url()).pathname).toBe('/usage');
});

test('a person connects the issuer in Settings, signs in by it, and ends the connection', limit, async () => {
  await knownPerson('lea@example.com', 'Lea');
  await page.goto(`${service.url}/settings?tab=security`);
  await page.getByLabel('E-mail address').fill('lea@example.com');
  await page.locator('input[type=password]').fill(password);
  await button('Sign in').click();
  issuer.person = { sub: 'l1', email: 'lea@private.example' };
  await button('Connect Example').click();
  await page.getByRole('cell', { name: 'lea@private.example' }).waitFor();
  await context.clearCookies();
  await page.goto(service.url);
  await button('Sign in with Example').click();
  await heading('Home').waitFor();
  await page.goto(`${service.url}/settings?tab=security`);
  await button('Disconnect Example').click();
  await button('Connect Example').waitFor();
  await expect.poll(() => page.getByRole('cell').filter({ hasText: 'lea@private.example' }).count()).toBe(0);
});

test(
  'a newcomer of a service without passwords gets an account, and is asked to sign in again where it matters',
  limit,
  async () => {
    await service.configure(yamlWith(', auto_create: account', 'password: false'));
    issuer.person = { sub: 'n1', name: 'Nina', email: 'nina@example.com', email_verified: true };
    await page.goto(service.url);
    await button('Sign in with Example').waitFor();
    await page.locator('input[type=password]').waitFor({ state: 'detached' });
    await button('Sign in with Example').click();
    await button('You: Nina').waitFor();
    await service.app.db.query(`update auth.session set "createdAt" = now() - interval '16 min', "provedAt" = null`);
    await page.goto(`${service.url}/keys`);
    await button('Create a key').first().click();
    const form = page.getByRole('dialog', { name: 'Create a key' });
    await form.getByLabel('Name').fill('Mine');
    await form.getByRole('button', { name: 'Create' }).click();
    const again = page.getByRole('link', { name: 'Sign in with Example again' });
    const [tab] = await Promise.all([context.waitForEvent('page'), again.click()]);
    await tab.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
    expect(issuer.authorization_queries.at(-1)?.get('prompt')).toBe('login');
    await button('I have signed in again').click();
    await page.getByText('Is it still you?').waitFor({ state: 'detached' });
    await button('I have copied it').click();
    await page.getByRole('row', { name: /Mine/ }).waitFor();
  },
);
