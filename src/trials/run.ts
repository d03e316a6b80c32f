import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject, Model, ProviderConfig, Route } from '../catalog/model.ts';
import {
  estimateUnits,
  freezePricing,
  measuredCost,
  unitsOfOutputs,
  type MeasuredOutput,
  type Units,
} from '../catalog/price.ts';
import { GuardError, openGuard, type Guard } from '../net/guard.ts';
import { isDataUrl } from '../lib/data-url.ts';
import { exact } from '../money/money.ts';
import {
  InputRefused,
  NotStarted,
  type Adapter,
  type Provider,
  type RunFile,
  type RunRequest,
  type RunState,
  type UpstreamCost,
} from '../providers/provider.ts';
import { textExtension } from '../storage/media-types.ts';
import { probeAgain } from '../storage/probe.ts';
import { TrialError } from './plan.ts';

/** One call of a route by an operator: no account, no hold, no task. */

export type TrialJob = {
  model: Model;
  route: Route;
  provider: ProviderConfig;
  adapter: Adapter;
  /** As a caller would give it, with defaults. */
  input: JsonObject;
  /** The same in the upstream's words. */
  sent: JsonObject;
  currency: string;
  /** An upstream may take what has the same id for the same run. */
  task_id: string;
};

export type Trial = {
  outcome: 'done' | 'failed' | 'refused' | 'not started' | 'unknown';
  took_ms: number;
  steps: { at_ms: number; phase: string }[];
  /** Why not. */
  message: string | null;
  /** What a model that writes has written. */
  text: string | null;
  files: TrialFile[];
  units: Units;
  /** By the price of the model, in the base currency. */
  cost: string | null;
  upstream_cost: UpstreamCost | null;
};

export type TrialFile = { bytes: Buffer; extension: string; content_type: string; size_bytes: number } & Omit<
  MeasuredOutput,
  'type'
>;

type Result = Partial<Omit<Trial, 'took_ms' | 'steps'>> & Pick<Trial, 'outcome'>;

const call_limit_ms = 60_000;
const download_limits = { connect_timeout_ms: 10_000, idle_timeout_ms: 30_000, timeout_ms: 300_000, redirects_max: 3 };
const file_bytes_max = 1_073_741_824;

/** Runs a media model once, from the submit to its files. */
export async function tryRun(job: TrialJob): Promise<Trial> {
  const guard = openGuard();
  const provider = job.adapter.open?.(job.provider, { guard });
  if (!provider) throw new TrialError(`The adapter ${job.provider.adapter} makes no ${job.model.kind}.`);
  assertFilesFit(job, provider);
  const begun_at_ms = performance.now();
  const steps: Trial['steps'] = [];
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
function assertFilesFit({ model, input }: TrialJob, { media = 'either' }: Provider): void {
  for (const { name } of model.media) {
    for (const value of [input[name] ?? []].flat()) {
      const form = typeof value === 'string' && isDataUrl(value) ? 'data' : 'link';
      if (media === 'either' || media === form) continue;
      const form_name = media === 'link' ? 'an https link' : 'a data URL';
      throw new TrialError(`This upstream takes ${form_name} in ${name}: give one with --input.`);
    }
  }
}

async function runOnce(
  job: TrialJob,
  provider: Provider,
  guard: Guard,
  note: (phase: string) => void,
): Promise<Result> {
  const { timeout_ms } = job.route;
  const give_up_at_ms = performance.now() + timeout_ms.total;
  let state: RunState;
  try {
    note('submit');
    state = await provider.start(requestOf(job), AbortSignal.timeout(timeout_ms.start));
  } catch (error) {
    return whyNot(error);
  }
  while (state.phase === 'waiting' || state.phase === 'running') {
    note(state.phase);
    const { ref, poll_after_ms } = state;
    if (performance.now() > give_up_at_ms) return giveUp(job, provider, ref);
    await sleep(Math.min(Math.max(poll_after_ms, 20), job.route.poll.max_ms));
    try {
      state = await provider.poll(requestOf(job), ref, AbortSignal.timeout(call_limit_ms));
    } catch (error) {
      if (error instanceof NotStarted) return whyNot(error);
      note(`asked in vain: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  note(state.phase);
  if (state.phase === 'done') return finished(job, guard, state);
  return { outcome: 'failed', message: state.phase === 'failed' ? `${state.type}: ${state.message}` : state.phase };
}

function requestOf({ model, route, sent, task_id }: TrialJob): RunRequest {
  const { kind } = model;
  if (kind === 'chat' || kind === 'embedding') throw new TrialError(`${model.id} makes no files.`);
  return {
    task_id,
    kind,
    model: route.upstream_model,
    input: sent,
    options: route.options,
    output: route.output,
    start_limit_ms: route.timeout_ms.start,
    total_limit_ms: route.timeout_ms.total,
    now_ms: Date.now(),
  };
}

export function whyNot(error: unknown): Result {
  if (error instanceof NotStarted) return { outcome: 'not started', message: `${error.reason}: ${error.message}` };
  if (error instanceof InputRefused) return { outcome: 'refused', message: `${error.type}: ${error.message}` };
  const message = error instanceof Error ? error.message : String(error);
  return { outcome: 'unknown', message: `The provider may have taken it: ${message}` };
}

async function giveUp(job: TrialJob, provider: Provider, ref: Parameters<Provider['poll']>[1]): Promise<Result> {
  const stopped = await provider
    .cancel?.(requestOf(job), ref, AbortSignal.timeout(call_limit_ms))
    .catch(() => undefined);
  const after = stopped === 'stopped' ? 'it was stopped' : 'it may go on and be charged';
  return { outcome: 'failed', message: `It was not ready within the route's time; ${after}.` };
}

async function finished(
  { model, input, provider, currency }: TrialJob,
  guard: Guard,
  state: RunState & { phase: 'done' },
): Promise<Result> {
  const files: TrialFile[] = [];
  const outputs: MeasuredOutput[] = [];
  for (const file of state.files) {
    const saved = await keep(file, guard, provider.allow_private);
    if (typeof saved === 'string') return { outcome: 'failed', message: saved };
    files.push(saved.file);
    if (saved.output) outputs.push(saved.output);
  }
  const units = { ...state.units, ...unitsOfOutputs(outputs) };
  const pricing = freezePricing(model, input, currency, { currencies: new Map([[currency, '1']]) });
  return {
    outcome: 'done',
    files,
    units,
    cost: exact(measuredCost(pricing, units, heldOf(model, input))),
    upstream_cost: state.upstream_cost ?? null,
  };
}

/** What is not measured is charged as it would have been held. */
function heldOf(model: Model, input: JsonObject): Units {
  try {
    return estimateUnits(model, input);
  } catch {
    return {}; // it depends on how long a file is
  }
}

type Kept = { file: TrialFile; output?: MeasuredOutput };

/** A file with its measures, or why there is none. */
async function keep(file: RunFile, guard: Guard, allow_private: boolean): Promise<Kept | string> {
  if ('text' in file) {
    const bytes = Buffer.from(file.text);
    const { content_type } = file;
    return { file: { bytes, extension: textExtension(content_type), content_type, size_bytes: bytes.length } };
  }
  try {
    const bytes = 'bytes' in file ? file.bytes : await download(file, guard, allow_private);
    const result = await probeAgain(bytes);
    if (!result.ok) return `The provider sent a file that cannot be read: ${result.problem}`;
    const { type, extension, ...measures } = result.probe;
    return { file: { bytes, extension, ...measures }, output: { type, ...measures } };
  } catch (error) {
    if (error instanceof GuardError) return `Its result could not be fetched: ${error.message}`;
    throw error;
  }
}

async function download(
  { url, credentials }: Extract<RunFile, { url: string }>,
  guard: Guard,
  allow_private: boolean,
): Promise<Buffer> {
  const may_have_key = credentials && URL.canParse(url) && new URL(url).origin === credentials.origin;
  const { bytes } = await guard.download(url, {
    ...download_limits,
    rules: { allow: [], allow_private },
    headers: may_have_key ? credentials.headers : {},
    size_bytes_max: file_bytes_max,
    signal: AbortSignal.timeout(download_limits.timeout_ms),
  });
  return bytes;
}
