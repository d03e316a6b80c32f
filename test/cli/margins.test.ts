import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { mediaModel, optional_prompt } from '../helpers/catalog.ts';
import { commandsBeside } from './medley.ts';

const yaml = `
version: 1
currencies: { USD: "1", EUR: "0.5" }
models:${mediaModel({
  id: 'test/paid',
  schema: optional_prompt,
  routes: ['{ provider: sandbox, upstream_model: image, cost: [{ unit: image, amount: "0.012" }] }'],
})}
`;

let service: TestApp;

beforeAll(async () => {
  service = await startTestApp({ yaml });
});
afterAll(() => service.stop());

describe('the command margins', () => {
  it('prints what was paid, what it costs, what is left, and what is unknown', async () => {
    const commands = commandsBeside(service);
    const clients = [await service.client(), await service.client({ currency: 'EUR' })];
    for (const { call } of clients) {
      for (const prompt of ['x', 'y', '[[fail]]']) {
        await call('POST', '/v1/generate?wait=30', { model: 'test/paid', input: { prompt } });
      }
    }
    const dollars = { revenue: '0.060000', upstream_cost: '0.024000', margin: '0.036000', unknown: 1, runs: 3 };
    const euros = { revenue: '0.030000', upstream_cost: '0.012000', margin: '0.018000', unknown: 1, runs: 3 };
    const base = { upstream_cost_base: [{ currency: 'USD', amount: '0.024000' }] };
    const rows = [
      { name: 'test/paid#sandbox', currency: 'EUR', ...euros, ...base },
      { name: 'test/paid#sandbox', currency: 'USD', ...dollars, ...base },
    ];
    const totals = rows.map((row) => ({ ...row, name: null }));
    expect(await commands.ok('margins', '--by', 'route')).toMatchObject({ by: 'route', rows, totals });
    const { out } = await commands.text('margins', '--by', 'account');
    expect(out).toMatch(
      new RegExp(`^${clients[0]?.account_id} +USD +3 +0\\.060000 +0\\.024000 +0\\.036000 +≤60\\.0 +1$`, 'm'),
    );
    expect(out).toContain('Cost unknown:');
    await expectExactBooks(service.app);
  });

  it('refuses an unknown name and an invalid month', async () => {
    const commands = commandsBeside(service);
    expect((await commands.text('margins', '--month', '2026-13')).error).toContain('--month must be like 2026-01');
    expect((await commands.text('margins', '--month', '2026-01')).out).toBe('No charges in 2026-01.\n');
    expect(await commands.fails(2, 'margins', '--by', 'colour')).toContain('--by must be one of model, route');
  });
});
