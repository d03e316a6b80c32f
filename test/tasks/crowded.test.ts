import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { assert } from '../../src/lib/assert.ts';
import { writeDataUrl } from '../../src/lib/data-url.ts';
import type { Adapter, RunState } from '../../src/providers/provider.ts';
import { findTask } from '../../src/tasks/list.ts';
import { withInput } from '../../src/tasks/run-media.ts';
import { expectExactBooks, startTestApp, type Answered, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel } from '../helpers/catalog.ts';
import { flac, sampleImage } from '../storage/samples.ts';

/** Tasks that have to wait, and what must not have to wait for them. */

let service: TestApp;
let png: Buffer;
/** Ends the submits that hang. */
const hanging: (() => void)[] = [];

const models = [
  mediaModel({ id: 'test/hangs', price: '0.01', routes: ['{ provider: hangs, upstream_model: a }'] }),
  mediaModel({
    id: 'test/takes',
    schema: '{ type: object, properties: { images: { type: array, items: { type: string, x-media: image } } } }',
    price: '0.01',
    routes: ['{ provider: takes, upstream_model: a }'],
  }),
];

const yaml = (more = '') => `
version: 1
${limits()}
${more}
providers:
  hangs: { adapter: hangs }
  takes: { adapter: takes }
models:${models.join('')}
`;

beforeAll(async () => {
  png = await sampleImage('png', 40, 30);
  const poll = async () => ({ phase: 'failed', type: 'upstream_error', message: 'never accepted' }) as const;
  const done: RunState = { phase: 'done', files: [{ bytes: png }] };
  const serves = (kind: string) => kind !== 'chat';
  const hangs: Adapter = {
    serves,
    open: () => ({
      poll,
      start: async () => {
        await new Promise<void>((resolve) => hanging.push(resolve));
        return done;
      },
    }),
  };
  /** As connections are: whoever begins with one that was closed is told nothing of what became of it. */
  const takes: Adapter = {
    serves,
    open: () => {
      let is_open = true;
      return {
        media: 'data',
        poll,
        start: async () => {
          if (is_open) return done;
          throw new Error('The client is destroyed');
        },
        close: async () => {
          is_open = false;
        },
      };
    },
  };
  const adapters = { hangs, takes };
  service = await startTestApp({ yaml: yaml(), adapters, env: { MEDLEY_ALLOW_PRIVATE: '1' } });
});
afterAll(async () => {
  for (const end of hanging) end();
  await expectExactBooks(service.app);
  await service.stop();
});

it('an upstream that delays a hundred submits delays the start of no other task', async () => {
  const [patient, quick] = [await service.client(), await service.client()];
  await Promise.all(
    Array.from({ length: 100 }, () => patient.call('POST', '/v1/generate', { model: 'test/hangs', input: {} })),
  );
  await expect.poll(() => hanging.length, { timeout: 120_000 }).toBe(100);
  const { json } = await quick.call('POST', '/v1/generate?wait=120', { model: 'test/takes', input: {} });
  expect(json.status).toBe('succeeded');
  for (const end of hanging.splice(0)) end();
});

it('an account whose submits all hang leaves half of the slots to others and gets its own turn', async () => {
  const [patient, quick] = [await service.client(), await service.client()];
  const count = 600; // half of the places are 512
  // 600 at once are more than a busy machine takes in time: it says so, and is asked again.
  const create = async () => {
    for (;;) {
      const answer = await patient.call('POST', '/v1/generate', { model: 'test/hangs', input: {} });
      if (answer.status !== 503) return answer;
      expect(answer.headers.get('retry-after')).toMatch(/^\d+$/);
      await sleep(100);
    }
  };
  const tasks = await Promise.all(Array.from({ length: count }, create));
  expect(tasks.map(({ status }) => status)).toEqual(Array.from({ length: count }, () => 202));
  await expect.poll(() => hanging.length).toBe(512);
  const { json } = await quick.call('POST', '/v1/generate?wait=120', { model: 'test/takes', input: {} });
  expect(json.status).toBe('succeeded');
  expect(hanging).toHaveLength(512);
  const ended = async () => {
    for (const end of hanging.splice(0)) end();
    const { json: list } = await patient.call('GET', '/v1/balance');
    return list.held.amount;
  };
  await expect.poll(ended, { timeout: 120_000, interval: 200 }).toBe('0.00');
  const rows = await service.app.db.query<{ count: string }>(
    `select count(*) from tasks where account_id = $1 and status = 'succeeded'`,
    [patient.account_id],
  );
  expect(Number(rows[0]?.count)).toBe(count);
});

it('a reload while the files of an input are fetched breaks nothing', async () => {
  const request_arrived = Promise.withResolvers<() => void>();
  const server = createServer((_request, response) => request_arrived.resolve(() => response.end(png))).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  const client = await service.client();
  const image = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a.png`;
  const { json } = await client.call('POST', '/v1/generate', { model: 'test/takes', input: { images: [image] } });
  const answer = await request_arrived.promise;
  await service.configure(yaml('files: { file_mb_max: 41 }'));
  const other = await client.call('POST', '/v1/generate?wait=120', { model: 'test/takes', input: {} });
  expect(other.json.status).toBe('succeeded'); // by a provider that was opened behind the reload
  answer();
  await expect
    .poll(async () => (await client.call('GET', `/v1/tasks/${json.id}`)).json.status, { timeout: 120_000 })
    .toBe('succeeded');
  server.close();
});

/** The time that the server of each link takes: four of them are more than the time of all. */
const answer_ms = 300;

it('several slow links of one input share one minute', async () => {
  const server = createServer((_request, response) => setTimeout(() => response.end(png), answer_ms)).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  const { app } = service;
  const client = await service.client();
  const { json } = await client.call('POST', '/v1/generate?wait=120', { model: 'test/takes', input: {} });
  const task = await findTask(app.db, json.id);
  const route = app.catalog.current.models.get('test/takes')?.routes[0];
  const provider = app.providers.get('takes');
  assert(task && route && provider, 'it has run');
  const links = [1, 2, 3, 4].map((n) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/${n}.png`);
  const prepared = (fetch_ms: number) =>
    withInput(
      app,
      task,
      JSON.stringify({ images: links }),
      { route, provider, stopped: AbortSignal.timeout(30_000), fetch_ms },
      async (inserted) => (inserted instanceof Error ? inserted : inserted.input),
    );
  expect(await prepared(700)).toMatchObject({
    name: 'InputRefused',
    message: expect.stringMatching(/^input\.images\[\d\] cannot be fetched: /), // the third, on a machine that has time
  });
  expect(await prepared(20_000)).toMatchObject({
    images: Array.from({ length: 4 }, () => expect.stringMatching(/^data:/)),
  });
  server.close();
});

it('an account may have sixteen files waiting to be measured, and more are refused with Retry-After', async () => {
  const client = await service.client();
  const create = (bytes: Buffer) =>
    client.call('POST', '/v1/generate', {
      model: 'test/takes',
      input: { images: [writeDataUrl({ content_type: 'image/png', bytes })] },
    });
  const { caller_files } = service.app.limits;
  const permit = await caller_files.acquire(client.account_id); // as a file has it that is measured for long
  const refused: Answered[] = [];
  const answers = Array.from({ length: 18 }, async () => {
    const answer = await create(png);
    if (answer.status !== 202) refused.push(answer);
  });
  await expect.poll(() => [caller_files.waiting(client.account_id), refused.length]).toEqual([16, 2]);
  permit?.release();
  await Promise.all(answers);
  expect(refused.map(({ status, json }) => [status, json.error.type])).toEqual([
    [429, 'rate_limit'],
    [429, 'rate_limit'],
  ]);
  expect(refused[0]?.headers.get('retry-after')).toBe('1');
  const stuck = await create(flac(20).subarray(0, 43)); // the parser reads it without end, for 1.5 s, twice
  expect(stuck.json.error).toMatchObject({ param: 'input.images[0]' });
});
