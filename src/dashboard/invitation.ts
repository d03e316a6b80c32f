import type { Clock } from '../lib/clock.ts';
import type { Db } from '../db/database.ts';
import { admitMember, findInvitation, membershipIn, type Invitation } from '../accounts/members.ts';
import { projectNames } from '../accounts/projects.ts';
import { isMailProof } from '../accounts/sign-in/email-claims.ts';
import type { Endpoint } from '../http/endpoint.ts';
import { ApiError } from '../errors.ts';
import { readBodyFields } from './body-fields.ts';
import { session_endpoint } from './page.ts';
import type { InvitationView } from './views/common.ts';

/** The parts of the app that finding an invitation takes. */
type Parts = { readonly db: Db; readonly clock: Clock };

async function findOne({ db, clock }: Parts, id: string): Promise<Invitation> {
  const now = new Date(clock.now());
  const invitation = id.includes('\0') ? undefined : await findInvitation(db, id, now);
  if (invitation) return invitation;
  throw gone();
}

function gone(): ApiError {
  return new ApiError('not_found', 'This invitation was used or withdrawn, or has expired. Ask for a new one.');
}

/** Whoever has the link sees what it is; its id is as good as a password. */
export const get_invitation: Endpoint<Parts> = {
  method: 'GET',
  path: '/dash/invitations/{id}',
  public: true,
  docs: { tag: 'Dashboard', summary: 'An invitation', hidden: true, responses: { 200: { description: 'ok' } } },
  handle: async (app, { params }) => {
    const { account_id, account_name, email, role, projects: ids } = await findOne(app, params['id'] ?? '');
    const names = ids && (await projectNames(app.db, account_id));
    const projects = names && ids.flatMap((id) => names.get(id) ?? []);
    const view: InvitationView = { account_name, email, role, projects };
    return { status: 200, body: view, headers: { 'cache-control': 'no-store' } };
  },
};

/** For who has signed in already; somebody new joins by way of /auth/join. */
export const accept_invitation = session_endpoint(
  'POST',
  '/dash/invitations/{id}/accept',
  'signed in',
  async (app, { params, person, body, address }) => {
    const invitation = await findOne(app, params['id'] ?? '');
    if (invitation.email.toLowerCase() !== person.user.email.toLowerCase()) {
      throw new ApiError('forbidden', `This invitation is for ${invitation.email}. Sign in as that person.`);
    }
    const proof = readBodyFields(body).optionalText('proof', 100);
    if (!person.user.email_proved && app.mailer.ready() && !isMailProof(app.secret, invitation, proof)) {
      throw new ApiError('forbidden', `Confirm ${invitation.email} first: Settings sends you a link.`);
    }
    const joiner = { user: person.user, address };
    const now = new Date(app.clock.now());
    const admitted = await app.db.tx((tx) => admitMember(tx, invitation, joiner, now));
    if (!admitted && !(await membershipIn(app.db, person.user.id, invitation.account_id))) throw gone();
    return { status: 200, body: { ok: true } };
  },
);
