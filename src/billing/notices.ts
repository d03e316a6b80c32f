import type { Logger } from 'pino';
import { isAboutMail, isRefusal, type Mail, type Mailer } from '../accounts/mailer.ts';
import { invoiceMail } from '../accounts/mails.ts';
import { moneyAddresses } from '../accounts/members.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { costView, parseMoney } from '../money/money.ts';
import { findDetails } from './details.ts';
import type { Invoice } from './invoice.ts';
import { markMailed, unmailedInvoices } from './invoices.ts';

/** The parts of the app that mails to an account's people need. */
type Parts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Logger;
  readonly mailer: Mailer;
  base_url(): string;
};

/** An invoice that nobody could be told of by then is in the dashboard. */
const notify_within_ms = 3 * 86_400_000;

/** So many mails that failed, not by themselves, make the server one that is away: the next run begins anew. */
export const failures_max = 3;

/**
 * Mails new invoices. An invoice without a recipient, or one that a mail server defers, waits for the next run
 * and delays no other.
 */
export async function mailInvoices(app: Parts, signal: AbortSignal): Promise<void> {
  if (!app.mailer.ready()) return;
  const since = new Date(app.clock.now() - notify_within_ms);
  let failures = 0;
  for (let after: string | undefined = ''; after !== undefined;) {
    const unsent = await unmailedInvoices(app.db, since, after);
    for (const invoice of unsent) {
      if (signal.aborted) return;
      const outcome = await mailInvoice(app, invoice);
      if (outcome === 'done' || outcome === 'refused')
        await markMailed(app.db, invoice.number, new Date(app.clock.now()));
      if (outcome === 'failed' && ++failures === failures_max) return;
    }
    after = unsent.at(-1)?.number;
  }
}

async function mailInvoice(app: Parts, invoice: Invoice): Promise<Outcome> {
  const { number, supplement_to, month, total, currency, customer } = invoice;
  const { account_id } = customer;
  const email = (await findDetails(app.db, account_id))?.email ?? ''; // one that was wrong may be right by now
  const to = email === '' ? await moneyAddresses(app.db, account_id) : [email];
  const { amount } = costView(parseMoney(total) ?? 0n, currency);
  const facts = {
    number,
    supplement_to,
    month,
    total: `${amount} ${currency}`,
    link: `${app.base_url()}/billing/invoices`,
  };
  // Who is mailed it twice, since nobody could note the first time, sees one mail.
  const mail = { ...invoiceMail(to, facts), id: `invoice-${number}-${account_id}` };
  return sendMail(app, mail, { number });
}

/**
 * `done`: the mail is sent. `refused`: the server refuses its address for good, which is not tried again. `deferred`:
 * there is no recipient, or the server defers this mail. `failed`: the server seems to take no mail at all.
 */
export type Outcome = 'done' | 'refused' | 'deferred' | 'failed';

/** Sends a mail now. `about`: facts for the log, where it cannot be sent. */
export async function sendMail(
  { mailer, log }: Pick<Parts, 'mailer' | 'log'>,
  mail: Mail,
  about: object,
): Promise<Outcome> {
  if (mail.to.length === 0) return 'deferred';
  try {
    await mailer.send(mail);
    return 'done';
  } catch (error) {
    log.warn({ ...about, subject: mail.subject, err: error }, 'a mail could not be sent');
    if (isRefusal(error)) return 'refused';
    return isAboutMail(error) ? 'deferred' : 'failed';
  }
}
