import type { Account } from '../accounts/accounts.ts';
import type { Mailer } from '../accounts/mailer.ts';
import { alertMail } from '../accounts/mails.ts';
import { newId } from '../lib/ids.ts';
import { sendTest, type ManualSendParts } from '../webhooks/manual.ts';
import { mailText, testAlert, webhookBody } from './message.ts';
import { postToOperators, type PostResult } from './post.ts';
import { operators_key, recipientsOf, type Recipients, type RecipientParts } from './recipients.ts';

/** The parts of the app that a test of alerts takes. */
export type TestParts = RecipientParts & ManualSendParts & { readonly mailer: Mailer };

/** Result of a test by mail and by webhook; null for a channel without recipients. */
export type TestOutcome = {
  mail: { to: readonly string[]; error: string | null } | null;
  webhook: PostResult | null;
};

/** Sends a test message to all recipients of the account's alerts, in quiet hours too. */
export async function testAccountAlerts(app: TestParts, account: Account): Promise<TestOutcome> {
  const recipients = (await recipientsOf(app, 'accounts', [account.id])).get(account.id);
  if (!recipients) return { mail: null, webhook: null };
  const alert = testAlert(account.id, newId('alert', app.clock.now()), new Date(app.clock.now()));
  const { webhook, link } = recipients;
  const [mail, sent] = await Promise.all([
    mailTest(app, alert, recipients),
    webhook ? sendTest(app, account, webhook.url, webhookBody(alert, 'test', 1, link), 'alert.test') : null,
  ]);
  return { mail, webhook: sent && { delivered: sent.delivered, status: sent.status, error: sent.error } };
}

/** The same to operators. */
export async function testOperatorAlerts(app: TestParts): Promise<TestOutcome> {
  const recipients = (await recipientsOf(app, 'operators', [])).get(operators_key);
  if (!recipients) return { mail: null, webhook: null };
  const alert = testAlert(null, newId('alert', app.clock.now()), new Date(app.clock.now()));
  const { webhook, link } = recipients;
  const message = { id: alert.id, event: 'alert.test', body: webhookBody(alert, 'test', 1, link) };
  const [mail, posted] = await Promise.all([
    mailTest(app, alert, recipients),
    webhook?.secret === undefined ? null : postToOperators(app, { url: webhook.url, secret: webhook.secret }, message),
  ]);
  return { mail, webhook: posted };
}

/** Mails a test. The error of the mail server goes to the log alone, since it may have names of machines. */
async function mailTest(
  { mailer, log }: TestParts,
  alert: ReturnType<typeof testAlert>,
  { mail: to, place, link }: Recipients,
): Promise<TestOutcome['mail']> {
  if (to.length === 0 || !mailer.ready()) return null;
  try {
    await mailer.send({ ...alertMail(to, mailText(alert, 'opened', place, link)), id: alert.id });
    return { to, error: null };
  } catch (error) {
    log.warn({ alert: alert.id, err: error }, 'a test of alerts could not be mailed');
    return { to, error: 'The mail server did not take it.' };
  }
}
