import type { OptionProblem } from '../../../catalog/check-settings.ts';
import { isObject, type JsonObject, type ProviderConfig } from '../../../catalog/model.ts';
import type { Units } from '../../../catalog/price.ts';
import { firstAt } from '../../http/answer-path.ts';
import { idIn, inPath, unanswered } from '../../http/answers.ts';
import { openUpstream, type Answer, type Upstream, type UpstreamRequest } from '../../http/http.ts';
import { isFile, refusalIn, troubleIn, troubleOf, wordAt, wordsAt, type Trouble } from './judge.ts';
import { readPlan, reported_units, type Call, type Plan, type Status } from './plan.ts';
import { fill, fillAll, fillBody, type Words } from './template.ts';
import {
  NotStarted,
  type Adapter,
  type AdapterParts,
  type Provider,
  type RunContext,
  type RunFile,
  type RunRequest,
  type RunState,
  type UpstreamCost,
} from '../../provider.ts';
import { outputProblems, resultsOf } from '../../http/results.ts';
import { costOf, creditCost, decimalOf } from '../../http/upstream-cost.ts';
import { goingOn, readPollState, unknownRun, type PollState } from '../../http/poll-state.ts';

/** The parts of a call: the provider's and the route's. */
type Talk = { upstream: Upstream; key: string | undefined; plan: Plan; run: RunContext; signal: AbortSignal };

/**
 * Any upstream that takes runs over HTTP, has an id for each, and tells how it goes: driven by the route's
 * options alone. They are described in docs/http-queue.md.
 */
export const http_queue = {
  serves: (kind) => kind === 'image' || kind === 'video' || kind === 'audio',
  checkOptions,
  open,
} satisfies Adapter;

function checkOptions(options: JsonObject, output: JsonObject): OptionProblem[] {
  return [...readPlan(options).problems, ...outputProblems(output, { required: options['status'] !== undefined })];
}

function open(config: ProviderConfig, { guard, rate_clock }: AdapterParts): Provider {
  const { base_url, api_key: key } = config;
  if (base_url === undefined) throw new Error(`the provider ${config.name} needs a base_url`);
  const upstream = openUpstream({ ...config, base_url }, guard, { rate_clock });
  const talk = (run: RunContext, signal: AbortSignal): Talk => ({ upstream, key, plan: planOf(run), run, signal });
  return {
    media: 'either',
    start: async (run, signal) => {
      const [wrong] = mistakesIn(run);
      if (wrong) throw new NotStarted('refused', `the options of the route: ${wrong.field} ${wrong.message}`);
      return start(talk(run, signal), run);
    },
    poll: async (run, ref, signal) => poll(talk(run, signal), readPollState(ref)),
    cancel: async (run, ref, signal) => cancel(talk(run, signal), readPollState(ref)),
    close: () => upstream.close(),
  };
}

/** Files are checked when they are read; the options of a run that goes on are those of its submit. */
function mistakesIn({ options, output }: RunContext): OptionProblem[] {
  return checkOptions(options, output).filter(({ known_names }) => !known_names);
}

function planOf({ options }: RunContext): Plan {
  const { plan } = readPlan(options);
  if (!plan) throw new Error('the options of the route are wrong');
  return plan;
}

async function start(talk: Talk, { input, events_url, now_ms }: RunRequest): Promise<RunState> {
  const { plan, upstream } = talk;
  const answer = await call(talk, plan.submit, { events_url }, { is_read: false, input });
  const trouble = troubleIn(answer, plan.errors);
  if (trouble) throw upstream.refusal(refusalIn(answer, trouble), { is_synchronous: !plan.status });
  if (!plan.status) return done(talk, answer);
  const response = answer.object();
  const id = idIn({ id: (plan.submit.id && firstAt(response, plan.submit.id)) ?? null }, 'id');
  if (id === undefined) throw new Error('the answer to the submit names no run');
  const cost = costIn(talk, answer);
  const state: PollState = { id, started_at_ms: now_ms, ...(cost && { cost }) };
  return goingOn(state, 'waiting', now_ms, plan.poll);
}

async function poll(talk: Talk, state: PollState): Promise<RunState> {
  const { plan, upstream, run } = talk;
  if (!plan.status) throw new Error('the route has no status any more');
  const answer = await call(talk, plan.status, { id: idIn(state, 'id') }, { is_read: true });
  if (answer.status === 404) return unknownRun(state, run.now_ms, plan.poll);
  const trouble = troubleIn(answer, plan.errors);
  if (trouble && !isOfTheRun(trouble)) throw unanswered(answer);
  if (trouble) return failed(upstream, trouble);
  return stateOf(talk, plan.status, state, answer);
}

/** Tells whether the error concerns the run, not only our request. */
function isOfTheRun({ meaning }: Trouble): boolean {
  return meaning === 'moderation' || meaning === 'input' || meaning === 'failed';
}

async function stateOf(talk: Talk, status: Status, state: PollState, answer: Answer): Promise<RunState> {
  const { plan, upstream, run } = talk;
  const response = answer.object();
  const word = wordAt(response, status.state);
  if (word === '') throw new Error('the answer to the poll has no state');
  const { states } = status;
  if (states.waiting.includes(word)) return goingOn(state, 'waiting', run.now_ms, plan.poll);
  if (states.dropped.includes(word)) throw new NotStarted('unavailable', `the run was dropped: ${word}`);
  if (states.failed.includes(word)) {
    return failed(upstream, troubleOf(wordAt(response, status.code), wordsAt(response, status.message), plan.errors));
  }
  if (!states.done.includes(word)) return goingOn(state, 'running', run.now_ms, plan.poll);
  if (!plan.result) return done(talk, answer, state);
  const result = await call(talk, plan.result, { id: idIn(state, 'id') }, { is_read: true });
  if (troubleIn(result, plan.errors)) throw unanswered(result);
  return done(talk, result, state);
}

function failed(upstream: Upstream, { code, message, meaning }: Trouble): RunState {
  if (meaning === 'moderation') return upstream.failure({ code: 'content_policy_violation', message });
  return upstream.failure({ code, message }, meaning === 'input' ? { callers: /(?:)/ } : {});
}

function done(talk: Talk, answer: Answer, state?: PollState): RunState {
  if (isFile(answer)) return { phase: 'done', files: [{ bytes: answer.bytes }] };
  const { plan, run } = talk;
  const response = answer.object();
  const units: Units = {};
  for (const unit of reported_units) {
    const path = plan.units[unit];
    const count = path && decimalOf(firstAt(response, path));
    if (count !== undefined) units[unit] = count;
  }
  const upstream_cost = costIn(talk, answer) ?? costOfSubmit(state);
  return {
    phase: 'done',
    files: resultsOf(response, run.output).map((file) => withKey(talk, file)),
    ...(Object.keys(units).length > 0 && { units }),
    ...(upstream_cost && { upstream_cost }),
  };
}

/** The provider's own files may want the key. */
function withKey({ upstream, plan, run, key }: Talk, file: RunFile): RunFile {
  if (run.output['key'] !== true || !('url' in file) || upstream.link(file.url) === undefined) return file;
  return { ...file, credentials: { origin: new URL(file.url).origin, headers: fillAll(plan.headers, { key }) } };
}

function costIn({ plan, run }: Talk, answer: Answer): UpstreamCost | undefined {
  const response = answer.object();
  const { amount, credits } = plan.cost;
  if (amount) return costOf(decimalOf(firstAt(response, amount)), run.options);
  return credits && creditCost(firstAt(response, credits), run.options);
}

/** Some tell the price as they take the run. */
function costOfSubmit(state: PollState | undefined): UpstreamCost | undefined {
  const cost = state?.['cost'];
  if (!isObject(cost)) return undefined;
  const { amount, currency } = cost;
  return typeof amount === 'string' && typeof currency === 'string' ? { amount, currency } : undefined;
}

async function cancel(talk: Talk, state: PollState): Promise<'stopped' | 'billed'> {
  const { plan } = talk;
  if (!plan.cancel) return 'billed';
  const answer = await call(talk, plan.cancel, { id: idIn(state, 'id') }, { is_read: false });
  if (troubleIn(answer, plan.errors)) return 'billed';
  const { unbilled } = plan.cancel;
  const is_unbilled = unbilled === 'always' || (unbilled === 'waiting' && state.seen_running !== true);
  return is_unbilled ? 'stopped' : 'billed';
}

/** One call as the options say it. The key goes into headers only, and to the provider's own host only. */
async function call(
  talk: Talk,
  step: Call,
  words: Words,
  { is_read, input = {} }: { is_read: boolean; input?: JsonObject },
): Promise<Answer> {
  const { upstream, plan, run, key, signal } = talk;
  const all_words: Words = { ...words, model: run.model, task_id: run.task_id };
  // A model may be `owner/name`; an id is one part of the path, whatever is in it.
  const path = fill(step.path, {
    ...all_words,
    id: words.id === undefined ? undefined : encodeURIComponent(words.id),
    model: inPath(run.model),
  });
  if (path === undefined) throw new Error('the path of a call has a word without a value');
  const headers = fillAll({ accept: 'application/json', ...plan.headers, ...step.headers }, { ...all_words, key });
  const body = step.body === undefined ? undefined : fillBody(step.body, input, all_words);
  const request: UpstreamRequest = {
    method: step.method,
    is_read,
    path,
    query: fillAll(step.query, all_words),
    headers,
    signal,
    rate_limit: plan.poll.rate_limit,
    answer_bytes_max,
    ...(isObject(body) && { json: body }),
  };
  return upstream.call(request);
}

/** Files may be within the answer, as base64. */
const answer_bytes_max = 64 * 1_048_576;
