import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { pino } from 'pino';
import { openMailer, type Mailer } from '../../src/accounts/mailer.ts';
import { mailText, testAlert } from '../../src/alerts/message.ts';
import { invitationMail } from '../../src/accounts/mails.ts';
import { startMailServer, type MailServer } from '../helpers/mail-server.ts';

let server: MailServer;
let mailer: Mailer;
let logged: { level: number; msg: string; subject?: string }[] = [];

/** A log of this test, in which a mail of an earlier one writes nothing any more. */
function openLog() {
  const lines = logged;
  return pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
}

const from = 'Medley Łódź <medley@example.com>';

beforeAll(async () => {
  server = await startMailServer();
});

afterAll(() => server.stop());

beforeEach(() => {
  logged = [];
  server.mails.length = 0;
  server.be('take');
  mailer = open([20, 20]);
});

function open(retry_delays_ms: number[], timeout_ms = 10_000): Mailer {
  const settings = () => ({ url: server.reference, from });
  return openMailer({ settings, log: openLog(), retry_delays_ms, timeout_ms });
}

afterEach(() => mailer.close());

const mail = (subject = 'A subject') => ({
  to: 'anna@example.com',
  subject,
  text: 'A link: https://example.com/secret\n',
});

it('a mail arrives as it was written, with Polish letters, and a line break in a name adds no header', async () => {
  const link = 'https://medley.example.com/invitation?id=abc';
  const account_name = 'Żółw\r\nBcc: victim@example.com';
  await mailer.send(invitationMail({ to: 'anna@example.com', from: 'Grażyna', account_name, link }));
  const [got] = server.mails;
  expect(got).toMatchObject({
    from: 'medley@example.com',
    to: ['anna@example.com'],
    subject: 'An invitation to Żółw Bcc victim example. com on Medley',
  });
  expect(got?.text).toContain(`Grażyna invites you to the account "Żółw Bcc victim example. com"`);
  expect(got?.text).toContain(`\n\n${link}\n\n`);
  expect(got?.raw).toMatch(/^Auto-Submitted: auto-generated\r$/m);
});

it('a mail arrives in the end when the server fails for a moment', async () => {
  mailer.close();
  mailer = open([1_000, 1_000]); // the server has recovered before the next try, however busy the machine is
  server.be('fail');
  mailer.post(mail());
  await expect.poll(() => logged.length, { interval: 10 }).toBeGreaterThan(0);
  server.be('take');
  await expect.poll(() => server.mails.length).toBe(1);
  expect(logged.every(({ level, msg }) => level === 40 && msg.includes('will be tried again'))).toBe(true);
});

it('a mail is given up after three tries when the server keeps failing, and the log hides the secret', async () => {
  server.be('fail');
  const before = server.connections();
  mailer.post(mail('Out of order'));
  await expect.poll(() => logged.at(-1)?.level).toBe(50);
  expect(server.connections() - before).toBe(3);
  expect(logged.at(-1)).toMatchObject({ subject: 'Out of order', msg: 'a mail could not be sent' });
  expect(JSON.stringify(logged)).not.toContain('secret');
});

it('a mail that the server rejects for good is not tried again', async () => {
  server.be('refuse');
  const before = server.connections();
  mailer.post(mail());
  await expect.poll(() => logged.at(-1)?.level).toBe(50);
  expect(server.connections() - before).toBe(1);
});

/** The time that the mailer waits for a server that hangs. */
const hang_ms = 1_000;

it('a server that hangs delays nobody: the caller has its response, and other mails follow', async () => {
  mailer.close();
  const before = server.connections();
  mailer = open(
    Array.from({ length: 50 }, () => 20),
    hang_ms,
  ); // none is given up, however busy the machine is
  server.be('hang');
  const subjects = Array.from({ length: 8 }, (_, number) => `Mail ${number}`);
  for (const subject of subjects) mailer.post(mail(subject));
  expect([server.connections() - before, logged]).toEqual([0, []]); // posting has waited for nothing
  await expect.poll(() => logged.length).toBeGreaterThan(0);
  server.be('take');
  // One whose answer came too late for the mailer is sent again.
  await expect.poll(() => [...new Set(server.mails.map(({ subject }) => subject))].toSorted()).toEqual(subjects);
  await expect(Promise.resolve(mailer.ready())).resolves.toBe(true);
});

it('no mail is sent without an address, and posting is no error', async () => {
  const log = openLog();
  const none = openMailer({ settings: () => undefined, log });
  const unset = openMailer({ settings: () => ({ url: 'env:MEDLEY_TEST_NO_SUCH_VARIABLE', from }), log });
  for (const one of [none, unset]) {
    expect(one.ready()).toBe(false);
    one.post(mail());
    await expect(one.send(mail())).rejects.toThrow('mail is not configured');
  }
  expect([logged, server.mails]).toEqual([[], []]);
});

it.each([
  ['Acme https://evil.example/pay?now=1 Inc', 'Acme https evil. example pay now 1 Inc'],
  ['www.evil.example', 'www. evil. example'],
  ['<b>Win</b> a\u202e prize\u0007', 'b Win b a prize'],
  ['x'.repeat(200), `${'x'.repeat(60)}…`],
  ['Dr. Żółw & Syn (Łódź)', 'Dr. Żółw & Syn (Łódź)'],
  ['🎉🎉', 'no name'],
])('the name %j stands in mails as %j: short plain text, and nothing that becomes a link', (name, expected) => {
  const link = 'https://medley.example.com/invitation?id=abc';
  const invited = invitationMail({ to: 'a@example.com', from: name, account_name: name, link });
  expect(invited.subject).toBe(`An invitation to ${expected} on Medley`);
  expect(invited.text.split('\n')[0]).toBe(
    `${expected} invites you to the account "${expected}" on Medley. To accept, follow this link:`,
  );
  const alert = testAlert('acct_1', 'alert_1', new Date());
  expect(mailText(alert, 'opened', name, link).title).toBe(`Test of alerts in ${expected}`);
});
