import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, sidewaysOf, violationsIn, watchedPage } from '../helpers/dashboard.ts';
import { clusterFolder, removeFolder } from '../helpers/embedded.ts';
import { firstStart, type FirstStart } from '../helpers/first-start.ts';
import { startComfyUi, type ComfyUi } from '../providers/imitations/comfyui/server.ts';
import { textToImage } from '../providers/imitations/comfyui/workflows.ts';
import { startImageServer } from '../providers/imitations/image-server.ts';
import type { Imitation } from '../providers/imitations/imitation.ts';
import { openrouter_key, startOpenRouter } from '../providers/imitations/openrouter.ts';

/** From an empty installation to a chat and a picture of one's own providers, by the dashboard alone, in five minutes. */
const promised_ms = 300_000;
let started_ms = 0;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let folder = '';
let service: FirstStart | undefined;
let router: Imitation;
let images: Imitation;
let comfy: ComfyUi;
let context: BrowserContext;
let page: Page;
let problems: string[];

const limit = { timeout: 300_000 };

beforeAll(async () => {
  chromium = await launchBrowser();
  [router, images, comfy] = await Promise.all([startOpenRouter(), startImageServer(), startComfyUi()]);
  folder = clusterFolder();
  started_ms = performance.now();
  service = await firstStart(folder);
  context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
  ({ page, problems } = await watchedPage(context, new URL(service.link).origin));
  await page.goto(new URL('/', service.link).href);
  await heading('Sign in').waitFor();
  await page.goto(service.link);
  await heading('Home').waitFor();
  await page.waitForURL((url) => url.pathname === '/');
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
  await router?.stop();
  await images?.stop();
  await comfy?.stop();
  removeFolder(folder);
});

const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true });
const dialog = () => page.getByRole('dialog');

async function choose(name: string): Promise<void> {
  await page.getByRole('button', { name: 'Add a provider' }).click();
  await dialog().getByRole('combobox', { name: 'Provider' }).click();
  await page.getByRole('option', { name, exact: true }).click();
}

test('an operator pastes a key, ticks a model and chats with it, without a restart', limit, async () => {
  await page.getByRole('link', { name: 'Providers', exact: true }).click();
  await heading('Providers').waitFor();
  await page.getByText('Keys are stored without encryption').waitFor();
  await choose('OpenRouter');
  await dialog().getByRole('button', { name: 'Another name or address' }).click();
  await dialog().getByRole('textbox', { name: 'Address' }).fill(`${router.url}/api/v1`);
  await dialog().getByLabel('API key').fill('sk-or-v1-wrong');
  await dialog().getByRole('button', { name: 'Continue' }).click();
  await dialog()
    .getByText(/has a private address/)
    .waitFor();
  await dialog().getByRole('checkbox', { name: 'The server is in my own network' }).check();
  await dialog().getByRole('button', { name: 'Continue' }).click();
  await dialog().getByText('The provider does not take this key: User not found (401).').waitFor();
  expect(await violationsIn(page)).toEqual([]);
  await dialog().getByLabel('API key').fill(openrouter_key);
  await dialog().getByRole('button', { name: 'Continue' }).click();

  await page.getByRole('dialog', { name: 'Models of OpenRouter' }).waitFor();
  const row = dialog().getByRole('row', { name: /maker\/talker/ });
  await row.getByText('$2.50 per million input tokens').waitFor();
  await row.getByText('$3.00 per million input tokens').waitFor();
  await expect.poll(() => dialog().getByRole('checkbox', { name: 'maker/painter' }).isDisabled()).toBe(true);
  await row.getByRole('checkbox').check();
  expect(await violationsIn(page)).toEqual([]);
  await dialog().getByRole('button', { name: 'Add 1 model' }).click();
  await dialog().waitFor({ state: 'hidden' });
  await page.getByText('key …cdef').waitFor();

  await page.getByRole('link', { name: 'maker/talker' }).click();
  await page.getByRole('link', { name: 'Open in the playground' }).first().click();
  await heading('Playground').waitFor();
  await page.getByRole('textbox', { name: /Message/ }).fill('Hello');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('Hello from the router.').waitFor();
  expect(router.requestsFor('submit').at(-1)?.headers.authorization).toBe(`Bearer ${openrouter_key}`);
  expect(problems).toEqual([]);
});

test('a server of images in the own network makes a picture at a price that was typed', limit, async () => {
  await page.getByRole('link', { name: 'Providers', exact: true }).click();
  await heading('Providers').waitFor();
  await choose('LocalAI');
  await dialog().getByRole('textbox', { name: 'Address' }).fill(`${images.url}/v1`);
  await dialog().getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('dialog', { name: 'Models of LocalAI' }).waitFor();
  await dialog().getByRole('checkbox', { name: 'localai/stable-diffusion-3.5' }).check();
  await dialog().getByText('Type a price for stable-diffusion-3.5; 0 makes it free.').waitFor();
  await dialog().getByLabel('Per image of stable-diffusion-3.5').fill('0.05');
  await dialog().getByRole('button', { name: 'Add 1 model' }).click();
  await dialog().waitFor({ state: 'hidden' });

  await page.getByRole('link', { name: 'localai/stable-diffusion-3.5' }).click();
  await page.getByRole('link', { name: 'Open in the playground' }).first().click();
  await heading('Playground').waitFor();
  await page.getByRole('textbox', { name: /^Prompt/ }).fill('A red bicycle');
  await page.getByRole('button', { name: /^Run · holds/ }).click();
  const result_image = page.getByRole('img', { name: 'Result 1 of localai/stable-diffusion-3.5' });
  await result_image.waitFor();
  await expect
    .poll(() => result_image.evaluate((image) => 'naturalWidth' in image && image.naturalWidth), limit)
    .toBe(64);
  expect(problems).toEqual([]);
});

test('a workflow of a ComfyUI becomes a model with a form, and makes a picture', limit, async () => {
  await page.getByRole('link', { name: 'Providers', exact: true }).click();
  await heading('Providers').waitFor();
  await choose('ComfyUI');
  await dialog().getByRole('textbox', { name: 'Address' }).fill(`${comfy.url}/nowhere`);
  await dialog().getByRole('button', { name: 'Continue' }).click();
  await dialog()
    .getByText(/There is nothing at/)
    .waitFor();
  await dialog().getByRole('textbox', { name: 'Address' }).fill(comfy.url);
  await dialog().getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('dialog', { name: 'Models of ComfyUI' }).waitFor();
  await dialog().getByRole('textbox', { name: 'Text of the workflow' }).fill('{"nodes": []}');
  await dialog().getByRole('button', { name: 'Continue' }).click();
  await dialog()
    .getByText(/as the editor saves it: export it with/)
    .waitFor();
  expect(await violationsIn(page)).toEqual([]);
  await dialog()
    .locator('input[type=file]')
    .setInputFiles({
      name: 'My portrait.json',
      mimeType: 'application/json',
      buffer: Buffer.from(JSON.stringify(textToImage())),
    });
  await dialog().getByText('Callers use comfyui/my-portrait.').waitFor();
  await expect.poll(() => dialog().getByRole('checkbox', { checked: true }).count()).toBe(5);
  await dialog().getByRole('checkbox', { name: 'Negative: text (7.text)' }).uncheck();
  await dialog()
    .getByRole('button', { name: /more fields/ })
    .click();
  await dialog().getByText('euler, one of 2').waitFor();
  await dialog().getByRole('checkbox', { name: 'KSampler: steps (3.steps)' }).check();
  await dialog().getByRole('textbox', { name: 'At most, of 3.steps' }).fill('30');
  await dialog().getByRole('textbox', { name: 'Name for callers of 3.steps' }).fill('Steps!');
  await dialog().getByText('Lower-case letters, digits and underscores.').waitFor();
  await expect.poll(() => dialog().getByRole('button', { name: 'Add the model' }).isDisabled()).toBe(true);
  await dialog().getByRole('textbox', { name: 'Name for callers of 3.steps' }).fill('steps');
  expect(await violationsIn(page)).toEqual([]);
  await dialog().getByRole('button', { name: 'Add the model' }).click();
  await dialog().waitFor({ state: 'hidden' });

  await page.getByRole('link', { name: 'comfyui/my-portrait' }).click();
  await page.getByRole('link', { name: 'Open in the playground' }).first().click();
  await heading('Playground').waitFor();
  await page.getByRole('textbox', { name: /^Prompt/ }).fill('A red bicycle');
  await page.getByRole('button', { name: /^Run/ }).click();
  const result_image = page.getByRole('img', { name: 'Result 1 of comfyui/my-portrait' });
  await result_image.waitFor();
  await expect
    .poll(() => result_image.evaluate((image) => 'naturalWidth' in image && image.naturalWidth), limit)
    .toBe(64);
  expect(comfy.machine.accepted.at(-1)?.prompt).toMatchObject({
    '6': { inputs: { text: 'A red bicycle' } },
    '7': { inputs: { text: 'text, watermark' } },
    '3': { inputs: { steps: 20 } },
  });
  expect(performance.now() - started_ms).toBeLessThan(2 * promised_ms); // this machine has much else to do
  expect(problems).toEqual([]);
});

test('prices are changed and providers removed, on a phone too', limit, async () => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${new URL(page.url()).origin}/admin/providers`);
  await page.getByRole('button', { name: 'Price of maker/talker' }).click();
  await dialog().getByRole('radio', { name: 'List price + a margin of its own' }).check();
  await dialog().getByRole('textbox', { name: 'Margin in percent' }).fill('100');
  await dialog().getByRole('button', { name: 'Save' }).click();
  await dialog().waitFor({ state: 'hidden' });
  await page.getByText('$5.00 per million input tokens').waitFor();
  await page.getByRole('button', { name: 'Price of localai/stable-diffusion-3.5' }).click();
  const withMargin = dialog().getByRole('radio', { name: 'List price + a margin of its own' });
  await expect.poll(() => withMargin.isDisabled()).toBe(true); // of what?
  await dialog().getByRole('textbox', { name: 'Provider’s price: Per image, in USD' }).fill('0.04');
  await withMargin.check();
  await dialog().getByRole('textbox', { name: 'Margin in percent' }).fill('50');
  expect(await violationsIn(page)).toEqual([]);
  await dialog().getByRole('button', { name: 'Save' }).click();
  await dialog().waitFor({ state: 'hidden' });
  await page.getByText('$0.06 per image').waitFor();
  expect(await sidewaysOf(page)).toBe(0);
  expect(await violationsIn(page)).toEqual([]);

  await page.getByRole('button', { name: 'More for localai' }).click();
  await page.getByRole('menuitem', { name: 'Remove…' }).click();
  await dialog().getByRole('button', { name: 'Remove' }).click();
  await dialog().waitFor({ state: 'hidden' });
  await page.getByText('localai/stable-diffusion-3.5').waitFor({ state: 'hidden' });
  expect(problems).toEqual([]);
});
