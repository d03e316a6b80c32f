import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { setThreshold } from '../../src/billing/alerts.ts';
import { no_details, setDetails } from '../../src/billing/details.ts';
import { unmailedInvoices } from '../../src/billing/invoices.ts';
import { close, hold } from '../../src/money/holds.ts';
import { startWorker } from '../../src/worker.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { testClock } from '../helpers/clock.ts';
import { startMailServer, type MailServer, type Received } from '../helpers/mail-server.ts';
import { browserOf } from '../helpers/person.ts';
import { ownerOfNew, type Someone } from './people.ts';

let server: MailServer;
let test: TestApp;
let owner: Someone;
let yaml: string;

const clock = testClock();
const password = 'correct horse battery';

beforeAll(async () => {
  server = await startMailServer();
  yaml = [
    'version: 1',
    `mail: { url: "${server.reference}", from: "Medley <medley@example.com>" }`,
    'billing: { issuer: { name: Żółw i Spółka } }',
  ].join('\n');
  test = await startTestApp({ worker: false, clock, yaml });
  owner = await ownerOfNew(test, 'Gęś');
  const { status } = await owner.post('/auth/set-up', { email: 'anna@example.com', name: 'Anna', password });
  if (status !== 200) throw new Error(`set-up was answered ${status}`);
  await vi.waitUntil(() => server.mails.length > 0, { timeout: 120_000 });
  const token = new URL(/https?:\S+/.exec(server.mails[0]?.text ?? '')?.[0] ?? '').searchParams.get('token');
  const confirmed = await owner.post('/auth/confirm-email', { token });
  if (confirmed.status !== 200) throw new Error(`the address was answered ${confirmed.status}`);
});

afterAll(async () => {
  await test.stop();
  await server.stop();
});

beforeEach(() => {
  server.mails.length = 0;
  server.be('take');
});

async function nextMail(): Promise<Received> {
  await expect.poll(() => server.mails.length).toBeGreaterThan(0);
  const mail = server.mails.shift();
  if (!mail) throw new Error('there is no mail');
  return mail;
}

it('the mailed link of a forgotten password sets a new one, once', async () => {
  const somebody = browserOf(test.url);
  const unknown = await somebody.post('/auth/request-password-reset', { email: 'nobody@example.com' });
  const registered = await somebody.post('/auth/request-password-reset', { email: 'anna@example.com' });
  expect([registered.status, registered.text]).toEqual([unknown.status, unknown.text]);
  const mail = await nextMail();
  expect(mail).toMatchObject({ to: ['anna@example.com'], subject: 'A new password for Medley' });
  expect(server.mails).toEqual([]);
  const link = new URL(/https?:\S+/.exec(mail.text)?.[0] ?? '');
  expect(`${link.origin}${link.pathname}`).toBe(`${test.url}/reset-password`);
  const change = { token: link.searchParams.get('token'), newPassword: 'another good password' };
  expect((await somebody.post('/auth/reset-password', change)).status).toBe(200);
  expect((await somebody.post('/auth/reset-password', change)).status).toBe(400);
  const signIn = (word: string) => somebody.post('/auth/sign-in/email', { email: 'anna@example.com', password: word });
  expect((await signIn(password)).status).toBe(401);
  expect((await signIn('another good password')).status).toBe(200);
  owner = { ...owner, ...somebody };
});

it('an invitation is mailed, and its link opens it', async () => {
  const answer = await owner.post(`${owner.base}/team/invitations`, { email: 'ola@example.com', role: 'viewer' });
  expect([answer.status, answer.json]).toEqual([201, expect.objectContaining({ mailed: true })]);
  const mail = await nextMail();
  expect(mail).toMatchObject({ to: ['ola@example.com'], subject: 'An invitation to Gęś on Medley' });
  const id = new URL(/https?:\S+/.exec(mail.text)?.[0] ?? '').searchParams.get('id');
  const seen = await browserOf(test.url).get(`/dash/invitations/${id}`);
  expect(seen.json).toMatchObject({ account_name: 'Gęś', email: 'ola@example.com', role: 'viewer' });
});

it('a mail server that hangs neither breaks nor delays a request', async () => {
  server.be('hang');
  const begun_ms = performance.now();
  const reset = await browserOf(test.url).post('/auth/request-password-reset', { email: 'anna@example.com' });
  const invited = await owner.post(`${owner.base}/team/invitations`, { email: 'ewa@example.com', role: 'viewer' });
  expect([reset.status, invited.status]).toEqual([200, 201]);
  expect(performance.now() - begun_ms).toBeLessThan(25_000); // a try takes 30 s
  expect((invited.json as { link: string }).link).toContain('/invitation?id=');
});

/** The tenth of a month that is over by every clock: invoices ask the database for the time, too. */
function pastMonth(): { day: Date; month: string } {
  const today = new Date();
  const day = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - 2, 10));
  return { day, month: day.toISOString().slice(0, 7) };
}

it('an invoice is created and mailed when its month has ended, and so is the notice of a low balance', async () => {
  const { db } = test.app;
  const { account_id } = owner;
  const { day: now, month } = pastMonth();
  const { key } = await createKey(db, { account_id, name: 'Test', limit_month: null }, now);
  await hold(
    db,
    { account_id, key_id: key.id, ref: 'task_1', amount: 9_000_000n, model: 'test/model', kind: 'image' },
    now,
  );
  await close(db, { account_id, ref: 'task_1', cost: 9_000_000n, beyond_hold: false }, now);
  await setThreshold(db, account_id, 2_000_000n, now);
  await startWorker(test.app);
  const toAnna = () => server.mails.filter(({ to }) => to.includes('anna@example.com') && to.length === 1);
  const notices = () => toAnna().filter(({ subject }) => !subject.includes('password'));
  await expect.poll(() => notices().length).toBe(2);
  const mails = notices().toSorted((a, b) => a.subject.localeCompare(b.subject));
  expect(mails.map(({ subject }) => subject)).toEqual([
    'Low balance in Gęś',
    expect.stringMatching(/^Your invoice MED-\d{4}-0001$/),
  ]);
  expect(mails[0]?.text).toContain('has 1.00 USD available, which is less than 2.00 USD');
  expect(mails[1]?.text).toContain(`for ${month} is ready: 9.00 USD`);
  expect(mails[1]?.text).toContain(`${test.url}/billing/invoices`);
});

it('an address whose mail is deferred delays no other invoice', async () => {
  const service = await startTestApp({ worker: false, clock, yaml });
  try {
    const { db } = service.app;
    const { day: now } = pastMonth();
    for (const name of ['first', 'second']) {
      const { id: account_id } = await createAccount(db, { name, currency: 'USD', initial_credit: 5_000_000n }, now);
      await setDetails(db, account_id, { ...no_details, email: `${name}@example.com` }, now);
      const { key } = await createKey(db, { account_id, name: 'Test', limit_month: null }, now);
      const ref = `task_${name}`;
      await hold(db, { account_id, key_id: key.id, ref, amount: 1_000_000n, model: 'test/model', kind: 'image' }, now);
      await close(db, { account_id, ref, cost: 1_000_000n, beyond_hold: false }, now);
    }
    server.be('fail', 'first@example.com');
    await startWorker(service.app);
    // The service before may still try to send what its test has left: a mail is tried for minutes.
    const taken = () => server.mails.flatMap(({ to }) => to).filter((to) => /^(first|second)@/.test(to));
    await expect.poll(taken).toEqual(['second@example.com']);
    // In the next run it is tried again.
    await expect
      .poll(() => unmailedInvoices(db, new Date(Date.now() - 86_400_000)), { message: 'untold' })
      .toMatchObject([{ customer: { email: 'first@example.com' } }]);
  } finally {
    await service.stop();
  }
});

it('a link is shown to be handed over when there is no mail', async () => {
  await test.configure('version: 1');
  const answer = await owner.post(`${owner.base}/team/invitations`, { email: 'iza@example.com', role: 'viewer' });
  expect(answer.json).toMatchObject({ mailed: false, link: expect.stringContaining('/invitation?id=') });
});
