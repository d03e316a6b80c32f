import { afterAll, beforeAll, expect, test } from 'vitest';
import { firstOperator } from '../../src/accounts/members.ts';
import { contextOf, settled, signIn, sidewaysOf, violationsIn } from '../helpers/dashboard.ts';
import { startWithZoe, type Stage } from './zoe.ts';

/** Pages that read their content again and again say when that no longer works. */
let stage: Stage;

beforeAll(async () => {
  stage = await startWithZoe();
});

afterAll(() => stage?.stop());

test(
  'a page without a network says since when it is not up to date, until it is again',
  { timeout: 300_000 },
  async () => {
    const { service, chromium, zoe } = stage;
    const operator = await firstOperator(service.app.db, zoe.account_id, new Date());
    const context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
    const page = await context.newPage();
    await signIn(page, service.app, operator, '/admin/queue');
    await settled(page);
    const note = page.getByRole('status').filter({ hasText: 'Not up to date since' });
    expect(await note.count()).toBe(0);
    await context.setOffline(true);
    await note.getByText('The service cannot be reached.').waitFor();
    await page.getByRole('heading', { name: 'Limits in this process' }).waitFor(); // what was read is still there
    expect(await violationsIn(page)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await sidewaysOf(page)).toBe(0);
    expect(await violationsIn(page)).toEqual([]);
    await context.setOffline(false);
    await note.waitFor({ state: 'detached' });
    await page.route('**/dash/admin/queue', (route) =>
      route.fulfill({ status: 500, json: { error: { message: 'It is ill.' } } }),
    );
    await note.getByText('It is ill.').waitFor();
    await page.unroute('**/dash/admin/queue');
    await note.getByRole('button', { name: 'Try again' }).click();
    await note.waitFor({ state: 'detached' });
    await context.close();
  },
);
