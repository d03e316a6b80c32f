import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { startFal } from '../providers/imitations/fal.ts';
import type { Imitation } from '../providers/imitations/imitation.ts';
import { startReplicate } from '../providers/imitations/replicate.ts';

describe('a service with two keys, a margin, and a default model of both providers', () => {
  let first: Imitation;
  let second: Imitation;
  let service: TestApp;
  let client: Client;

  beforeAll(async () => {
    process.env['TEST_TWO_KEYS'] = 'key-0123456789';
    [first, second] = await Promise.all([startReplicate(), startFal()]);
    service = await startTestApp({
      yaml: `
version: 1
sandbox: false
currencies: { USD: "1", PLN: "3.65" }
catalog: { default: [replicate, fal], margin: "1.25" }
providers:
  replicate: { adapter: replicate, base_url: "${first.url}/v1", api_key: env:TEST_TWO_KEYS, allow_private: true }
  fal: { adapter: fal, base_url: "${second.url}", api_key: env:TEST_TWO_KEYS, allow_private: true }
`,
    });
    client = await service.client({ credit: '1', currency: 'PLN' });
  });
  afterAll(async () => {
    await service.stop();
    await first.stop();
    await second.stop();
  });

  const model = 'black-forest-labs/flux-schnell';
  const generate = () =>
    client.call('POST', '/v1/generate?wait=30', { model, input: { prompt: 'A bay', output_format: 'png' } });

  it('offers the models of both at the price with the margin', async () => {
    const { data } = (await client.call('GET', '/v1/models')).json;
    expect(data.length).toBeGreaterThan(10);
    const one = data.find(({ id }: { id: string }) => id === model);
    expect(one?.pricing).toMatchObject([{ unit: 'image', amount: '0.00375', currency: 'USD' }]);
    expect(JSON.stringify(one)).not.toContain('replicate.com');
  });

  it('charges it in the currency of the account', async () => {
    const { json } = await generate();
    expect(json).toMatchObject({ status: 'succeeded', output: [{ type: 'image' }] });
    expect(json.cost.exact).toBe('0.013688'); // 0.00375 × 3.65 = 0.0136875
    expect([first, second].map((one) => one.requestsFor('submit').length)).toEqual([1, 0]);
  });

  it('goes on with the other provider for the same price when one refuses', async () => {
    first.instead('submit', { status: 402, json: { detail: 'Insufficient credit' } });
    const { json } = await generate();
    expect(json).toMatchObject({ status: 'succeeded', cost: { exact: '0.013688' } });
    expect([first, second].map((one) => one.requestsFor('submit').length)).toEqual([2, 1]);
    await expectExactBooks(service.app);
  });
});
