import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { removeFolder, clusterFolder } from '../helpers/embedded.ts';
import { commandsBeside, medley } from '../cli/medley.ts';

/** A currency that accounts have must stay in the catalogue. */

const with_zloty = 'version: 1\ncurrencies: { USD: "1", PLN: "4" }\n';
const without_zloty = 'version: 1\nlimits: { generate_per_minute: 60 }\ncurrencies: { USD: "1" }\n';
const problem = '3:1 currencies: PLN is missing, and 1 account has it. Add it with its rate.';

let service: TestApp;
let zloty: Client;
let folder = '';

beforeAll(async () => {
  folder = clusterFolder();
  service = await startTestApp({ yaml: with_zloty });
  zloty = await service.client({ currency: 'PLN' });
});
afterAll(async () => {
  await service.stop();
  removeFolder(folder);
});

const order = { model: 'sandbox/image', input: { prompt: 'x' } };
const estimate = async (client: Client) => client.call('POST', '/v1/estimate', order);

it('a reload that would leave accounts without prices is refused as a whole', async () => {
  await expect(service.configure(without_zloty)).rejects.toThrow(problem);
  expect((await estimate(zloty)).json.estimated_cost).toMatchObject({ exact: '0.040000', currency: 'PLN' });
  await service.configure(with_zloty.replace('"4"', '"5"'));
  expect((await estimate(zloty)).json.estimated_cost.exact).toBe('0.050000');
});

it('a start is refused with the currency and the number of accounts that have it', async () => {
  await expect(service.beside({ yaml: without_zloty })).rejects.toThrow(problem);
  await service.client({ currency: 'EUR' });
  await service.client({ currency: 'EUR' });
  await expect(service.beside()).rejects.toThrow('built-in catalogue:1:1 currencies: EUR is missing, and 2 accounts');
});

it('config check and doctor report a currency without prices', async () => {
  const commands = commandsBeside(service);
  const path = join(folder, 'medley.yaml');
  writeFileSync(path, without_zloty);
  expect((await commands.text('config', 'check', path)).out).toContain(`${path}:${problem}`);
  const result = await commands.text('doctor');
  expect(result.code).toBe(1);
  expect(result.out).toContain('FAIL  catalogue');
  expect(result.out).toContain('currencies: EUR is missing, and 2 accounts have it. Add it with its rate.');
});

it('an account that was created beside the catalogue gets 503, and everything that needs no prices', async () => {
  const euro = await service.client({ currency: 'EUR' });
  for (const path of ['/v1/estimate', '/v1/generate']) {
    const { status, json } = await euro.call('POST', path, order);
    expect([status, json.error.message]).toEqual([503, 'This service has no prices in EUR at the moment.']);
  }
  for (const path of ['/v1/balance', '/v1/balance/transactions', '/v1/usage', '/v1/key', '/v1/models', '/v1/tasks']) {
    expect([path, (await euro.call('GET', path)).status]).toEqual([path, 200]);
  }
});

it('a file is checked when no database was ever created and when none answers', async () => {
  const path = join(folder, 'other.yaml');
  writeFileSync(path, without_zloty);
  const check = (env: Record<string, string>) => medley(['config', 'check', path], env);
  expect(await check({ MEDLEY_DATA: join(folder, 'none') })).toMatchObject({ code: 0, out: `${path} is in order.\n` });
  const away = await check({ DATABASE_URL: 'postgres://127.0.0.1:1/x' });
  expect(away).toMatchObject({ code: 0, out: expect.stringContaining('the currencies of accounts were not compared') });
});
