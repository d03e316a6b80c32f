import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { mailSpend } from '../../src/billing/mail-spend.ts';
import { endOfPeriod, beginningOfPeriod, findSpendMail, setSpendMail } from '../../src/billing/spend-mails.ts';
import { hour, signal, worldOf } from '../alerts/setup.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { testClock } from '../helpers/clock.ts';
import { startMailServer, type MailServer } from '../helpers/mail-server.ts';

let server: MailServer;
let test: TestApp;
let world: ReturnType<typeof worldOf>;

const clock = testClock();
const now = () => new Date(clock.now());
const day = 24 * hour;

beforeAll(async () => {
  server = await startMailServer();
  const yaml = `version: 1\nmail: { url: "${server.reference}", from: "Medley <medley@example.com>" }`;
  test = await startTestApp({ worker: false, clock, yaml });
  world = worldOf(test, clock);
});

afterAll(async () => {
  await test.stop();
  await server.stop();
});

beforeEach(async () => {
  await test.app.db.query('delete from spend_mails');
  server.mails.length = 0;
  server.be('take');
});

/** An account and a member who gets mail. */
async function reader(name: string): Promise<{ account_id: string; user_id: string; email: string }> {
  const account_id = await world.account(name);
  const email = `${name.toLowerCase()}@example.com`;
  return { account_id, user_id: await world.member(account_id, email, 'viewer'), email };
}

/** Passes to `ms` after the next beginning of a UTC day. */
function passToMidnightAnd(ms: number): void {
  clock.pass(endOfPeriod('day', now()).getTime() - clock.now() + ms);
}

describe('the mail about spend', () => {
  it('has the groups of the period and of the one before, an hour after its end, and is sent once', async () => {
    const { account_id, user_id, email } = await reader('Shop');
    passToMidnightAnd(hour);
    await world.spend(account_id, 1_000_000n, { model: 'test/old' });
    await setSpendMail(test.app.db, { account_id, user_id, every: 'day', grouped_by: 'model' }, now());
    passToMidnightAnd(hour / 2);
    await mailSpend(test.app, signal);
    expect(server.mails).toEqual([]);
    clock.pass(hour);
    await world.spend(account_id, 2_500_000n, { model: 'test/one' });
    await world.spend(account_id, 500_000n, { model: 'test/two' });
    await mailSpend(test.app, signal);
    expect(server.mails.map(({ to }) => to)).toEqual([[email]]);
    server.mails.length = 0;
    passToMidnightAnd(2 * hour);
    await mailSpend(test.app, signal);
    await mailSpend(test.app, signal);
    const [mail, ...others] = server.mails;
    expect(others).toEqual([]);
    const yesterday = new Date(clock.now() - day).toISOString().slice(0, 10);
    expect(mail?.text).toContain(`Spend of Shop, ${yesterday} (UTC): 3.00 USD`);
    expect(mail?.text).toContain('The day before: 1.00 USD');
    expect(mail?.text).toMatch(
      /By model:[^]*test\/one: 2\.50 USD \(before: 0\.00 USD\)[^]*test\/two: 0\.50 USD[^]*test\/old: 0\.00 USD \(before: 1\.00 USD\)/,
    );
    expect(mail?.text).toContain(`/usage?period=custom&from=${yesterday}&to=${yesterday}&group=model`);
  });

  it('says that nothing was charged, and covers the last period alone after a pause of weeks', async () => {
    const { account_id, user_id } = await reader('Quiet');
    await setSpendMail(test.app.db, { account_id, user_id, every: 'week', grouped_by: 'metadata.team' }, now());
    clock.pass(40 * day);
    await mailSpend(test.app, signal);
    expect(server.mails).toHaveLength(1);
    expect(server.mails[0]?.text).toContain('Nothing was charged.');
    const next = await findSpendMail(test.app.db, { account_id, user_id });
    expect(next?.ends_at.getTime()).toBeGreaterThan(clock.now() - hour);
  });

  it('waits while the server is away, and is given up after three days', async () => {
    const { account_id, user_id, email } = await reader('Patient');
    await setSpendMail(test.app.db, { account_id, user_id, every: 'month', grouped_by: 'key' }, now());
    clock.pass(endOfPeriod('month', now()).getTime() - clock.now() + 2 * hour);
    server.be('fail');
    await mailSpend(test.app, signal);
    server.be('take');
    await mailSpend(test.app, signal);
    expect(server.mails.map(({ to }) => to)).toEqual([[email]]);
    clock.pass(endOfPeriod('month', now()).getTime() - clock.now() + 2 * hour + 3 * day);
    server.be('fail');
    await mailSpend(test.app, signal);
    server.be('take');
    await mailSpend(test.app, signal);
    expect(server.mails).toHaveLength(1);
  });

  it('goes to nobody who has left the account, and their choice is gone', async () => {
    const { account_id, user_id } = await reader('Left');
    await setSpendMail(test.app.db, { account_id, user_id, every: 'day', grouped_by: 'tag' }, now());
    await test.app.db.query('delete from auth.member where "userId" = $1', [user_id]);
    clock.pass(2 * day);
    await mailSpend(test.app, signal);
    expect(server.mails).toEqual([]);
    expect(await findSpendMail(test.app.db, { account_id, user_id })).toBeUndefined();
  });
});

describe('a period', () => {
  it('ends at midnight, on Monday or on the first, by UTC', () => {
    const at = new Date('2026-11-29T23:59:59Z'); // a Sunday
    expect(endOfPeriod('day', at).toISOString()).toBe('2026-11-30T00:00:00.000Z');
    expect(endOfPeriod('week', at).toISOString()).toBe('2026-11-30T00:00:00.000Z');
    expect(endOfPeriod('week', new Date('2026-11-30T00:00:00Z')).toISOString()).toBe('2026-12-07T00:00:00.000Z');
    expect(endOfPeriod('month', new Date('2026-12-31T12:00:00Z')).toISOString()).toBe('2027-01-01T00:00:00.000Z');
    expect(beginningOfPeriod('month', new Date('2027-03-01T00:00:00Z')).toISOString()).toBe('2027-02-01T00:00:00.000Z');
    expect(beginningOfPeriod('week', new Date('2026-11-30T00:00:00Z')).toISOString()).toBe('2026-11-23T00:00:00.000Z');
  });
});
