import type { Need } from '../accounts/person.ts';
import type { Answer, EndpointDocs, SessionCall, SessionEndpoint } from '../http/endpoint.ts';
import type { Account } from '../accounts/accounts.ts';
import type { App } from '../app.ts';
import { reading, type ReadParts } from '../db/reads.ts';
import { assert } from '../lib/assert.ts';
import type { ProjectScope } from '../accounts/project-scope.ts';

/** A call about one account, by somebody who may make it. `scope`: all that they see of it; undefined: everything. */
export type AccountCall = SessionCall & { account: Account; scope: ProjectScope | undefined };

type Options = {
  query?: NonNullable<EndpointDocs['query']>;
  body_limit_bytes?: number;
  form?: true;
  long_integers?: true;
  needs_proof?: true;
  limited?: 'own' | 'same';
};

const docs: EndpointDocs = {
  tag: 'Dashboard',
  summary: 'For the dashboard',
  hidden: true, // may change with every version: the interface is /v1
  responses: { 200: { description: 'ok' } },
};

/** An endpoint that is about no account. */
export function session_endpoint(
  method: SessionEndpoint<App>['method'],
  path: `/dash/${string}`,
  session: Need,
  handle: (app: App, call: SessionCall) => Promise<Answer> | Answer,
  { query, ...options }: Options = {},
): SessionEndpoint<App> {
  const is_read = method === 'GET';
  const body = is_read ? {} : { body: { schema: { type: 'object' }, required: false } };
  return {
    method,
    path,
    session,
    docs: { ...docs, ...body, ...(query && { query }) },
    handle: is_read ? (app, call) => handle({ ...app, db: readsOf(app, call) }, call) : handle,
    ...options,
  };
}

/** Pages are read in turn: those of one account's people, and those of one operator about all. */
function readsOf(app: ReadParts, { person, gone }: SessionCall): App['db'] {
  return reading(app, { key: person.account?.id ?? person.user.id, gone });
}

/**
 * An endpoint below `/dash/accounts/{account}`. Without `limited` it refuses members who are limited to projects; with
 * `own` it answers by the scope of the call.
 */
export function account_endpoint(
  method: SessionEndpoint<App>['method'],
  path: `/${string}`,
  need: Need,
  handle: (app: App, call: AccountCall) => Promise<Answer> | Answer,
  options: Options = {},
): SessionEndpoint<App> {
  const about = (app: App, call: SessionCall) => {
    const { account, projects } = call.person;
    assert(account, 'a path with an account was admitted without one');
    assert(!projects || options.limited, 'a member of projects was admitted to what is about the whole account');
    const scope = projects && { account_id: account.id, project_ids: projects };
    return handle(app, Object.assign(call, { account, scope }));
  };
  return session_endpoint(method, `/dash/accounts/{account}${path}`, need, about, options);
}
