import type { LinkParts } from './outputs.ts';
import type { Prober } from '../storage/probe.ts';
import { mediaTexts, replaceMedia } from '../catalog/media-fields.ts';
import type { JsonObject, MediaField, Route } from '../catalog/model.ts';
import type { Permit, Semaphore } from '../concurrency/semaphore.ts';
import { findFile, type CallerFile } from '../files/files.ts';
import { keepInput, type InputParts } from './inputs.ts';
import { checkUserUrl, type AddressRules } from '../net/address.ts';
import { isDataUrl, writeDataUrl } from '../lib/data-url.ts';
import { GuardError, type Guard } from '../net/guard.ts';
import { isId } from '../lib/ids.ts';
import { readBytes } from '../lib/read-bytes.ts';
import { InputRefused, mediaForm, NotStarted, type InputFile, type Provider } from '../providers/provider.ts';
import { makeLink } from '../storage/links.ts';
import type { Probe } from '../storage/probe-result.ts';
import { StorageUnavailable } from '../storage/storage.ts';
import type { PreparedRun } from './run.ts';
import type { Task } from './task.ts';

/** The parts of the app that giving a provider the files of an input takes. */
export type RunMediaParts = InputParts &
  LinkParts & {
    readonly guard: Guard;
    readonly prober: Prober;
    readonly limits: { input_memory: Semaphore };
    addressRules(): AddressRules;
  };

/** Files of an input in the form that the provider of a route takes. */

/** The size of all files that go into one request together (`input_memory` has eight times as much): base64 and JSON make five times of it while it is sent. */
export const inline_bytes_max = 32_000_000;

/** Size up to which files go inline if an upstream takes both forms: many refuse or slow down longer requests. */
const inline_preferred_bytes_max = 262_144;

/** A run may be late, and its upstream fetches when it begins. */
const link_extra_ms = 3_600_000;

const fetch_limits = { connect_timeout_ms: 10_000, idle_timeout_ms: 15_000, redirects_max: 3 };

/** The time for all links of an input together: meanwhile others wait for the memory that their files may need. */
const fetch_ms = 60_000;

/** The input for a route, or why it cannot be had: InputRefused is for the caller, NotStarted for the next route. */
export type PreparedInput = PreparedRun | NotStarted | InputRefused;

/** The replacement of a text in the input. */
type Plan =
  | { type: 'as it is' }
  | { type: 'link'; file: CallerFile }
  | { type: 'inline'; file: CallerFile }
  | { type: 'stream'; file: CallerFile }
  | { type: 'fetch' };

type RunTarget = { route: Route; provider: Provider; stopped: AbortSignal; fetch_ms?: number };

type Run = Omit<RunTarget, 'fetch_ms'> & { parts: RunMediaParts; task: Task };

type Fetching = Run & { fetch_until_ms: number };

/** Does `work` with the input for a route. `input` is the JSON text of the task's. */
export async function withInput<T>(
  parts: RunMediaParts,
  task: Task,
  input: string,
  target: RunTarget,
  work: (prepared: PreparedInput) => Promise<T>,
): Promise<T> {
  const plain: JsonObject = JSON.parse(input);
  const fields = (target.route.media ?? []).filter((field) => mediaTexts(plain, field).length > 0);
  if (fields.length === 0) return work({ input: plain });
  const run = { parts, task, ...target };
  const planned = await orProblem(run, () => planAll(run, plain, fields));
  if (planned instanceof Error) return work(planned);
  const fetches = [...planned.plans.values()].some((plan) => plan.type === 'fetch');
  const bytes = fetches ? inline_bytes_max : planned.inline_bytes;
  const permit = bytes > 0 ? await takeMemory(run, bytes) : undefined;
  try {
    const fetching = { ...run, fetch_until_ms: performance.now() + (target.fetch_ms ?? fetch_ms) }; // there is room now
    const resolved = await orProblem(run, () => give(fetching, plain, fields, planned));
    if (!(resolved instanceof Error)) permit?.shrink(resolved.inline_bytes);
    return await work(resolved);
  } finally {
    permit?.release();
  }
}

async function takeMemory({ parts, task, stopped }: Run, weight: number): Promise<Permit> {
  const permit = await parts.limits.input_memory.acquire(task.account_id, { weight, signal: stopped });
  if (!permit) throw stopped.reason;
  return permit;
}

async function orProblem<T>(
  { parts, task, stopped }: Run,
  work: () => Promise<T>,
): Promise<T | NotStarted | InputRefused> {
  try {
    return await work();
  } catch (error) {
    if (stopped.aborted) throw error; // given back: another worker begins anew
    if (error instanceof StorageUnavailable) throw error; // no route can have the file now: the task waits
    if (error instanceof InputRefused || error instanceof NotStarted) return error;
    parts.log.error({ task_id: task.id, err: error }, 'a file of an input could not be read');
    return ours('unavailable', 'a file of the input could not be read');
  }
}

/** By the texts of the input. A file counts as often as it is named: so often it stands in the request. */
type Planned = { plans: ReadonlyMap<string, Plan>; inline_bytes: number };

async function planAll(run: Run, input: JsonObject, fields: readonly MediaField[]): Promise<Planned> {
  const plans = new Map<string, Plan>();
  let inline_bytes = 0;
  await replaceMedia(input, fields, async (text, _field, place) => {
    const plan = plans.get(text) ?? (await planFor(run, text, place));
    plans.set(text, plan);
    if (plan.type === 'inline') inline_bytes += Number(plan.file.size_bytes);
    return text;
  });
  if (inline_bytes > inline_bytes_max) throw tooMuch();
  return { plans, inline_bytes };
}

/** The replacement of a text, and the bytes that each repetition of a fetched file adds to the request. */
type MediaValue = { value: string; repeated_bytes: number };

async function give(
  run: Fetching,
  input: JsonObject,
  fields: readonly MediaField[],
  planned: Planned,
): Promise<PreparedRun & { inline_bytes: number }> {
  const files = new Map<string, InputFile>();
  const resolved = new Map<string, MediaValue>();
  let { inline_bytes } = planned;
  const giveOne = async (
    text: string,
    plan: Plan,
    where: { field: MediaField; place: string },
  ): Promise<MediaValue> => {
    if (plan.type !== 'fetch') return { value: await valueOf(run, text, plan, files), repeated_bytes: 0 };
    const fetched = await fetchLink(run, text, { ...where, left_bytes: inline_bytes_max - inline_bytes });
    const value = await giveFetched(run, fetched, files);
    const held_bytes = files.has(value) ? 0 : fetched.bytes.length;
    inline_bytes += held_bytes;
    return { value, repeated_bytes: isDataUrl(value) ? held_bytes : 0 };
  };
  const replaced = await replaceMedia(input, fields, async (text, field, place) => {
    const plan = planned.plans.get(text);
    if (!plan) return text;
    const existing = resolved.get(text);
    inline_bytes += existing?.repeated_bytes ?? 0;
    if (inline_bytes > inline_bytes_max) throw tooMuch();
    const one = existing ?? (await giveOne(text, plan, { field, place }));
    resolved.set(text, one);
    return one.value;
  });
  return { input: replaced, inline_bytes, ...(files.size > 0 && { files }) };
}

/** For what is not the upstream's fault: health does not count it. */
function ours(reason: NotStarted['reason'], message: string): NotStarted {
  return new NotStarted(reason, message, { simulated: true });
}

function tooMuch(): NotStarted {
  return ours('refused', `the files of the input are larger than ${inline_bytes_max / 1_000_000} MB together`);
}

async function planFor(run: Run, text: string, place: string): Promise<Plan> {
  const { parts, task, route, provider } = run;
  const form = mediaForm(provider, route.options);
  if (form === undefined) throw ours('refused', `the provider ${route.provider} takes no files`);
  const takes_bytes = form === 'data' || form === 'stream';
  if (!isId('file', text)) return { type: takes_bytes || isTrusted(run) ? 'fetch' : 'as it is' };
  const file = await findFile(parts.db, { account_id: task.account_id, id: text }, new Date(parts.clock.now()));
  if (!file) throw new InputRefused('invalid_request', `${place}: the file was deleted, or expired, before the run.`);
  return planForFile(run, file);
}

function planForFile(run: Run, file: CallerFile): Exclude<Plan, { type: 'fetch' }> {
  const form = mediaForm(run.provider, run.route.options);
  if (form === 'stream') return { type: 'stream', file };
  const reachable = isReachable(run);
  if (form === 'link' && !reachable) {
    const message = 'the provider fetches files by links, but base_url is no address that it can reach';
    throw ours('refused', message);
  }
  const is_large = file.size_bytes > inline_preferred_bytes_max;
  const linked = form === 'link' || (form === 'either' && is_large && reachable);
  return { type: linked ? 'link' : 'inline', file };
}

/**
 * A provider in our own network reaches private addresses: ours, which is good, and those of others, so that it must
 * not be given links of a caller's choice.
 */
function isTrusted({ parts, route }: Run): boolean {
  return parts.catalog.current.providers.get(route.provider)?.allow_private ?? false;
}

function isReachable(run: Run): boolean {
  return checkUserUrl(run.parts.base_url(), { allow: [], allow_private: isTrusted(run) }) === undefined;
}

async function valueOf(
  run: Run,
  text: string,
  plan: Exclude<Plan, { type: 'fetch' }>,
  files: Map<string, InputFile>,
): Promise<string> {
  if (plan.type === 'link') return link(run, plan.file);
  if (plan.type === 'stream') {
    files.set(plan.file.id, await streamed(run, plan.file));
    return plan.file.id;
  }
  return plan.type === 'inline' ? readInline(run, plan.file) : text;
}

function link({ parts, route }: Run, file: CallerFile): string {
  const expires_at_ms = parts.clock.now() + route.timeout_ms.start + route.timeout_ms.total + link_extra_ms;
  return makeLink(parts.secret, { base_url: parts.base_url(), key: file.storage_key, expires_at_ms }).url;
}

/** Its first byte is asked for before the run is submitted: while our storage is away the task waits. */
async function streamed({ parts }: Run, { id, storage_key, content_type, size_bytes }: CallerFile): Promise<InputFile> {
  const first = await parts.storage.open(storage_key, { start: 0, end: 0 });
  if (!first) throw new Error(`the bytes of ${id} are gone`);
  first.stream.destroy();
  return {
    content_type,
    size_bytes: Number(size_bytes),
    open: async () => {
      const opened = await parts.storage.open(storage_key);
      if (!opened) throw new Error(`the bytes of ${id} are gone`);
      return opened.stream;
    },
  };
}

async function readInline({ parts }: Run, file: CallerFile): Promise<string> {
  const opened = await parts.storage.open(file.storage_key);
  if (!opened) throw new Error(`the bytes of ${file.id} are gone`);
  return writeDataUrl({
    content_type: file.content_type,
    bytes: await readBytes(opened.stream, inline_bytes_max),
  });
}

async function fetchLink(
  run: Fetching,
  url: string,
  { field, place, left_bytes }: { field: MediaField; place: string; left_bytes: number },
) {
  const bytes = await download(run, url, place, left_bytes);
  const probed = await run.parts.prober.probeForCaller(run.task.account_id, bytes);
  if (!probed.ok || probed.probe.type !== field.kind) {
    const actual = probed.ok ? probed.probe.content_type : 'no file that can be read';
    throw new InputRefused(
      'invalid_request',
      `${place}: the link leads to ${actual}, not to a file of type ${field.kind}.`,
    );
  }
  return { bytes, probe: probed.probe };
}

/** In the request itself, or as a file of the task's that is linked. */
async function giveFetched(
  run: Run,
  { bytes, probe }: { bytes: Buffer; probe: Probe },
  files: Map<string, InputFile>,
): Promise<string> {
  const { parts, task, provider, route } = run;
  const { content_type } = probe;
  const form = mediaForm(provider, route.options);
  const inline = form === 'data' || (form === 'either' && bytes.length <= inline_preferred_bytes_max);
  if (inline) return writeDataUrl({ content_type, bytes });
  const file = await keepInput(parts, task, { probe, content: bytes });
  return valueOf(run, file.id, planForFile(run, file), files);
}

async function download(run: Fetching, url: string, place: string, size_bytes_max: number): Promise<Buffer> {
  const { parts, stopped, fetch_until_ms } = run;
  const timeout_ms = Math.max(1, fetch_until_ms - performance.now());
  const limits = { ...fetch_limits, timeout_ms, rules: parts.addressRules(), size_bytes_max, signal: stopped };
  try {
    return (await parts.guard.download(url, limits)).bytes;
  } catch (error) {
    if (!(error instanceof GuardError)) throw error;
    if (error.code === 'too_large') throw tooMuch();
    throw new InputRefused('invalid_request', `${place} cannot be fetched: ${error.message}`);
  }
}
