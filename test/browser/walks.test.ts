import type { Page } from 'playwright-core';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hasSignature } from '../../src/webhooks/sign.ts';
import { ownerOfNew, type Someone } from '../dashboard/people.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { limits } from '../helpers/catalog.ts';
import { signIn, watchedPage } from '../helpers/dashboard.ts';
import { byNight } from '../helpers/depth.ts';
import { keyboardOf, type Keyboard } from '../helpers/keyboard.ts';
import { startReceiver, type Received, type Receiver } from '../helpers/receiver.ts';
import { earlierTotp, totpOf } from '../helpers/totp.ts';

/** From one page to the next, by keyboard alone. */
let service: TestApp;
let receiver: Receiver;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner: Someone;
let client: Client;
let page: Page;
let keyboard: Keyboard;
let problems: string[];

const yaml = `
version: 1
net: { allow: ["127.0.0.0/8"] }
webhooks: { retry_delays: [1s] }
${limits()}
`;

/** For a machine that has much else to do. */
const patience = { timeout: 120_000 };
const limit = { timeout: 300_000 };

beforeAll(async () => {
  [service, receiver] = await Promise.all([startTestApp({ yaml }), startReceiver()]);
  chromium = await launchBrowser(); // alone: it changes where temporary folders are while it unpacks itself
  owner = await ownerOfNew(service);
  client = await service.client({ account_id: owner.account_id });
  const context = await chromium.browser.newContext({ reducedMotion: 'reduce' });
  context.setDefaultTimeout(patience.timeout);
  ({ page, problems } = await watchedPage(context, service.url));
  keyboard = keyboardOf(page);
  await signIn(page, service.app, owner.user_id);
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
  await receiver?.stop();
});

const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true });

async function generate(prompt: string, more: { model?: string; path?: string } = {}): Promise<void> {
  const { model = 'sandbox/image', path } = more;
  const size = model === 'sandbox/image' ? { width: 64, height: 64 } : { duration: 2 };
  const body = { model, input: { prompt, ...size }, ...(path !== undefined && { webhook_url: receiver.url + path }) };
  const { status } = await client.call('POST', '/v1/generate?wait=60', body);
  expect(status).toBe(202);
}

test('a video is found in the activity and plays in its page', limit, async () => {
  await generate('Waves on a beach', { model: 'sandbox/video' });
  await page.goto(service.url);
  await heading('Home').waitFor();
  await keyboard.press('Tab');
  await keyboard.isOn('link', 'Skip to the content');
  await keyboard.press('Enter');
  await page.locator('main:focus').waitFor();
  await keyboard.enter('link', 'Activity');
  await keyboard.enter('link', 'Waves on a beach');
  await heading('Task').waitFor();
  await page.locator('main:focus').waitFor(); // the link is gone with its page
  const player = page.locator('video[controls]');
  const secondsOf = () => player.evaluate((video) => ('currentTime' in video ? Number(video.currentTime) : NaN));
  await keyboard.tabToElement(player);
  expect(await secondsOf()).toBe(0);
  await keyboard.press('Space');
  await expect.poll(secondsOf, patience).toBeGreaterThan(0.5);
  await expect.poll(secondsOf, patience).toBe(2);
  expect(problems).toEqual([]);
});

test('a webhook that fails is listed with its attempts and sent again', limit, async () => {
  receiver.answer('/deaf', 500);
  await generate('A red bicycle', { path: '/deaf' });
  await receiver.nth('/deaf', 2);
  await keyboard.enter('link', 'Webhooks');
  const row = page.getByRole('row').filter({ hasText: '/deaf' });
  await row.getByText('Dropped').waitFor();
  await row.getByText('2/2').waitFor(); // how many there are at most comes by a request of its own
  const cells = async () => (await row.getByRole('cell').allTextContents()).slice(1);
  await expect
    .poll(cells, patience)
    .toEqual(['task.succeeded', `${receiver.url}/deaf`, 'Dropped', '2/2', '500', 'Task']);
  await keyboard.enter('link', /./, row);
  await heading('Webhook delivery').waitFor();
  await page.getByText('Answered 500').nth(1).waitFor();
  await expect.poll(() => page.getByLabel('Answer to attempt 1').textContent()).toBe('answer 500');
  receiver.answer('/deaf', 204);
  await keyboard.enter('button', 'Send again');
  await page.getByText('Answered 204').waitFor();
  await page.getByText('Delivered', { exact: true }).waitFor();
  await keyboard.isOn('button', 'Send again');
  const bodies = receiver.received.filter(({ path }) => path === '/deaf').map(({ body }) => body.toString());
  expect(bodies).toHaveLength(3);
  expect(new Set(bodies).size).toBe(1);
  expect(problems).toEqual([]);
});

/** Three programs that make pictures, one after the other, until they are stopped; resolves with how many they made. */
function startTraffic(path: string): { stop(): Promise<number> } {
  let is_over = false;
  const program = async () => {
    let count = 0;
    for (; !is_over; count += 1) await generate('[[delay 500ms]] busy', { path });
    return count;
  };
  const programs = [program(), program(), program()];
  return {
    stop: async () => {
      is_over = true;
      return (await Promise.all(programs)).reduce((sum, count) => sum + count, 0);
    },
  };
}

/** By which of these secrets a delivery is signed, in the way of Standard Webhooks. */
function signersOf({ body, headers }: Received, secrets: Record<string, string>): string[] {
  const plain_headers = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
  const verifies = (secret: string) => {
    try {
      return Boolean(new Webhook(secret).verify(body, plain_headers));
    } catch {
      return false;
    }
  };
  return Object.keys(secrets).filter((name) => verifies(secrets[name] ?? ''));
}

test(
  'a secret is rotated while tasks run, and every webhook is signed with the old or the new one',
  limit,
  async () => {
    const shown = async (name: string) => (await page.getByRole('region', { name, exact: true }).textContent()) ?? '';
    await keyboard.enter('link', 'Webhooks');
    await keyboard.tabTo('tab', 'Deliveries');
    await keyboard.press('ArrowRight', 'ArrowRight');
    await keyboard.enter('button', 'Reveal');
    const old = await shown('secret');
    await keyboard.isOn('button', 'Hide');

    const traffic = startTraffic('/traffic');
    const of = () => receiver.received.filter(({ path }) => path === '/traffic');
    try {
      await receiver.nth('/traffic', 4);
      await keyboard.enter('button', 'Rotate');
      await keyboard.enter('button', 'Rotate', page.getByRole('dialog', { name: 'Rotate the secret' }));
      expect(await shown('previous secret')).toBe(old);
      await keyboard.isOn('button', 'Rotate');
      await receiver.nth('/traffic', of().length + 6);
    } finally {
      await traffic.stop();
    }
    const created = await traffic.stop();
    const arrived = () => new Set(of().map(({ headers }) => headers['webhook-id'])).size;
    await expect.poll(arrived, patience).toBe(created);

    const fresh = await shown('secret');
    expect(fresh).not.toBe(old);
    const signers = of().map((one) => signersOf(one, { fresh, old }).join(' and '));
    expect([...new Set(signers)]).toEqual(['old', 'fresh and old']);
    const plain = of().map(({ body, headers }) => {
      return [fresh, old].filter((secret) => hasSignature(body, String(headers['x-service-signature']), secret)).length;
    });
    expect(plain).toEqual(signers.map(() => 1));
    expect(problems).toEqual([]);
  },
);

test('the menu on a phone opens, navigates and closes', limit, async () => {
  await page.setViewportSize({ width: 360, height: 780 });
  await keyboard.enter('button', 'Open the menu');
  await keyboard.enter('link', 'Billing');
  await heading('Billing').waitFor();
  await page.getByRole('button', { name: 'Open the menu' }).waitFor();
  await expect.poll(() => page.getByRole('link', { name: 'Usage', exact: true }).count(), patience).toBe(0);
  await page.setViewportSize({ width: 1280, height: 720 });
  expect(problems).toEqual([]);
});

byNight(() => {
  test('a second factor is switched on and required at the next sign-in', limit, async () => {
    const [email, password] = ['ada@example.com', 'correct horse battery'];
    await keyboard.enter('link', 'Home');
    await keyboard.enter('button', 'Set them now');
    await keyboard.isOn('textbox', 'Your name');
    await keyboard.fill('Your name', 'Ada');
    await keyboard.fill('E-mail address', email);
    await keyboard.fill('Password', password);
    await keyboard.press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });

    await keyboard.enter('link', 'Settings');
    await keyboard.tabTo('tab', 'Profile');
    await keyboard.press('ArrowRight');
    await keyboard.enter('button', 'Turn on');
    await keyboard.isOn('textbox', 'Your password');
    await keyboard.fill('Your password', password);
    await keyboard.press('Enter');
    await keyboard.isOn('textbox', 'Code from the app');
    const secret = (await page.getByRole('region', { name: 'secret', exact: true }).textContent()) ?? '';
    await keyboard.fill('Code from the app', await earlierTotp(secret)); // the next one is needed soon, and each counts once
    await keyboard.press('Enter');
    await keyboard.enter('button', 'I have saved them');
    await page.getByRole('button', { name: 'New backup codes' }).waitFor();

    await keyboard.enter('button', 'You: Ada');
    await page.getByRole('menuitem', { name: 'Settings' }).waitFor();
    await keyboard.arrowTo('menuitem', 'Settings');
    await keyboard.arrowTo('menuitem', 'Sign out');
    await keyboard.press('Enter');
    await keyboard.isOn('textbox', 'E-mail address');
    await keyboard.fill('E-mail address', email);
    await keyboard.fill('Password', password);
    await keyboard.press('Enter');
    await heading('Second factor').waitFor();
    await keyboard.isOn('textbox', 'Code');
    await keyboard.fill('Code', '000000');
    await keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    await keyboard.fill('Code', totpOf(secret));
    await keyboard.press('Enter');
    await heading('Home').waitFor();
    expect(problems).toEqual([]);
  });
});
