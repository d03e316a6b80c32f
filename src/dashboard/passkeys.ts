import type { Person } from '../accounts/person.ts';
import { answerPasskey, challengeFor, passkey_refusals } from '../accounts/passkey-answers.ts';
import {
  assertionOptions,
  checkCreation,
  creationOptions,
  readCreation,
  transportsIn,
} from '../accounts/passkey-ceremonies.ts';
import { readChallenge, type ChallengePurpose } from '../accounts/passkey-challenges.ts';
import {
  addPasskey,
  listPasskeys,
  passkey_name_max,
  passkeys_max,
  refsOfPasskeys,
  removePasskey,
  renamePasskey,
} from '../accounts/passkeys.ts';
import { checkFactorChange } from '../accounts/sign-in/proof.ts';
import { relyingPartyOf, type RelyingParty } from '../accounts/relying-party.ts';
import { endOtherSessions, noteTwoFactors, proveSession } from '../accounts/sign-in/sessions.ts';
import type { SignInSettings } from '../accounts/sign-in/settings.ts';
import { ApiError, invalidField } from '../errors.ts';
import type { SessionCall } from '../http/endpoint.ts';
import type { Clock } from '../lib/clock.ts';
import { readBodyFields } from './body-fields.ts';
import { auditAction } from './audit-action.ts';
import { session_endpoint } from './page.ts';
import { tellByMail } from './sign-in/security-mail.ts';
import { usableWays } from './sign-in/sign-ins.ts';
import type { PasskeysView } from './views/settings.ts';

/** The parts of the app that a challenge takes. */
type Parts = {
  readonly catalog: { readonly current: { readonly settings: { readonly sign_in: SignInSettings } } };
  readonly secret: string;
  readonly clock: Clock;
  base_url(): string;
};

/** Lists the passkeys of this person, and the reason why they can add none, if there is one. */
const list_passkeys = session_endpoint('GET', '/dash/passkeys', 'signed in', async (app, { person }) => {
  const party = relyingPartyOf(app.base_url());
  const is_on = app.catalog.current.settings.sign_in.passkeys;
  const passkeys = await listPasskeys(app.db, person.user.id);
  const view: PasskeysView = {
    data: passkeys.map(({ id, name, host, is_synced, created_at, used_at }) => ({
      id,
      name,
      created_at: created_at.toISOString(),
      used_at: used_at?.toISOString() ?? null,
      is_synced,
      other_host: 'host' in party && party.host === host ? null : host,
    })),
    is_on,
    obstacle: 'obstacle' in party ? party.obstacle : null,
  };
  return { status: 200, body: view };
});

const begin_passkey = session_endpoint(
  'POST',
  '/dash/passkeys/start',
  'signed in',
  async (app, { person }) => {
    const { user } = person;
    const { party, challenge } = beginFor(app, person, 'add');
    checkFactorChange(person);
    if (user.is_new) throw new ApiError('conflict', 'Set up your way to sign in first, on the Home page.');
    const others = await refsOfPasskeys(app.db, user.id, party.host);
    return { status: 200, body: creationOptions(party, challenge, { owner: user, others }) };
  },
  { needs_proof: true },
);

const add_passkey = session_endpoint(
  'POST',
  '/dash/passkeys',
  'signed in',
  async (app, call) => {
    const { person, body, address } = call;
    const party = partyOf(app);
    checkFactorChange(person);
    const name = readBodyFields(body).text('name', passkey_name_max);
    const now = new Date(app.clock.now());
    const answer = readCreation(body?.['credential']);
    if (!answer) throw invalidField('credential', 'credential must be what the browser answered.');
    const scope = { purpose: 'add', holder: person.session_id } as const;
    const challenge = readChallenge(app.secret, scope, answer.challenge, now);
    if (!challenge) throw new ApiError('conflict', passkey_refusals.expired);
    const checked = await checkCreation(party, answer);
    if (!checked)
      throw invalidField('credential', 'This device answered something that is no passkey for this page. Try another.');
    const { user } = person;
    const row = { user_id: user.id, name, host: party.host, credential_id: answer.credential_id };
    const passkey = { ...row, ...checked, transports: transportsIn(body?.['credential']) };
    const added = await addPasskey(app.db, passkey, challenge, now);
    if (added.outcome !== 'done') throw notAdded(added.outcome);
    await noteTwoFactors(app.db, person.session_id);
    await auditAction(app, call, 'passkey.add', added.id, { name });
    tellByMail(app, user, { subject: 'A passkey signs you in to Medley from now on', now, address });
    return { status: 201, body: { id: added.id } };
  },
  { needs_proof: true },
);

function notAdded(outcome: 'used' | 'too_many' | 'taken'): ApiError {
  if (outcome === 'used') return new ApiError('conflict', passkey_refusals.expired);
  if (outcome === 'taken') return new ApiError('conflict', 'This passkey has already been added.');
  return new ApiError('conflict', `You have ${passkeys_max} passkeys, which is the most. Remove one first.`);
}

const rename_passkey = session_endpoint('PATCH', '/dash/passkeys/{id}', 'signed in', async (app, call) => {
  const { person, params, body } = call;
  const name = readBodyFields(body).text('name', passkey_name_max);
  const id = idIn(params);
  const before = await renamePasskey(app.db, { user_id: person.user.id, id }, name);
  if (before === undefined) throw unknownPasskey();
  await auditAction(app, call, 'passkey.rename', id, { name, name_before: before });
  return { status: 200, body: { ok: true } };
});

const remove_passkey = session_endpoint(
  'DELETE',
  '/dash/passkeys/{id}',
  'signed in',
  async (app, call) => {
    const { person, params, address } = call;
    const { user } = person;
    checkFactorChange(person);
    const id = idIn(params);
    const removed = await removePasskey(app.db, { user_id: user.id, id }, usableWays(app));
    if (removed.outcome === 'last') {
      const message = 'This is your last way to sign in. Add another passkey, or connect another service, first.';
      throw new ApiError('conflict', message);
    }
    if (removed.outcome !== 'done') throw unknownPasskey();
    await endOtherSessions(app.db, user.id, person.session_id); // the device may be somebody else's now
    await auditAction(app, call, 'passkey.remove', id, { name: removed.name });
    const subject = 'A passkey signs you in to Medley no longer';
    tellByMail(app, user, { subject, now: new Date(app.clock.now()), address });
    return { status: 200, body: { ok: true } };
  },
  { needs_proof: true },
);

const begin_proof = session_endpoint('POST', '/dash/passkeys/proof/start', 'signed in', async (app, { person }) => {
  const { party, challenge } = beginFor(app, person, 'prove');
  const own = await refsOfPasskeys(app.db, person.user.id, party.host);
  if (own.length === 0) throw new ApiError('conflict', 'You have no passkey here yet.');
  return { status: 200, body: assertionOptions(party, challenge, own) };
});

/** A passkey is two factors: the session has them from then on. */
const give_proof = session_endpoint('POST', '/dash/passkeys/proof', 'signed in', async (app, call) => {
  const { person, body, address } = call;
  partyOf(app);
  const { session_id, user } = person;
  const now = () => new Date(app.clock.now());
  const scope = { purpose: 'prove', holder: session_id } as const;
  const { sign_in } = app.catalog.current.settings;
  const parts = { ...app, now, sign_in: () => sign_in };
  const answered = await answerPasskey(parts, { scope, user_id: user.id, address }, body);
  if ('refused' in answered) throw new ApiError('invalid_request', answered.refused);
  await proveSession(app.db, session_id, now());
  await noteTwoFactors(app.db, session_id);
  return { status: 200, body: { ok: true } };
});

/** Everything about passkeys that is for people who have signed in. */
export const passkey_endpoints = [
  list_passkeys,
  begin_passkey,
  add_passkey,
  rename_passkey,
  remove_passkey,
  begin_proof,
  give_proof,
];

/** Throws ApiError 409 where there are no passkeys. */
function partyOf(app: Pick<Parts, 'base_url' | 'catalog'>): RelyingParty {
  if (!app.catalog.current.settings.sign_in.passkeys) {
    throw new ApiError('conflict', 'The operator of this service has switched passkeys off.');
  }
  const party = relyingPartyOf(app.base_url());
  if ('obstacle' in party) throw new ApiError('conflict', party.obstacle);
  return party;
}

function beginFor(app: Parts, { session_id }: Person, purpose: ChallengePurpose) {
  partyOf(app);
  const now = () => new Date(app.clock.now());
  const begun = challengeFor({ ...app, now }, { purpose, holder: session_id });
  if ('obstacle' in begun) throw new ApiError('conflict', begun.obstacle);
  return begun;
}

function idIn({ id = '' }: SessionCall['params']): string {
  if (id.includes('\0')) throw unknownPasskey();
  return id;
}

function unknownPasskey(): ApiError {
  return new ApiError('not_found', 'There is no such passkey.');
}
