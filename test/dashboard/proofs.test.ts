import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { dashboardEndpoints } from '../../src/dashboard/endpoints.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { stopElapsingInTest } from '../helpers/clock.ts';
import type { Seen } from '../helpers/person.ts';
import { ownerOfNew, signInAs, okBody, type Someone } from './people.ts';

let test: TestApp;
let owner: Someone;
const password = 'correct horse battery';

beforeAll(async () => {
  test = await startTestApp({ worker: false });
  owner = await ownerOfNew(test);
  okBody(await owner.post('/auth/set-up', { email: 'zoe@example.com', name: 'Zoe', password }));
  await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [owner.user_id]);
});

afterAll(() => test.stop());

/** As if the person of this session had given their password so long ago. */
async function proved({ user_id }: Someone, minutes_ago: number): Promise<void> {
  const at = new Date(Date.now() - minutes_ago * 60_000);
  await test.app.db.query('update auth.session set "createdAt" = $2, "provedAt" = null where "userId" = $1', [
    user_id,
    at,
  ]);
}

const codeOf = ({ json }: Seen) => (json as { error?: { code?: string } } | undefined)?.error?.code;

/** Every act that asks for it, with a body that gets no further than that. */
const acts: [string, string, string][] = [
  ['POST', '/dash/accounts/{account}/keys', 'makes a key'],
  ['PATCH', '/dash/accounts/{account}/keys/{id}', 'changes the limits of a key'],
  ['POST', '/dash/accounts/{account}/keys/{id}/rotate', 'rotates a key'],
  ['DELETE', '/dash/accounts/{account}/keys/{id}', 'deletes a key'],
  ['POST', '/dash/accounts/{account}/budgets', 'makes a budget'],
  ['PATCH', '/dash/accounts/{account}/budgets/{id}', 'raises a budget'],
  ['DELETE', '/dash/accounts/{account}/budgets/{id}', 'removes a budget'],
  ['POST', '/dash/accounts/{account}/device-login', 'gives a key to a program'],
  ['POST', '/dash/accounts/{account}/webhooks/secret', 'shows the secret of webhooks'],
  ['POST', '/dash/accounts/{account}/webhooks/secret/rotate', 'rotates that secret'],
  ['POST', '/dash/accounts/{account}/webhooks/endpoints', 'registers an address that gets the events of the account'],
  ['PATCH', '/dash/accounts/{account}/webhooks/endpoints/{id}', 'changes such an address'],
  ['POST', '/dash/accounts/{account}/webhooks/endpoints/{id}/rotate', 'rotates its secret'],
  ['PATCH', '/dash/accounts/{account}/team/{user}', 'changes a role'],
  ['DELETE', '/dash/accounts/{account}/team/{user}', 'removes a member'],
  ['POST', '/dash/accounts/{account}/team/invitations', 'invites somebody'],
  ['PUT', '/dash/accounts/{account}/team/second-factor', 'lets people in without a second factor'],
  ['DELETE', '/dash/sign-ins/{id}', 'ends a connection with an issuer'],
  ['POST', '/dash/passkeys/start', 'begins a passkey'],
  ['POST', '/dash/passkeys', 'adds a passkey'],
  ['DELETE', '/dash/passkeys/{id}', 'removes a passkey'],
  ['POST', '/dash/admin/accounts', 'makes an account with credit'],
  ['POST', '/dash/admin/accounts/{id}/credit', 'credits an account'],
  ['POST', '/dash/admin/accounts/{id}/keys/{key}/limit', 'changes the limit of a key of others'],
  ['POST', '/dash/admin/accounts/{id}/chats/{chat}/content', 'reads what callers of others said'],
  ['POST', '/dash/admin/accounts/{id}/login-link', 'makes a link that signs somebody in'],
  ['POST', '/dash/admin/providers', 'adds a provider with its key'],
  ['POST', '/dash/admin/providers/{name}/change', 'changes a key or an address'],
  ['POST', '/dash/admin/providers/{name}/remove', 'removes a provider'],
  ['POST', '/dash/admin/providers/{name}/models', 'adds models with their prices'],
  ['POST', '/dash/admin/providers/{name}/documents', 'adds a model of a workflow'],
  ['POST', '/dash/admin/providers/{name}/models/change', 'changes a price'],
  ['POST', '/dash/admin/tasks/{id}/fail', 'refunds a task'],
];

/** With ids that lead nowhere: behind the proof, these are answered 404 or 400. */
const addressOf = (path: string) =>
  path.replace('{account}', owner.account_id).replaceAll(/\{\w+\}/g, 'none_00000000000000000000000000');

describe('an act that a stolen session must not be good for', () => {
  it('is one of this list, and no other act is', () => {
    const endpoints = dashboardEndpoints().filter((endpoint) => endpoint.session !== undefined && endpoint.needs_proof);
    const named = endpoints.map(({ method, path }) => `${method} ${path}`);
    expect(named.toSorted()).toEqual(acts.map(([method, path]) => `${method} ${path}`).toSorted());
  });

  it.each(acts)('%s %s, which %s, asks who is there 15 minutes after the last proof', async (method, path) => {
    await proved(owner, 15.1);
    const refused = await owner.send(method, addressOf(path), {});
    expect([refused.status, codeOf(refused)]).toEqual([403, 'proof_required']);
    await proved(owner, 14);
    const let_through = await owner.send(method, addressOf(path), {});
    expect(codeOf(let_through)).not.toBe('proof_required');
  });

  it('is a change of the e-mail address, too', async () => {
    await proved(owner, 16);
    expect(codeOf(await owner.post('/auth/email', { email: 'new@example.com' }))).toBe('proof_required');
    await proved(owner, 1);
    expect((await owner.post('/auth/email', { email: 'new@example.com' })).status).toBe(409); // no mail here
  });
});

describe('a proof', () => {
  beforeEach(() => proved(owner, 60));

  const makeKey = () => owner.post(`${owner.base}/keys`, { name: 'A key' });

  it('is the password: the act goes on, for another 15 minutes', async () => {
    expect((await makeKey()).status).toBe(403);
    expect((await owner.post('/auth/prove', { password: 'not my password' })).status).toBe(400);
    expect((await makeKey()).status).toBe(403);
    okBody(await owner.post('/auth/prove', { password }));
    expect((await makeKey()).status).toBe(201);
  });

  it('is of one session: another one of the same person has its own', async () => {
    const other = await signInAs(test, owner.user_id, owner.account_id);
    await proved(owner, 60);
    okBody(await other.post('/auth/prove', { password }));
    expect((await makeKey()).status).toBe(403);
    expect((await other.post(`${owner.base}/keys`, { name: 'Of the other' })).status).toBe(201);
  });

  it('is also a new sign-in by a link, for who has no password', async () => {
    const nina = await ownerOfNew(test, 'New');
    await proved(nina, 60);
    expect((await nina.post('/auth/prove', { password })).status).toBe(409);
    expect((await nina.post(`${nina.base}/keys`, { name: 'A key' })).status).toBe(403);
    const again = await signInAs(test, nina.user_id, nina.account_id);
    expect((await again.post(`${nina.base}/keys`, { name: 'A key' })).status).toBe(201);
  });

  it('is a first password', async () => {
    const otto = await ownerOfNew(test, 'Old');
    await proved(otto, 60);
    okBody(await otto.post('/auth/set-up', { email: 'otto@example.com', name: 'Otto', password }));
    expect((await otto.post(`${otto.base}/keys`, { name: 'A key' })).status).toBe(201);
  });

  it('is not asked for what only reads, nor without a session', async () => {
    expect((await owner.get(`${owner.base}/keys`)).status).toBe(200);
    await owner.post('/auth/sign-out');
    expect((await owner.post('/auth/prove', { password })).status).toBe(401);
    expect((await makeKey()).status).toBe(401);
    owner = await signInAs(test, owner.user_id, owner.account_id);
  });

  it('is guessed at five times, then slower and slower, wherever the tries come from', async () => {
    const guess = () => owner.post('/auth/prove', { password: 'a guess' });
    for (let guesses = 0; guesses < 5; guesses++) expect((await guess()).status).toBe(400);
    // On a busy machine the time of a wait may pass before the next guess, which doubles it.
    const refused = await until429(guess);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    const change = { currentPassword: 'another guess', newPassword: 'another horse battery' };
    await until429(() => owner.post('/auth/change-password', change));
  });
});

/** Guesses until one has to wait: after eight more the wait is four minutes. */
async function until429(guess: () => Promise<Seen>): Promise<Seen> {
  for (let guesses = 0; ; guesses++) {
    const response = await guess();
    if (response.status === 429) return response;
    expect([response.status, guesses]).toEqual([400, Math.min(guesses, 7)]);
  }
}

it('one person asks the dashboard 600 times a minute, in all sessions together, and others go on', async () => {
  stopElapsingInTest();
  const busy = await ownerOfNew(test, 'Busy');
  const second = await signInAs(test, busy.user_id, busy.account_id);
  const statuses: number[] = [];
  for (let round = 0; round < 31; round++) {
    const browsers = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? busy : second));
    const answers = await Promise.all(browsers.map((browser) => browser.get('/dash/sessions')));
    statuses.push(...answers.map(({ status }) => status));
  }
  expect(statuses.filter((status) => status === 200)).toHaveLength(600);
  const refused = await second.get(`${busy.base}/home`);
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await owner.get('/dash/sessions')).status).toBe(200);
});
