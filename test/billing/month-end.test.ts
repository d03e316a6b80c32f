import { expect, onTestFinished, test } from 'vitest';
import { startWorker } from '../../src/worker.ts';
import { close, hold } from '../../src/money/holds.ts';
import { expectExactBooks, startTestApp } from '../helpers/app.ts';

const yaml = 'version: 1\nbilling: { issuer: { name: Żółw, series: ZW } }\n';

test('a node whose clock is in the next month creates no invoice of a month that is not over by the clock of the database', async () => {
  const now = new Date();
  const next = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1, 2);
  const before = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 15));
  const service = await startTestApp({ yaml, worker: false, clock: { now: () => next } });
  onTestFinished(() => service.stop());
  const { db } = service.app;
  const { account_id, key_id } = await service.client();
  for (const [ref, when] of [
    ['last month', before],
    ['this month', now],
  ] as const) {
    await hold(db, { account_id, key_id, ref, amount: 5n, model: 'test/model', kind: 'image' }, when);
    await close(db, { account_id, ref, cost: 5n }, when);
  }
  await startWorker(service.app);
  const months = () => db.query('select month from invoice_months');
  await expect.poll(async () => (await months()).length).toBe(3);
  const invoices = await db.query(`select to_char(month, 'YYYY-MM') as month, total from invoices`);
  expect(invoices).toEqual([{ month: before.toISOString().slice(0, 7), total: 5n }]);
  await expectExactBooks(service.app);
});
