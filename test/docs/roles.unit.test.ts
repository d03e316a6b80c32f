import { expect, it } from 'vitest';
import { limitable_roles, rights_of, rightsOf, role_names, type Right, type Role } from '../../src/accounts/roles.ts';
import { dashboardEndpoints } from '../../src/dashboard/endpoints.ts';
import { readDocument, tableRows } from './document.ts';

/** Acts of docs/roles.md, and the routes of an account that they take. A route that is in none fails the test. */
const acts: { readonly [act: string]: readonly string[] } = {
  'Read Home, lists, calls, tasks and their files; search': [
    'GET /home',
    'GET /search',
    'GET /choices',
    'GET /choices/keys',
    'GET /activity',
    'GET /activity.csv',
    'GET /activity.jsonl',
    'GET /tasks',
    'GET /tasks/{id}',
    'GET /tasks/{id}/files/{index}',
    'GET /chats',
    'GET /chats/{id}',
  ],
  'Read usage, speed, refused calls, and how models served': [
    'GET /usage',
    'GET /usage/table.csv',
    'GET /usage/charges.csv',
    'GET /refusals',
    'GET /speed',
    'GET /models',
    'GET /models/{+id}',
    'GET /model-speeds',
  ],
  'Read prices and what units of models cost': ['GET /price-changes', 'GET /model-costs'],
  'Save views of lists': ['GET /views', 'POST /views', 'POST /views/remove'],
  'See rows of Activity change while they run': ['GET /activity/events'],
  'Get spending by mail': ['GET /usage/mail', 'PUT /usage/mail'],
  'Use the playground, cancel tasks, give feedback': [
    'POST /estimate',
    'POST /generate',
    'POST /files',
    'POST /chat/completions',
    'POST /chat/completions/estimate',
    'POST /chat/messages',
    'POST /chat/messages/estimate',
    'POST /rerank',
    'POST /rerank/estimate',
    'POST /moderations',
    'POST /moderations/estimate',
    'POST /tasks/{id}/cancel',
    'POST /feedback',
  ],
  'Keep conversations on the server': [
    'GET /conversations',
    'PUT /conversations',
    'GET /conversations/{id}',
    'PUT /conversations/{id}',
    'DELETE /conversations/{id}',
    'GET /conversations/{id}/files/{file}',
    'PUT /conversations/{id}/files/{file}',
  ],
  'Read saved prompts': ['GET /prompts', 'GET /prompts/{id}'],
  'Save, change and remove prompts': ['POST /prompts', 'POST /prompts/{id}', 'POST /prompts/{id}/remove'],
  'Read and delete stored contents of calls': ['POST /chats/{id}/content', 'DELETE /chats/{id}/content'],
  'Export stored contents': ['GET /contents.jsonl'],
  'See who has read a content': ['GET /chats/{id}/content/accesses'],
  'See keys and projects': ['GET /keys', 'GET /projects'],
  'Create, change, rotate and delete keys': [
    'POST /keys',
    'PATCH /keys/{id}',
    'POST /keys/{id}/rotate',
    'DELETE /keys/{id}',
  ],
  'Create, rename and archive projects; sign a program in by a code': [
    'POST /projects',
    'PATCH /projects/{id}',
    'POST /projects/{id}/archive',
    'POST /device-login',
  ],
  'See budgets': ['GET /budgets'],
  'Create, change and remove budgets': ['POST /budgets', 'PATCH /budgets/{id}', 'DELETE /budgets/{id}'],
  'See the balance, its movements, billing and invoices': [
    'GET /balance',
    'GET /ledger',
    'GET /ledger.csv',
    'GET /billing',
    'GET /invoices',
    'GET /invoices/{number}/pdf',
    'GET /invoices/{number}/csv',
    'GET /invoices/{number}/json',
  ],
  'Top up, change billing details and the alert of a low balance': [
    'PUT /billing/details',
    'PUT /billing/alert',
    'POST /billing/top-up',
  ],
  'See alerts, webhooks and deliveries': [
    'GET /alerts',
    'GET /webhooks',
    'GET /webhooks/endpoints',
    'GET /deliveries',
    'GET /deliveries/{id}',
  ],
  'Set alerts and webhooks, see the webhook secret, send again': [
    'PUT /alerts',
    'POST /alerts/test',
    'POST /webhooks/secret',
    'POST /webhooks/secret/rotate',
    'POST /webhooks/test',
    'POST /webhooks/endpoints',
    'PATCH /webhooks/endpoints/{id}',
    'DELETE /webhooks/endpoints/{id}',
    'POST /webhooks/endpoints/{id}/rotate',
    'POST /webhooks/endpoints/{id}/test',
    'POST /webhooks/endpoints/{id}/replay',
    'POST /deliveries/{id}/resend',
  ],
  'See the team': ['GET /team'],
  'Invite, change and remove members; name the account; read the audit log': [
    'PUT /name',
    'PUT /team/second-factor',
    'PATCH /team/{user}',
    'DELETE /team/{user}',
    'POST /team/invitations',
    'DELETE /team/invitations/{id}',
    'GET /audit',
    'GET /audit.csv',
    'GET /audit.jsonl',
  ],
};

const prefix = '/dash/accounts/{account}';

/** The routes of an account: what each needs, and what members of some projects get. */
const routes = new Map(
  dashboardEndpoints().flatMap((endpoint) => {
    if (!endpoint.path.startsWith(prefix) || endpoint.session === undefined) return [];
    const { method, path, session, limited } = endpoint;
    const name: string = `${method} ${path.slice(prefix.length)}`;
    return [[name, { need: session, limited }] as const];
  }),
);

const all_rights = new Set<string>(Object.values(rights_of).flat());

/** The cells of a route: of each role, and of limited developers. */
function cellsOf(route: string): string[] {
  const { need, limited } = routes.get(route) ?? { need: undefined, limited: undefined };
  if (need === undefined || !all_rights.has(need)) throw new Error(`${route} is no route that a role opens`);
  const has = (rights: readonly Right[]) => rights.some((right) => right === need);
  const word = (is_open: boolean) => (is_open ? 'yes' : '–');
  const of_roles = role_names.map((role) => word(has(rights_of[role])));
  const ofLimited = (role: Role) => {
    if (limited === undefined || !has(rightsOf({ role, projects: [] }))) return '–';
    return limited === 'own' ? 'their projects' : 'yes';
  };
  const of_limited = ofLimited('developer');
  expect(ofLimited('viewer'), `${route} for a limited viewer`).toBe(has(rights_of.viewer) ? of_limited : '–');
  return [...of_roles, of_limited];
}

it('docs/roles.md says of every route of an account which roles it is open to', () => {
  const named = Object.values(acts).flat();
  expect(named.toSorted()).toEqual([...routes.keys()].toSorted());
  const rows = Object.entries(acts).map(([act, of_act]) => {
    const cells = [...new Set(of_act.map((route) => cellsOf(route).join(' | ')))];
    expect(cells, `the routes of "${act}" are open to the same roles`).toHaveLength(1);
    return `| ${act} | ${cells[0]} |`;
  });
  expect(limitable_roles).toEqual(['developer', 'viewer']); // of whom the page says what they may
  const written = tableRows(readDocument('docs/roles.md'), 'Act').map((cells) => `| ${cells.join(' | ')} |`);
  expect(written).toEqual(rows);
});
