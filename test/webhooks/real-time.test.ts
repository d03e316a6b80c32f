// nightly: it waits for 70 s of real time
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectExactBooks } from '../helpers/app.ts';
import { finishTask, setStage, type Stage } from './setup.ts';

let stage: Stage;

beforeAll(async () => {
  stage = await setStage();
});
afterAll(() => stage.stop());

test('in real time the second attempt comes 10 s after the first has ended and the third 1 min later, never early and at most 10 % and 1 s late', async () => {
  const { client, receiver, app } = stage;
  receiver.answer('/real', 500);
  await finishTask(client, `${receiver.url}/real`);
  const [first, second, third] = [
    await receiver.nth('/real', 1),
    await receiver.nth('/real', 2),
    await receiver.nth('/real', 3),
  ];
  expect(second.at_ms - first.at_ms).toBeGreaterThanOrEqual(10_000);
  expect(second.at_ms - first.at_ms).toBeLessThanOrEqual(12_000);
  expect(third.at_ms - second.at_ms).toBeGreaterThanOrEqual(60_000);
  expect(third.at_ms - second.at_ms).toBeLessThanOrEqual(67_000);
  await expectExactBooks(app);
});
