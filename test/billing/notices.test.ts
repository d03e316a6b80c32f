import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { openMailer } from '../../src/accounts/mailer.ts';
import { addMember } from '../../src/accounts/members.ts';
import { no_details, setDetails } from '../../src/billing/details.ts';
import { makeInvoices, unmailedInvoices } from '../../src/billing/invoices.ts';
import { mailInvoices } from '../../src/billing/notices.ts';
import { close, hold } from '../../src/money/holds.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { testClock } from '../helpers/clock.ts';
import { startMailServer, type MailServer } from '../helpers/mail-server.ts';

let server: MailServer;
let test: TestApp;

const clock = testClock();
const now = () => new Date(clock.now());
const hour = 3_600_000;
const { signal } = new AbortController();

beforeAll(async () => {
  clock.run('2026-12-10T12:00:00Z'); // and 32 days later with each invoice: no test begins where a month ends
  server = await startMailServer();
  const yaml = `version: 1\nmail: { url: "${server.reference}", from: "Medley <medley@example.com>" }`;
  test = await startTestApp({ worker: false, clock, yaml });
});

afterAll(async () => {
  await test.stop();
  await server.stop();
});

beforeEach(async () => {
  await test.app.db.query(
    'insert into invoice_mails (number, mailed_at) select number, $1 from invoices on conflict do nothing',
    [now()],
  );
  server.mails.length = 0;
  server.be('take');
});

const recipients = () => server.mails.flatMap(({ to }) => to);

let people = 0;

async function addOwner(account_id: string, email: string): Promise<void> {
  const user_id = `user_${++people}`;
  await test.app.db.query(
    `insert into auth."user" (id, name, email, "emailVerified", "createdAt", "updatedAt") values ($1, 'Owner', $2, true, $3, $3)`,
    [user_id, email, now()],
  );
  await addMember(test.app.db, { account_id, user_id, role: 'owner' }, now());
}

/** With 10.00 on it. */
async function newAccount(name: string): Promise<string> {
  const { id } = await createAccount(test.app.db, { name, currency: 'USD', initial_credit: 10_000_000n }, now());
  return id;
}

let spent = 0;

async function spend(account_id: string, amount: bigint): Promise<void> {
  const { db } = test.app;
  const ref = `task_${++spent}`;
  const { key } = await createKey(db, { account_id, name: 'Test', limit_month: null }, now());
  await hold(db, { account_id, key_id: key.id, ref, amount, model: 'test/model', kind: 'image' }, now());
  await close(db, { account_id, ref, cost: amount, beyond_hold: false }, now());
}

describe('the mail of an invoice', () => {
  const issuer = { name: 'Medley', address: '', tax_id: '', series: 'MED' };

  /** Of the month that has just begun for them, made as soon as it is over. */
  async function invoiceAll(): Promise<void> {
    const month = now().toISOString().slice(0, 7);
    clock.pass(32 * 24 * hour);
    await makeInvoices(test.app.db, { issuer, month, now: now() });
  }

  const unsent = async () =>
    (await unmailedInvoices(test.app.db, new Date(clock.now() - 24 * hour))).map(({ customer }) => customer.name);

  it('without an address waits for one for three days', async () => {
    const account_id = await newAccount('Nobody yet');
    await spend(account_id, 1_000_000n);
    await invoiceAll();
    await mailInvoices(test.app, signal);
    expect(recipients()).toEqual([]);
    clock.pass(24 * hour);
    await addOwner(account_id, 'found@example.com');
    await mailInvoices(test.app, signal);
    await mailInvoices(test.app, signal);
    expect(recipients()).toEqual(['found@example.com']);
  });

  it('goes to the current address of its account', async () => {
    const account_id = await newAccount('Moved');
    await setDetails(test.app.db, account_id, { ...no_details, email: 'old@example.com' }, now());
    await spend(account_id, 1_000_000n);
    await invoiceAll();
    server.be('fail');
    await mailInvoices(test.app, signal);
    await setDetails(test.app.db, account_id, { ...no_details, email: 'new@example.com' }, now());
    server.be('take');
    await mailInvoices(test.app, signal);
    expect(recipients()).toEqual(['new@example.com']);
  });

  it('is sent, however many before it cannot be', async () => {
    for (let i = 0; i < 101; i++) await spend(await newAccount(`Silent ${i}`), 1_000_000n);
    const last = await newAccount('Last'); // and so is its number
    await addOwner(last, 'last@example.com');
    await spend(last, 1_000_000n);
    await invoiceAll();
    await mailInvoices(test.app, signal);
    expect(recipients()).toEqual(['last@example.com']);
  });

  it('is not given up when the server refuses the sender or refuses to relay', async () => {
    const account_id = await newAccount('Relayed');
    await addOwner(account_id, 'relayed@example.com');
    await spend(account_id, 1_000_000n);
    await invoiceAll();
    for (const mood of ['refuse sender', 'refuse relaying'] as const) {
      server.be(mood);
      await mailInvoices(test.app, signal);
      expect(await unsent()).toEqual(['Relayed']);
    }
    server.be('take');
    await mailInvoices(test.app, signal);
    expect(recipients()).toEqual(['relayed@example.com']);
  });

  it('is sent in the same run as one at which the server hangs', async () => {
    for (const name of ['slow', 'quick']) {
      const account_id = await newAccount(name);
      await addOwner(account_id, `${name}@example.com`);
      await spend(account_id, 1_000_000n);
    }
    await invoiceAll();
    server.be('mute', 'slow@example.com');
    const { log, catalog } = test.app;
    const impatient = openMailer({ settings: () => catalog.current.settings.mail, log, timeout_ms: 400 });
    const { mailer } = test.app;
    const send: typeof mailer.send = (mail) => (mail.to.includes('slow@example.com') ? impatient : mailer).send(mail);
    await mailInvoices({ ...test.app, mailer: { ...mailer, send } }, signal);
    expect(recipients()).toEqual(['quick@example.com']);
    expect(await unsent()).toEqual(['slow']);
  });

  it('is the same mail when it is sent again because its sending was not recorded', async () => {
    const account_id = await newAccount('Twice');
    await addOwner(account_id, 'twice@example.com');
    await spend(account_id, 1_000_000n);
    await invoiceAll();
    await mailInvoices(test.app, signal);
    await test.app.db.query('delete from invoice_mails');
    await mailInvoices(test.app, signal);
    const ids = server.mails.map(({ raw }) => /^Message-ID:\s+(\S+)/im.exec(raw)?.[1]);
    expect(ids).toEqual([expect.stringMatching(/^<invoice-MED-\d{4}-\d+-acct_\w+@example\.com>$/), ids[0]]);
  });
});
