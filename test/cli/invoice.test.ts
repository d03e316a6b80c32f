import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { testClock } from '../helpers/clock.ts';
import { commandsBeside } from './medley.ts';

const yaml = 'version: 1\nbilling: { issuer: { name: Żółw, series: ZW } }\n';
const clock = testClock();

let service: TestApp;
let account_id: string;

beforeAll(async () => {
  clock.run('2026-02-10T00:00:00Z');
  service = await startTestApp({ yaml, clock });
  const client = await service.client();
  ({ account_id } = client);
  await client.call('POST', '/v1/generate?wait=30', { model: 'sandbox/image', input: { prompt: 'x' } });
  const other = await service.client();
  await other.call('POST', '/v1/generate?wait=30', { model: 'sandbox/image', input: { prompt: 'x' } });
});
afterAll(() => service.stop());

describe('invoice run', () => {
  it('creates missing invoices once, of one account if it is named', async () => {
    const commands = commandsBeside(service);
    const first = { number: 'ZW-', account: account_id, currency: 'USD' };
    const one = await commands.ok('invoice', 'run', '--month', '2026-02', '--account', account_id);
    expect(one).toMatchObject({ month: '2026-02', existing: 0, failed: [] });
    expect(one).toMatchObject({ made: [{ ...first, number: expect.stringMatching(/^ZW-20\d\d-0001$/) }] });
    const rest = await commands.ok('invoice', 'run', '--month', '2026-02');
    expect(rest).toMatchObject({ made: [{ number: expect.stringMatching(/^ZW-20\d\d-0002$/) }], existing: 1 });
    const { out } = await commands.text('invoice', 'run', '--month', '2026-02');
    expect(out).toBe('0 created for 2026-02, 2 existed already.\n');
    clock.run('2026-02-10T00:00:00Z');
    const late = await service.client({ account_id });
    await late.call('POST', '/v1/generate?wait=30', { model: 'sandbox/image', input: { prompt: 'late' } });
    const supplement = await commands.text('invoice', 'run', '--month', '2026-02');
    expect(supplement.out).toMatch(/^ZW-20\d\d-0003 .*0\.010000 +USD +ZW-20\d\d-0001$/m);
    await expectExactBooks(service.app);
  });

  it('refuses an unfinished month, an invalid month, an unknown account, and a service without an issuer', async () => {
    const commands = commandsBeside(service);
    const month = new Date().toISOString().slice(0, 7);
    expect(await commands.fails(1, 'invoice', 'run', '--month', month)).toContain(`${month} is not over: its invoices`);
    expect(await commands.fails(1, 'invoice', 'run', '--month', '2090-01')).toContain('from 2090-02-01 01:00 UTC on');
    expect(await commands.fails(2, 'invoice', 'run', '--month', '2026-13')).toContain('--month must be like 2026-01');
    const none = ['--month', '2026-02', '--account', 'acct_none'];
    expect(await commands.fails(1, 'invoice', 'run', ...none)).toContain('There is no account "acct_none"');
    await service.configure('version: 1\n');
    expect(await commands.fails(1, 'invoice', 'run', '--month', '2026-02')).toContain('billing.issuer in medley.yaml');
  });
});
