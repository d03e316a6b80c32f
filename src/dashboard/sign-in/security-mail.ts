import type { User } from '../../accounts/sign-in/login.ts';
import { securityMail } from '../../accounts/mails.ts';
import type { Mailer } from '../../accounts/mailer.ts';

/** Mails somebody what was done to their own way in; only to an address that they have proved. */
export function tellByMail(
  parts: { mailer: Mailer; base_url(): string },
  user: Pick<User, 'email' | 'email_proved'>,
  event: { subject: string; now: Date; address: string },
): void {
  if (user.email_proved) parts.mailer.post(securityMail(user.email, { ...event, base_url: parts.base_url() }));
}
