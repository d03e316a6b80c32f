import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AdminConfiguration } from '../../src/dashboard/views/admin.ts';
import { commandsOf, medleySoon } from '../cli/medley.ts';
import { ownerOfNew, okBody } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { mediaModel } from '../helpers/catalog.ts';

/** Models that end soon, as operators hear of them without a question. */

const day = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
const soon = day(20);
const model = (id: string, retires: string, ...more: readonly string[]) =>
  mediaModel({
    id,
    price: '0.10',
    more: [`retires: ${retires}`, ...more],
    routes: ['{ provider: studio, upstream_model: sandbox/image }'],
  });
const next = 'replaced_by: a/next';
const yaml = `version: 1
sandbox: false
providers: { studio: { adapter: sandbox } }
models:${model('a/ends', soon, next)}${model('a/stays', day(40), next)}${model('a/next', day(400))}
`;
const warning = `a/ends ends on ${soon}; use a/next instead.`;

let service: TestApp;
beforeAll(async () => {
  service = await startTestApp({ yaml, worker: false });
});
afterAll(() => service.stop());

it('a model that ends within 30 days is named by doctor, which is in order all the same', async () => {
  const { config } = service.app;
  const env = {
    DATABASE_URL: config.database_url ?? '',
    MEDLEY_DATA: config.data_dir,
    MEDLEY_CONFIG: config.config_file ?? '',
  };
  const { out } = await commandsOf(env, medleySoon).text('doctor');
  expect(out).toContain(`catalogue: 3 models; ${warning}\n`);
  expect(out).not.toContain('a/stays');
});

it('a model that ends within 30 days is a warning on the configuration page of operators', async () => {
  const operator = await ownerOfNew(service, 'Operating');
  await service.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
  const { warnings } = okBody<AdminConfiguration>(await operator.get('/dash/admin/configuration'));
  expect(warnings.filter((line) => line.startsWith('a/'))).toEqual([warning]);
});
