import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { writeDataUrl } from '../../../src/lib/data-url.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { automatic1111 } from '../../../src/providers/adapters/automatic1111/adapter.ts';
import type { Provider, RunRequest } from '../../../src/providers/provider.ts';
import { prober } from '../../helpers/prober.ts';
import { conformance, expectOutcome, runOf } from '../conformance.ts';
import { raised, startWebUi, type WebUi } from '../imitations/automatic1111.ts';
import { sampleFile } from '../imitations/imitation.ts';
import { configOf, never, secret } from '../upstreams.ts';

const run = { kind: 'image' as const, model: 'dreamshaper_8.safetensors', input: { prompt: 'A bay' } };

conformance({
  name: 'automatic1111',
  adapter: automatic1111,
  imitate: startWebUi,
  synchronous: true,
  run: { ...run, input: { prompt: 'A bay', steps: 30, size: '768x512', n: 2, negative_prompt: null } },
  submit: {
    method: 'POST',
    path: '/sdapi/v1/txt2img',
    headers: { authorization: `Bearer ${secret}` },
    json: {
      prompt: 'A bay',
      steps: 30,
      width: 768,
      height: 512,
      n_iter: 2,
      override_settings_restore_afterwards: false,
      override_settings: { sd_model_checkpoint: 'dreamshaper_8.safetensors' },
      force_task_id: 'task(medley-5f5d0823832735fd6288)',
      save_images: false,
      send_images: true,
    },
  },
  refusals: [
    [
      'a field is of a wrong type',
      {
        status: 422,
        json: { detail: [{ loc: ['body', 'steps'], msg: 'Input should be a valid integer', type: 'int_parsing' }] },
      },
      { refused: 'invalid_request', message: /^steps: Input should be a valid integer$/ },
    ],
    [
      'the API wants a password',
      { status: 401, json: { detail: 'Incorrect username or password' } },
      { not_started: 'rejected_credentials' },
    ],
    ['the checkpoint is gone', raised('RuntimeError', 500, '', "model 'x' not found"), { not_started: 'unavailable' }],
    ['its memory is full', raised('OutOfMemoryError', 500, '', 'CUDA out of memory.'), { not_started: 'unavailable' }],
    ['the API is switched off', { status: 404, json: { detail: 'Not Found' } }, { not_started: 'unavailable' }],
    [
      'its disk is full',
      raised('OSError', 500, '', '[Errno 28] No space left on device'),
      { not_started: 'unavailable' },
    ],
  ],
  cancels: [],
});

describe('automatic1111', () => {
  let web_ui: WebUi;
  let provider: Provider;
  beforeEach(async () => {
    web_ui = await startWebUi();
    provider = open();
  });
  afterEach(async () => {
    await web_ui.stop();
    await provider.close?.();
  });
  const open = (more: object = {}) =>
    automatic1111.open(configOf('automatic1111', `${web_ui.url}/`, more), { guard: openGuard(), prober });
  const request = (input: JsonObject, more: Partial<RunRequest> = {}) => runOf({ ...run, input, ...more });
  const submitted = () => web_ui.requestsFor('submit').map(({ path, json }) => ({ path, json }));
  const imageUrl = async () => writeDataUrl({ content_type: 'image/png', bytes: await sampleFile('image') });

  it('takes the images of the run, and neither the grid before them nor the maps of extensions behind them', async () => {
    const end = await provider.start(request({ prompt: 'A bay', n: 2 }), never);
    const bytes = await sampleFile('image');
    expect(end).toEqual({ phase: 'done', files: [{ bytes }, { bytes }] });
    const images = ['Z3JpZA==', bytes.toString('base64')];
    web_ui.instead('submit', { json: { images, info: JSON.stringify({ all_seeds: [1], index_of_first_image: 1 }) } });
    expect(await provider.start(request({ prompt: 'A bay' }), never)).toEqual({ phase: 'done', files: [{ bytes }] });
    web_ui.instead('submit', { json: { images: [images[1]], info: 'no JSON' } });
    expect(await provider.start(request({ prompt: 'A bay' }), never)).toEqual({ phase: 'done', files: [{ bytes }] });
  });

  it('changes an image, with a mask, by img2img', async () => {
    const image = await imageUrl();
    const end = await provider.start(request({ prompt: 'Snow', image, mask: image, denoising_strength: 0.5 }), never);
    expect(end).toMatchObject({ phase: 'done' });
    const base64 = (await sampleFile('image')).toString('base64');
    expect(submitted()).toMatchObject([
      { path: '/sdapi/v1/img2img', json: { init_images: [base64], mask: base64, denoising_strength: 0.5 } },
    ]);
    expect(submitted()[0]?.json).not.toHaveProperty('image');
  });

  it('adds the fields of the route, whose settings stand beside the checkpoint', async () => {
    const body = {
      alwayson_scripts: { ADetailer: { args: [true] } },
      override_settings: { CLIP_stop_at_last_layers: 2 },
      steps: 12,
    };
    await provider.start(request({ prompt: 'x', steps: 50 }, { options: { body } }), never);
    await provider.start(request({ prompt: 'x' }, { model: 'current' }), never);
    expect(submitted().map(({ json }) => [json['alwayson_scripts'], json['override_settings'], json['steps']])).toEqual(
      [
        [body.alwayson_scripts, { CLIP_stop_at_last_layers: 2, sd_model_checkpoint: run.model }, 12],
        [undefined, undefined, undefined],
      ],
    );
  });

  it.each<[string, JsonObject, RegExp]>([
    ['scripts', { prompt: 'x', script_name: 'Prompts from file' }, /^script_name: is not for callers\.$/],
    ['settings', { prompt: 'x', override_settings: { outdir_samples: '/etc' } }, /^override_settings: /],
    [
      'an address in the place of an image',
      { prompt: 'x', init_images: ['http://169.254.169.254/'] },
      /^init_images: must be a file\.$/,
    ],
    ['an address in the place of a mask', { prompt: 'x', image: 'x', mask: 'x' }, /must be a file\.$/],
    ['a size that is none', { prompt: 'x', size: 'large' }, /^size: must be a size such as 1024x768\.$/],
  ])('takes no %s from a caller, and asks nobody', async (_, input, message) => {
    await expectOutcome(provider.start(request(input), never), { refused: 'invalid_request', message });
    expect(web_ui.requests).toEqual([]);
  });

  it('names the field of the caller where the status says something else, and blames nobody else for it', async () => {
    await expectOutcome(provider.start(request({ prompt: 'x', sampler_name: 'Oiler' }), never), {
      refused: 'invalid_request',
      message: /^sampler_name: Sampler not found\.$/,
    });
    const image = writeDataUrl({ content_type: 'image/png', bytes: Buffer.from('none') });
    await expectOutcome(provider.start(request({ prompt: 'x', image }), never), {
      refused: 'invalid_request',
      message: /^image: Invalid encoded image\.$/,
    });
    const options = { body: { sampler_name: 'Oiler' } };
    await expectOutcome(provider.start(request({ prompt: 'x' }, { options }), never), { not_started: 'unavailable' });
    await expectOutcome(provider.start(request({ prompt: 'x' }, { model: 'gone' }), never), {
      not_started: 'unavailable',
    });
  });

  it('sends a password as the API wants it', async () => {
    await provider.close?.();
    provider = open({ api_key: 'medley:pass word' });
    await provider.start(request({ prompt: 'x' }), never);
    expect(web_ui.requests[0]?.headers.authorization).toBe(
      `Basic ${Buffer.from('medley:pass word').toString('base64')}`,
    );
  });

  /** A run that the machine has begun, or has behind another; `end` is what its start says. */
  const begin = async (run_request: RunRequest, signal = never) => {
    const submit_request = web_ui.nextRequest('submit');
    const end = provider.start(run_request, signal);
    end.catch(() => undefined);
    await submit_request;
    return { end };
  };

  it('stops a run at work by its id; one that waits behind another is left alone', async () => {
    web_ui.holdUntil(new Promise(() => undefined));
    const [first, second] = [request({ prompt: 'a' }), request({ prompt: 'b' }, { task_id: 'task_2' })];
    const work = await begin(first);
    const work_2 = await begin(second);
    await provider.stopStart?.(second, never);
    expect(web_ui.requestsFor('cancel')).toEqual([]);
    await provider.stopStart?.(first, never);
    expect(await work.end).toMatchObject({ phase: 'done' }); // what was there so far: the task has ended before
    await provider.stopStart?.(second, never);
    await work_2.end;
    expect(web_ui.runs.map(({ end }) => end)).toEqual(['interrupted', 'interrupted']);
  });

  it('stops the machine when its time is up, and says that nobody knows what became of the run', async () => {
    web_ui.holdUntil(new Promise(() => undefined));
    const limit = new AbortController();
    const work = await begin(request({ prompt: 'a' }), limit.signal);
    limit.abort(new DOMException('late', 'TimeoutError'));
    await expectOutcome(work.end, 'unknown');
    expect(web_ui.runs).toEqual([{ id: expect.stringMatching(/^task\(medley-/), end: 'interrupted' }]);
  });

  it('stops a run of SD.Next, which knows no ids, only where nobody else uses its API', async () => {
    web_ui.is_sdnext = true;
    web_ui.holdUntil(new Promise(() => undefined));
    const run_request = request({ prompt: 'a' });
    const work = await begin(run_request);
    const shared = open({ max_active: 2 });
    await shared.stopStart?.(run_request, never);
    expect(web_ui.requestsFor('cancel')).toEqual([]);
    await provider.stopStart?.(run_request, never);
    expect(web_ui.runs).toMatchObject([{ end: 'interrupted' }]);
    await work.end;
    await provider.stopStart?.(run_request, never); // nothing is at work
    expect(web_ui.requestsFor('cancel')).toHaveLength(1);
    await shared.close?.();
  });
});
