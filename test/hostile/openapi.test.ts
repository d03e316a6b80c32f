import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { runCampaign, showFinding } from './campaign.ts';
import { campaign_yaml, makePlace, type Place } from './world.ts';
import { depth } from '../helpers/depth.ts';

let service: TestApp;
let place: Place;
beforeAll(async () => {
  service = await startTestApp({ yaml: campaign_yaml, env: { MEDLEY_SECRET: 'the-secret-of-all-links' } });
  place = await makePlace(service.app.db, service.url);
});
afterAll(() => service?.stop());

const count = depth(700, 2_000);

/** A campaign that only ever meets the first check proves little. Among 700 a run happened to create no task: then it goes on. */
const statuses_met = [200, 202, 400, 401, 404, 405, 415, 422];
const more = 200;
const count_max = 6_000;

/** Another one in each run, so that many runs together are a long campaign; a failure names it. */
const seed = Number(process.env['HOSTILE_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

test(`${count} hostile requests made from the reference, seed ${seed}`, async () => {
  const met = new Set<number>();
  const isWhole = () => statuses_met.every((status) => met.has(status));
  for (let first = 0; first === 0 || (!isWhole() && first < count_max);) {
    const sent = first === 0 ? count : more;
    const { findings, statuses } = await runCampaign({
      world: place.world,
      port: Number(new URL(service.url).port),
      secrets: [...place.secrets, 'the-secret-of-all-links'],
      seed,
      first,
      count: sent,
      connections: 8,
    });
    first += sent;
    expect(findings.map(showFinding), `npm run fuzz -- --seed ${seed} --requests ${first}`).toEqual([]);
    for (const status of statuses.keys()) met.add(status);
  }
  expect([...met]).toEqual(expect.arrayContaining(statuses_met));
  await place.expectForeignUntouched();
  await vi.waitFor(async () => expect(await unfinished()).toEqual([]), { timeout: 120_000, interval: 200 });
  await expectExactBooks(service.app);
  expect((await fetch(`${service.url}/livez`)).status).toBe(200);
});

async function unfinished(): Promise<object[]> {
  return service.app.db.query('select id, status, model, input, created_at from tasks where completed_at is null');
}
