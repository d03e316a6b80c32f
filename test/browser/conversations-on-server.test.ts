import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { addMember, ownerOf } from '../../src/accounts/members.ts';
import { readPlayground } from '../../src/contents/playground.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { savedConversations } from '../helpers/conversations.ts';
import { contextOf, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

/** Conversations that a person keeps on the server: in several browsers of theirs, without a network, and off again. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
const all_problems: string[][] = [];

beforeAll(async () => {
  service = await startTestApp({ env: { MEDLEY_SECRET: 'a secret of this service' } });
  chromium = await launchBrowser();
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

/** For a machine that has much else to do. */
const patience = { timeout: 120_000 };

const chat = '/playground?model=sandbox%2Fchat';

async function newPerson(): Promise<string> {
  const { db } = service.app;
  const account = await createAccount(db, { name: 'Own', currency: 'USD', initial_credit: 50_000_000n }, new Date());
  return ownerOf(db, account.id, new Date());
}

/** One more browser of this person. */
async function browserOf(person: string, options: BrowserContextOptions = {}, script?: string): Promise<Page> {
  const context = await contextOf(chromium.browser, { reducedMotion: 'reduce', ...options });
  if (script !== undefined) await context.addInitScript(script);
  const { page, problems } = await watchedPage(context, service.url);
  all_problems.push(problems);
  await signIn(page, service.app, person, chat);
  return page;
}

const logOf = (on: Page) => on.getByRole('log', { name: 'Conversation with Sandbox chat' });
const answersOf = (on: Page) => logOf(on).getByText(/\d+ in, \d+ out/);
const switchOf = (on: Page) => on.getByRole('switch', { name: 'Keep them on the server, for all my browsers' });
const lineOf = (on: Page, title: string) => on.getByRole('button', { name: new RegExp(`^${title}`) });

async function say(on: Page, text: string, answers = 1): Promise<void> {
  await on.getByRole('textbox', { name: 'Message', exact: true }).fill(text);
  await on.getByRole('button', { name: 'Send' }).click();
  await answersOf(on)
    .nth(answers - 1)
    .waitFor();
}

async function switchOn(on: Page): Promise<void> {
  await switchOf(on).click({ force: true }); // the label is over the input
  const is_done = async () => (await switchOf(on).isChecked()) && (await switchOf(on).isEnabled());
  await expect.poll(is_done, patience).toBe(true);
}

type Row = { id: string; version: number; is_deleted: boolean };

const rowsOf = (person: string) =>
  service.app.db.query<Row>(
    `select id, version, deleted_at is not null as is_deleted from playground_conversations
      where user_id = $1 and version > 0 order by id`,
    [person],
  );

/** Returns what the server has of a person's conversations, decrypted. */
async function serverTexts(person: string): Promise<string> {
  const rows = await service.app.db.query<{ account_id: string; user_id: string; id: string }>(
    'select account_id, user_id, id from playground_conversations where user_id = $1',
    [person],
  );
  const stored = await Promise.all(rows.map((row) => readPlayground(service.app, row, new Date())));
  return JSON.stringify(stored);
}

/** Waits until the server has what this page saved last: nothing of the browser's store is unsent. */
async function expectSent(on: Page): Promise<void> {
  await expect
    .poll(
      () =>
        on.evaluate<number>(`new Promise((resolve, reject) => {
          const opening = indexedDB.open('medley-playground');
          opening.onerror = () => reject(opening.error);
          opening.onsuccess = () => {
            const db = opening.result;
            const tables = db.transaction(['lines', 'sync']);
            const lines = tables.objectStore('lines').getAll();
            const sync = tables.objectStore('sync').getAll();
            tables.oncomplete = () => {
              db.close();
              const sent = new Map(sync.result.map((record) => [record.id, record.sent_edit]));
              const removed = sync.result.filter((record) => record.is_removed);
              resolve(lines.result.filter(({ id, edit }) => sent.get(id) !== edit).length + removed.length);
            };
          };
        })`),
      patience,
    )
    .toBe(0);
}

/** Waits until `isSeen` when somebody comes back to the page, again and again: another browser may not have sent it yet. */
async function comeBackUntil(to: Page, isSeen: () => Promise<boolean>): Promise<void> {
  const look = async () => {
    await to.evaluate(`window.dispatchEvent(new Event('visibilitychange'))`);
    return isSeen();
  };
  await expect.poll(look, patience).toBe(true);
}

/** Waits until the browser has saved the last part of an answer, its cost. */
async function expectSaved(on: Page, answers = 1): Promise<void> {
  const bills = async () => (await savedConversations(on)).split('"bill":{').length - 1;
  await expect.poll(bills, patience).toBe(answers);
}

test('a conversation with a file and versions, kept in one browser, is in another: both go on with it, one deletes it', async () => {
  const person = await newPerson();
  const laptop = await browserOf(person);
  await laptop.locator('input[type=file]').setInputFiles({
    name: 'notes.txt',
    mimeType: 'text/plain',
    buffer: Buffer.from('Notes of the ship'),
  });
  await say(laptop, 'Good morning');
  await logOf(laptop).getByRole('button', { name: 'Regenerate the answer' }).click();
  await logOf(laptop).getByRole('img', { name: 'Version 2 of 2' }).waitFor();
  await answersOf(laptop).first().waitFor();
  await logOf(laptop).getByRole('button', { name: 'Good answer' }).click();
  await expect.poll(() => switchOf(laptop).isChecked(), patience).toBe(false);
  expect(await rowsOf(person)).toEqual([]); // nothing is sent before
  await switchOn(laptop);
  await expect.poll(() => rowsOf(person), patience).toHaveLength(1);
  await expectSent(laptop);

  const phone = await browserOf(person, { viewport: { width: 390, height: 844 } });
  await lineOf(phone, 'Good morning').click();
  await logOf(phone).getByText('“Good morning”').waitFor();
  await logOf(phone).getByText('notes.txt', { exact: true }).waitFor();
  await logOf(phone).getByRole('img', { name: 'Version 2 of 2' }).waitFor();
  const vote = logOf(phone).getByRole('button', { name: 'Good answer' });
  await expect.poll(() => vote.getAttribute('aria-pressed'), patience).toBe('true');
  await say(phone, 'From the phone', 2);
  await expectSent(phone);

  await say(laptop, 'From the laptop', 2); // without having seen that
  await expectSent(laptop);
  await comeBackUntil(phone, async () => (await savedConversations(phone)).includes('From the laptop'));
  await comeBackUntil(laptop, async () => (await savedConversations(laptop)).includes('From the phone'));
  await logOf(laptop).getByRole('group', { name: 'Versions of the message' }).waitFor();

  await phone.getByRole('button', { name: 'More for Good morning' }).click();
  await phone.getByRole('menuitem', { name: 'Rename' }).click();
  await phone.getByRole('textbox', { name: 'Title' }).fill('Greetings');
  await phone.getByRole('button', { name: 'Rename' }).click();
  await expectSent(phone);
  await comeBackUntil(laptop, () => lineOf(laptop, 'Greetings').isVisible());

  await laptop.getByRole('button', { name: 'More for Greetings' }).click();
  await laptop.getByRole('menuitem', { name: 'Delete' }).click();
  await laptop.getByText('is deleted on the server and in all your browsers', { exact: false }).waitFor();
  await laptop.getByRole('button', { name: 'Delete', exact: true }).click();
  await expect.poll(() => rowsOf(person), patience).toMatchObject([{ is_deleted: true }]);
  const notice = phone.getByText('This conversation was deleted in another tab or browser.');
  await comeBackUntil(phone, () => notice.isVisible());
  await lineOf(phone, 'Greetings').waitFor({ state: 'detached' });
  await expect.poll(() => savedConversations(phone), patience).toBe('[]');
  await laptop.context().close();
  await phone.context().close();
}, 600_000);

/** A new person, who said this in a browser and has it on the server. */
async function personWith(text: string): Promise<{ person: string; page: Page }> {
  const person = await newPerson();
  const page = await browserOf(person);
  await say(page, text);
  await expectSaved(page);
  await switchOn(page);
  await expectSent(page);
  return { person, page };
}

test('without a network the page says what is not on the server yet, and sends it later, also after a reload', async () => {
  const { person, page } = await personWith('Before');
  const [before] = await rowsOf(person);
  const path = '**/dash/accounts/*/conversations/**';
  await page.route(path, (route) => route.abort());
  await logOf(page).getByRole('button', { name: 'Good answer' }).click();
  const note = page.getByRole('alert').filter({ hasText: 'Not on the server yet' });
  await note.getByText('The service cannot be reached. It may be restarting.').waitFor();
  expect(await violationsIn(page)).toEqual([]);
  expect(await rowsOf(person)).toEqual([before]);
  await page.unroute(path);
  await page.evaluate(`window.dispatchEvent(new Event('online'))`);
  await note.waitFor({ state: 'detached' });
  await expectSent(page);
  expect((await rowsOf(person))[0]?.version).toBeGreaterThan(before?.version ?? 0);

  await page.route(path, (route) => route.abort());
  await logOf(page).getByRole('button', { name: 'Bad answer' }).click();
  await note.waitFor();
  await page.unroute(path);
  await page.reload();
  await expectSent(page);
  const other = await browserOf(person);
  await lineOf(other, 'Before').click();
  const vote = logOf(other).getByRole('button', { name: 'Bad answer' });
  await expect.poll(() => vote.getAttribute('aria-pressed'), patience).toBe('true');
  await other.context().close();
  await page.context().close();
}, 600_000);

test('switched off, everything is brought here first, and goes from the server', async () => {
  const { person, page: first } = await personWith('Only in the first');
  const second = await browserOf(person);
  await lineOf(second, 'Only in the first').waitFor();
  await switchOf(second).click({ force: true });
  const dialog = second.getByRole('dialog', { name: 'Keep them in this browser alone?' });
  await dialog.waitFor();
  expect(await violationsIn(second)).toEqual([]);
  await expect.poll(() => dialog.getByRole('checkbox').isChecked(), patience).toBe(true);
  await dialog.getByRole('button', { name: 'Switch off' }).click();
  await dialog.waitFor({ state: 'detached' });
  await expect.poll(() => switchOf(second).isChecked(), patience).toBe(false);
  await expect.poll(() => rowsOf(person), patience).toEqual([]);
  await second.reload();
  await lineOf(second, 'Only in the first').click();
  await logOf(second).getByText('“Only in the first”').waitFor();
  await comeBackUntil(first, async () => !(await switchOf(first).isChecked()));
  await lineOf(first, 'Only in the first').waitFor();
  await second.context().close();
  await first.context().close();
}, 600_000);

test('where the browser saves nothing, the server alone keeps conversations', async () => {
  const { person, page: first } = await personWith('From elsewhere');
  const closed = `indexedDB.open = () => { throw new DOMException('no', 'SecurityError'); }`;
  const shut = await browserOf(person, {}, closed);
  await lineOf(shut, 'From elsewhere').click();
  await logOf(shut).getByText('“From elsewhere”').waitFor();
  await say(shut, 'From the private window', 2);
  expect(await shut.getByText('This conversation is not saved').count()).toBe(0);
  const bills = async () => (await serverTexts(person)).split('bill\\":{').length - 1;
  await expect.poll(bills, patience).toBe(2);
  await shut.reload();
  await logOf(shut).getByText('“From elsewhere”').waitFor();
  await logOf(shut).getByText('“From the private window”').waitFor();
  await shut.context().close();
  await first.context().close();
}, 600_000);

test('what the server refuses stays here with the reason, until there is room', async () => {
  const person = await newPerson();
  const page = await browserOf(person);
  await switchOn(page);
  const { db } = service.app;
  await db.query(
    `insert into playground_conversations (account_id, user_id, id, version, created_at, updated_at, expires_at)
     select account_id, user_id, lpad(to_hex(n), 24, '0'), 0, now(), now(), now() + interval '1 day'
       from playground_owners, generate_series(1, 1000) n where user_id = $1`,
    [person],
  );
  await say(page, 'One too many');
  await expectSaved(page);
  const note = page.getByRole('alert').filter({ hasText: 'Not on the server yet' });
  await note.getByText('At most 1,000 conversations are kept. Delete some first.').waitFor();
  expect(await rowsOf(person)).toEqual([]);
  await db.query('delete from playground_conversations where user_id = $1', [person]);
  await logOf(page).getByRole('button', { name: 'Good answer' }).click();
  await expectSent(page);
  await note.waitFor({ state: 'detached' });
  expect(await rowsOf(person)).toHaveLength(1);
  await page.context().close();
}, 600_000);

test('a page of somebody who signed in before sends nothing to whoever is signed in by now', async () => {
  const first = await newPerson();
  const { db } = service.app;
  const second = await newPerson();
  const [account] = await db.query<{ id: string }>(
    'select "organizationId" as id from auth.member where "userId" = $1',
    [first],
  );
  await addMember(db, { account_id: account?.id ?? '', user_id: second, role: 'developer' }, new Date());
  const page = await browserOf(first);
  await say(page, 'Only for the first');
  await expectSaved(page);
  await switchOn(page);
  await expectSent(page);
  const before = await rowsOf(first);
  const { page: other_tab } = await watchedPage(page.context(), service.url);
  await signIn(other_tab, service.app, second, chat);
  await db.query(
    `insert into playground_owners (account_id, user_id, epoch, is_on, created_at) values ($1, $2, 'x', true, now())`,
    [account?.id, second],
  );
  const refused = page.waitForResponse((response) => response.status() === 409);
  await logOf(page).getByRole('button', { name: 'Good answer' }).click();
  expect((await refused).url()).toContain('/conversations/');
  await expect.poll(() => switchOf(page).isChecked(), patience).toBe(false);
  expect(await rowsOf(second)).toEqual([]);
  expect(await rowsOf(first)).toEqual(before);
  await page.context().close();
}, 600_000);

test('the switch and the list are readable by everybody: light and dark, on a phone; a viewer has none', async () => {
  const person = await newPerson();
  const phone = await browserOf(person, { viewport: { width: 390, height: 844 } });
  await say(phone, 'On the phone');
  await switchOn(phone);
  await phone.getByText('Encrypted there, seen by nobody else, and removed 90 days after their last change.').waitFor();
  await expectSent(phone);
  for (const colorScheme of ['light', 'dark'] as const) {
    await phone.emulateMedia({ colorScheme });
    expect(await violationsIn(phone)).toEqual([]);
  }
  expect(await sidewaysOf(phone)).toBe(0);
  await phone.context().close();
  await service.app.db.query(`update auth.member set role = 'viewer' where "userId" = $1`, [person]);
  const viewer = await browserOf(person);
  await viewer.getByText('Conversations are saved in this browser, for you alone.', { exact: false }).waitFor();
  expect(await switchOf(viewer).count()).toBe(0);
  await viewer.context().close();
}, 600_000);

test('the browser console has no errors after all that but those of a network that was away', () => {
  const others = all_problems.flat().filter((problem) => !problem.includes('net::ERR_FAILED'));
  expect(others).toEqual([]);
});
