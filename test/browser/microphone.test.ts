import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { ownerOf } from '../../src/accounts/members.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { leave, sidewaysOf, violationsIn, visit } from '../helpers/dashboard.ts';

/** Recordings in the playground, by a browser whose microphone hears a beep every second. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let user_id: string;

/** For a machine that has much else to do. */
const patience = { timeout: 120_000 };

/** A chat model that listens. */
const yaml = `version: 1
providers:
  house: { adapter: sandbox }
models:
  - id: house/ear
    kind: chat
    name: House ear
    capabilities: [audio, streaming]
    price:
      - { unit: input_token, per: 1000000, amount: "1.00" }
      - { unit: output_token, per: 1000000, amount: "4.00" }
    routes: [{ provider: house, upstream_model: chat, options: { pass: [input_audio] } }]
`;

beforeAll(async () => {
  service = await startTestApp({ yaml });
  chromium = await launchBrowser(['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream']);
  const { db } = service.app;
  const account = await createAccount(db, { name: 'Own', currency: 'USD', initial_credit: 5_000_000n }, new Date());
  user_id = await ownerOf(db, account.id, new Date());
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

const open = (path: string, viewport = { width: 1280, height: 900 }) =>
  visit(chromium.browser, service.app, { user_id, path, viewport });

const panelOf = (page: Page) => page.getByRole('group', { name: 'Recording', exact: true });

/** Records until sound has come and a second has passed, by the keyboard, which is where it is needed next. */
async function record(page: Page): Promise<void> {
  const panel = panelOf(page);
  const level = panel.getByRole('progressbar', { name: 'Level' });
  await expect.poll(async () => Number(await level.getAttribute('aria-valuenow')), patience).toBeGreaterThan(30);
  await expect.poll(() => panel.getByRole('timer').innerText(), patience).not.toBe('0:00');
  expect(await violationsIn(page)).toEqual([]);
  await page.keyboard.press('Enter'); // the focus is on the button that stops
  await panel.getByLabel('Recording', { exact: true }).waitFor();
}

/** The seconds of the recording that the page plays. */
function durationIn(page: Page): Promise<number> {
  return page.evaluate(`(async () => {
    const { src } = document.querySelector('[role=group][aria-label=Recording] audio');
    const audio = new Audio(src);
    await new Promise((resolve, reject) => { audio.onloadedmetadata = resolve; audio.onerror = () => reject(audio.error); });
    return audio.duration;
  })()`);
}

test('a recording is attached to a message of chat, and the model gets it as WAV', async () => {
  const { page, ...rest } = await open('/playground?model=house%2Fear');
  await page.getByRole('button', { name: 'Record', exact: true }).click();
  await record(page);
  expect(await durationIn(page)).toBeGreaterThan(0.9);
  await expect.poll(() => panelOf(page).innerText(), patience).toMatch(/\d:\d\d, \d+ kB/);
  expect(await violationsIn(page)).toEqual([]);
  await page.keyboard.press('Enter'); // on the button that attaches
  await page.getByRole('group', { name: 'Attached files' }).getByText('Recording.wav').waitFor();
  await expect.poll(() => panelOf(page).count(), patience).toBe(0);
  await page.getByRole('textbox', { name: 'Message' }).fill('What do you hear?');
  await page.getByRole('button', { name: 'Send' }).click();
  const log = page.getByRole('log', { name: 'Conversation with House ear' });
  await log.getByText(/There is audio \(wav, \d{5,} bytes\)/).waitFor();
  await leave({ page, ...rest });
});

test('a recording is written down by a model that transcribes, and one that is discarded goes nowhere', async () => {
  const { page, ...rest } = await open('/playground?model=sandbox%2Ftranscript', { width: 390, height: 844 });
  const button = page.getByRole('button', { name: 'Recording: record' });
  await button.click();
  await record(page);
  expect(await sidewaysOf(page)).toBe(0);
  await panelOf(page).getByRole('button', { name: 'Discard' }).click();
  await expect.poll(() => panelOf(page).count(), patience).toBe(0);
  await expect.poll(() => page.evaluate(`document.activeElement.ariaLabel`), patience).toBe('Recording: record');
  await button.click();
  await record(page);
  await panelOf(page).getByRole('button', { name: 'Use the recording' }).click();
  await page.getByText('Recording.wav').waitFor();
  await page.getByRole('textbox', { name: 'Hint' }).fill('Good morning.');
  await page.getByRole('button', { name: /^Run · holds \$0\.\d/ }).click();
  await page.getByText('Good morning.').last().waitFor();
  await page.getByText('Succeeded').first().waitFor();
  await leave({ page, ...rest });
});

test('the microphone is off again where a recording cannot begin', async () => {
  const visiting = await open('/playground?model=sandbox%2Ftranscript');
  const { page } = visiting;
  await page.addInitScript(`
    const { mediaDevices } = navigator;
    const getUserMedia = mediaDevices.getUserMedia.bind(mediaDevices);
    mediaDevices.getUserMedia = async (asked) => {
      globalThis.stream = await getUserMedia(asked);
      return globalThis.stream;
    };
    globalThis.MediaRecorder = class { constructor() { throw new DOMException('not this device', 'NotSupportedError'); } };
    const close = AudioContext.prototype.close;
    AudioContext.prototype.close = function () { globalThis.is_closed = true; return close.call(this); };
  `);
  await page.reload();
  await page.getByRole('button', { name: 'Recording: record' }).click();
  expect(await panelOf(page).getByRole('alert').innerText()).toMatch(/This browser cannot record/);
  const tracks = () => page.evaluate(`globalThis.stream.getTracks().map(({ readyState }) => readyState)`);
  await expect.poll(tracks, patience).toEqual(['ended']);
  await expect.poll(() => page.evaluate(`globalThis.is_closed`), patience).toBe(true);
  await leave(visiting);
});

describe('what stands in the way has a sentence', () => {
  /** The browser as it is then. */
  const obstacles: [string, string, RegExp][] = [
    [
      'a page without https on another host',
      `Object.defineProperty(globalThis, 'isSecureContext', { value: false }); delete Navigator.prototype.mediaDevices`,
      /only on pages with https/,
    ],
    ['a refused permission', refusedBy('NotAllowedError'), /Allow it in the browser’s address bar/],
    ['no microphone', refusedBy('NotFoundError'), /There is no microphone/],
    ['a microphone that another program uses', refusedBy('NotReadableError'), /Another program uses the microphone/],
    ['a browser that cannot record', 'delete globalThis.MediaRecorder', /This browser cannot record/],
  ];
  test.each(obstacles)('%s', async (_name, script, sentence) => {
    const visiting = await open('/playground?model=sandbox%2Ftranscript');
    const { page } = visiting;
    await page.addInitScript(script);
    await page.reload();
    await page.getByRole('button', { name: 'Recording: record' }).click();
    const panel = panelOf(page);
    expect(await panel.getByRole('alert').innerText()).toMatch(sentence);
    expect(await panel.getByRole('alert').innerText()).toMatch(/hoose an audio file instead/);
    expect(await violationsIn(page)).toEqual([]);
    await panel.getByRole('button', { name: 'Close' }).click();
    await expect.poll(() => panel.count(), patience).toBe(0);
    await expect
      .poll(() => page.getByRole('button', { name: 'Recording: choose an audio file' }).isEnabled(), patience)
      .toBe(true);
    await leave(visiting);
  });
});

function refusedBy(name: string): string {
  return `navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('no', '${name}'))`;
}

test('where a conversation has room for little, a recording is no longer than that', async () => {
  const { page, ...rest } = await open('/playground?model=house%2Fear');
  const megabytes = Buffer.alloc(19_936_000);
  await page.locator('input[type=file]').setInputFiles({ name: 'long.wav', mimeType: 'audio/wav', buffer: megabytes });
  await page.getByText('long.wav').waitFor();
  // It is shown while it records: for a second.
  await Promise.all([
    panelOf(page).getByText('of at most 0:01').waitFor(),
    page.getByRole('button', { name: 'Record', exact: true }).click(),
  ]);
  await panelOf(page).getByLabel('Recording', { exact: true }).waitFor(); // it stops by itself
  expect(await durationIn(page)).toBeLessThanOrEqual(1);
  await panelOf(page).getByRole('button', { name: 'Attach' }).click();
  await page.getByText('Recording.wav').waitFor(); // within the limit of all files
  await leave({ page, ...rest });
});
