import { nameInMail, type AlertText } from '../accounts/mails.ts';
import type { Alert } from './alert.ts';

/** The event that a message is about. `raised`: it has become critical. */
export type NoticeEvent = 'opened' | 'raised' | 'reminder' | 'closed';

/** The part of an alert that messages have. */
export type AlertFacts = Pick<Alert, 'id' | 'account_id' | 'kind' | 'subject' | 'level' | 'title' | 'summary'> &
  Pick<Alert, 'opened_at' | 'closed_at'>;

/** Returns the text of a mail. `place`: the account's name, or that of the service. */
export function mailText(alert: AlertFacts, event: NoticeEvent, place: string, link: string): AlertText {
  const { title, summary, opened_at, closed_at } = alert;
  const subject = `${title} in ${nameInMail(place)}`;
  const since = `Since ${minuteText(opened_at)}.`;
  if (event === 'closed') {
    const until = closed_at ? ` until ${minuteText(closed_at)}` : '';
    const text = `This is over. It was so from ${minuteText(opened_at)}${until}:\n\n${summary}`;
    return { title: `Closed: ${subject}`, summary: text, link };
  }
  if (event === 'reminder') return { title: `Still: ${subject}`, summary: `${summary}\n\n${since}`, link };
  return { title: subject, summary: `${summary}\n\n${since}`, link };
}

function minuteText(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** Returns the body of a webhook. `number` counts the messages about this alert. */
export function webhookBody(alert: AlertFacts, event: NoticeEvent | 'test', number: number, link: string): string {
  const { id, kind, subject, level, title, summary, opened_at, closed_at } = alert;
  return JSON.stringify({
    object: 'alert',
    id,
    event,
    number,
    account_id: alert.account_id,
    kind,
    subject: subject === '' ? null : subject,
    level: level === 2 ? 'critical' : 'warning',
    title,
    message: summary,
    link,
    opened_at: opened_at.toISOString(),
    closed_at: closed_at?.toISOString() ?? null,
  });
}

/** Returns an alert for tests of the recipients. */
export function testAlert(account_id: string | null, id: string, now: Date): AlertFacts {
  return {
    id,
    account_id,
    kind: account_id === null ? 'provider_down' : 'balance_low',
    subject: 'test',
    level: 1,
    title: 'Test of alerts',
    summary: 'This is a test. Nothing is wrong, and there is nothing to do.',
    opened_at: now,
    closed_at: null,
  };
}
