import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { writeDataUrl } from '../../src/lib/data-url.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';
import { startBfl } from './imitations/bfl.ts';
import { sampleFile, type Imitation, type Reply } from './imitations/imitation.ts';
import { startKling } from './imitations/kling.ts';
import { startLuma } from './imitations/luma.ts';
import { startMinimax } from './imitations/minimax.ts';
import { startRunway } from './imitations/runway.ts';

/** The adapters whose runs wait in a queue of the provider's and are polled, in the whole service. */

const names = ['bfl', 'runway', 'luma', 'kling', 'minimax'] as const;
type Name = (typeof names)[number];

const base_paths: Record<Name, string> = { bfl: '', runway: '', luma: '/v1', kling: '', minimax: '' };

let upstreams: Record<Name, Imitation>;
let service: TestApp;
let client: Client;

const often = 'poll: { first: 20ms, max: 50ms }';
const schema = `input_schema:
      type: object
      required: [prompt]
      properties:
        prompt: { type: string }
        image: { type: string, x-media: image }
        duration: { type: integer, default: 5 }`;

const kling_route = `
      - provider: kling
        upstream_model: kling-v2-6
        ${often}
        input: { prompt: $input.prompt, image: $input.image, duration: $input.duration }
        options: { credit_price: "0.14" }`;
const runway_route = `
      - provider: runway
        upstream_model: gen4.5
        ${often}
        input: { promptText: $input.prompt, promptImage: [{ uri: $input.image, position: first }], duration: $input.duration }`;
const luma_route = `
      - provider: luma
        upstream_model: ray-3.2
        ${often}
        input: { prompt: $input.prompt, video: { duration: 5s, start_frame: { url: $input.image } } }`;
const minimax_route = `
      - provider: minimax
        upstream_model: MiniMax-H3
        ${often}
        input: { prompt: $input.prompt, first_frame_image: $input.image, duration: $input.duration }`;

const videoModel = (id: string, routes: string) => `
  - id: ${id}
    kind: video
    ${schema}
    price: [{ unit: second, amount: "0.20" }]
    estimate: { second: $input.duration }
    routes: ${routes}`;

const fileOf = (urls: Record<Name, Imitation>) => `
version: 1
sandbox: false
${limits()}
providers:${names
  .map((name) => {
    const base_url = urls[name].url + base_paths[name];
    return `
  ${name}: { adapter: ${name}, base_url: "${base_url}", api_key: env:TEST_QUEUED_KEY, allow_private: true }`;
  })
  .join('')}
models: ${videoModel('kling', kling_route)} ${videoModel('runway', runway_route)} ${videoModel('luma', luma_route)} ${videoModel('minimax', minimax_route)}
  ${videoModel('any', kling_route + runway_route + luma_route + minimax_route)}
  - id: picture
    kind: image
    ${schema}
    price: [{ unit: image, amount: "0.06" }]
    routes:
      - { provider: bfl, upstream_model: flux-2-pro, ${often}, input: { prompt: $input.prompt, input_image: $input.image } }
  - id: speech
    kind: audio
    ${schema}
    price: [{ unit: character, per: 1000, amount: "0.10" }]
    estimate: { character: 100 }
    routes:
      - { provider: minimax, upstream_model: speech-2.8-hd, input: { text: $input.prompt, voice_setting: { voice_id: a } } }
`;

beforeAll(async () => {
  process.env['TEST_QUEUED_KEY'] = 'access-01:secret-01';
  const [bfl, runway, luma, kling, minimax] = await Promise.all([
    startBfl(),
    startRunway(),
    startLuma(),
    startKling(),
    startMinimax(),
  ]);
  upstreams = { bfl, runway, luma, kling, minimax };
  service = await startTestApp({ yaml: fileOf(upstreams) });
  client = await service.client();
});
beforeEach(async () => {
  await service.app.db.query('delete from route_health');
  for (const name of names) upstreams[name].requests.length = 0;
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
  for (const name of names) await upstreams[name].stop();
});

async function generate(model: string, input: object = { prompt: 'A bay' }) {
  const created = await client.call('POST', '/v1/generate?wait=60', { model, input });
  expect(created.status, created.text).toBe(202);
  return created.json;
}

/** Returns the recorded attempts of a task: their final states and their costs for us. */
async function attemptsOf(task: string): Promise<[string, string | null][]> {
  const rows = await service.app.db.query<{ state: string; upstream_cost: string | null }>(
    'select state, upstream_cost from attempts where task_id = $1 order by number',
    [task],
  );
  return rows.map(({ state, upstream_cost }) => [state, upstream_cost]);
}

const submitsOf = (name: Name) => upstreams[name].requestsFor('submit');

describe('a task of a queued provider', () => {
  const runs: [string, string, string | null][] = [
    ['picture', 'image', '0.045 USD'], // 4.5 credits
    ['runway', 'video', '0.6 USD'], // 60 credits
    ['luma', 'video', null], // tells nothing
    ['kling', 'video', '0.21 USD'], // 1.5 units
    ['minimax', 'video', null],
    ['speech', 'audio', null],
  ];
  it.each(runs)('is stored, measured and charged: %s', async (model, type, cost) => {
    const task = await generate(model);
    expect(task).toMatchObject({ status: 'succeeded', output: [{ type }] });
    const price = { image: '0.060000', audio: '0.002600', video: '0.200000' }[type]; // 26 characters were counted
    expect(task.cost.exact).toBe(price);
    expect(await attemptsOf(task.id)).toEqual([['done', cost]]);
  });

  it('sends an image of the caller in the form that each provider expects', async () => {
    const bytes = await sampleFile('image');
    const base64 = bytes.toString('base64');
    const image = writeDataUrl({ content_type: 'image/png', bytes });
    for (const model of ['picture', 'runway', 'luma', 'kling', 'minimax'])
      expect(await generate(model, { prompt: 'A bay', image })).toMatchObject({ status: 'succeeded' });
    expect(submitsOf('bfl')[0]?.json).toMatchObject({ input_image: base64 });
    expect(submitsOf('runway')[0]).toMatchObject({
      path: '/v1/image_to_video',
      json: { promptImage: [{ uri: image, position: 'first' }] },
    });
    expect(submitsOf('luma')[0]?.json).toMatchObject({
      video: { start_frame: { data: base64, media_type: 'image/png' } },
    });
    expect(submitsOf('kling')[0]).toMatchObject({
      path: '/v1/videos/image2video',
      json: { image: base64, duration: '5' },
    });
    expect(submitsOf('minimax')[0]?.json).toMatchObject({ content: [{ type: 'text' }, { image_url: { url: image } }] });
  });
});

describe('a task that does not start', () => {
  it('goes from a route that refuses, past one that drops it, to the next one', async () => {
    const depleted: Reply = { status: 429, json: { code: 1102, message: 'Resource pack depleted' } };
    const unprepared = { id: 'a', status: 'FAILED', failureCode: 'INPUT_PREPROCESSING.INTERNAL' };
    upstreams.kling.instead('submit', depleted);
    upstreams.runway.instead('poll', { json: { id: 'a', status: 'THROTTLED' } }, { json: unprepared });
    const task = await generate('any');
    expect(task).toMatchObject({ status: 'succeeded', cost: { exact: '0.200000' } });
    expect((await attemptsOf(task.id)).map(([state]) => state)).toEqual(['not_started', 'not_started', 'done']);
    expect(names.map((name) => submitsOf(name).length)).toEqual([0, 1, 1, 1, 0]);
  });

  it('counts an error code within a 200, and a run that expires in the queue, as a refusal', async () => {
    upstreams.minimax.instead('submit', {
      json: { base_resp: { status_code: 1008, status_msg: 'insufficient balance' } },
    });
    expect(await generate('minimax')).toMatchObject({ status: 'failed', error: { type: 'upstream_error' } });
    await service.app.db.query('delete from route_health');
    upstreams.minimax.instead('poll', { json: { task: { id: '1', status: 'expired' } } });
    const task = await generate('minimax');
    expect(task).toMatchObject({ status: 'failed', cost: { exact: '0.000000' } });
    expect((await attemptsOf(task.id)).map(([state]) => state)).toEqual(['not_started']);
  });
});

describe('a blocked task costs nothing, and no other route is tried', () => {
  const unfit: [string, Name, 'submit' | 'poll', object][] = [
    ['the prompt', 'kling', 'submit', { code: 1301, message: 'Not allowed by the content security policy' }],
    [
      'the result',
      'kling',
      'poll',
      { code: 0, data: { task_status: 'failed', task_status_msg: 'Failure to pass the risk control system' } },
    ],
  ];
  it.each(unfit)('for %s', async (_, name, role, json) => {
    upstreams[name].instead(role, { json });
    const task = await generate('any');
    expect(task).toMatchObject({
      status: 'failed',
      error: { type: 'content_policy_violation' },
      cost: { exact: '0.000000' },
    });
    expect(names.map((each) => submitsOf(each).length)).toEqual([0, 0, 0, 1, 0]);
  });
});

describe('a submit whose response is lost', () => {
  it('is searched for when the provider accepts our own name for the run', async () => {
    upstreams.kling.instead('submit', 'cut');
    const answer = { task_id: '926484082518392851', task_status: 'processing' };
    upstreams.kling.instead('poll', { json: { code: 0, data: answer } });
    const done = {
      ...answer,
      task_status: 'succeed',
      task_result: { videos: [{ url: `${upstreams.kling.url}/kcdn/video` }] },
    };
    upstreams.kling.instead('poll', { json: { code: 0, data: done } });
    const task = await generate('any');
    expect(task).toMatchObject({ status: 'succeeded', output: [{ type: 'video' }] });
    expect(names.map((name) => submitsOf(name).length)).toEqual([0, 0, 0, 1, 0]);
    expect(upstreams.kling.requestsFor('poll')[0]?.path).toBe(`/v1/videos/text2video/${task.id}-kling-v2-6`);
  });

  it('is neither repeated nor sent elsewhere when it cannot be found', async () => {
    upstreams.runway.instead('submit', 'cut');
    const task = await generate('runway');
    expect(task).toMatchObject({ status: 'failed', error: { type: 'upstream_error' }, cost: { exact: '0.000000' } });
    expect(submitsOf('runway')).toHaveLength(1);
    expect((await attemptsOf(task.id)).map(([state]) => state)).toEqual(['ambiguous']);
  });
});

describe('a cancel', () => {
  it('stops a run in the queue unbilled', async () => {
    upstreams.runway.instead(
      'poll',
      ...Array.from({ length: 10_000 }, () => ({ json: { id: 'a', status: 'THROTTLED' } })),
    );
    const polled = upstreams.runway.nextRequest('poll');
    const created = await client.call('POST', '/v1/generate', { model: 'runway', input: { prompt: 'A bay' } });
    await polled;
    const cancelled = await client.call('POST', `/v1/tasks/${created.json.id}/cancel`, {});
    expect(cancelled.status, cancelled.text).toBe(200);
    expect(cancelled.json).toMatchObject({
      status: 'failed',
      error: { type: 'canceled' },
      cost: { exact: '0.000000' },
    });
    expect(upstreams.runway.requestsFor('cancel').map(({ method }) => method)).toEqual(['DELETE']);
  });
});
