import type { OptionProblem } from '../../../catalog/check-settings.ts';
import { isObject, type Json, type JsonObject, type ProviderConfig } from '../../../catalog/model.ts';
import type { Units } from '../../../catalog/price.ts';
import { idIn, unanswered } from '../../http/answers.ts';
import { openUpstream, type Answer, type Upstream } from '../../http/http.ts';
import { ownTexts } from '../../http/own-texts.ts';
import { objectIn } from '../../http/reading.ts';
import { retryAfter } from '../../http/refusal.ts';
import { outputProblems, resultsOf } from '../../http/results.ts';
import { costOf, creditCost, decimalOf } from '../../http/upstream-cost.ts';
import { goingOn, readPollState, unknownRun, type PollState } from '../../http/poll-state.ts';
import {
  NotStarted,
  type Adapter,
  type AdapterParts,
  type MediaForm,
  type Provider,
  type RunContext,
  type RunFile,
  type RunRequest,
  type RunState,
  type UpstreamCost,
} from '../../provider.ts';
import { firstIn, isFile, looksAt } from './answer-place.ts';
import { call, laterFields, uploadFiles, type CallContext } from './calls.ts';
import { refusalIn, stateAt, textAt, troubleIn, troubleOf, wordAt, type Trouble } from './judge.ts';
import { linkedFiles, linkProblems } from './links.ts';
import { readPlan, reported_units, type Call, type Plan, type Status } from './plan.ts';
import { fillAll } from './template.ts';

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
  const required = options['status'] !== undefined;
  return [
    ...readPlan(options).problems,
    ...outputProblems(output, { required, names: ['link'] }),
    ...linkProblems(output),
  ];
}

function open(config: ProviderConfig, parts: AdapterParts): Provider {
  const { base_url, api_key: key } = config;
  if (base_url === undefined) throw new Error(`the provider ${config.name} needs a base_url`);
  const upstream = openUpstream({ ...config, base_url }, parts);
  const texts = ownTexts(config);
  const contextOf = (run: RunContext, signal: AbortSignal): CallContext => ({
    upstream,
    base_url,
    key,
    texts,
    plan: planOf(run),
    run,
    signal,
  });
  return {
    media: (options) => mediaOf(options, config),
    start: async (run, signal) => {
      const [wrong] = mistakesIn(run);
      if (wrong) throw new NotStarted('refused', `the options of the route: ${wrong.field} ${wrong.message}`);
      return start(contextOf(run, signal), run);
    },
    poll: async (run, ref, signal) => poll(contextOf(run, signal), readPollState(ref)),
    cancel: async (run, ref, signal) => cancel(contextOf(run, signal), readPollState(ref), run.is_given_up === true),
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

/** A file that is sent as it is comes as a stream, unless all of the request has to be signed before. */
function mediaOf(options: JsonObject, { credentials }: ProviderConfig): MediaForm {
  const { plan } = readPlan(options);
  const is_binary = (step: Call | undefined) => step?.body_as === 'multipart' || step?.body_as === 'file';
  if (!is_binary(plan?.submit) && !is_binary(plan?.upload)) return 'either';
  return credentials ? 'data' : 'stream';
}

async function start(context: CallContext, run: RunRequest): Promise<RunState> {
  const { plan, upstream } = context;
  const { files, events_url, now_ms } = run;
  const inputs = laterFields(context, run.input);
  const input = await uploadFiles(context, run);
  const values = { is_read: false, input, events_url, ...(files && { files }) };
  const answer = await call(context, plan.submit, values);
  const trouble = troubleIn(answer, plan.errors);
  if (trouble) throw upstream.refusal(refusalIn(answer, trouble, plan.errors), { is_synchronous: !plan.status });
  const { status } = plan;
  if (!status || isFile(answer)) return done(context, answer);
  answer.object(); // a page is no word about a run
  const { id: id_place, state: state_place } = plan.submit;
  const word = state_place ? stateAt(answer, status, state_place) : '';
  if (status.states.failed.includes(word)) return failedRun(context, status, answer);
  const id = idIn({ id: (id_place && firstIn(answer, id_place)) ?? null }, 'id');
  const cost = costIn(context, answer);
  const saved = savedOf(plan, answer);
  const state: PollState = {
    ...(id !== undefined && { id }),
    started_at_ms: now_ms,
    ...(cost && { cost }),
    ...(Object.keys(saved).length > 0 && { saved }),
    ...(Object.keys(inputs).length > 0 && { inputs }),
  };
  if (state_place && status.states.done.includes(word) && !plan.result) return done(context, answer, state);
  if (id === undefined) throw new Error('the answer to the submit names no run');
  return later(goingOn(state, 'waiting', now_ms, plan.poll), answer);
}

/** Longer values are kept by nobody. */
const saved_length_max = 4_096;

/** The values of the answer to the submit that later calls name. */
function savedOf({ save }: Plan, answer: Answer): JsonObject {
  const entries = Object.entries(save).flatMap(([name, place]): [string, Json][] => {
    const value = firstIn(answer, place);
    const is_text = typeof value === 'string' && value.length <= saved_length_max;
    return is_text || typeof value === 'number' || typeof value === 'boolean' ? [[name, value]] : [];
  });
  return Object.fromEntries(entries);
}

/** An upstream may say with every answer when it wants to be asked again. */
function later(state: RunState, { headers }: Answer): RunState {
  const retry_after = headers['retry-after'];
  if (retry_after === undefined || !('ref' in state)) return state;
  const wait_ms = Math.min(retryAfter({ status: 200, retry_after, body: '' }), wait_max_ms);
  return { ...state, poll_after_ms: Math.max(state.poll_after_ms, wait_ms) };
}

const wait_max_ms = 60_000;

/** The values for calls about a run. */
function valuesOf(state: PollState): { id: string | undefined; saved: JsonObject; input: JsonObject } {
  return { id: idIn(state, 'id'), saved: objectIn(state, 'saved'), input: objectIn(state, 'inputs') };
}

async function poll(context: CallContext, state: PollState): Promise<RunState> {
  const { plan, upstream, run } = context;
  if (!plan.status) throw new Error('the route has no status any more');
  const answer = await call(context, plan.status, { is_read: true, ...valuesOf(state) });
  if (answer.status === 404) return unknownRun(state, run.now_ms, plan.poll);
  const trouble = troubleIn(answer, plan.errors);
  if (trouble?.meaning === 'unknown') return unknownRun(state, run.now_ms, plan.poll);
  if (trouble && !isOfTheRun(trouble)) throw unanswered(answer);
  if (trouble) return failed(upstream, trouble);
  return stateOf(context, plan.status, state, answer);
}

/** Tells whether the error concerns the run, not only our request. */
function isOfTheRun({ meaning }: Trouble): boolean {
  return meaning === 'moderation' || meaning === 'input' || meaning === 'failed';
}

async function stateOf(context: CallContext, status: Status, state: PollState, answer: Answer): Promise<RunState> {
  const { plan, run } = context;
  const { states } = status;
  const is_by_status = looksAt(status.state, 'status');
  if (isFile(answer) && !is_by_status) return done(context, answer, state);
  const is_word =
    is_by_status && answer.bytes.length === 0 && Object.values(states).flat().includes(`${answer.status}`);
  if (!isFile(answer) && !is_word) answer.object(); // a page is no word about a run
  const word = stateAt(answer, status);
  if (word === '') throw new Error('the answer to the poll has no state');
  if (states.waiting.includes(word)) return later(goingOn(state, 'waiting', run.now_ms, plan.poll), answer);
  if (states.unknown.includes(word)) return unknownRun(state, run.now_ms, plan.poll);
  if (states.dropped.includes(word)) throw new NotStarted('unavailable', `the run was dropped: ${word}`);
  if (states.failed.includes(word)) return failedRun(context, status, answer);
  if (!states.done.includes(word)) return later(goingOn(state, 'running', run.now_ms, plan.poll), answer);
  if (!plan.result) return done(context, answer, state);
  const result = await call(context, plan.result, { is_read: true, ...valuesOf(state) });
  const trouble = troubleIn(result, plan.errors);
  if (trouble?.meaning === 'moderation') return failed(context.upstream, trouble);
  if (trouble) throw unanswered(result);
  return done(context, result, state);
}

function failedRun({ plan, upstream }: CallContext, status: Status, answer: Answer): RunState {
  return failed(upstream, troubleOf(wordAt(answer, status.code), textAt(answer, status.message), plan.errors));
}

function failed(upstream: Upstream, { code, message, meaning }: Trouble): RunState {
  if (meaning === 'moderation') return upstream.failure({ code: 'content_policy_violation', message });
  return upstream.failure({ code, message }, meaning === 'input' ? { callers: /(?:)/ } : {});
}

function done(context: CallContext, answer: Answer, state?: PollState): RunState {
  const { plan } = context;
  const units: Units = {};
  for (const unit of reported_units) {
    const place = plan.units[unit];
    const count = place && decimalOf(firstIn(answer, place));
    if (count !== undefined) units[unit] = count;
  }
  const upstream_cost = costIn(context, answer) ?? costOfSubmit(state);
  return {
    phase: 'done',
    files: isFile(answer) ? [{ bytes: answer.bytes }] : filesIn(context, answer.object(), state),
    ...(Object.keys(units).length > 0 && { units }),
    ...(upstream_cost && { upstream_cost }),
  };
}

function filesIn(context: CallContext, response: JsonObject, state: PollState | undefined): RunFile[] {
  const { run, base_url } = context;
  if (run.output['link'] === undefined) return resultsOf(response, run.output).map((file) => withKey(context, file));
  const { id, saved } = state ? valuesOf(state) : { id: undefined, saved: {} };
  return linkedFiles(response, run.output, { base_url, id, model: run.model, saved }).map((file) =>
    withKey(context, file),
  );
}

/** The provider's own files may want the key, and what the operator adds to every request. */
function withKey({ upstream, plan, run, key, texts }: CallContext, file: RunFile): RunFile {
  if (run.output['key'] !== true || !('url' in file) || upstream.link(file.url) === undefined) return file;
  const { origin, pathname, search } = new URL(file.url);
  const headers = texts.headers(fillAll(plan.headers, { key }));
  return { url: origin + texts.path(pathname + search), credentials: { origin, headers } };
}

function costIn({ plan, run }: CallContext, answer: Answer): UpstreamCost | undefined {
  const { amount, credits } = plan.cost;
  if (amount) return costOf(decimalOf(firstIn(answer, amount)), run.options);
  return credits && creditCost(firstIn(answer, credits), run.options);
}

/** Some tell the price as they take the run. */
function costOfSubmit(state: PollState | undefined): UpstreamCost | undefined {
  const cost = state?.['cost'];
  if (!isObject(cost)) return undefined;
  const { amount, currency } = cost;
  return typeof amount === 'string' && typeof currency === 'string' ? { amount, currency } : undefined;
}

/** Tells whether the upstream has not begun the run, by asking now: a cancel may mean something else afterwards. */
async function isWaiting(context: CallContext, state: PollState): Promise<boolean> {
  const { status, errors } = context.plan;
  if (!status) return false;
  const answer = await call(context, status, { is_read: true, ...valuesOf(state) });
  return !troubleIn(answer, errors) && status.states.waiting.includes(stateAt(answer, status));
}

async function cancel(context: CallContext, state: PollState, is_given_up: boolean): Promise<'stopped' | 'billed'> {
  const { plan } = context;
  if (!plan.cancel) return 'billed';
  const { unbilled } = plan.cancel;
  const is_unbilled = unbilled === 'always' || (unbilled === 'waiting' && state.seen_running !== true);
  if (!is_unbilled && !is_given_up) return 'billed';
  if (plan.cancel.looks_first && !(await isWaiting(context, state))) return 'billed';
  const answer = await call(context, plan.cancel, { is_read: false, ...valuesOf(state) });
  if (troubleIn(answer, plan.errors)) return 'billed';
  return is_unbilled ? 'stopped' : 'billed';
}
