import type { Mail } from './mailer.ts';

/** Texts of the mails to people. */

export function passwordMail(to: string, link: string): Mail {
  return {
    to,
    subject: 'A new password for Medley',
    text: `To choose a new password, follow this link within 15 minutes:\n\n${link}\n\nIf you did not ask for it, nothing has changed.\n`,
  };
}

export function confirmMail(to: string, link: string): Mail {
  return {
    to,
    subject: 'Is this your e-mail address?',
    text: `Somebody entered this address on Medley as theirs. If it was you, follow this link within a day:\n\n${link}\n\nIf it was not you, do nothing: the address stays free for you.\n`,
  };
}

/** Mail to somebody who has proved this address, when it is entered once more. */
export function knownEmailMail(to: string, link: string): Mail {
  return {
    to,
    subject: 'You can sign in to Medley with this address already',
    text: `Somebody entered this address on Medley as theirs. It is yours already, and nothing has changed. To sign in with it:\n\n${link}/sign-in\n\nIf it was not you, do nothing.\n`,
  };
}

export function changedEmailMail(to: string, email: string): Mail {
  return {
    to,
    subject: 'Your e-mail address on Medley has changed',
    text: `You sign in to Medley with ${email} from now on, and no longer with this address. If you did not change it, tell the operator of the service.\n`,
  };
}

/** Mail to the person who asked for it; `link` is as good as a password. */
export function signInMail(to: string, link: string): Mail {
  return {
    to,
    subject: 'Your link to sign in to Medley',
    text: `To sign in, follow this link within 15 minutes:\n\n${link}\n\nIf you did not ask for it, do nothing: nobody has signed in.\n`,
  };
}

/** A change of a person's way to sign in, and its origin. */
export type SecurityEvent = { subject: string; now: Date; address: string; base_url: string; has_passwords: boolean };

/** Tells somebody what was done in their name: if it was not them, they hear of it. */
export function securityMail(to: string, { subject, now, address, base_url, has_passwords }: SecurityEvent): Mail {
  const time = now.toISOString().slice(0, 16).replace('T', ' ');
  const todo = has_passwords
    ? 'choose a new password now, by "Forgotten your password?" on this page,'
    : 'sign in on this page, sign out everywhere else in Settings, Security,';
  return {
    to,
    subject,
    text: `${subject}.\n\nWhen: ${time} UTC\nFrom the address: ${address}\n\nIf it was you, there is nothing to do. If it was not, ${todo} and tell the operator of the service:\n\n${base_url}/sign-in\n`,
  };
}

/** `link` is as good as a password. */
export function invitationMail(invitation: { to: string; from: string; account_name: string; link: string }): Mail {
  const { to, from, account_name, link } = invitation;
  const account = nameInMail(account_name);
  return {
    to,
    subject: `An invitation to ${account} on Medley`,
    text: `${nameInMail(from)} invites you to the account "${account}" on Medley. To accept, follow this link:\n\n${link}\n\nIf you did not expect it, do nothing.\n`,
  };
}

export function invoiceMail(
  to: readonly string[],
  invoice: { number: string; supplement_to: string | undefined; month: string; total: string; link: string },
): Mail {
  const { number, supplement_to, month, total, link } = invoice;
  const added = supplement_to === undefined ? '' : ` It supplements ${supplement_to} with charges that came late.`;
  return {
    to,
    subject: `Your invoice ${number}`,
    text: `Your invoice ${number} for ${month} is ready: ${total}, paid from your balance.${added}\n\n${link}\n`,
  };
}

/** A message about an alert: `title` is its subject, and `summary` what there is to know. */
export type AlertText = { title: string; summary: string; link: string };

export function alertMail(to: readonly string[], { title, summary, link }: AlertText): Mail {
  return { to, subject: title, text: `${summary}\n\n${link}\n` };
}

/** The spend of a period. Amounts with their currency; names of groups as a mail may have them. */
export type SpendText = {
  place: string;
  /** `2026-11-23 to 2026-11-29`, or one day. */
  days: string;
  every: 'day' | 'week' | 'month';
  total: string;
  total_before: string;
  grouped_by: string;
  lines: readonly { name: string; cost: string; cost_before: string }[];
  /** Groups that cost less than these. */
  more: number;
  link: string;
};

export function spendMail(to: readonly string[], text: SpendText): Mail {
  const { place, days, every, total, total_before, grouped_by, lines, more, link } = text;
  const rows = lines.map(({ name, cost, cost_before }) => `- ${name}: ${cost} (before: ${cost_before})`);
  const rest = more === 0 ? [] : [`- ${more} more, which cost less`];
  const list =
    lines.length === 0 ? 'Nothing was charged.' : `By ${nameInMail(grouped_by)}:\n\n${[...rows, ...rest].join('\n')}`;
  return {
    to,
    subject: `${total} spent by ${nameInMail(place)}, ${days}`,
    text: `Spend of ${nameInMail(place)}, ${days} (UTC): ${total}\nThe ${every} before: ${total_before}\n\n${list}\n\nMore, and how to stop these mails:\n\n${link}\n`,
  };
}

const name_length_max = 60;

/**
 * A name that somebody chose, as a mail may have it: short, on one line, and without anything that mail programs turn
 * into a link, since whoever chooses a name also chooses who is invited.
 */
export function nameInMail(text: string): string {
  const plain = text
    .normalize('NFKC')
    .replaceAll(/[^\p{L}\p{M}\p{N} .,'’&()+-]+/gu, ' ')
    .replaceAll(/\.(?=\S)/g, '. ')
    .replaceAll(/\s+/g, ' ')
    .trim();
  const signs = [...plain];
  if (signs.length <= name_length_max) return plain === '' ? 'no name' : plain;
  return `${signs.slice(0, name_length_max).join('').trimEnd()}…`;
}
