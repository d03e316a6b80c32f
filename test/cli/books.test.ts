import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { commandsBeside, medley, readObject } from './medley.ts';

let service: TestApp;

beforeAll(async () => {
  service = await startTestApp();
});
afterAll(() => service.stop());

describe('the command books', () => {
  it('finds exact books, and ends with 1 for a difference of one millionth', async () => {
    const commands = commandsBeside(service);
    const { account_id, call } = await service.client({ credit: '1' });
    await call('POST', '/v1/generate?wait=30', { model: 'sandbox/image', input: { prompt: 'x' } });
    await call('POST', '/v1/generate', { model: 'sandbox/image', input: { prompt: '[[delay 1h]]' } });
    const exact = { ok: true, accounts: 1, entries: 4, open_holds: 1, difference: '0.000000', findings: [] };
    expect(await commands.ok('books')).toEqual(exact);
    expect(await commands.ok('books', '--full')).toEqual(exact);
    expect(await commands.ok('reconcile')).toEqual(exact);
    expect((await commands.text('books')).out).toBe(
      'Reconciled: 1 account, 4 entries, 1 open hold, difference 0.000000\n',
    );

    await service.app.db.query('update balances set amount = amount + 1 where account_id = $1', [account_id]);
    const result = await medley(['books', '--json'], {
      DATABASE_URL: service.app.config.database_url ?? '',
      MEDLEY_DATA: service.app.config.data_dir,
    });
    expect(result).toMatchObject({ code: 1, error: '' });
    const report = readObject(result.out);
    expect(report.ok).toBe(false);
    expect(report.difference).not.toBe('0.000000');
    expect(report.findings).toContainEqual(
      expect.objectContaining({ rule: 'a balance is the sum of its entries', subject: account_id }),
    );
    const text = await commands.text('books');
    expect(text).toMatchObject({ code: 1 });
    expect(text.out).toContain('NOT RECONCILED');
  });
});
