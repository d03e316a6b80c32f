import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { createAccount } from '../../src/accounts/accounts.ts';
import { ownerOf } from '../../src/accounts/members.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { leave, sidewaysOf, violationsIn, visit } from '../helpers/dashboard.ts';

/** Several models of images, video or audio side by side in the playground, with one input. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let user_id: string;

/** For a machine that has much else to do. */
const patience = { timeout: 120_000 };

/** A model that has fields and prices of its own. */
const yaml = `version: 1
providers:
  house: { adapter: sandbox }
models:
  - id: house/draw
    kind: image
    name: House draw
    input_schema:
      type: object
      required: [prompt]
      properties:
        prompt: { type: string, title: Prompt, minLength: 1, maxLength: 4000 }
        width: { type: integer, title: Width, minimum: 16, maximum: 1024, default: 256 }
        height: { type: integer, title: Height, minimum: 16, maximum: 2048, default: 768 }
    price: [{ unit: image, amount: "0.025" }]
    routes: [{ provider: house, upstream_model: image, timeout: { total: 24h } }]
`;

beforeAll(async () => {
  service = await startTestApp({ yaml });
  chromium = await launchBrowser();
  const { db } = service.app;
  const account = await createAccount(db, { name: 'Own', currency: 'USD', initial_credit: 4_000_000n }, new Date());
  user_id = await ownerOf(db, account.id, new Date());
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

const open = (path: string, viewport = { width: 1440, height: 1000 }) =>
  visit(chromium.browser, service.app, { user_id, path, viewport });

const placeOf = (page: Page, name: string) => page.getByRole('region', { name, exact: true });
const promptOf = (page: Page) => page.getByRole('textbox', { name: /^Prompt/ });
const runOf = (page: Page) => page.getByRole('button', { name: /^Run/ });

async function run(page: Page, prompt: string, button: string): Promise<void> {
  await promptOf(page).fill(prompt);
  await expect.poll(() => runOf(page).textContent(), patience).toBe(button);
  await runOf(page).click();
}

test('three models run at once: the sum before, and results beside each other with cost, time, download and vote', async () => {
  const { page, ...rest } = await open('/playground?model=sandbox%2Fimage');
  for (const name of ['Sandbox failover', 'House draw']) {
    await page.getByRole('combobox', { name: 'Compare' }).click();
    await page.getByRole('option', { name, exact: true }).click();
  }
  const differences = page.getByRole('list', { name: 'Differences' });
  await expect
    .poll(() => differences.getByRole('listitem').allInnerTexts(), patience)
    .toEqual([
      'Width: Sandbox image, Sandbox failover 16 to 2048; House draw 16 to 1024. The form takes what all accept.',
      'Width, if you leave it open: Sandbox image, Sandbox failover 768; House draw 256.',
      'Only Sandbox image, Sandbox failover: Number of images, Seed. Left at the default here.',
    ]);
  await page.getByRole('textbox', { name: 'Width' }).fill('64');
  expect(await page.getByRole('textbox', { name: 'Seed' }).count()).toBe(0);
  await page.getByText('House draw: holds $0.025').waitFor();
  await run(page, 'Two bicycles', 'Run 3 models · holds $0.045');
  for (const [name, model, price] of [
    ['Sandbox image', 'sandbox/image', '0.01'],
    ['Sandbox failover', 'sandbox/failover', '0.01'],
    ['House draw', 'house/draw', '0.025'],
  ] as const) {
    const place = placeOf(page, name);
    const image = place.getByRole('img', { name: `Result 1 of ${model}` });
    await image.waitFor();
    await expect.poll(() => image.evaluate((one) => ('naturalWidth' in one ? one.naturalWidth : 0)), patience).toBe(64);
    await expect.poll(() => place.innerText(), patience).toMatch(new RegExp(`Cost\\s+\\$${price}\\s[^]*Took\\s+\\d`));
    expect(await place.getByRole('link', { name: 'Download' }).getAttribute('href')).toMatch(
      /\/tasks\/task_\w+\/files\/0$/,
    );
  }
  await page.getByText('3 of 3 finished').waitFor();
  await page.getByText('Cost of all: $0.045').waitFor();
  const tops = () => Promise.all(['Sandbox image', 'Sandbox failover'].map((name) => topOf(page, name)));
  await expect.poll(async () => new Set(await tops()).size, patience).toBe(1);
  expect(await violationsIn(page)).toEqual([]);
  await vote(page);
  await leave({ page, ...rest });
});

async function topOf(page: Page, name: string): Promise<number> {
  const box = await placeOf(page, name).boundingBox();
  return Math.round(box?.y ?? -1);
}

/** One of them is the better one: the vote for it takes back the vote for another, also after a reload. */
async function vote(page: Page): Promise<void> {
  const betterOf = (name: string) => placeOf(page, name).getByRole('button', { name: 'Better than the others' });
  const pressed = async () => {
    const names = ['Sandbox image', 'Sandbox failover', 'House draw'];
    return Promise.all(names.map((name) => betterOf(name).getAttribute('aria-pressed')));
  };
  await betterOf('Sandbox image').click();
  await expect.poll(pressed, patience).toEqual(['true', 'false', 'false']);
  await betterOf('House draw').click();
  await expect.poll(pressed, patience).toEqual(['false', 'false', 'true']);
  await page.reload();
  await expect.poll(pressed, patience).toEqual(['false', 'false', 'true']);
  await placeOf(page, 'House draw')
    .getByRole('img', { name: /^Result 1 of / })
    .waitFor();
  await expect.poll(() => promptOf(page).inputValue(), patience).toBe('Two bicycles');
}

test('one that fails shows its error at its place and costs nothing, and one of the others goes on alone', async () => {
  const { page, ...rest } = await open('/playground?model=sandbox%2Fdown&beside=sandbox%2Ffailover');
  await run(page, 'A house', 'Run 2 models · holds $0.02');
  const failed = placeOf(page, 'Sandbox down');
  await failed.getByText(/It costs nothing/).waitFor();
  await expect.poll(() => failed.innerText(), patience).toMatch(/Cost\s+\$0\.00\s/);
  const fine = placeOf(page, 'Sandbox failover');
  await fine.getByRole('img', { name: /^Result 1 of / }).waitFor();
  await page.getByText('Cost of all: $0.01').waitFor();
  await fine.getByRole('button', { name: 'Use this one' }).click();
  await page.getByRole('heading', { name: 'Result', level: 2 }).waitFor();
  await page.getByRole('img', { name: 'Result 1 of sandbox/failover' }).waitFor();
  const placesIn = ({ searchParams }: URL) => ['model', 'run', 'beside'].map((name) => searchParams.get(name));
  await expect
    .poll(() => placesIn(new URL(page.url())), patience)
    .toEqual(['sandbox/failover', expect.stringMatching(/^task_\w+$/), null]);
  await expect.poll(() => promptOf(page).inputValue(), patience).toBe('A house');
  await expect.poll(() => runOf(page).textContent(), patience).toBe('Run · holds $0.01');
  await leave({ page, ...rest });
});

test('one that the service refuses says so at its place, and the other runs', async () => {
  const { page, ...rest } = await open('/playground?model=sandbox%2Fimage&beside=house%2Fdraw');
  await page.route('**/generate', (route) =>
    String(route.request().postData()).includes('house/draw')
      ? route.fulfill({ status: 402, json: { error: { type: 'insufficient_balance', message: 'Too little money.' } } })
      : route.continue(),
  );
  await run(page, 'A tree', 'Run 2 models · holds $0.035');
  await placeOf(page, 'House draw').getByText('Too little money.').waitFor();
  await placeOf(page, 'House draw').getByText('It did not start, and costs nothing.').waitFor();
  await placeOf(page, 'Sandbox image')
    .getByRole('img', { name: /^Result 1 of / })
    .waitFor();
  await expect.poll(() => new URL(page.url()).searchParams.get('run'), patience).toMatch(/^task_\w+$/);
  expect(await violationsIn(page)).toEqual([]);
  await leave({ page, ...rest });
});

test('a value that one of them does not take is named before, and nothing runs', async () => {
  const { page, ...rest } = await open('/playground?model=sandbox%2Fimage&beside=sandbox%2Ffailover%2Chouse%2Fdraw');
  await page.getByRole('textbox', { name: 'Width' }).fill('2000');
  await page.getByText('House draw: width must be at most 1024').first().waitFor();
  await expect.poll(() => runOf(page).isDisabled(), patience).toBe(true);
  await leave({ page, ...rest });
});

test('running tasks outlive a reload, and all of them are cancelled at once', async () => {
  const { page, ...rest } = await open('/playground?model=sandbox%2Fimage&beside=sandbox%2Ffailover%2Chouse%2Fdraw');
  await run(page, 'Slow [[delay 4m]]', 'Run 3 models · holds $0.045');
  await expect.poll(() => new URL(page.url()).searchParams.get('run')?.split(',').length, patience).toBe(3);
  await page.reload();
  await page.getByText('0 of 3 finished').waitFor();
  await placeOf(page, 'House draw').getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByText('1 of 3 finished').waitFor();
  await page.getByRole('button', { name: 'Cancel all' }).click();
  await page.getByText('3 of 3 finished').waitFor();
  await page.getByText('Cost of all: $0.00').waitFor();
  await leave({ page, ...rest });
});

test('on a phone the results of two models stand below each other', async () => {
  const { page, ...rest } = await open('/playground?model=sandbox%2Faudio', { width: 390, height: 844 });
  expect(await page.getByRole('combobox', { name: 'Compare' }).count()).toBe(0); // transcripts are another thing
  await page.goto(`${service.url}/playground?model=sandbox%2Fimage&beside=house%2Fdraw`);
  await promptOf(page).fill('A boat');
  await expect.poll(() => runOf(page).textContent(), patience).toBe('Run 2 models · holds $0.035');
  await page.keyboard.press('Control+Enter');
  for (const name of ['Sandbox image', 'House draw']) {
    await placeOf(page, name)
      .getByRole('img', { name: /^Result 1 of / })
      .waitFor();
  }
  expect(await topOf(page, 'House draw')).toBeGreaterThan(await topOf(page, 'Sandbox image'));
  expect(await sidewaysOf(page)).toBe(0);
  expect(await violationsIn(page)).toEqual([]);
  await leave({ page, ...rest });
});
