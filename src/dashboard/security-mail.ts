import type { User } from '../accounts/login.ts';
import { securityMail } from '../accounts/mails.ts';
import type { App } from '../app.ts';

/** Mails somebody what was done to their own way in; only to an address that they have proved. */
export function tellByMail(
  app: App,
  user: Pick<User, 'email' | 'email_proved'>,
  event: { subject: string; now: Date; address: string },
): void {
  if (user.email_proved) app.mailer.post(securityMail(user.email, { ...event, base_url: app.base_url() }));
}
