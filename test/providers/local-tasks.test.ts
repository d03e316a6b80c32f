import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { writeDataUrl } from '../../src/lib/data-url.ts';
import { waitingOf } from '../../src/tasks/waiting.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { wav } from '../storage/samples.ts';
import { startWebUi, type WebUi } from './imitations/automatic1111.ts';
import { startComfyUi, type ComfyUi } from './imitations/comfyui/server.ts';
import { changedVoice, inpaint, textToImage } from './imitations/comfyui/workflows.ts';
import { sampleFile } from './imitations/imitation.ts';

/** Models on machines of the operator's, in the whole service. */

let comfy: ComfyUi;
let web_ui: WebUi;
let service: TestApp;
let client: Client;
const folder = mkdtempSync(join(tmpdir(), 'medley-workflows-'));

const fileOf = () => `
version: 1
sandbox: false
providers:
  studio: { adapter: comfyui, base_url: "${comfy.url}", allow_private: true }
  webui: { adapter: automatic1111, base_url: "${web_ui.url}", allow_private: true }
models:
  - id: portrait
    kind: image
    input_schema:
      type: object
      required: [prompt]
      additionalProperties: false
      properties: { prompt: { type: string }, steps: { type: integer }, size: { type: string, default: 768x512 } }
    price: [{ unit: image, amount: "0.01" }]
    routes:
      - provider: studio
        poll: { first: 20ms, max: 50ms }
        options:
          workflow: ${join(folder, 'portrait.json')}
          inputs: { prompt: Positive.text, steps: KSampler.steps, size: { width: "5.width", height: "5.height" } }
  - id: inpaint
    kind: image
    input_schema:
      type: object
      properties:
        prompt: { type: string }
        image: { type: string, x-media: image }
        mask: { type: string, x-media: image }
    price: [{ unit: image, amount: "0" }]
    routes:
      - provider: studio
        poll: { first: 20ms, max: 50ms }
        options:
          workflow: ${join(folder, 'inpaint.json')}
          inputs: { prompt: Positive.text, image: Picture.image, mask: Mask.image }
  - id: hasty
    kind: image
    input_schema: { type: object, properties: { prompt: { type: string } } }
    price: [{ unit: image, amount: "0.01" }]
    routes:
      - provider: studio
        poll: { first: 20ms, max: 50ms }
        timeout: { start: 1500ms, total: 3s }
        options: { workflow: ${join(folder, 'portrait.json')}, inputs: { prompt: Positive.text } }
  - id: steady
    kind: image
    input_schema: { type: object, properties: { prompt: { type: string } } }
    price: [{ unit: image, amount: "0.01" }]
    routes:
      - provider: studio
        poll: { first: 20ms, max: 50ms }
        timeout: { start: 12s, total: 15s }
        options: { workflow: ${join(folder, 'portrait.json')}, inputs: { prompt: Positive.text } }
  - id: voice
    kind: audio
    input_schema: { type: object, properties: { audio: { type: string, x-media: audio } } }
    price: [{ unit: request, amount: "0.01" }]
    routes:
      - provider: studio
        poll: { first: 20ms, max: 50ms }
        options: { workflow: ${join(folder, 'voice.json')}, inputs: { audio: Voice.audio } }
  - id: dreamshaper
    kind: image
    input_schema: { type: object, required: [prompt], properties: { prompt: { type: string }, n: { type: integer, default: 1 } } }
    price: [{ unit: image, amount: "0.02" }]
    estimate: { image: $input.n }
    routes:
      - { provider: webui, upstream_model: dreamshaper_8.safetensors, timeout: { start: 60s } }
`;

beforeAll(async () => {
  [comfy, web_ui] = await Promise.all([startComfyUi(), startWebUi()]);
  writeFileSync(join(folder, 'portrait.json'), JSON.stringify(textToImage()));
  writeFileSync(join(folder, 'inpaint.json'), JSON.stringify(inpaint()));
  writeFileSync(join(folder, 'voice.json'), JSON.stringify(changedVoice()));
  service = await startTestApp({ yaml: fileOf() });
});
beforeEach(async () => {
  client = await service.client();
  comfy.machine.holds = undefined;
  comfy.machine.accepted.length = 0;
  web_ui.runs.length = 0;
});
afterEach(async () => {
  await service.app.db.query('delete from route_health');
  await expectExactBooks(service.app);
});
afterAll(async () => {
  await service.stop();
  await comfy.stop();
  await web_ui.stop();
  rmSync(folder, { recursive: true });
});

async function generate(model: string, input: object, wait = 120) {
  const created = await client.call('POST', `/v1/generate?wait=${wait}`, { model, input });
  expect(created.status, created.text).toBe(202);
  return created.json;
}

const read = async (id: string) => (await client.call('GET', `/v1/tasks/${id}`)).json;
const cancel = (id: string) => client.call('POST', `/v1/tasks/${id}/cancel`);

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  await expect.poll(holds, { timeout: 120_000, interval: 10 }).toBe(true);
}

async function balance(): Promise<string> {
  return (await client.call('GET', '/v1/balance')).json.available.exact;
}

describe('a task of a ComfyUI', () => {
  it('runs the workflow of the file, is stored and measured, and is charged by the price of the operator', async () => {
    const task = await generate('portrait', { prompt: 'A bay', steps: 30 });
    expect(task).toMatchObject({ status: 'succeeded', output: [{ type: 'image', width: 64, height: 64 }] });
    expect(task.cost.exact).toBe('0.010000');
    const [run] = comfy.machine.accepted;
    expect(run?.prompt).toMatchObject({
      '3': { inputs: { steps: 30 } },
      '5': { inputs: { width: 768, height: 512 } },
      '6': { inputs: { text: 'A bay' } },
    });
  });

  it('gets the files of the caller, and is free where the operator says so', async () => {
    const image = writeDataUrl({ content_type: 'image/png', bytes: await sampleFile('image') });
    const task = await generate('inpaint', { prompt: 'Snow', image, mask: image });
    expect(task).toMatchObject({ status: 'succeeded', cost: { exact: '0.000000' } });
    expect(comfy.requestsFor('upload').length).toBeGreaterThan(0);
  });

  it('waits for the one that is at work there, and starts after it', async () => {
    comfy.machine.holds = 'working';
    const first = await generate('portrait', { prompt: 'a' }, 0);
    await until(() => comfy.machine.running !== undefined);
    const second = await generate('portrait', { prompt: 'b' }, 0);
    const { account_id } = client;
    const waiting = () =>
      waitingOf(service.app.db, { account_id, task_id: second.id }, service.app.catalog.current.providers, new Date());
    await expect.poll(waiting).toEqual([{ provider: 'ComfyUI', place: 1, reason: 'waits for ComfyUI: 1 of 1 active' }]);
    expect(comfy.machine.accepted).toHaveLength(1);
    comfy.machine.holds = undefined;
    for (const { id } of [first, second]) await until(async () => (await read(id)).status === 'succeeded');
  });

  it.each(['queued', 'working'] as const)(
    'that is canceled while it is %s stops there, and costs nothing',
    async (where) => {
      comfy.machine.holds = where;
      const before = await balance();
      const task = await generate('portrait', { prompt: 'a' }, 0);
      await until(() => (where === 'queued' ? comfy.machine.pending.length > 0 : comfy.machine.running !== undefined));
      await until(
        async () =>
          (await service.app.db.query('select 1 from attempts where task_id = $1 and run_ref is not null', [task.id]))
            .length > 0,
      );
      const canceled = await cancel(task.id);
      expect(canceled.status, canceled.text).toBe(200);
      expect(canceled.json).toMatchObject({ status: 'failed', error: { type: 'canceled' } });
      expect([comfy.machine.pending, comfy.machine.running]).toEqual([[], undefined]);
      expect(await balance()).toBe(before);
    },
  );

  it('whose submit was cut off is looked up and goes on, once', async () => {
    // The machine takes it, and its answer is lost.
    comfy.instead('submit', 'cut');
    const lost = comfy.nextRequest('submit').then(({ json }) => comfy.machine.submit(json));
    const task = await generate('portrait', { prompt: 'a' });
    await lost;
    expect(task).toMatchObject({ status: 'succeeded' });
    expect(comfy.machine.accepted).toHaveLength(1);
  });

  it.each([
    [
      'queued',
      'hasty',
      { type: 'upstream_error', message: 'The model could not be started on any route. Try again later.' },
    ],
    // It must be seen at work within the time that it has to start.
    ['working', 'steady', { type: 'timeout', message: 'The model did not finish in time.' }],
  ] as const)(
    'that hangs %s at the machine ends by its time limit, and is stopped there',
    async (where, model, error) => {
      comfy.machine.holds = where;
      const before = await balance();
      const task = await generate(model, { prompt: 'a' });
      expect(task).toMatchObject({ status: 'failed', error });
      await until(() => comfy.machine.pending.length === 0 && comfy.machine.running === undefined);
      expect(await balance()).toBe(before);
    },
  );

  it('whose file is gone from the machine is fetched again, and fails in the end at no cost', async () => {
    const before = await balance();
    comfy.machine.loses_files = true;
    const task = await generate('steady', { prompt: 'a' });
    comfy.machine.loses_files = false;
    expect(task).toMatchObject({ status: 'failed', output: [] });
    expect(comfy.requestsFor('file').length).toBeGreaterThan(1);
    expect(await balance()).toBe(before);
  });

  it('gets a file that is larger than what fits into one request, as it is', async () => {
    const recording = wav(450, 44_100);
    expect(recording.length).toBeGreaterThan(38_000_000);
    const form = new FormData();
    form.append('file', new Blob([new Uint8Array(recording)]), 'voice.wav');
    const headers = { authorization: `Bearer ${client.key}` };
    const uploaded = await fetch(`${service.url}/v1/files`, { method: 'POST', headers, body: form });
    const { id } = (await uploaded.json()) as { id: string };
    const task = await generate('voice', { audio: id });
    expect(task).toMatchObject({ status: 'succeeded', output: [{ type: 'audio' }] });
    const [name] = [...comfy.machine.files.keys()].filter((path) => path.endsWith('.wav') && path.startsWith('input/'));
    expect(comfy.machine.files.get(name ?? '')?.equals(recording)).toBe(true);
  });

  it('that the machine refuses for a value says which field it is', async () => {
    const task = await generate('portrait', { prompt: 'a', steps: 20_000 });
    expect(task).toMatchObject({
      status: 'failed',
      error: { type: 'invalid_request', message: 'steps: Value 20000 bigger than max of 10000' },
      cost: { exact: '0.000000' },
    });
  });
});

describe('a task of a web UI', () => {
  it('has the images of the answer, each at its price', async () => {
    const task = await generate('dreamshaper', { prompt: 'A bay', n: 2 });
    expect(task).toMatchObject({ status: 'succeeded', output: [{ type: 'image' }, { type: 'image' }] });
    expect(task.cost.exact).toBe('0.040000');
  });

  it('that is canceled at work ends first and is stopped then: its late answer changes nothing', async () => {
    const before = await balance();
    let release = () => {};
    web_ui.holdUntil(new Promise((resolve) => (release = resolve)));
    const submitted = web_ui.nextRequest('submit'); // it may come before the answer to our own request
    const task = await generate('dreamshaper', { prompt: 'a' }, 0);
    await submitted;
    const canceled = await cancel(task.id);
    expect(canceled.status, canceled.text).toBe(200);
    expect(canceled.json).toMatchObject({ status: 'failed', output: [], error: { type: 'canceled' } });
    expect(web_ui.runs).toMatchObject([{ end: 'interrupted' }]);
    const counted = await service.app.db.query('select counts_as_failure as counts from tasks where id = $1', [
      task.id,
    ]);
    expect(counted).toEqual([{ counts: true }]);
    release();
    web_ui.holdUntil(Promise.resolve());
    expect(await generate('dreamshaper', { prompt: 'b' })).toMatchObject({ status: 'succeeded' });
    expect(await read(task.id)).toEqual(canceled.json);
    expect(Number(before) - Number(await balance())).toBeCloseTo(0.02, 6);
  });

  it('whose connection was lost is not repeated: nobody knows what became of it, and it costs nothing', async () => {
    const before = await balance();
    web_ui.instead('submit', 'cut');
    const task = await generate('dreamshaper', { prompt: 'a' });
    expect(task).toMatchObject({
      status: 'failed',
      error: { type: 'upstream_error', message: expect.stringMatching(/^It is not known whether/) },
    });
    const rows = await service.app.db.query('select state from attempts where task_id = $1', [task.id]);
    expect(rows).toEqual([{ state: 'ambiguous' }]);
    expect(await balance()).toBe(before);
  });
});
