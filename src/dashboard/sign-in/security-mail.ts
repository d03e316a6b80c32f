import type { User } from '../../accounts/sign-in/login.ts';
import { securityMail } from '../../accounts/mails.ts';
import type { Mailer } from '../../accounts/mailer.ts';
import type { SignInSettings } from '../../accounts/sign-in/settings.ts';

/** The parts of the app that telling people takes. */
type Parts = {
  readonly mailer: Mailer;
  readonly catalog: { readonly current: { readonly settings: { readonly sign_in: SignInSettings } } };
  base_url(): string;
};

/** Mails somebody what was done to their own way in; only to an address that they have proved. */
export function tellByMail(
  parts: Parts,
  user: Pick<User, 'email' | 'email_proved'>,
  event: { subject: string; now: Date; address: string },
): void {
  if (!user.email_proved) return;
  const { password: has_passwords } = parts.catalog.current.settings.sign_in;
  parts.mailer.post(securityMail(user.email, { ...event, has_passwords, base_url: parts.base_url() }));
}
