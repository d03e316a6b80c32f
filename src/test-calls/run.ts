import { setTimeout as sleep } from 'node:timers/promises';
import { isMediaKind, type JsonObject, type Model, type ProviderConfig, type Route } from '../catalog/model.ts';
import { estimateUnits, freezePricing, measuredCost, type MeasuredOutput, type Units } from '../catalog/price.ts';
import { isDataUrl } from '../lib/data-url.ts';
import { exact } from '../money/money.ts';
import { openGuard, type Guard } from '../net/guard.ts';
import {
  InputRefused,
  mediaForm,
  NotStarted,
  type Adapter,
  type Json,
  type Provider,
  type RunContext,
  type RunState,
  type UpstreamCost,
} from '../providers/provider.ts';
import type { Prober } from '../storage/probe.ts';
import { measureFiles, unitsOfRun, type MeasuredFile } from '../tasks/run-files.ts';
import { poll_timeout_ms, isLate, pollDelay, runContext, stopRun } from '../tasks/upstream-run.ts';
import { TestCallError } from './plan.ts';

/** One call of a route by an operator: no account, no hold, no task. */

export type TestCallJob = {
  model: Model;
  route: Route;
  provider: ProviderConfig;
  adapter: Adapter;
  prober: Prober;
  /** As a caller would give it, with defaults. */
  input: JsonObject;
  /** The same in the upstream's words. */
  sent: JsonObject;
  currency: string;
  /** An upstream may take what has the same id for the same run. */
  task_id: string;
};

export type TestCall = {
  outcome: 'done' | 'failed' | 'refused' | 'not started' | 'unknown';
  took_ms: number;
  steps: { at_ms: number; phase: string }[];
  /** The reason of a failure. */
  message: string | null;
  /** Text of a model that writes. */
  text: string | null;
  files: TestCallFile[];
  units: Units;
  /** By the price of the model, in the base currency. */
  cost: string | null;
  upstream_cost: UpstreamCost | null;
};

export type TestCallFile = { bytes: Buffer; extension: string; content_type: string; size_bytes: number } & Omit<
  MeasuredOutput,
  'type'
>;

type Result = Partial<Omit<TestCall, 'took_ms' | 'steps'>> & Pick<TestCall, 'outcome'>;

/** Runs a media model once, from the submit to its files. */
export async function runTask(job: TestCallJob): Promise<TestCall> {
  const guard = openGuard();
  const provider = job.adapter.open?.(job.provider, { guard, prober: job.prober });
  if (!provider) throw new TestCallError(`The adapter ${job.provider.adapter} does not support ${job.model.kind}.`);
  assertFilesFit(job, provider);
  const begun_at_ms = performance.now();
  const steps: TestCall['steps'] = [];
  const note = (phase: string) => {
    if (steps.at(-1)?.phase !== phase) steps.push({ at_ms: Math.round(performance.now() - begun_at_ms), phase });
  };
  try {
    const result = await runOnce(job, provider, guard, note);
    return { ...nothing, ...result, steps, took_ms: Math.round(performance.now() - begun_at_ms) };
  } finally {
    await provider.close?.();
  }
}

export const nothing = { message: null, text: null, files: [], units: {}, cost: null, upstream_cost: null };

/** The service turns files into the form that an upstream takes; here they have to be in it. */
function assertFilesFit({ model, input, route }: TestCallJob, provider: Provider): void {
  const form_taken = mediaForm(provider, route.options) ?? 'either';
  const media = form_taken === 'stream' ? 'data' : form_taken;
  for (const { name } of model.media) {
    for (const value of [input[name] ?? []].flat()) {
      const form = typeof value === 'string' && isDataUrl(value) ? 'data' : 'link';
      if (media === 'either' || media === form) continue;
      const form_name = media === 'link' ? 'an https link' : 'a data URL';
      throw new TestCallError(`This upstream takes ${form_name} in ${name}: give one with --input.`);
    }
  }
}

/** As `src/tasks/start.ts` and `src/tasks/poll.ts` do, without anything written down. */
async function runOnce(
  job: TestCallJob,
  provider: Provider,
  guard: Guard,
  note: (phase: string) => void,
): Promise<Result> {
  const { route, sent } = job;
  const begun_at_ms = performance.now();
  let state: RunState;
  try {
    note('submit');
    state = await provider.start({ ...contextOf(job), input: sent }, AbortSignal.timeout(route.timeout_ms.start));
  } catch (error) {
    return whyNot(error);
  }
  let has_started = false;
  while (state.phase === 'waiting' || state.phase === 'running') {
    note(state.phase);
    const { ref, poll_after_ms } = state;
    has_started ||= state.phase === 'running';
    if (isLate(route, { age_ms: performance.now() - begun_at_ms, has_started })) return giveUp(job, provider, ref);
    await sleep(pollDelay(route, poll_after_ms));
    try {
      state = await provider.poll(contextOf(job), ref, AbortSignal.timeout(poll_timeout_ms));
    } catch (error) {
      if (error instanceof NotStarted) return whyNot(error);
      note(`poll failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  note(state.phase);
  if (state.phase === 'done') return finished(job, guard, state);
  return { outcome: 'failed', message: state.phase === 'failed' ? `${state.type}: ${state.message}` : state.phase };
}

function contextOf({ model, route, task_id }: TestCallJob): RunContext {
  const { kind } = model;
  if (!isMediaKind(kind)) throw new TestCallError(`${model.id} produces no files.`);
  return runContext({ id: task_id, kind }, route, Date.now());
}

export function whyNot(error: unknown): Result {
  if (error instanceof NotStarted) return { outcome: 'not started', message: `${error.reason}: ${error.message}` };
  if (error instanceof InputRefused) return { outcome: 'refused', message: `${error.type}: ${error.message}` };
  const message = error instanceof Error ? error.message : String(error);
  return { outcome: 'unknown', message: `The provider may have taken it: ${message}` };
}

async function giveUp(job: TestCallJob, provider: Provider, ref: Json): Promise<Result> {
  const stopped = await stopRun(provider, contextOf(job), ref, () => undefined);
  const after = stopped === 'stopped' ? 'it was stopped' : 'it may go on and be charged';
  return { outcome: 'failed', message: `It was not ready within the route's time; ${after}.` };
}

async function finished(
  { model, input, provider, currency, prober }: TestCallJob,
  guard: Guard,
  state: RunState & { phase: 'done' },
): Promise<Result> {
  const measured = await measureFiles(state.files, {
    prober,
    types: model.output_types,
    rules: { allow: [], allow_private: provider.allow_private },
    stopped: new AbortController().signal, // the operator's process ends it
    fetch: async (url, options) =>
      (await guard.download(url, { ...options, dial_options: { proxy: provider.proxy } })).bytes,
  });
  if ('state' in measured) return { outcome: 'failed', message: measured.problem };
  const pricing = freezePricing(model, input, currency, { currencies: new Map([[currency, '1']]) });
  const units = unitsOfRun(state.units, pricing, measured);
  return {
    outcome: 'done',
    files: measured.map(fileOf),
    units,
    cost: exact(measuredCost(pricing, units, heldOf(model, input))),
    upstream_cost: state.upstream_cost ?? null,
  };
}

function fileOf({ content, extension, item }: MeasuredFile<Buffer>): TestCallFile {
  const { type: _, text: __, ...measures } = item;
  return { bytes: content, extension, ...measures };
}

/** Returns the units that a task would hold: a unit that is not measured is charged as held. */
function heldOf(model: Model, input: JsonObject): Units {
  try {
    return estimateUnits(model, input);
  } catch {
    return {}; // it depends on how long a file is
  }
}
