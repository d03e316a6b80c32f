import type { Db, Queryable } from '../db/database.ts';
import { audit } from './audit.ts';
import { securityMail } from './mails.ts';
import type { Mailer } from './mailer.ts';
import { checkAssertion, readAssertion } from './passkey-ceremonies.ts';
import { makeChallenge, readChallenge, type ChallengeScope } from './passkey-challenges.ts';
import { findPasskey, usePasskey, type StoredPasskey } from './passkeys.ts';
import { relyingPartyOf, type RelyingParty } from './relying-party.ts';
import type { SignInSettings } from './sign-in/settings.ts';

/** Answers of passkeys, for whoever signs in and whoever proves that it is still them. */

export type AnswerParts = {
  db: Db;
  secret: string;
  now(): Date;
  base_url(): string;
  mailer: Pick<Mailer, 'post'>;
  sign_in(): SignInSettings;
};

/** Returns a new challenge for this scope, and how passkeys name the service; or why there are none at its address. */
export function challengeFor(
  { secret, now, base_url }: Pick<AnswerParts, 'secret' | 'now' | 'base_url'>,
  scope: ChallengeScope,
): { party: RelyingParty; challenge: Buffer } | { obstacle: string } {
  const party = relyingPartyOf(base_url());
  return 'obstacle' in party ? party : { party, challenge: makeChallenge(secret, scope, now()) };
}

/** Whoever signed, or the reason why nobody did. */
export type PasskeyResult = { user_id: string } | { refused: string };

/** Words for people. All but the first and the last are one, so that nobody learns which passkeys there are. */
export const passkey_refusals = {
  expired: 'This took longer than 5 minutes, was used already, or was begun in another browser. Try again.',
  unknown: 'This passkey is not known here, or does not fit. It may have been removed. Sign in another way.',
  copied:
    'This passkey was refused: it looks as if there were a copy of it. Sign in another way, remove it, and add a new one.',
} as const;

/**
 * Checks the answer of a passkey to a challenge of this scope, and uses both up. `user_id`: only of this person; without it
 * the authenticator has to name its own.
 */
export async function answerPasskey(
  parts: AnswerParts,
  { scope, user_id, address }: { scope: ChallengeScope; user_id?: string; address: string },
  value: unknown,
): Promise<PasskeyResult> {
  const { db, secret, now, base_url } = parts;
  const party = relyingPartyOf(base_url());
  const answer = readAssertion(value);
  if ('obstacle' in party || !answer) return { refused: passkey_refusals.unknown };
  const challenge = readChallenge(secret, scope, answer.challenge, now());
  if (!challenge) return { refused: passkey_refusals.expired };
  const passkey = await findPasskey(db, answer.credential_id, party.host);
  const is_named = user_id === undefined ? answer.json.response.userHandle !== undefined : passkey?.user_id === user_id;
  const checked = passkey && is_named ? await checkAssertion(party, answer, passkey) : undefined;
  if (!passkey || !checked) return { refused: passkey_refusals.unknown };
  const use = await usePasskey(db, { id: passkey.id, counter: checked.counter }, challenge, now());
  if (use === 'copied') await tellOfCopy(parts, passkey, address);
  return use === 'done'
    ? { user_id: passkey.user_id }
    : { refused: use === 'copied' ? passkey_refusals.copied : passkey_refusals.expired };
}

/** Its owner and the audit log hear of a passkey whose counter went back. */
async function tellOfCopy(
  { db, now, mailer, base_url, sign_in }: AnswerParts,
  { user_id, name, id }: StoredPasskey,
  address: string,
): Promise<void> {
  const user = await findOwner(db, user_id);
  if (!user) return;
  const moment = now();
  await audit(db, { user, action: 'passkey.refuse', subject: id, details: { name }, address, now: moment });
  const subject = 'A passkey of yours was refused on Medley: there may be a copy of it';
  if (!user.is_proved) return;
  const { password: has_passwords } = sign_in();
  mailer.post(securityMail(user.email, { subject, now: moment, address, has_passwords, base_url: base_url() }));
}

async function findOwner(
  db: Queryable,
  user_id: string,
): Promise<{ id: string; email: string; is_proved: boolean } | undefined> {
  const rows = await db.query<{ id: string; email: string; is_proved: boolean }>(
    'select id, email, "emailVerified" as is_proved from auth."user" where id = $1',
    [user_id],
  );
  return rows[0];
}
