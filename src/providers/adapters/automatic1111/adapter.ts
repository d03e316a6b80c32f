import type { OptionProblem } from '../../../catalog/check-settings.ts';
import { isObject, type JsonObject, type ProviderConfig } from '../../../catalog/model.ts';
import { openUpstream, type Answer, type Upstream } from '../../http/http.ts';
import { optionProblems } from '../../http/options.ts';
import { countIn, objectIn, textIn, textsOf } from '../../http/reading.ts';
import { upstreamErrorOf } from '../../http/refusal.ts';
import { refusedField, type Adapter, type AdapterParts, type Provider } from '../../provider.ts';
import type { RunContext, RunRequest, RunState } from '../../provider.ts';
import { machineId, submissionOf } from './body.ts';
import { listModels } from './list.ts';
import { default_base_url, keyHeaders } from './place.ts';

/** Several large images are in one answer, in base64. */
const answer_bytes_max = 268_435_456;

/**
 * The API of Stable Diffusion web UI (AUTOMATIC1111), which Forge, reForge and SD.Next have too, by modules/api/api.py,
 * modules/progress.py (github.com/AUTOMATIC1111/stable-diffusion-webui, lllyasviel/stable-diffusion-webui-forge) and
 * modules/api/generate.py (vladmandic/sdnext), read 2026-11-27.
 *
 * `upstream_model` is the checkpoint by its title, or `current`: the one that is loaded. The input is the body of
 * `txt2img`: prompt, negative_prompt, seed, steps, cfg_scale, width, height, batch_size, n_iter, sampler_name, scheduler,
 * styles, denoising_strength and so on; also `size` (`1024x768`) and `n` (for n_iter). With `image` or `init_images`
 * (files) it is `img2img`, perhaps with `mask` (a file). Option `body`: fields that are the same in every run, such as
 * alwayson_scripts and override_settings, which no caller may send.
 *
 * The answer to a submit is the result, and nobody can ask for it again: `timeout.start` of the route has to be as long
 * as the work takes, and a connection that was lost after the request was sent leaves it unknown.
 * `api_key` is `user:password` of `--api-auth`, or a bearer token for a proxy.
 */
export const automatic1111 = {
  serves: (kind) => kind === 'image',
  limits: { label: 'Stable Diffusion web UI', max_active: 1 },
  checkOptions,
  listModels,
  has_whole_list: true,
  open,
} satisfies Adapter;

function checkOptions(options: JsonObject): OptionProblem[] {
  const { body } = options;
  const problems = optionProblems(options, { body: undefined });
  return body === undefined || isObject(body)
    ? problems
    : [...problems, { field: 'body', message: 'must be a mapping' }];
}

function open(config: ProviderConfig, parts: AdapterParts): Provider {
  const base_url = (config.base_url ?? default_base_url).replace(/\/+$/, '');
  const headers = { accept: 'application/json', ...keyHeaders(config) };
  const upstream = openUpstream({ ...config, base_url }, parts, { headers });
  const is_alone = config.max_active === undefined || config.max_active === 1;
  return {
    media: 'data',
    start: (run, signal) => start(upstream, run, signal, is_alone),
    poll: async () => {
      throw new Error('a run of this upstream is over when its start has answered');
    },
    stopStart: (run, signal) => interrupt(upstream, run, signal, is_alone),
    close: () => upstream.close(),
  };
}

async function start(upstream: Upstream, run: RunRequest, signal: AbortSignal, is_alone: boolean): Promise<RunState> {
  const { path, json } = submissionOf(run);
  let answer: Answer;
  try {
    answer = await upstream.call({ method: 'POST', path, json, signal, answer_bytes_max });
  } catch (error) {
    // The machine does not see that nobody waits any more, and would work on for the next one to wait.
    if (signal.aborted)
      await interrupt(upstream, run, AbortSignal.timeout(interrupt_limit_ms), is_alone).catch(() => undefined);
    throw error;
  }
  if (!answer.ok) throw refusalOf(upstream, run, answer);
  return { phase: 'done', files: imagesIn(answer.object()) };
}

const interrupt_limit_ms = 5_000;

/** Errors about a field of the caller's whose status says otherwise. */
const field_errors: readonly [RegExp, readonly string[]][] = [
  [/^sampler not found/i, ['sampler_name', 'sampler_index']],
  [/^invalid encoded image/i, ['image', 'init_images', 'mask']],
];

function refusalOf(upstream: Upstream, { input }: RunRequest, answer: Answer): Error {
  const { message } = upstreamErrorOf(answer.bytes.toString('utf8'));
  const fields = field_errors.find(([pattern]) => pattern.test(message))?.[1] ?? [];
  const field = fields.find((name) => input[name] !== undefined && input[name] !== null);
  if (field !== undefined) return refusedField(field, `${message}.`);
  return upstream.refusal(answer, { is_synchronous: true });
}

/** The images of a run, without the grid before them and the maps of extensions behind them. */
function imagesIn(answer: JsonObject): { bytes: Buffer }[] {
  const info = infoOf(answer);
  const first = countIn(info, 'index_of_first_image') ?? 0;
  const seeds = Array.isArray(info['all_seeds']) ? info['all_seeds'].length : 0;
  const images = textsOf(answer['images']);
  return images
    .slice(first, seeds > 0 ? first + seeds : undefined)
    .map((text) => ({ bytes: Buffer.from(text.replace(/^data:[^,]*,/, ''), 'base64') }));
}

/** `info` is JSON in a text. */
function infoOf(answer: JsonObject): JsonObject {
  try {
    const info: unknown = JSON.parse(textIn(answer, 'info') ?? '{}');
    return isObject(info) ? info : {};
  } catch {
    return {};
  }
}

/** Names of jobs of SD.Next's API, which gives runs no ids. */
const sdnext_job = /^API-(?:TXT|IMG)$/;

/**
 * Stops the machine if it works on this run: an interrupt says no id, and must not meet another's run. SD.Next does not
 * know ids; there the run is ours if it is one of the API and nobody else uses that (`max_active: 1`).
 */
async function interrupt(upstream: Upstream, run: RunContext, signal: AbortSignal, is_alone: boolean): Promise<void> {
  const json = { id_task: machineId(run), live_preview: false };
  const answered = await upstream.call({ method: 'POST', path: '/internal/progress', json, is_read: true, signal });
  const state = answered.ok ? answered.object() : {};
  if (state['active'] !== true) {
    if (!is_alone || state['queued'] === true) return;
    const query = { skip_current_image: 'true' };
    const progress = await upstream.call({ method: 'GET', path: '/sdapi/v1/progress', query, signal });
    const job = progress.ok ? textIn(objectIn(progress.object(), 'state'), 'job') : undefined;
    if (job === undefined || !sdnext_job.test(job)) return;
  }
  const answer = await upstream.call({ method: 'POST', path: '/sdapi/v1/interrupt', json: {}, is_read: true, signal });
  if (!answer.ok) throw new Error(`the interrupt was answered ${answer.status}`);
}
