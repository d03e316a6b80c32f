import type { JsonObject, ProviderConfig } from '../../../catalog/model.ts';
import { filesAt, idIn, runIdIn, refusedAs, statusIn, unanswered, withoutVersion } from '../../http/answers.ts';
import { openUpstream, type Answer, type Upstream } from '../../http/http.ts';
import { withoutHollow } from '../../http/inline-media.ts';
import { optionProblems } from '../../http/options.ts';
import { NotStarted, type Adapter, type AdapterParts, type Provider } from '../../provider.ts';
import type { RunContext, RunRequest, RunState, UpstreamCost } from '../../provider.ts';
import { objectIn, objectsIn, textIn, textsOf } from '../../http/reading.ts';
import type { Hints } from '../../http/refusal.ts';
import { costProblems, creditCost } from '../../http/upstream-cost.ts';
import { goingOn, readPollState, unknownRun, type PollInterval, type PollState } from '../../http/poll-state.ts';

const default_base_url = 'https://api.dev.runwayml.com';

/** Without this header every call is refused. */
const version = '2024-11-06';

const calls = { per_minute: 1_200, burst: 60 };

/** The provider wants a task to be asked for every five seconds at most. */
const poll_interval: PollInterval = { min_ms: 5_000, max_ms: 15_000 };

/** Default price of the provider's credits; the route may set another. */
const usual_price = { credit_price: '0.01', cost_currency: 'USD' };

/** Too few credits are told as if the input were wrong. */
const refusals: Hints = { about_us: /you do not have enough credits/i };

/** Codes of failures, which are for us and never shown: `SAFETY.…`, `ASSET.INVALID`, `INTERNAL.BAD_OUTPUT.…`. */
const failures: Hints = { moderation: /\bSAFETY\b/, callers: /^(ASSET\.INVALID|THIRD_PARTY\.INPUT_VALIDATION)/ };

/** The input was still being prepared, or the maker of the model could not be reached: nothing was generated. */
const before_the_start = /^(INPUT_PREPROCESSING\.INTERNAL|THIRD_PARTY\.UNAVAILABLE)/;

/** The last parts of paths; which one it is follows from the input, or from the option. */
const endpoints = [
  'text_to_video',
  'image_to_video',
  'video_to_video',
  'video_upscale',
  'character_performance',
  'text_to_image',
  'image_upscale',
  'text_to_speech',
  'speech_to_speech',
  'sound_effect',
  'voice_dubbing',
  'voice_isolation',
];

/**
 * Runway, and the makers of models that it hosts. `upstream_model` is `gen4.5`, `gen4_turbo`, `aleph2`, `veo3.1` …;
 * the input is the rest of the body: promptText, promptImage (a file, or a list of `{ uri, position }`), ratio,
 * duration, seed, contentModeration, audio, promptVideo or videoUri (files), referenceImages (a list of `{ uri, tag }`),
 * keyframes, character and reference (`{ type, uri }`), voice. Items without their `uri` are left out, so a mapping
 * may name files that the caller need not give.
 * Options: `endpoint`, where the input does not tell it (by itself text_to_image for images, text_to_speech for
 * audio, and for videos what fits promptVideo, videoUri, character, promptImage or none of them); `credit_price` and
 * `cost_currency`, what a credit costs where that is not 0.01 USD.
 */
export const runway = {
  serves: (kind) => kind === 'image' || kind === 'video' || kind === 'audio',
  // Has a queue of its own for each model: https://docs.dev.runwayml.com/usage/tiers, read 2026-11-25
  limits: { label: 'Runway' },
  checkOptions: (options) => [
    ...optionProblems(options, { endpoint: endpoints, credit_price: undefined, cost_currency: undefined }),
    ...costProblems(options),
  ],
  open,
} satisfies Adapter;

function open(config: ProviderConfig, parts: AdapterParts): Provider {
  const base_url = withoutVersion(config.base_url ?? default_base_url, /\/v1$/);
  const headers = {
    accept: 'application/json',
    'x-runway-version': version,
    ...(config.api_key !== undefined && { authorization: `Bearer ${config.api_key}` }),
  };
  const upstream = openUpstream({ ...config, base_url }, parts, { headers, rate_limit: calls });
  return {
    media: 'either',
    start: (run, signal) => start(upstream, run, signal),
    poll: async (run, ref, signal) => poll(upstream, run, readPollState(ref), signal),
    cancel: async (_, ref, signal) => cancel(upstream, readPollState(ref), signal),
    close: () => upstream.close(),
  };
}

async function start(upstream: Upstream, run: RunRequest, signal: AbortSignal): Promise<RunState> {
  const input = withoutHollow(run.input, isHollow);
  const path = `/v1/${textIn(run.options, 'endpoint') ?? usualEndpoint(run, input)}`;
  const answer = await upstream.call({ method: 'POST', path, json: { ...input, model: run.model }, signal });
  if (!answer.ok) throw upstream.refusal(withIssues(answer), refusals);
  return goingOn(
    { id: runIdIn(answer.object(), 'id'), started_at_ms: run.now_ms },
    'waiting',
    run.now_ms,
    poll_interval,
  );
}

/** Tells whether an object that should carry a file has none. */
function isHollow(object: JsonObject): boolean {
  const carries = 'position' in object || 'tag' in object || object['type'] === 'image' || object['type'] === 'video';
  return Object.keys(object).length === 0 || (carries && !('uri' in object));
}

function usualEndpoint({ kind }: RunRequest, input: JsonObject): string {
  if (kind === 'image') return 'text_to_image';
  if (kind === 'audio') return 'text_to_speech';
  if ('promptVideo' in input || 'videoUri' in input) return 'video_to_video';
  if ('character' in input) return 'character_performance';
  return 'promptImage' in input ? 'image_to_video' : 'text_to_video';
}

/** Which fields are wrong stands beside the message: `{ error, issues: [{ path, message }] }`. */
function withIssues(answer: Answer): Answer {
  let issues: JsonObject[];
  try {
    issues = objectsIn(answer.object(), 'issues');
  } catch {
    return answer;
  }
  if (issues.length === 0) return answer;
  const detail = issues.map((issue) => ({ loc: issue['path'] ?? [], msg: textIn(issue, 'message') ?? 'is wrong' }));
  return refusedAs(answer, answer.status, { detail });
}

async function getTask(upstream: Upstream, state: PollState, signal: AbortSignal): Promise<Answer> {
  return upstream.call({ method: 'GET', path: pathOf(state), signal });
}

function pathOf(state: PollState): string {
  return `/v1/tasks/${encodeURIComponent(idIn(state, 'id') ?? '')}`;
}

async function poll(upstream: Upstream, run: RunContext, state: PollState, signal: AbortSignal): Promise<RunState> {
  const answer = await getTask(upstream, state, signal);
  if (answer.status === 404) return unknownRun(state, run.now_ms, poll_interval);
  if (!answer.ok) throw unanswered(answer);
  const response = answer.object();
  switch (statusIn(response, 'status')) {
    case 'pending':
    case 'throttled': // more at once than our tier allows: in a queue
      return goingOn(state, 'waiting', run.now_ms, poll_interval);
    case 'succeeded':
      return { phase: 'done', files: filesAt(textsOf(response['output'])), ...costIn(response, run) };
    case 'failed':
      return { ...failureOf(upstream, state, response), ...costIn(response, run) };
    case 'cancelled':
    case 'canceled':
      return { ...upstream.failure({ code: 'CANCELLED' }), ...costIn(response, run) };
    case '':
      throw new Error('the answer to the poll has no status');
    default:
      return goingOn(state, 'running', run.now_ms, poll_interval);
  }
}

/** Credits are named for whatever has ended; often they are 0 after a failure. */
function costIn(task: JsonObject, run: RunContext): { upstream_cost?: UpstreamCost } {
  const upstream_cost = creditCost(objectIn(task, 'cost')['credits'], { ...usual_price, ...run.options });
  return upstream_cost ? { upstream_cost } : {};
}

function failureOf(upstream: Upstream, state: PollState, task: JsonObject): RunState & { phase: 'failed' } {
  const code = (textIn(task, 'failureCode') ?? '').toUpperCase();
  if (state.seen_running !== true && before_the_start.test(code))
    throw new NotStarted('unavailable', `failed: ${code}`);
  return upstream.failure({ code, message: textIn(task, 'failure') ?? '' }, failures);
}

/** Only a run in the queue is stopped free of charge: a running one is deleted too, and paid. */
async function cancel(upstream: Upstream, state: PollState, signal: AbortSignal): Promise<'stopped' | 'billed'> {
  const answer = await getTask(upstream, state, signal);
  const is_waiting = answer.ok && ['pending', 'throttled'].includes(statusIn(answer.object(), 'status'));
  if (!is_waiting) return 'billed';
  const deleted = await upstream.call({ method: 'DELETE', path: pathOf(state), signal });
  return deleted.ok ? 'stopped' : 'billed';
}
