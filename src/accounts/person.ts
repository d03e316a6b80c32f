import type { IncomingHttpHeaders } from 'node:http';
import type { Queryable } from '../db/database.ts';
import { ApiError } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import { findAccount, type Account } from './accounts.ts';
import { noteView } from './audit.ts';
import type { Login, SetCookies, User } from './sign-in/login.ts';
import { membershipIn } from './members.ts';
import { checkProof } from './sign-in/proof.ts';
import { rights_of, rightsOf, type Membership, type Right, type Role } from './roles.ts';

/** The permission that an endpoint of the dashboard needs: a right in the account of its path, or the operator's. */
export type Need = Right | 'signed in' | 'operator';

/** Somebody who has signed in, and the account that they look at. */
export type Person = {
  user: User;
  session_id: string;
  proved_at: Date;
  has_two_factors: boolean;
  account: Account | undefined;
  /** `operator`: looks at an account that is not theirs. */
  role: Role | 'operator' | undefined;
  /** The projects of the account that they are limited to; undefined: not limited. */
  projects: readonly string[] | undefined;
};

type Admission = {
  db: Queryable;
  login: Login;
  clock: Clock;
  /** Origin of the dashboard; requests that change something must come from it. */
  origin: string;
  /** Operators need a second factor for the pages of operators, and for accounts of others. */
  operators_need_second_factor: boolean;
};

/** `address`: of the client. */
export type PersonRequest = { method: string; headers: IncomingHttpHeaders; address: string };

/** The account and the permission that a request concerns. */
export type SessionUse = {
  need: Need;
  /** The account of the request's path, if it names one. */
  account_id: string | undefined;
  /** Whoever is limited to projects may use it too. */
  is_for_limited: boolean;
  /** It is an act that asks who is there once more, after a while. */
  needs_proof: boolean;
  /** Rejects where this person has asked too often. */
  count(user_id: string): Promise<void>;
  setCookies: SetCookies;
};

/**
 * The person behind a request, if they may do what it needs. Throws ApiError: 401 without a session, 404 for an
 * account that is not theirs, whether there is one or not, 403 for what they may not do, or not without a new proof.
 */
export async function admitPerson(admission: Admission, request: PersonRequest, purpose: SessionUse): Promise<Person> {
  const person = await findPerson(admission, request, purpose);
  if (purpose.needs_proof) checkProof(person.proved_at, admission.clock.now());
  return person;
}

async function findPerson(
  { db, login, clock, origin, operators_need_second_factor }: Admission,
  request: PersonRequest,
  { need, account_id, is_for_limited, count, setCookies }: SessionUse,
): Promise<Person> {
  const session = await login.sessionOf(request.headers, setCookies);
  if (!session) throw new ApiError('unauthenticated', 'Sign in to continue.', { code: 'not_signed_in' });
  if (request.method !== 'GET' && request.method !== 'HEAD') checkOrigin(request.headers, origin);
  const { user, proved_at, has_two_factors } = session;
  await count(user.id);
  const nowhere = { account: undefined, role: undefined, projects: undefined };
  const person = { user, session_id: session.id, proved_at, has_two_factors, ...nowhere };
  if (account_id === undefined) {
    if (need === 'signed in') return person;
    if (need !== 'operator' || !user.is_operator) throw new ApiError('not_found', 'There is nothing here.');
    if (operators_need_second_factor && !has_two_factors) throw factorRequired('This service asks its operators');
    return person;
  }
  if (account_id.includes('\0')) throw new ApiError('not_found', 'There is no such account.'); // no text of a database
  const [account, own] = await Promise.all([findAccount(db, account_id), membershipIn(db, user.id, account_id)]);
  const role = own?.role ?? (user.is_operator ? 'operator' : undefined);
  if (!account || role === undefined) throw new ApiError('not_found', 'There is no such account.');
  const is_required = role === 'operator' ? operators_need_second_factor : account.second_factor_required;
  if (is_required && !has_two_factors) throw factorRequired('This account asks its members');
  const projects = own?.projects ?? undefined;
  if (projects && !is_for_limited) throw limited();
  if (!isAllowed(own, need, user))
    throw new ApiError('forbidden', `Your role here (${role}) does not allow this. Ask an owner of the account.`);
  if (!own) await noteView(db, { account_id, user, address: request.address, now: new Date(clock.now()) });
  return { ...person, account, role, projects };
}

function limited(): ApiError {
  const message =
    'You see only some projects of this account, and this is about all of it. Ask an owner of the account.';
  return new ApiError('forbidden', message, { code: 'limited_to_projects' });
}

function factorRequired(who: string): ApiError {
  const message = `${who} for a second factor. Turn yours on in Settings, Security.`;
  return new ApiError('forbidden', message, { code: 'second_factor_required' });
}

/** Operators look at accounts of others as viewers do; what they change there has endpoints of its own. */
function isAllowed(own: Membership | undefined, need: Need, user: User): boolean {
  if (need === 'operator') return user.is_operator;
  if (need === 'signed in') return true;
  return (own ? rightsOf(own) : rights_of.viewer).includes(need);
}

/**
 * Throws ApiError 403 for requests of other sites: their forms send cookies along, too, but no browser lets them lie
 * about where they are.
 */
export function checkOrigin(headers: IncomingHttpHeaders, own: string): void {
  const { origin } = headers;
  const same = origin === undefined ? headers['sec-fetch-site'] === 'same-origin' : origin === own;
  if (same) return;
  throw new ApiError('forbidden', `This request does not come from ${own}, where the dashboard is.`);
}
