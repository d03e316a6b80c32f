import { afterAll, beforeAll, expect, test } from 'vitest';
import { contextOf, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';
import { password, startWithZoe, type Stage } from './zoe.ts';
import { Person } from '../cli/caller.ts';

let stage: Stage;
let service: Stage['service'];
let chromium: Stage['chromium'];
let zoe: Stage['zoe'];

const limit = { timeout: 300_000 };

beforeAll(async () => {
  stage = await startWithZoe();
  ({ service, chromium, zoe } = stage);
});

afterAll(() => stage?.stop());

test(
  'a person opens the address of the terminal, signs in, sees who asks, and the terminal has its key',
  limit,
  async () => {
    const context = await contextOf(chromium.browser, {
      viewport: { width: 390, height: 800 },
      reducedMotion: 'reduce',
    });
    const { page, problems } = await watchedPage(context, service.url);
    const person = new Person();
    try {
      const login = person.start(['login', service.url]);
      await expect.poll(() => login.error, { timeout: 120_000 }).toMatch(/open (\S+\/device\?code=\S+)/);
      const [, address = '', code = ''] = /open (\S+\/device\?code=(\S+))/.exec(login.error) ?? [];
      await page.goto(address);
      await page.getByLabel('E-mail address').fill('zoe@example.com');
      await page.locator('input[type=password]').fill(password);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1, name: 'Connect a program' }).waitFor();
      await expect.poll(() => page.getByLabel('Code').inputValue()).toBe(code);
      await page.getByText('Did you start this yourself?').waitFor();
      expect(await violationsIn(page)).toEqual([]);
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('table', { name: 'The program' }).getByText('127.0.0.1').waitFor();
      expect(await violationsIn(page)).toEqual([]);
      expect(await sidewaysOf(page)).toBe(0);
      await page.getByLabel('Name of the key').fill('Of the terminal');
      await page.getByLabel(/Monthly limit/).fill('3');
      await page.getByRole('button', { name: 'Give a key' }).click();
      await page.getByText('Go back to your terminal.').waitFor();
      expect(await login.ended, login.error).toBe(0);
      expect((await person.run(['whoami'])).out).toMatch(/Of the terminal[\s\S]*limit 3\.00 USD/);
      expect(problems).toEqual([]);
    } finally {
      person.remove();
      await context.close();
    }
  },
);

test('a wrong code is named, and a program can be refused', limit, async () => {
  const context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
  const { page, problems } = await watchedPage(context, service.url);
  await signIn(page, service.app, zoe.user_id, '/device');
  await page.getByLabel('Code').fill('BCDF-GHJK');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('No program waits with this code.').waitFor();
  const body = new URLSearchParams({ client_id: 'x', device_name: '<b>box</b>' });
  const begun = await fetch(`${service.url}/oauth/device_authorization`, { method: 'POST', body });
  const { user_code } = (await begun.json()) as { user_code: string };
  await page.getByLabel('Code').fill(user_code);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('<b>box</b>', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Refuse' }).click();
  await page.getByText('The program was refused').waitFor();
  expect(problems).toEqual([]);
  await context.close();
});
