import type { JsonObject, ProviderConfig } from '../../../catalog/model.ts';
import { filesAt, inPath, runIdIn, statusIn, unanswered, withoutVersion } from '../../http/answers.ts';
import { openUpstream, type Upstream } from '../../http/http.ts';
import { withBareBase64 } from '../../http/inline-media.ts';
import { optionProblems } from '../../http/options.ts';
import type { Adapter, AdapterParts, Provider, RunContext, RunRequest, RunState } from '../../provider.ts';
import { objectIn, textIn, textsOf } from '../../http/reading.ts';
import type { RunTrouble } from '../../http/refusal.ts';
import { costProblems, creditCost } from '../../http/upstream-cost.ts';
import { goingOn, readPollState, unknownRun, type PollInterval, type PollState } from '../../http/poll-state.ts';

const default_base_url = 'https://api.bfl.ai';

/** A run is asked for at the cluster that has it, `api.us1.bfl.ai`. */
const hosts = ['*.bfl.ai'];

/** 24 runs at once are allowed, each asked for twice a second. */
const calls = { per_minute: 3_000, burst: 100 };

const poll_intervals: Record<'image' | 'video', PollInterval> = {
  image: { min_ms: 500, max_ms: 5_000 },
  video: { min_ms: 2_000, max_ms: 10_000 },
};

/** Default price of the provider's credits; the route may set another. */
const usual_price = { credit_price: '0.01', cost_currency: 'USD' };

/** Codes of runs that failed for what they were given. */
const callers = /invalid_image|invalid_input|validation/i;

/**
 * Black Forest Labs. `upstream_model` is the end of the path: `flux-2-pro`, `flux-kontext-max`, `flux-3-video`.
 * The input is the body: for images prompt, width, height, aspect_ratio, seed, safety_tolerance, output_format,
 * prompt_upsampling, steps, guidance, raw, input_image, input_image_2 … (files), image and mask (files); for videos
 * mode, prompt, aspect_ratio, duration, resolution, generate_audio, keyframes (files), start_video (a file).
 * Options: `credit_price` and `cost_currency`, what a credit costs where that is not 0.01 USD.
 */
export const bfl = {
  serves: (kind) => kind === 'image' || kind === 'video',
  // https://help.bfl.ai/articles/7158018353 (24; of flux-kontext-max 6), read 2026-11-25
  limits: { label: 'Black Forest Labs', max_active: 24 },
  checkOptions: (options) => [
    ...optionProblems(options, { credit_price: undefined, cost_currency: undefined }),
    ...costProblems(options),
  ],
  open,
} satisfies Adapter;

function open(config: ProviderConfig, parts: AdapterParts): Provider {
  const base_url = withoutVersion(config.base_url ?? default_base_url, /\/v1$/);
  const headers = { accept: 'application/json', ...(config.api_key !== undefined && { 'x-key': config.api_key }) };
  const upstream = openUpstream({ ...config, base_url }, parts, { headers, hosts, rate_limit: calls });
  return {
    media: 'either',
    start: (run, signal) => start(upstream, run, signal),
    poll: async (run, ref, signal) => poll(upstream, run, readPollState(ref), signal),
    close: () => upstream.close(),
  };
}

async function start(upstream: Upstream, run: RunRequest, signal: AbortSignal): Promise<RunState> {
  const { input, model, now_ms, events_url } = run;
  const json = { ...withBareBase64(input), ...(events_url !== undefined && { webhook_url: events_url }) };
  const answer = await upstream.call({ method: 'POST', path: `/v1/${inPath(model)}`, json, signal });
  if (!answer.ok) throw upstream.refusal(answer);
  const response = answer.object();
  const url = upstream.link(response['polling_url']);
  const { cost } = response;
  const about = { ...(url !== undefined && { url }), ...(cost !== undefined && { cost }) };
  return goingOn(
    { id: runIdIn(response, 'id'), started_at_ms: now_ms, ...about },
    'waiting',
    now_ms,
    pollIntervalOf(run),
  );
}

function pollIntervalOf({ kind }: RunContext): PollInterval {
  return kind === 'video' ? poll_intervals.video : poll_intervals.image;
}

async function poll(upstream: Upstream, run: RunContext, state: PollState, signal: AbortSignal): Promise<RunState> {
  const url = upstream.link(state['url']);
  const target = url === undefined ? { path: '/v1/get_result' } : { url };
  const query = { id: textIn(state, 'id') ?? '' };
  const answer = await upstream.call({ method: 'GET', ...target, query, signal });
  if (answer.status === 404) return unknownRun(state, run.now_ms, pollIntervalOf(run));
  if (!answer.ok) throw unanswered(answer);
  return stateOf(upstream, run, state, answer.object());
}

function stateOf(upstream: Upstream, run: RunContext, state: PollState, answer: JsonObject): RunState {
  const status = statusIn(answer, 'status', 'state');
  switch (status) {
    case 'ready': {
      const upstream_cost = creditCost(answer['cost'] ?? state['cost'], { ...usual_price, ...run.options });
      const files = filesAt([textIn(objectIn(answer, 'result'), 'sample')]);
      return { phase: 'done', files, ...(upstream_cost && { upstream_cost }) };
    }
    case 'request moderated':
    case 'content moderated':
      return upstream.failure({ code: 'moderation', message: reasonsOf(answer) });
    case 'error':
    case 'failed':
      return upstream.failure(troubleOf(answer), { callers });
    case 'task not found':
      return unknownRun(state, run.now_ms, pollIntervalOf(run));
    case '':
      throw new Error('the answer to the poll has no status');
    default:
      return goingOn(state, 'running', run.now_ms, pollIntervalOf(run)); // pending covers the queue and the work
  }
}

/** Returns the reasons of a moderation, of the input or of the result: neither is billed. */
function reasonsOf(answer: JsonObject): string {
  const reasons = textsOf(objectIn(answer, 'details')['Moderation Reasons']);
  return reasons.length === 0 ? '' : `The model provider found the content unfit: ${reasons.join(', ')}.`;
}

function troubleOf(answer: JsonObject): RunTrouble {
  const message =
    textIn(answer, 'message') ?? textIn(answer, 'details') ?? textIn(objectIn(answer, 'details'), 'error');
  return { code: textIn(answer, 'error') ?? '', message: message ?? '' };
}
