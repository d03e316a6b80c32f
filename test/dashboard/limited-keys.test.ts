import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addMember } from '../../src/accounts/members.ts';
import { watchesAdmitted } from '../../src/accounts/sign-in/sessions.ts';
import type { NewKeyView, ProjectsView } from '../../src/dashboard/views/keys.ts';
import type { EstimateView } from '../../src/dashboard/views/playground.ts';
import type { RefusalsView } from '../../src/dashboard/views/refusals.ts';
import type { MemberChangedView, TeamView } from '../../src/dashboard/views/settings.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { memberOf, okBody, ownerOfNew, type Someone } from './people.ts';

let test: TestApp;
let owner: Someone;
let limited: Someone;
let shop: string;

beforeAll(async () => {
  test = await startTestApp({ yaml: 'version: 1\nnet: { allow: ["127.0.0.0/8"] }\n' });
  [owner, limited, shop] = await accountWithLimited('Agency', 90_000_000n);
}, 240_000);

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

/** An account, a developer who is limited to its project Shop, and that project. */
async function accountWithLimited(name: string, credit: bigint): Promise<[Someone, Someone, string]> {
  const of_account = await ownerOfNew(test, name, credit);
  const project = await makeProject(of_account, 'Shop');
  const developer = await memberOf(test, of_account, 'developer');
  okBody(await of_account.send('PATCH', `${of_account.base}/team/${developer.user_id}`, { projects: [project] }));
  return [of_account, developer, project];
}

async function makeProject(who: Someone, name: string): Promise<string> {
  return okBody<{ id: string }>(await who.post(`${who.base}/projects`, { name })).id;
}

async function makeKey(who: Someone, name: string, project: string): Promise<NewKeyView> {
  return okBody(await who.post(`${who.base}/keys`, { name, project }));
}

async function rotate(who: Someone, id: string): Promise<NewKeyView> {
  return okBody(await who.post(`${who.base}/keys/${id}/rotate`, { overlap_hours: 24 }));
}

const image_body = { model: 'sandbox/image', input: { prompt: 'A boat', width: 16, height: 16 } };

async function generate(secret: string, name: string): Promise<{ status: number; id?: string }> {
  const response = await fetch(`${test.url}/v1/generate`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'idempotency-key': name },
    body: JSON.stringify(image_body),
  });
  const { id } = (await response.json()) as { id?: string };
  return { status: response.status, ...(id !== undefined && { id }) };
}

describe('an estimate for a limited member', () => {
  const chat = { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Tell me of boats' }] };

  const estimateOf = async (who: Someone, body: object) =>
    okBody<EstimateView>(await who.post(`${who.base}/chat/completions/estimate`, body));

  const costOf = (view: EstimateView) => ({ estimated_cost: view.ok && view.estimated_cost });

  it('is the same whatever the account has, and only says whether it is enough', async () => {
    const [poor, client] = await accountWithLimited('Poor', 1_500n);
    const cut = await estimateOf(poor, chat);
    const whole = await estimateOf(client, chat);
    expect(cut).toMatchObject({ ok: true, obstacle: null, available: { exact: '0.001500' } });
    expect(cut).not.toMatchObject(costOf(whole));
    expect(whole).toEqual(await estimateOf(limited, chat));
    expect(whole).toMatchObject({ ok: true, obstacle: null, available: null });
    const [bare, stranger] = await accountWithLimited('Bare', 0n);
    expect(await estimateOf(stranger, chat)).toEqual({ ...whole, obstacle: 'insufficient_balance' });
    expect(await estimateOf(bare, chat)).toMatchObject({ obstacle: 'insufficient_balance' });
  });
});

it('the header x-max-tokens does not tell a limited key what the account has', async () => {
  const [poor, client, project] = await accountWithLimited('Poor too', 1_500n);
  const keys = await Promise.all([makeKey(poor, 'Open', project), makeKey(client, 'Limited', project)]);
  const ask = async ({ secret }: NewKeyView) => {
    const { headers, status } = await fetch(`${test.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sandbox/chat', messages: [{ role: 'user', content: 'Tell me of boats' }] }),
    });
    return [status, headers.get('x-max-tokens')];
  };
  expect([await ask(keys[0]), await ask(keys[1])]).toEqual([
    [200, expect.stringMatching(/^\d+$/)],
    [200, null],
  ]);
});

describe('the Idempotency-Key of a limited key', () => {
  it('finds its task with the key that it was rotated to, and with that of before', async () => {
    const first = await makeKey(limited, 'Theirs', shop);
    const created = await generate(first.secret, 'order 1');
    expect(created.status).toBe(202);
    const second = await rotate(limited, first.key.id);
    expect((await generate(second.secret, 'order 1')).id).toBe(created.id);
    const next = await generate(second.secret, 'order 2');
    expect((await generate(first.secret, 'order 2')).id).toBe(next.id);
    const third = await rotate(owner, second.key.id);
    expect((await generate(third.secret, 'order 1')).id).toBe(created.id);
  });

  it('finds the task of the unlimited key that a limited member has rotated, and is found by it', async () => {
    const wide = await makeKey(owner, 'Wide', shop);
    const created = await generate(wide.secret, 'order 3');
    const narrow = await rotate(limited, wide.key.id);
    expect(narrow.key.is_limited).toBe(true);
    expect((await generate(narrow.secret, 'order 3')).id).toBe(created.id);
    const next = await generate(narrow.secret, 'order 4');
    expect((await generate(wide.secret, 'order 4')).id).toBe(next.id);
  });

  it('finds no task of a key that shares no budget with it', async () => {
    const [wide, narrow] = [await makeKey(owner, 'One', shop), await makeKey(limited, 'Another', shop)];
    const [of_wide, of_narrow] = [await generate(wide.secret, 'order 5'), await generate(narrow.secret, 'order 5')];
    expect([of_wide.status, of_narrow.status]).toEqual([202, 202]);
    expect(of_narrow.id).not.toBe(of_wide.id);
  });
});

describe('the key of the playground of a project', () => {
  const archive = (who: Someone, id: string) => who.post(`${who.base}/projects/${id}/archive`, {});

  const estimate = (who: Someone) => who.post(`${who.base}/estimate`, image_body);

  it('ends when its project is archived, which nobody has to clear of it', async () => {
    const [manager, developer, project] = await accountWithLimited('Archive', 1_000_000n);
    expect((await estimate(developer)).status).toBe(200);
    const used = await makeKey(manager, 'Program', project);
    expect((await archive(manager, project)).status).toBe(409);
    expect((await estimate(developer)).status).toBe(200); // a refusal ends nothing
    okBody(await manager.send('DELETE', `${manager.base}/keys/${used.key.id}`));
    okBody(await archive(manager, project));
    const { data } = okBody<ProjectsView>(await manager.get(`${manager.base}/projects`));
    expect(data.find(({ id }) => id === project)).toMatchObject({ state: 'archived', keys: 0 });
    expect((await estimate(developer)).status).toBe(403);
  });

  it('is not left working in a project that is archived while it is made', async () => {
    const [manager, developer] = await accountWithLimited('Race', 1_000_000n);
    for (let round = 0; round < 8; round++) {
      const project = await makeProject(manager, `Round ${round}`);
      okBody(await manager.send('PATCH', `${manager.base}/team/${developer.user_id}`, { projects: [project] }));
      const [, archived] = await Promise.all([estimate(developer), archive(manager, project)]);
      expect(archived.status, archived.text).toBe(200);
    }
    const working = await test.app.db.query(
      'select name from api_keys where account_id = $1 and playground_project is not null and deleted_at is null',
      [manager.account_id],
    );
    expect(working).toEqual([]);
  });
});

describe('a limited key', () => {
  it('is not moved to another project, nor is the key that it was rotated from', async () => {
    const other = await makeProject(owner, 'Other');
    const wide = await makeKey(owner, 'Moving', shop);
    const move = (id: string, project: string) => owner.send('PATCH', `${owner.base}/keys/${id}`, { project });
    expect((await move(wide.key.id, other)).status).toBe(200);
    expect((await move(wide.key.id, shop)).status).toBe(200);
    const narrow = await rotate(limited, wide.key.id);
    for (const { id } of [wide.key, narrow.key]) {
      const refused = await move(id, other);
      expect([refused.status, refused.text.includes('Create a key in the other project')]).toEqual([409, true]);
      expect((await move(id, shop)).status).toBe(200);
    }
    okBody(await owner.send('DELETE', `${owner.base}/keys/${narrow.key.id}`));
    expect((await move(wide.key.id, other)).status).toBe(200);
  });

  it('is counted among the refusals of its account where it asks for more than its project', async () => {
    const { key, secret } = await makeKey(limited, 'Curious', shop);
    const headers = { authorization: `Bearer ${secret}` };
    const refused = await fetch(`${test.url}/v1/balance`, { headers });
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('limited_to_projects')]);
    await expect
      .poll(async () => okBody<RefusalsView>(await owner.get(`${owner.base}/refusals`)).reasons)
      .toEqual([
        expect.objectContaining({
          reason: 'limited_to_projects',
          count: 1,
          parts: [expect.objectContaining({ key: { id: key.id, name: 'Curious' } })],
        }),
      ]);
  });
});

describe('a change of a limit', () => {
  it('answers with the keys of the member that open more, and so does leaving', async () => {
    const [manager, developer, first] = await accountWithLimited('Change', 1_000_000n);
    const second = await makeProject(manager, 'Second');
    const at = `${manager.base}/team/${developer.user_id}`;
    const change = async (projects: string[] | null) =>
      okBody<MemberChangedView>(await manager.send('PATCH', at, { projects })).keys_outside;
    expect(await change(null)).toEqual([]);
    const wide = await makeKey(developer, 'Wide', first);
    const of_wide = { id: wide.key.id, name: 'Wide', project: { id: first, name: 'Shop' }, is_limited: false };
    expect(await change([first, second])).toEqual([of_wide]);
    const narrow = await makeKey(developer, 'Narrow', second);
    const gone = await makeKey(developer, 'Gone', second);
    okBody(await developer.send('DELETE', `${developer.base}/keys/${gone.key.id}`));
    await makeKey(manager, 'Not theirs', second);
    const of_narrow = { id: narrow.key.id, name: 'Narrow', project: { id: second, name: 'Second' }, is_limited: true };
    expect(await change([first])).toEqual([of_wide, of_narrow]);
    expect(await change([second])).toEqual([of_wide]);
    const left = okBody<MemberChangedView>(await manager.send('DELETE', at, {}));
    expect(left.keys_outside).toEqual([of_wide, of_narrow]);
  });

  it('answers with the keys that the member has rotated, whoever made them, and not with those that others have', async () => {
    const [manager, developer, first] = await accountWithLimited('Rotated', 1_000_000n);
    const at = `${manager.base}/team/${developer.user_id}`;
    const change = async (projects: string[] | null) =>
      okBody<MemberChangedView>(await manager.send('PATCH', at, { projects })).keys_outside.map(({ id }) => id);
    await change(null);
    const [of_manager, of_developer] = [await makeKey(manager, 'A', first), await makeKey(developer, 'B', first)];
    const by_developer = (await rotate(developer, of_manager.key.id)).key.id;
    const by_manager = (await rotate(manager, of_developer.key.id)).key.id;
    expect((await change([first])).toSorted()).toEqual([of_developer.key.id, by_developer].toSorted());
    okBody(await manager.send('DELETE', `${manager.base}/keys/${of_developer.key.id}`));
    expect(await change([])).toEqual([by_developer]);
    expect(by_manager).not.toBe(by_developer);
  });

  it('counts for live events, lists and keys alike, and not at a role that has none', async () => {
    const [manager, developer, project] = await accountWithLimited('Roles', 1_000_000n);
    const { db } = test.app;
    const { account_id, user_id, base } = developer;
    const setRole = (role: string, projects: string[] | null) =>
      db.query('update auth.member set role = $3, projects = $4 where "organizationId" = $1 and "userId" = $2', [
        account_id,
        user_id,
        role,
        projects,
      ]);
    const isWatching = async () => {
      const [session] = await db.query<{ id: string }>('select id from auth.session where "userId" = $1', [user_id]);
      const watch = { session_id: session?.id ?? '', account_id };
      const watches = [undefined, [project], ['default'], []].map((project_ids) => ({ ...watch, project_ids }));
      return (await watchesAdmitted(db, watches, new Date())).map(({ project_ids }) => project_ids);
    };
    const seen = async () => {
      const { members } = okBody<TeamView>(await manager.get(`${manager.base}/team`));
      const limit = members.find((member) => member.user_id === user_id)?.projects;
      return [await isWatching(), limit === null, (await developer.get(`${base}/balance`)).status];
    };
    expect(await seen()).toEqual([[[project]], false, 403]);
    await setRole('billing', [project]); // as a node of the version before may leave it
    expect(await seen()).toEqual([[undefined], true, 200]);
    await setRole('developer', [project]);
    await addMember(db, { account_id, user_id, role: 'viewer' }, new Date());
    expect(await seen()).toEqual([[undefined], true, 200]);
  });
});
