// isolated: ids never go back in time within a process, and the clocks of other tests are ahead of this one
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeBigAccount } from '../bench/big-account.ts';
import { audit } from '../src/accounts/audit.ts';
import { ownerOf } from '../src/accounts/members.ts';
import { invite } from '../src/accounts/team.ts';
import { removeAllOld } from '../src/worker.ts';
import { expectExactBooks, startTestApp, type TestApp } from './helpers/app.ts';
import { testClock } from './helpers/clock.ts';

const day_ms = 86_400_000;
const end = new Date('2026-11-20T12:00:00Z');
const clock = testClock();
let service: TestApp;

const yaml = (audit_keep: string) => `
version: 1
tasks: { keep: 40d }
retention: { chat_records: 20d, deliveries: 50d, ${audit_keep}sessions: 2d, invitations: 3d }
`;

beforeAll(async () => {
  clock.stop(end.getTime());
  service = await startTestApp({ yaml: yaml(''), worker: false, clock });
});
afterAll(() => service.stop());

const remove = () => removeAllOld(service.app, new AbortController().signal);
const count = async (from: string) => {
  const rows = await service.app.db.query<{ count: bigint }>(`select count(*) from ${from}`);
  return Number(rows[0]?.count);
};

it('rows go when the configuration keeps them no longer, and the books stay exact', async () => {
  const { db } = service.app;
  // Sixty days: 1,800 chat calls and 900 tasks in the last 36 of them, 180 of which have a webhook.
  const { rows } = await makeBigAccount(db, { ledger_entries: 9_001, days: 60, end });
  expect(rows).toMatchObject({ tasks: 900, chats: 1_800, deliveries: 180 });
  await expectExactBooks(service.app);
  await remove();
  const chats = await count('chat_calls');
  expect(chats / rows.chats).toBeCloseTo(20 / 36, 1);
  expect(await count('tasks')).toBe(900);
  await expectExactBooks(service.app);

  clock.pass(20 * day_ms);
  await remove();
  expect(await count('chat_calls')).toBe(0);
  expect((await count('tasks')) / rows.tasks).toBeCloseTo(20 / 36, 1);
  expect((await count('deliveries')) / rows.deliveries).toBeCloseTo(30 / 36, 1);
  expect(await count('attempts')).toBe(await count('tasks'));
  expect(await count('delivery_attempts')).toBe(await count('deliveries'));
  await expectExactBooks(service.app);

  clock.pass(40 * day_ms);
  await remove();
  expect([await count('tasks'), await count('deliveries'), await count('ledger_entries')]).toEqual([0, 0, 9_001]);
  await expectExactBooks(service.app);
});

it('sessions and invitations go after their end, and the audit log only if the configuration says so', async () => {
  const { db } = service.app;
  const { account_id } = await service.client();
  const now = new Date(clock.now());
  const user_id = await ownerOf(db, account_id, now);
  await db.query(
    `insert into auth.session (id, "expiresAt", token, "updatedAt", "userId")
     select 's' || n, $1::timestamptz + n * interval '1 day', 't' || n, $1, $2 from generate_series(-3, 0) n`,
    [now, user_id],
  );
  await invite(db, { account_id, email: 'a@example.com', role: 'viewer', projects: null, inviter_id: user_id }, now);
  const write = (action: string) => audit(db, { account_id, action, now: new Date(clock.now()) });
  await write('aged.first');
  const aged = `audit_entries where action like 'aged.%'`;
  await remove();
  expect([await count('auth.session'), await count('auth.invitation'), await count(aged)]).toEqual([3, 1, 1]);
  clock.pass(8 * day_ms);
  await write('aged.second');

  clock.pass(11 * day_ms); // an invitation is good for a week
  await remove();
  expect([await count('auth.session'), await count('auth.invitation'), await count(aged)]).toEqual([0, 0, 2]);

  await service.configure(yaml('audit: 15d, '));
  await remove();
  expect(await db.query(`select action from ${aged}`)).toEqual([{ action: 'aged.second' }]);
  await expect(db.query('delete from audit_entries')).rejects.toThrow('audit entries are never changed or deleted');
});
