import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { ModelSpeedView } from '../../src/dashboard/views/models.ts';
import type { SpeedView } from '../../src/dashboard/views/speed.ts';
import { ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { limits } from '../helpers/catalog.ts';
import { contextOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

/** The page of models: found, sorted and compared; what they cost, and what they will. */

const chat = (id: string, price: string, context_tokens: number, capabilities: string) => `
  - id: ${id}
    kind: chat
    capabilities: [${capabilities}]
    limits: { context_tokens: ${context_tokens}, max_output_tokens: 4000 }
    price: [${price}]
    routes: [{ provider: sandbox, upstream_model: chat }]`;
const prices = (input: string, output: string) =>
  `{ unit: input_token, per: 1000000, amount: "${input}" }, { unit: output_token, per: 1000000, amount: "${output}" }`;

const yaml = `
version: 1
${limits()}
providers: { sandbox: { adapter: sandbox } }
models:${chat('acme/large', prices('3', '15'), 1_000_000, 'tools, images, thinking')}${chat('acme/small', prices('0.1', '0.4'), 32_000, 'tools')}${chat(
  'acme/middle',
  `${prices('1', '4')}, { unit: input_token, per: 1000000, amount: "0.5", from: 2020-01-01 }, { unit: output_token, per: 1000000, amount: "8", from: 2099-01-01 }`,
  200_000,
  'tools, images',
)}
  - id: acme/film
    kind: video
    input_schema: { type: object, properties: { prompt: { type: string }, resolution: { enum: [720p, 1080p], default: 720p } } }
    price: [{ unit: second, amount: "0.2", when: { resolution: 1080p } }, { unit: second, amount: "0.1" }]
    estimate: { second: 4 }
    routes: [{ provider: sandbox, upstream_model: video }]
`;

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner: Someone;
let client: Client;
let page: Page;
let problems: string[];

const limit = { timeout: 300_000 };

beforeAll(async () => {
  service = await startTestApp({ yaml });
  chromium = await launchBrowser();
  owner = await ownerOfNew(service);
  client = await service.client({ account_id: owner.account_id });
  await callOften(await service.client({ credit: '5' }));
  // The first look at all accounts is remembered for ten minutes, and records are written after answers.
  const records = () => service.app.db.query('select from chat_calls');
  await vi.waitUntil(async () => (await records()).length === often, { timeout: 120_000 });
  const context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
  ({ page, problems } = await watchedPage(context, service.url));
  await signIn(page, service.app, owner.user_id, '/models?kind=chat');
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

/** So often that a median says something. */
const often = 20;

async function callOften(who: Client): Promise<void> {
  const messages = [{ role: 'user', content: 'Tell me a long story.' }];
  const call = () => who.call('POST', '/v1/chat/completions', { model: 'acme/small', messages, max_tokens: 40 });
  const answers = await Promise.all(Array.from({ length: often }, call));
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
}

const table = () => page.getByRole('table', { name: 'Models' });
const shown = async () =>
  (await table().getByRole('row').allTextContents()).flatMap(
    (text) => /acme\/[a-z]+/.exec(text)?.[0].slice(5, 10) ?? [],
  );

test('models are sorted by price and context, and the address keeps the order', limit, async () => {
  const sortBy = (name: string) => table().getByRole('columnheader', { name }).getByRole('button').click();
  await sortBy('Price');
  await expect.poll(async () => (await shown()).slice(0, 3)).toEqual(['small', 'middl', 'large']);
  await sortBy('Price');
  await expect
    .poll(async () => (await shown()).filter((name) => name !== '').slice(0, 3))
    .toEqual(['large', 'middl', 'small']);
  await sortBy('Context');
  await expect.poll(async () => (await shown()).slice(0, 3)).toEqual(['large', 'middl', 'small']);
  await expect.poll(() => new URL(page.url()).searchParams.get('sort')).toBe('-context'); // the order was the same before
  await page.reload();
  await expect.poll(async () => (await shown()).slice(0, 3)).toEqual(['large', 'middl', 'small']);
});

test('a laptop shows all of the table: nobody has to scroll to the buttons of a model', limit, async () => {
  await page.goto(`${service.url}/models`);
  await expect.poll(async () => (await shown()).length).toBe(4);
  const hidden = () =>
    page.evaluate<number>(
      `(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.list').closest('.mantine-ScrollArea-viewport'))`,
    );
  await expect.poll(hidden).toBeLessThanOrEqual(0);
});

test('models are filtered by capabilities and context', limit, async () => {
  await page.goto(`${service.url}/models?kind=chat`);
  const filter = page.getByRole('combobox', { name: 'Capabilities' });
  await filter.focus();
  await page.keyboard.type('vision');
  await page.getByRole('option', { name: /vision/i }).waitFor(); // capabilities come with the models
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.searchParams.get('can') === 'images');
  await expect.poll(shown).toEqual(['large', 'middl']);
  await page.goto(`${service.url}/models?can=images&context=500000`);
  await expect.poll(shown).toEqual(['large']);
  await page.getByRole('button', { name: 'Clear', exact: true }).click();
  await expect.poll(async () => (await shown()).length).toBe(4);
});

test(
  'the speed of a model is that of the page Speed: of all accounts where this one has few calls',
  limit,
  async () => {
    await page.goto(`${service.url}/models?q=small`);
    await table().getByText('all accounts').waitFor();
    await callOften(client);
    const speedsOf = async () => okBody<{ data: ModelSpeedView[] }>(await owner.get(`${owner.base}/model-speeds`));
    await expect.poll(async () => (await speedsOf()).data.map(({ of }) => of)).toEqual(['account']); // records are written after answers
    await page.reload();
    await table().getByText('100 %').waitFor();
    await expect.poll(() => table().getByText('all accounts').count()).toBe(0);
    const speeds = await speedsOf();
    const report = okBody<SpeedView>(await owner.get(`${owner.base}/speed?group=model`));
    const { first_p50_ms = 0, total_p50_ms = 0, tokens_per_second = 0 } = report.rows[0] ?? {};
    expect(speeds.data).toEqual([
      { model: 'acme/small', of: 'account', first_p50_ms, total_p50_ms, tokens_per_second },
    ]);
  },
);

test(
  'up to four models are compared beside each other, and the service computes what the same work costs with each',
  limit,
  async () => {
    await page.goto(`${service.url}/models?kind=chat`);
    for (const name of ['acme/large', 'acme/small', 'acme/middle']) {
      await page.getByRole('checkbox', { name: `Compare ${name}` }).check();
    }
    await page.getByRole('button', { name: 'Compare 3 of 4' }).click();
    const comparison = page.getByRole('table', { name: 'Comparison of models' });
    const row = (name: string) => comparison.getByRole('row', { name: new RegExp(`^${name}`) }).getByRole('cell');
    await comparison.waitFor();
    await expect.poll(() => row('Context').allTextContents()).toEqual(['1M', '32K', '200K']);
    await expect.poll(() => new URL(page.url()).searchParams.get('compare')).toBe('acme/large,acme/small,acme/middle');
    await page.getByRole('textbox', { name: 'Input tokens', exact: true }).fill('100000');
    await page.getByRole('textbox', { name: 'Output tokens' }).fill('10000');
    const costs = page.getByRole('status', { name: 'Costs' });
    await costs.getByText('$0.45', { exact: true }).waitFor(); // 0.1 × 3 + 0.01 × 15
    await costs.getByText('$0.014', { exact: true }).waitFor(); // 0.1 × 0.1 + 0.01 × 0.4
    await costs.getByText('$0.09', { exact: true }).waitFor(); // 0.1 × 0.5, the price since 2020, + 0.01 × 4
    expect(await violationsIn(page)).toEqual([]);
    await page.getByRole('button', { name: 'Back to the list' }).click();
    await page.getByRole('button', { name: 'Compare 3 of 4' }).waitFor();
  },
);

test('the calculator of a model asks for what its price depends on', limit, async () => {
  await page.goto(`${service.url}/models/acme/film`);
  await page.getByRole('textbox', { name: 'Seconds' }).fill('10');
  const costs = page.getByRole('status', { name: 'Costs' });
  await costs.getByText('$2.00', { exact: true }).waitFor();
  expect(problems).toEqual([]);
});

test('each model can be tried, and shows its code without leaving the list', limit, async () => {
  await page.goto(`${service.url}/models?q=acme`);
  await page.getByRole('button', { name: 'Code: acme/small' }).click();
  await page.getByRole('dialog', { name: 'Call acme/small' }).getByText('"acme/small"').first().waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('link', { name: 'Try it: acme/film' }).click();
  await page.waitForURL((url) => url.pathname === '/playground' && url.searchParams.get('model') === 'acme/film');
  expect(problems).toEqual([]);
});

test('changes of prices are a feed: what is to come, and what was', limit, async () => {
  await page.goto(`${service.url}/models`);
  await page.getByRole('tab', { name: 'Price changes' }).click();
  const changes = page.getByRole('table', { name: /^Changes of prices/ });
  const rows = async () => (await changes.getByRole('row').allTextContents()).slice(1);
  await expect
    .poll(rows)
    .toEqual([
      expect.stringMatching(/2099acme\/middle\$4\.00 → \$8\.00 per million output tokens \(\+100 %\)Coming$/),
      expect.stringMatching(/2020acme\/middle\$1\.00 → \$0\.50 per million input tokens \(−50 %\)In force$/),
    ]);
  expect(await violationsIn(page)).toEqual([]);
});
