import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Me } from '../../src/dashboard/views/common.ts';
import type { AuditView } from '../../src/dashboard/views/settings.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { memberOf, ownerOfNew, signInAs, okBody, type Someone } from './people.ts';

let test: TestApp;

beforeAll(async () => {
  test = await startTestApp({ worker: false, yaml: 'version: 1\n' });
});

afterAll(() => test.stop());

/** As if this person had turned on a second factor, and signed in with it. */
async function withFactor(who: Someone): Promise<Someone> {
  await test.app.db.query('update auth."user" set "twoFactorEnabled" = true where id = $1', [who.user_id]);
  return signInAs(test, who.user_id, who.account_id);
}

const require = (who: Someone, required: unknown) => who.send('PUT', `${who.base}/team/second-factor`, { required });

const codeOf = ({ json }: { json: unknown }) => (json as { error?: { code?: string } }).error?.code;

const lockedIn = async (who: Someone) => {
  const { accounts } = okBody<Me>(await who.get('/dash/me'));
  return accounts.filter(({ needs_second_factor }) => needs_second_factor).map(({ id }) => id);
};

describe('a second factor for all members of an account', () => {
  it('is decided by an owner who has one, and by nobody else', async () => {
    const owner = await ownerOfNew(test);
    expect((await require(owner, true)).status).toBe(409);
    const secured = await withFactor(owner);
    for (const wrong of [undefined, 'true', 1]) expect((await require(secured, wrong)).status).toBe(400);
    okBody(await require(secured, true));
    const developer = await withFactor(await memberOf(test, owner, 'developer'));
    expect((await require(developer, false)).status).toBe(403);
    const [entry] = okBody<{ data: AuditView[] }>(await secured.get(`${owner.base}/audit`)).data;
    expect(entry).toMatchObject({ action: 'account.require_second_factor', details: { required: true } });
  });

  it('keeps members without one out of that account alone, keys work on, and having one opens it again', async () => {
    const owner = await withFactor(await ownerOfNew(test));
    const { call } = await test.client({ account_id: owner.account_id });
    const member = await memberOf(test, owner, 'viewer');
    const other = await ownerOfNew(test);
    await test.app.db.query(
      `insert into auth.member (id, "organizationId", "userId", role, "createdAt") values ('m2', $1, $2, 'owner', now())`,
      [other.account_id, member.user_id],
    );
    okBody(await member.get(`${owner.base}/balance`));
    okBody(await require(owner, true));
    for (const path of ['/balance', '/team', '/keys']) {
      const refused = await member.get(owner.base + path);
      expect([refused.status, codeOf(refused)]).toEqual([403, 'second_factor_required']);
    }
    expect(await lockedIn(member)).toEqual([owner.account_id]);
    okBody(await member.get(`${other.base}/balance`));
    expect((await call('GET', '/v1/balance')).status).toBe(200);
    const secured = await withFactor(member);
    okBody(await secured.get(`${owner.base}/balance`));
    expect(await lockedIn(secured)).toEqual([]);
    okBody(await require(owner, false));
  });

  it('is also that of an issuer which the operator trusts with it', async () => {
    const owner = await withFactor(await ownerOfNew(test));
    const member = await memberOf(test, owner, 'viewer');
    okBody(await require(owner, true));
    expect((await member.get(`${owner.base}/balance`)).status).toBe(403);
    await test.app.db.query('update auth.session set "hasTwoFactors" = true where "userId" = $1', [member.user_id]);
    expect((await member.get(`${owner.base}/balance`)).status).toBe(200);
  });
});

it('operators may be asked for a second factor, too, and their own accounts stay open', async () => {
  const operator = await ownerOfNew(test);
  const other = await ownerOfNew(test);
  await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
  okBody(await operator.get('/dash/admin/audit'));
  await test.configure('version: 1\nsign_in: { operators_need_second_factor: true }\n');
  for (const path of ['/dash/admin/audit', `${other.base}/balance`])
    expect(codeOf(await operator.get(path))).toBe('second_factor_required');
  expect(okBody<Me>(await operator.get(`/dash/me?view=${other.account_id}`))).toMatchObject({
    operator_needs_second_factor: true,
    accounts: [{ id: operator.account_id }],
  });
  okBody(await operator.get(`${operator.base}/balance`));
  const secured = await withFactor(operator);
  okBody(await secured.get('/dash/admin/audit'));
  okBody(await secured.get(`${other.base}/balance`));
});

describe('the audit log of an account', () => {
  it('is for its owners: as a page, as CSV and as JSON lines, of the days that are asked for', async () => {
    const owner = await ownerOfNew(test);
    const name = 'A, "key"';
    okBody(await owner.post(`${owner.base}/keys`, { name }));
    const viewer = await memberOf(test, owner, 'developer');
    for (const path of ['/audit', '/audit.csv', '/audit.jsonl'])
      expect((await viewer.get(owner.base + path)).status).toBe(403);
    const csv = await owner.get(`${owner.base}/audit.csv`);
    expect(csv.headers.get('content-disposition')).toBe('attachment; filename="audit.csv"');
    expect(csv.text.split('\r\n')[0]).toContain('id,time,account,actor,action,subject,details,address');
    const lines = (await owner.get(`${owner.base}/audit.jsonl`)).text.trim().split('\n');
    const entries = lines.map((line) => JSON.parse(line) as AuditView);
    expect(entries.map(({ action }) => action)).toContain('key.create');
    expect(new Set(entries.map(({ account_id }) => account_id))).toEqual(new Set([owner.account_id]));
    const day = entries.at(-1)?.at.slice(0, 10); // of the oldest: the day may end at any time
    expect((await owner.get(`${owner.base}/audit.jsonl?to=${day}`)).text).toBe('');
    expect((await owner.get(`${owner.base}/audit.jsonl?from=${day}`)).text.trim().split('\n')).toHaveLength(
      lines.length,
    );
    expect((await owner.get(`${owner.base}/audit.csv?from=x`)).status).toBe(400);
  });

  it('is read a thousand at a time, so that a long one is whole', async () => {
    const owner = await ownerOfNew(test);
    await test.app.db.query(
      `insert into audit_entries (id, account_id, actor, action, created_at)
         select 'audit_' || lpad(n::text, 26, '0'), $1, 'x', 'test.' || n, now() from generate_series(1, 2100) n`,
      [owner.account_id],
    );
    const lines = (await owner.get(`${owner.base}/audit.jsonl`)).text.trim().split('\n');
    expect(lines.filter((line) => line.includes('"test.'))).toHaveLength(2_100);
  });
});
