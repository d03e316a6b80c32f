import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Me } from '../../src/dashboard/views/common.ts';
import type {
  AuditLineView,
  AuditView,
  InvitedView,
  SessionView,
  TeamView,
} from '../../src/dashboard/views/settings.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { browserOf } from '../helpers/person.ts';
import { secretOf, totpOf } from '../helpers/totp.ts';
import { memberOf, ownerOfNew, signInAs, okBody, type Someone } from './people.ts';

let test: TestApp;

beforeAll(async () => {
  test = await startTestApp({ worker: false });
});

afterAll(() => test.stop());

async function teamOf(who: Someone): Promise<TeamView> {
  const { status, json } = await who.get(`${who.base}/team`);
  expect(status).toBe(200);
  return json as TeamView;
}

async function sessionsOf(who: Someone): Promise<SessionView[]> {
  const { status, json } = await who.get('/dash/sessions');
  expect(status).toBe(200);
  return (json as { data: SessionView[] }).data;
}

const signedIn = async (who: Someone) => (await who.get('/dash/me')).status === 200;

describe('the name of an account', () => {
  it('is changed by its owners alone, and is then in the lists of its members and in its invitations', async () => {
    const owner = await ownerOfNew(test);
    const developer = await memberOf(test, owner, 'developer');
    const rename = (who: Someone, name: unknown) => who.send('PUT', `${owner.base}/name`, { name });
    for (const wrong of [undefined, '', '  ', 7, 'x'.repeat(201), 'a\0b'])
      expect((await rename(owner, wrong)).status).toBe(400);
    expect((await rename(developer, 'Mine')).status).toBe(403);
    expect(await rename(owner, ' Weiss & Co ')).toMatchObject({ status: 200, json: { name: 'Weiss & Co' } });
    const me = okBody<Me>(await developer.get('/dash/me'));
    expect(me.accounts.map(({ name }) => name)).toEqual(['Weiss & Co']);
    const invited = await owner.post(`${owner.base}/team/invitations`, { email: 'new@example.com', role: 'viewer' });
    const id = new URL(okBody<InvitedView>(invited).link).searchParams.get('id');
    const shown = await browserOf(test.url).get(`/dash/invitations/${id}`);
    expect(shown.json).toMatchObject({ account_name: 'Weiss & Co' });
    const entries = okBody<{ data: AuditView[] }>(await owner.get(`${owner.base}/audit`)).data;
    expect(entries.find(({ action }) => action === 'account.rename')).toMatchObject({
      subject: owner.account_id,
      details: { name: 'Weiss & Co', name_before: 'Own' },
    });
  });
});

describe('the names of the audit log', () => {
  it('are those that projects, keys and members have now, and only those of the account', async () => {
    const [owner, other] = [await ownerOfNew(test), await ownerOfNew(test)];
    const viewer = await memberOf(test, owner, 'viewer');
    const foreign = okBody<{ id: string }>(await other.post(`${other.base}/projects`, { name: 'Theirs' }));
    const project = okBody<{ id: string }>(await owner.post(`${owner.base}/projects`, { name: 'Shop' }));
    okBody(await owner.send('PATCH', `${owner.base}/projects/${project.id}`, { name: 'Bakery' }));
    const key = okBody<{ id: string }>(await owner.post(`${owner.base}/keys`, { name: 'Site', project: project.id }));
    okBody(await owner.send('PATCH', `${owner.base}/team/${viewer.user_id}`, { role: 'billing' }));
    const { data } = okBody<{ data: AuditLineView[] }>(await owner.get(`${owner.base}/audit`));
    const namesOf = (action: string) => data.find((entry) => entry.action === action)?.names;
    expect(namesOf('project.create')).toEqual({ [project.id]: 'Bakery' });
    expect(namesOf('key.create')).toMatchObject({ [project.id]: 'Bakery' });
    expect(namesOf('member.change')).toEqual({ [viewer.user_id]: 'A viewer' });
    expect(data.flatMap(({ names }) => Object.keys(names))).not.toContain(foreign.id);
    expect(JSON.stringify(key)).toContain(project.id);
  });
});

describe('the team', () => {
  it('is visible to every member, and its invitations to owners only', async () => {
    const owner = await ownerOfNew(test);
    const viewer = await memberOf(test, owner, 'viewer');
    await owner.post(`${owner.base}/team/invitations`, { email: 'new@example.com', role: 'viewer' });
    const seen = await teamOf(viewer);
    expect(seen.members.map(({ user_id, role }) => [user_id, role])).toEqual([
      [owner.user_id, 'owner'],
      [viewer.user_id, 'viewer'],
    ]);
    expect(seen.members[0]?.email).toBe(null); // came by a link: that address is no address
    expect(seen.invitations).toBe(null);
    expect((await teamOf(owner)).invitations).toMatchObject([{ email: 'new@example.com', role: 'viewer' }]);
  });

  it('has roles that apply from the next request on, and members that can be removed', async () => {
    const owner = await ownerOfNew(test);
    const member = await memberOf(test, owner, 'viewer');
    const path = `${owner.base}/team/${member.user_id}`;
    const makesKeys = async () => (await member.post(`${owner.base}/keys`, { name: 'x' })).status;
    expect(await makesKeys()).toBe(403);
    expect((await owner.send('PATCH', path, { role: 'developer' })).status).toBe(200);
    expect(await makesKeys()).toBe(201);
    expect((await owner.send('PATCH', path, { role: 'king' })).status).toBe(400);
    expect((await owner.send('DELETE', path)).status).toBe(200);
    expect(await makesKeys()).toBe(404);
    expect((await owner.send('DELETE', path)).status).toBe(404);
  });

  it('always keeps an owner, even when two demote each other', async () => {
    const owner = await ownerOfNew(test);
    const path = (who: Someone) => `${owner.base}/team/${who.user_id}`;
    expect((await owner.send('DELETE', path(owner))).status).toBe(409);
    expect((await owner.send('PATCH', path(owner), { role: 'viewer' })).status).toBe(409);
    const second = await memberOf(test, owner, 'owner');
    const answers = await Promise.all([
      owner.send('PATCH', path(second), { role: 'viewer' }),
      second.send('DELETE', path(owner)),
    ]);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const rows = await test.app.db.query(`select 1 from auth.member where "organizationId" = $1 and role = 'owner'`, [
      owner.account_id,
    ]);
    expect(rows).toHaveLength(1);
  });

  it.each(['developer', 'billing', 'viewer'] as const)('cannot be changed by a %s', async (role) => {
    const owner = await ownerOfNew(test);
    const member = await memberOf(test, owner, role);
    const team = `${owner.base}/team`;
    const answers = await Promise.all([
      member.send('PATCH', `${team}/${member.user_id}`, { role: 'owner' }),
      member.send('DELETE', `${team}/${owner.user_id}`),
      member.post(`${team}/invitations`, { email: 'x@example.com', role: 'owner' }),
      member.send('DELETE', `${team}/invitations/x`),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
  });

  it('of another account is unknown, and so are its people', async () => {
    const [owner, stranger] = await Promise.all([ownerOfNew(test), ownerOfNew(test, 'Foreign')]);
    expect((await owner.get(`${stranger.base}/team`)).status).toBe(404);
    for (const id of [stranger.user_id, 'user_unknown', '%00']) {
      expect((await owner.send('PATCH', `${owner.base}/team/${id}`, { role: 'viewer' })).status).toBe(404);
      expect((await owner.send('DELETE', `${owner.base}/team/${id}`)).status).toBe(404);
    }
    const invited = await stranger.post(`${stranger.base}/team/invitations`, {
      email: 'a@example.com',
      role: 'viewer',
    });
    const id = new URL((invited.json as InvitedView).link).searchParams.get('id');
    for (const token of [id, 'unknown', '%00'])
      expect((await owner.send('DELETE', `${owner.base}/team/invitations/${token}`)).status).toBe(404);
    expect((await teamOf(stranger)).invitations).toHaveLength(1);
    expect((await owner.get('/dash/invitations/%00')).status).toBe(404);
    expect((await owner.get('/dash/accounts/%00/team')).status).toBe(404);
  });
});

describe('an invitation', () => {
  const idOf = (link: string) => new URL(link).searchParams.get('id');

  async function inviteBy(owner: Someone, email: string): Promise<InvitedView> {
    const { status, json } = await owner.post(`${owner.base}/team/invitations`, { email, role: 'developer' });
    expect(status).toBe(201);
    return json as InvitedView;
  }

  it('makes a member of the person who follows its link', async () => {
    const owner = await ownerOfNew(test);
    const { link } = await inviteBy(owner, 'Ada@Example.com');
    const browser = browserOf(test.url);
    const body = { id: idOf(link), name: 'Ada', password: 'correct horse battery' };
    expect((await browser.post('/auth/join', body)).status).toBe(200);
    expect((await browser.get('/dash/me')).json).toMatchObject({
      accounts: [{ id: owner.account_id, role: 'developer' }],
    });
    const team = await teamOf(owner);
    expect(team.members.map(({ email }) => email)).toContain('ada@example.com');
    expect(team.invitations).toEqual([]);
    const [entry] = okBody<{ data: AuditView[] }>(await owner.get(`${owner.base}/audit`)).data;
    expect(entry).toMatchObject({
      action: 'member.join',
      actor: 'ada@example.com',
      address: '127.0.0.1',
      details: { invited: 'ada@example.com', role: 'developer' },
    });
    const again = await owner.post(`${owner.base}/team/invitations`, { email: 'ADA@example.com', role: 'owner' });
    expect(again.status).toBe(409);
  });

  it('that somebody with a sign-in accepts is in the audit log of its account, once', async () => {
    const owner = await ownerOfNew(test);
    const ben = await ownerOfNew(test, 'Of Ben');
    okBody(
      await ben.post('/auth/set-up', { email: 'ben@example.com', name: 'Ben', password: 'correct horse battery' }),
    );
    const { link } = await inviteBy(owner, 'ben@example.com');
    const accept = () => ben.post(`/dash/invitations/${idOf(link)}/accept`, {});
    okBody(await accept());
    expect((await accept()).status).toBe(404);
    const entries = okBody<{ data: AuditView[] }>(await owner.get(`${owner.base}/audit`)).data;
    expect(entries.filter(({ action }) => action === 'member.join')).toMatchObject([
      { actor: 'ben@example.com', subject: ben.user_id, details: { role: 'developer' } },
    ]);
  });

  it('is listed for the other owners, who withdraw it, without what opens it', async () => {
    const owner = await ownerOfNew(test);
    const other = await memberOf(test, owner, 'owner');
    const { link } = await inviteBy(owner, 'c@example.com');
    const { json, text } = await other.get(`${other.base}/team`);
    const [seen] = (json as TeamView).invitations ?? [];
    expect(seen).toMatchObject({ email: 'c@example.com', link: null });
    expect(text).not.toContain(idOf(link));
    expect((await browserOf(test.url).get(`/dash/invitations/${seen?.id}`)).status).toBe(404);
    okBody(await other.send('DELETE', `${other.base}/team/invitations/${seen?.id}`));
    expect((await browserOf(test.url).get(`/dash/invitations/${idOf(link)}`)).status).toBe(404);
  });

  it('that is withdrawn or replaced opens nothing', async () => {
    const owner = await ownerOfNew(test);
    const first = await inviteBy(owner, 'b@example.com');
    const second = await inviteBy(owner, 'B@example.com');
    const opens = async (link: string) => (await owner.get(`/dash/invitations/${idOf(link)}`)).status;
    expect([await opens(first.link), await opens(second.link)]).toEqual([404, 200]);
    const listed = (await teamOf(owner)).invitations ?? [];
    expect(listed.map(({ link }) => link)).toEqual([second.link]);
    expect((await owner.send('DELETE', `${owner.base}/team/invitations/${idOf(second.link)}`)).status).toBe(404);
    const path = `${owner.base}/team/invitations/${listed[0]?.id}`;
    expect((await owner.send('DELETE', path)).status).toBe(200);
    expect(await opens(second.link)).toBe(404);
    expect((await owner.send('DELETE', path)).status).toBe(404);
  });

  it.each(['', 'nobody', 'a b@example.com', 'a\0@example.com', 5])('is not sent to %j', async (email) => {
    const owner = await ownerOfNew(test);
    const { status, json } = await owner.post(`${owner.base}/team/invitations`, { email, role: 'viewer' });
    expect(status).toBe(400);
    expect(json).toMatchObject({ error: { param: 'email' } });
  });

  it('is limited to twenty an hour, so that nobody abuses the mail', async () => {
    const owner = await ownerOfNew(test);
    for (let i = 0; i < 20; i++) await inviteBy(owner, `${i}@example.com`);
    const one_more = { email: 'more@example.com', role: 'developer' };
    const refused = await owner.post(`${owner.base}/team/invitations`, one_more);
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('3600');
    expect((await teamOf(owner)).invitations).toHaveLength(20);
    await test.app.db.query(
      `update auth.invitation set "createdAt" = "createdAt" - interval '61 minutes' where "organizationId" = $1`,
      [owner.account_id],
    );
    await inviteBy(owner, 'more@example.com');
  });

  it('is recorded without its id, which opens it', async () => {
    const owner = await ownerOfNew(test);
    const { link } = await inviteBy(owner, 'c@example.com');
    const rows = await test.app.db.query<{ entry: string }>(
      'select a::text as entry from audit_entries a where account_id = $1',
      [owner.account_id],
    );
    const text = rows.map(({ entry }) => entry).join('\n');
    expect(text).toContain('invitation.create');
    expect(text).not.toContain(idOf(link));
  });
});

describe('sessions', () => {
  it('are listed without their tokens and ended one by one or all others together', async () => {
    const here = await ownerOfNew(test);
    const there = await signInAs(test, here.user_id, here.account_id);
    const elsewhere = await signInAs(test, here.user_id, here.account_id);
    const sessions = await sessionsOf(here);
    expect(sessions).toHaveLength(3);
    expect(sessions.filter(({ is_this }) => is_this)).toHaveLength(1);
    const tokens = await test.app.db.query<{ token: string }>('select token from auth.session');
    for (const { token } of tokens) expect(JSON.stringify(sessions)).not.toContain(token);

    const its = (await sessionsOf(there)).find(({ is_this }) => is_this);
    expect((await here.send('DELETE', `/dash/sessions/${its?.id}`)).status).toBe(200);
    expect([await signedIn(here), await signedIn(there), await signedIn(elsewhere)]).toEqual([true, false, true]);
    expect((await here.post('/dash/sessions/end-others')).json).toEqual({ ended: 1 });
    expect([await signedIn(here), await signedIn(elsewhere)]).toEqual([true, false]);
  });

  it('of others cannot be seen or ended', async () => {
    const [one, other] = await Promise.all([ownerOfNew(test), ownerOfNew(test)]);
    const id = (await sessionsOf(other))[0]?.id;
    expect((await one.send('DELETE', `/dash/sessions/${id}`)).status).toBe(404);
    expect((await one.send('DELETE', '/dash/sessions/%00')).status).toBe(404);
    expect(await signedIn(other)).toBe(true);
    expect((await browserOf(test.url).get('/dash/sessions')).status).toBe(401);
  });

  it.each(['GET /auth/list-sessions', 'POST /auth/revoke-session', 'POST /auth/revoke-other-sessions'])(
    'are not served by the library: %s',
    async (route) => {
      const [method = '', path = ''] = route.split(' ');
      const who = await ownerOfNew(test);
      expect((await who.send(method, path, method === 'GET' ? undefined : {})).status).toBe(404);
    },
  );
});

describe('the security settings', () => {
  const first = 'correct horse battery';
  const second = 'another horse battery';

  async function withPassword(email: string): Promise<Someone> {
    const who = await ownerOfNew(test);
    expect((await who.post('/auth/set-up', { email, name: 'P', password: first })).status).toBe(200);
    return who;
  }

  it('end the other sessions when the password changes, and record the change without it', async () => {
    const who = await withPassword('change@example.com');
    const other = await signInAs(test, who.user_id, who.account_id);
    const change = (currentPassword: string) =>
      who.post('/auth/change-password', { currentPassword, newPassword: second, revokeOtherSessions: true });
    expect((await change('wrong password')).status).toBe(400);
    expect((await change(first)).status).toBe(200);
    expect([await signedIn(who), await signedIn(other)]).toEqual([true, false]);
    const rows = await test.app.db.query<{ action: string; entry: string }>(
      'select action, a::text as entry from audit_entries a where user_id = $1 order by id',
      [who.user_id],
    );
    expect(rows.map(({ action }) => action)).toEqual(['person.set_up', 'person.change_password']);
    expect(rows.map(({ entry }) => entry).join()).not.toContain(second);
  });

  it('turn a second factor on with a code and off with the password', async () => {
    const who = await withPassword('factor@example.com');
    const enabled = await who.post('/auth/two-factor/enable', { password: first });
    const { totpURI, backupCodes } = enabled.json as { totpURI: string; backupCodes: string[] };
    expect(backupCodes.length).toBeGreaterThan(5);
    const hasIt = async () => ((await who.get('/dash/me')).json as { user: { two_factor: boolean } }).user.two_factor;
    expect(await hasIt()).toBe(false);
    expect((await who.post('/auth/two-factor/verify-totp', { code: totpOf(secretOf(totpURI)) })).status).toBe(200);
    expect(await hasIt()).toBe(true);
    expect((await who.post('/auth/two-factor/disable', { password: 'wrong password' })).status).toBe(400);
    expect((await who.post('/auth/two-factor/disable', { password: first })).status).toBe(200);
    expect(await hasIt()).toBe(false);
  });

  it('change a name', async () => {
    const who = await withPassword('name@example.com');
    expect((await who.post('/auth/update-user', { name: 'Zoë' })).status).toBe(200);
    expect((await who.get('/dash/me')).json).toMatchObject({ user: { name: 'Zoë' } });
    for (const name of ['', 'x'.repeat(101), 'a\0b', 5, undefined]) {
      const { status, json } = await who.post('/auth/update-user', { name });
      expect({ status, json }).toMatchObject({ status: 400, json: { error: { param: 'name' } } });
    }
    expect((await who.get('/dash/me')).json).toMatchObject({ user: { name: 'Zoë' } });
  });
});
