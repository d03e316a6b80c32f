import { passkeyHostOf } from '../../accounts/relying-party.ts';
import { listSignIns, unlinkSignIn } from '../../accounts/sign-in/linked-sign-ins.ts';
import type { SignInIssuer, SignInSettings } from '../../accounts/sign-in/settings.ts';
import type { UsableWays } from '../../accounts/ways-in.ts';
import { ApiError } from '../../errors.ts';
import type { Endpoint } from '../../http/endpoint.ts';
import { auditAction } from '../audit-action.ts';
import { session_endpoint } from '../page.ts';
import { tellByMail } from './security-mail.ts';
import type { SignInView } from '../views/common.ts';
import type { LinkedSignInView } from '../views/settings.ts';

/** The parts of the app that saying how one signs in takes. */
type Parts = {
  readonly catalog: { readonly current: { readonly settings: { readonly sign_in: SignInSettings } } };
  readonly mailer: { ready(): boolean };
  base_url(): string;
};

/** Everything that the page of signing in offers, for everybody. */
export const get_sign_in: Endpoint<Parts> = {
  method: 'GET',
  path: '/dash/sign-in',
  public: true,
  docs: { tag: 'Dashboard', summary: 'Ways to sign in', hidden: true, responses: { 200: { description: 'ok' } } },
  handle: ({ catalog, mailer, base_url }) => {
    const { password, passkeys, issuers } = catalog.current.settings.sign_in;
    const view: SignInView = {
      password,
      passkeys: passkeyHostOf(base_url(), { passkeys }) !== undefined,
      mails: mailer.ready(),
      issuers: issuers.map(({ id, name }) => ({ id, name })),
    };
    return { status: 200, body: view, headers: { 'cache-control': 'no-store' } };
  },
};

/** The issuers with which this person is connected. */
export const list_sign_ins = session_endpoint('GET', '/dash/sign-ins', 'signed in', async (app, { person }) => {
  const { issuers } = app.catalog.current.settings.sign_in;
  const data = (await listSignIns(app.db, person.user.id)).map((linked): LinkedSignInView => {
    const { id, issuer, email, created_at, used_at } = linked;
    const issuer_id = issuers.find((each) => each.issuer === issuer)?.id ?? null;
    const times = { created_at: created_at.toISOString(), used_at: used_at?.toISOString() ?? null };
    return { id, name: nameOf(issuers, issuer), email, ...times, issuer_id };
  });
  return { status: 200, body: { data } };
});

/** Returns what signs people in now. */
export function usableWays({ catalog, base_url }: Pick<Parts, 'catalog' | 'base_url'>): UsableWays {
  const { issuers, password, passkeys } = catalog.current.settings.sign_in;
  const providers = [...issuers.map(({ issuer }) => issuer), ...(password ? ['credential'] : [])];
  return { providers, passkey_host: passkeyHostOf(base_url(), { passkeys }) };
}

/** By its host, where it is configured no longer. */
function nameOf(issuers: readonly SignInIssuer[], address: string): string {
  const configured = issuers.find(({ issuer }) => issuer === address);
  return configured?.name ?? (URL.canParse(address) ? new URL(address).host : address);
}

/** Ends such a connection, but not the last way in. */
export const unlink_sign_in = session_endpoint(
  'DELETE',
  '/dash/sign-ins/{id}',
  'signed in',
  async (app, call) => {
    const { user } = call.person;
    const { id = '' } = call.params;
    const { issuers, password } = app.catalog.current.settings.sign_in;
    const missing = new ApiError('not_found', 'There is no such sign-in.');
    if (id.includes('\0')) throw missing;
    const ended = await unlinkSignIn(app.db, { user_id: user.id, id }, usableWays(app));
    if (ended.outcome === 'last') {
      const others = password
        ? 'Connect another one, add a passkey, or set a password'
        : 'Connect another one, or add a passkey';
      throw new ApiError('conflict', `This is your last way to sign in. ${others}, first.`);
    }
    if (ended.outcome !== 'done') throw missing;
    const name = nameOf(issuers, ended.issuer);
    await auditAction(app, call, 'person.unlink_sign_in', user.id, { issuer: name });
    const subject = `${name} signs you in to Medley no longer`;
    tellByMail(app, user, { subject, now: new Date(app.clock.now()), address: call.address });
    return { status: 200, body: { ok: true } };
  },
  { needs_proof: true },
);
