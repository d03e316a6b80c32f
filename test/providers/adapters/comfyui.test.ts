import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { writeDataUrl } from '../../../src/lib/data-url.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { comfyui } from '../../../src/providers/adapters/comfyui/adapter.ts';
import type { Json, Provider, RunRequest } from '../../../src/providers/provider.ts';
import { prober } from '../../helpers/prober.ts';
import { bytesOf, conformance, expectOutcome, runOf, runToEnd } from '../conformance.ts';
import { startComfyUi, type ComfyUi } from '../imitations/comfyui/server.ts';
import { inpaint, textToImage, textToVideo } from '../imitations/comfyui/workflows.ts';
import { sampleFile } from '../imitations/imitation.ts';
import { configOf, never, secret } from '../upstreams.ts';

const inputs = {
  prompt: 'Positive.text',
  negative_prompt: '7.text',
  size: { width: 'Empty Latent Image.width', height: '5.height' },
  steps: 'KSampler.steps',
  seed: 'KSampler.seed',
  sampler: '3.sampler_name',
};

const run = { kind: 'image' as const, model: 'portrait', input: { prompt: 'A bay' } };
const options: JsonObject = { workflow: textToImage(), inputs };

const refused = (
  node_errors: object,
  error: object = {
    type: 'prompt_outputs_failed_validation',
    message: 'Prompt outputs failed validation',
    details: '',
  },
) => ({
  status: 400,
  json: { error, node_errors },
});
const nodeError = (type: string, message: string, details: string, input_name: string) => ({
  errors: [{ type, message, details, extra_info: { input_name } }],
  dependent_outputs: ['9'],
  class_type: 'KSampler',
});
conformance({
  name: 'comfyui',
  adapter: comfyui,
  imitate: startComfyUi,
  run: { ...run, input: { prompt: 'A bay', seed: 7, size: '1024x768' }, options },
  submit: {
    method: 'POST',
    path: '/prompt',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
  },
  refusals: [
    [
      'a field of the caller is out of its range',
      refused({ '3': nodeError('value_bigger_than_max', 'Value 20000 bigger than max of 10000', 'steps', 'steps') }),
      { refused: 'invalid_request', message: /^steps: Value 20000 bigger than max of 10000$/ },
    ],
    [
      'a field of the caller by another name',
      refused({
        '3': nodeError('value_not_in_list', 'Value not in list', "sampler_name: 'x' not in ['euler']", 'sampler_name'),
      }),
      { refused: 'invalid_request', message: /^sampler: Value not in list \('x' not in \['euler'\]\)$/ },
    ],
    [
      'a model file of the workflow is not there',
      refused({ '4': nodeError('value_not_in_list', 'Value not in list', "ckpt_name: 'a' not in []", 'ckpt_name') }),
      { not_started: 'refused' },
    ],
    [
      'a node is not installed',
      refused({}, { type: 'missing_node_type', message: "Node 'Foo' not found.", details: "Node ID '#3'" }),
      { not_started: 'refused' },
    ],
    [
      'an answer of an old version',
      { status: 400, json: { error: 'no prompt', node_errors: [] } },
      { refused: 'invalid_request' },
    ],
  ],
  polls: [
    ['the queue is another thing', { poll: [{ json: {} }, { json: { queue_running: 7 } }] }, 'unknown'],
    [
      'unknown for a moment',
      { poll: [{ json: {} }, { json: { queue_running: [], queue_pending: [] } }] },
      { phase: 'waiting' },
    ],
  ],
  cancel: { method: 'POST', path: /^\/queue$/ },
  cancels: [['that does nothing: the run stays in the queue', { text: '' }, 'billed']],
});

describe('comfyui', () => {
  let comfy: ComfyUi;
  let provider: Provider;
  beforeEach(async () => {
    comfy = await startComfyUi();
    provider = open();
  });
  afterEach(async () => {
    await comfy.stop();
    await provider.close?.();
  });
  const open = (more: object = {}) =>
    comfyui.open(configOf('comfyui', `${comfy.url}/`, more), { guard: openGuard(), prober });
  const request = (input: JsonObject, more: Partial<RunRequest> = {}) => runOf({ ...run, input, options, ...more });
  const promptsOf = () => comfy.machine.accepted.map(({ prompt }) => prompt);
  const valueAt = (index: number, node: string, field: string): Json => {
    const prompt = promptsOf()[index]?.[node];
    return (prompt as { inputs: JsonObject }).inputs[field] ?? null;
  };
  const refOf = async (run_request: RunRequest): Promise<Json> => {
    const state = await provider.start(run_request, never);
    if (!('ref' in state)) throw new Error('it is over');
    return state.ref;
  };
  const polled = async (run_request: RunRequest, ref: Json, times: number) => {
    let state = await provider.poll(run_request, ref, never);
    for (let polls = 1; polls < times && 'ref' in state; polls++)
      state = await provider.poll(run_request, state.ref, never);
    return state;
  };

  it('puts the input into the fields that the options name, by id and by title, and leaves all others', async () => {
    await provider.start(
      request({ prompt: 'A bay', negative_prompt: null, size: '1024x768', steps: 30, seed: 7, sampler: 'dpmpp_2m' }),
      never,
    );
    const expected = textToImage() as Record<string, { inputs: JsonObject }>;
    Object.assign(expected['6']?.inputs ?? {}, { text: 'A bay' });
    Object.assign(expected['5']?.inputs ?? {}, { width: 1024, height: 768 });
    Object.assign(expected['3']?.inputs ?? {}, { steps: 30, seed: 7, sampler_name: 'dpmpp_2m' });
    expect(promptsOf()).toEqual([expected]);
  });

  it('draws another seed for each task, and the same one for the same task', async () => {
    for (const task_id of ['task_1', 'task_2', 'task_1']) {
      await provider.start(request({ prompt: 'A bay' }, { task_id }), never);
    }
    const [first, second] = [valueAt(0, '3', 'seed'), valueAt(1, '3', 'seed')];
    expect(first).not.toBe(second);
    expect(first).toBeGreaterThanOrEqual(0);
    expect(comfy.machine.accepted).toHaveLength(2); // the third start found the run of the first
    const fixed = request({ prompt: 'A bay' }, { task_id: 'task_3', options: { ...options, seed: 'fixed' } });
    await provider.start(fixed, never);
    expect(valueAt(2, '3', 'seed')).toBe(156_680_208_700_286);
  });

  it.each([
    ['the old id', true],
    ['our id', false],
  ])('a start whose answer was lost is found again by %s, not run twice', async (_, is_old) => {
    comfy.machine.is_old = is_old;
    comfy.instead('submit', 'cut');
    const run_request = request({ prompt: 'A bay' });
    await expectOutcome(provider.start(run_request, never), 'unknown');
    expect(comfy.machine.accepted).toHaveLength(0); // the imitation is cut before it reads
    comfy.machine.submit(comfy.requestsFor('submit')[0]?.json ?? {});
    const end = await runToEnd(provider, run_request);
    expect(end).toMatchObject({ phase: 'done', files: [{}] });
    expect(comfy.machine.accepted).toHaveLength(1);
    expect(comfy.requestsFor('submit')).toHaveLength(1);
  });

  it('a start after the run has ended finds its result', async () => {
    const run_request = request({ prompt: 'A bay' });
    await runToEnd(provider, run_request);
    expect(await runToEnd(provider, run_request)).toMatchObject({ phase: 'done', files: [{}] });
    expect(comfy.machine.accepted).toHaveLength(1);
  });

  it('uploads pictures and masks, each file once, and puts their names into the nodes that load them', async () => {
    const image = await sampleFile('image');
    const url = writeDataUrl({ content_type: 'image/png', bytes: image });
    const own = {
      workflow: inpaint(),
      inputs: { prompt: 'Positive.text', image: 'Picture.image', mask: 'Mask.image' },
    };
    const end = await runToEnd(provider, request({ prompt: 'Snow', image: url, mask: url }, { options: own }));
    expect(end).toMatchObject({ phase: 'done' });
    const name = valueAt(0, '10', 'image');
    expect(name).toMatch(/^medley\/[0-9a-f]{32}\.png$/);
    expect(valueAt(0, '11', 'image')).toBe(name);
    expect(comfy.machine.files.get(`input/${String(name)}`)).toEqual(image);
    expect(comfy.requestsFor('upload').every(({ headers }) => headers.authorization === `Bearer ${secret}`)).toBe(true);
  });

  it.each<[string, JsonObject, RegExp]>([
    ['a name in the place of a file', { prompt: 'x', image: '../../secret.png' }, /^image: must be a file\.$/],
    ['a link to another node', { prompt: ['4', 0] }, /^prompt: takes at most 1 item\.$/],
    ['a link within a list', { prompt: [['4', 0]] }, /^prompt: must be a text, a number, true or false\.$/],
    ['an object', { prompt: { __value__: ['4', 0] } }, /^prompt: must be a text/],
    ['a size that is none', { prompt: 'x', size: 'large' }, /^size: must be a size such as 1024x768\.$/],
  ])('refuses %s from a caller, and asks nobody', async (_, input, message) => {
    const own = {
      workflow: { ...inpaint(), '5': { class_type: 'EmptyLatentImage', inputs: { width: 1, height: 1 } } },
      inputs: { prompt: 'Positive.text', image: 'Picture.image', size: { width: '5.width', height: '5.height' } },
    };
    await expectOutcome(provider.start(request(input, { options: own }), never), {
      refused: 'invalid_request',
      message,
    });
    expect(comfy.requests).toEqual([]);
  });

  it('starts nothing with a field that the options forget, or with options that are wrong', async () => {
    await expectOutcome(provider.start(request({ prompt: 'x', tempo: 3 }), never), { not_started: 'refused' });
    await expectOutcome(provider.start(request({ prompt: 'x' }, { options: { workflow: {} } }), never), {
      not_started: 'refused',
    });
    await expectOutcome(provider.start(request({ prompt: 'x' }, { options: {} }), never), { not_started: 'refused' });
    expect(comfy.requestsFor('submit')).toEqual([]);
  });

  it('names the field of the input that the machine refuses, by its own check', async () => {
    await expectOutcome(provider.start(request({ prompt: 'x', size: '8x512', steps: 20_000 }), never), {
      refused: 'invalid_request',
      message: /^steps: Value 20000 bigger than max of 10000; size: Value 8 smaller than min of 16$/,
    });
    const broken = {
      ...options,
      workflow: { ...textToImage(), '4': { class_type: 'CheckpointLoaderSimple', inputs: { ckpt_name: 'gone' } } },
    };
    await expectOutcome(provider.start(request({ prompt: 'x' }, { options: broken }), never), {
      not_started: 'refused',
    });
  });

  it('a run waits behind others, is at work, and is done', async () => {
    const first = request({ prompt: 'a' });
    const second = request({ prompt: 'b' }, { task_id: 'task_2' });
    comfy.machine.holds = 'working';
    const [ref, ref_2] = [await refOf(first), await refOf(second)];
    await polled(first, ref, 2);
    expect(await polled(first, ref, 2)).toMatchObject({ phase: 'running' });
    expect(await polled(second, ref_2, 2)).toMatchObject({ phase: 'waiting' });
    comfy.machine.holds = undefined;
    expect(await polled(second, ref_2, 6)).toMatchObject({ phase: 'done' });
  });

  it('a run in the queue is taken out of it, and no other', async () => {
    comfy.machine.holds = 'queued';
    const run_request = request({ prompt: 'a' });
    const ref = await refOf(run_request);
    await refOf(request({ prompt: 'b' }, { task_id: 'task_2' }));
    expect(await provider.cancel?.(run_request, ref, never)).toBe('stopped');
    expect(comfy.machine.pending.map(({ number }) => number)).toEqual([1]);
    expect(comfy.requestsFor('cancel').map(({ path }) => path)).toEqual(['/queue']);
  });

  it('a run at work is interrupted by its id; the one that runs after it is not', async () => {
    comfy.machine.holds = 'working';
    const run_request = request({ prompt: 'a' });
    const ref = await refOf(run_request);
    expect(await polled(run_request, ref, 3)).toMatchObject({ phase: 'running' });
    expect(await provider.cancel?.(run_request, ref, never)).toBe('stopped');
    expect(comfy.requestsFor('cancel').map(({ path, json }) => [path, json])).toEqual([
      ['/queue', { delete: [comfy.machine.accepted[0]?.id] }],
      ['/interrupt', { prompt_id: comfy.machine.accepted[0]?.id }],
    ]);
    await expectOutcome(provider.poll(run_request, ref, never), {
      phase: 'failed',
      type: 'upstream_error',
      message: /stopped on its machine/,
    });
    const next = request({ prompt: 'b' }, { task_id: 'task_2' });
    const next_ref = await refOf(next);
    await polled(next, next_ref, 3);
    expect(await provider.cancel?.(run_request, ref, never)).toBe('stopped'); // it is stopped already
    expect(await polled(next, next_ref, 1)).toMatchObject({ phase: 'running' });
  });

  it('a run that has ended cannot be stopped any more', async () => {
    const run_request = request({ prompt: 'a' });
    const ref = await refOf(run_request);
    await polled(run_request, ref, 5);
    expect(await provider.cancel?.(run_request, ref, never)).toBe('billed');
  });

  it('a machine that was started again has lost its runs: one that waited may go elsewhere, one at work has failed', async () => {
    comfy.machine.holds = 'working';
    const first = request({ prompt: 'a' });
    const second = request({ prompt: 'b' }, { task_id: 'task_2' });
    const [ref, ref_2] = [await refOf(first), await refOf(second)];
    const running = await polled(first, ref, 3);
    if (!('ref' in running)) throw new Error('it is over');
    comfy.machine.restart();
    const [late, late_2] = [await provider.poll(first, running.ref, never), await provider.poll(second, ref_2, never)];
    if (!('ref' in late) || !('ref' in late_2)) throw new Error('it is over');
    const now_ms = first.now_ms + 10_000;
    await expectOutcome(provider.poll({ ...first, now_ms }, late.ref, never), {
      phase: 'failed',
      type: 'upstream_error',
      message: /lost the run/,
    });
    await expectOutcome(provider.poll({ ...second, now_ms }, late_2.ref, never), { not_started: 'unavailable' });
  });

  it('a full disk is the trouble of the machine: at an upload another route may be tried, at the end the run has failed', async () => {
    comfy.machine.is_disk_full = true;
    const url = writeDataUrl({ content_type: 'image/png', bytes: await sampleFile('image') });
    const own = { workflow: inpaint(), inputs: { prompt: 'Positive.text', image: ['Picture.image', 'Mask.image'] } };
    await expectOutcome(provider.start(request({ prompt: 'x', image: url }, { options: own }), never), {
      not_started: 'unavailable',
    });
    expect(await runToEnd(provider, request({ prompt: 'x' }))).toMatchObject({
      phase: 'failed',
      type: 'upstream_error',
      message: 'The model provider could not finish the run.',
      upstream_words: 'node 9 (SaveImage): OSError: [Errno 28] No space left on device',
    });
  });

  it.each([
    [
      'memory',
      { node: '3', exception_type: 'torch.OutOfMemoryError', exception_message: 'Allocation on device' },
      { type: 'upstream_error' },
    ],
    [
      'a picture of the caller that is none',
      { node: '10', exception_type: 'PIL.UnidentifiedImageError', exception_message: 'cannot identify image file' },
      { type: 'invalid_request', message: 'image: the file cannot be read.' },
    ],
    [
      'a node of a paid provider that moderates',
      { node: '6', exception_type: 'Exception', exception_message: 'Content moderation: flagged' },
      { type: 'content_policy_violation' },
    ],
  ])('a run that fails for %s says so', async (_, fault, expected) => {
    comfy.machine.fault = fault;
    const url = writeDataUrl({ content_type: 'image/png', bytes: await sampleFile('image') });
    const own = { workflow: inpaint(), inputs: { prompt: 'Positive.text', image: ['Picture.image', 'Mask.image'] } };
    expect(await runToEnd(provider, request({ prompt: 'x', image: url }, { options: own }))).toMatchObject({
      phase: 'failed',
      ...expected,
    });
  });

  it('takes the saved video and not its preview; the named nodes where they are named; a preview where nothing is saved', async () => {
    const workflow = textToVideo();
    const inputs_of_video = { prompt: 'Positive.text' };
    const outcome = await runToEnd(
      provider,
      request({ prompt: 'x' }, { kind: 'video', options: { workflow, inputs: inputs_of_video } }),
    );
    if (outcome.phase !== 'done' || !outcome.files[0]) throw new Error('no file');
    expect(outcome.files).toHaveLength(1);
    expect(await bytesOf(outcome.files[0])).toEqual(await sampleFile('video'));
    const named = { workflow, inputs: inputs_of_video, outputs: 'Preview' };
    const preview = await runToEnd(provider, request({ prompt: 'x' }, { options: named }));
    expect(preview).toMatchObject({ phase: 'done', files: [{ url: expect.stringMatching(/type=temp/) }] });
    const { '20': _, ...unsaved } = workflow;
    const shown = await runToEnd(
      provider,
      request({ prompt: 'y' }, { options: { workflow: unsaved, inputs: inputs_of_video } }),
    );
    expect(shown).toMatchObject({ phase: 'done', files: [{ url: expect.stringMatching(/type=temp/) }] });
  });

  it('a file that is gone from the machine is a dead link', async () => {
    const end = await runToEnd(provider, request({ prompt: 'x' }));
    if (end.phase !== 'done' || !end.files[0]) throw new Error('no file');
    comfy.machine.files.clear();
    await expect(bytesOf(end.files[0])).rejects.toThrow(/404/);
  });

  it('finds everything below the path of its address', async () => {
    await provider.close?.();
    provider = comfyui.open(configOf('comfyui', `${comfy.url}/api/`), { guard: openGuard(), prober });
    const url = writeDataUrl({ content_type: 'image/png', bytes: await sampleFile('image') });
    const own = { workflow: inpaint(), inputs: { prompt: 'Positive.text', image: ['Picture.image', 'Mask.image'] } };
    const end = await runToEnd(provider, request({ prompt: 'x', image: url }, { options: own }));
    if (end.phase !== 'done' || !end.files[0]) throw new Error('no file');
    await bytesOf(end.files[0]);
    expect(comfy.requests.every(({ path }) => path.startsWith('/api/'))).toBe(true);
    expect(comfy.requestsFor('other')).toEqual([]);
  });

  it('sends the headers and the query of its provider with every request, and for results to its own origin only', async () => {
    await provider.close?.();
    provider = comfyui.open(
      {
        name: 'p',
        adapter: 'comfyui',
        base_url: comfy.url,
        allow_private: true,
        headers: { authorization: 'Basic YTpi' },
        query: { token: 't1' },
      },
      { guard: openGuard(), prober },
    );
    const end = await runToEnd(provider, request({ prompt: 'x' }));
    if (end.phase !== 'done' || !end.files[0]) throw new Error('no file');
    await bytesOf(end.files[0]);
    expect(comfy.requests.map(({ headers, query }) => [headers.authorization, query['token']])).toEqual(
      comfy.requests.map(() => ['Basic YTpi', 't1']),
    );
    expect(comfy.requestsFor('file')).toHaveLength(1);
  });
});
