import type { OptionProblem } from '../../../catalog/check-settings.ts';
import { isObject, type JsonObject, type ProviderConfig } from '../../../catalog/model.ts';
import { idIn, unanswered } from '../../http/answers.ts';
import { openUpstream, type Answer, type Upstream } from '../../http/http.ts';
import { formStream } from '../../http/multipart-stream.ts';
import { goingOn, readPollState, unknownRun, type PollInterval, type PollState } from '../../http/poll-state.ts';
import { objectIn, textIn } from '../../http/reading.ts';
import { NotStarted, type Adapter, type AdapterParts, type Json, type Provider } from '../../provider.ts';
import type { InputFile, RemoteFile, RunContext, RunRequest, RunState } from '../../provider.ts';
import { failureIn, refusalOf } from './errors.ts';
import { inputProblems, readPlan, type Plan } from './plan.ts';
import { assign, fileNameOf, promptIdOf, promptOf, randomSeeds, type FieldAssignment } from './prompt.ts';
import { openDocuments } from './documents.ts';
import { openLister } from './offer.ts';
import { filesOf, type ViewedFile } from './results.ts';

/** The address of `python main.py`. */
const default_base_url = 'http://127.0.0.1:8188';

/** Uploaded files are in this folder of the machine's `input`. */
const subfolder = 'medley';

const poll_intervals: Record<'image' | 'video' | 'audio', PollInterval> = {
  image: { min_ms: 500, max_ms: 5_000 },
  audio: { min_ms: 500, max_ms: 5_000 },
  video: { min_ms: 2_000, max_ms: 10_000 },
};

/** The queue has the workflows of all that wait in it. */
const answer_bytes_max = 64_000_000;

/** Between its queue and its history ComfyUI loses sight of a run for less than a millisecond. */
const missing_max_ms = 10_000;

/**
 * ComfyUI on a machine of the operator's, by server.py and execution.py of github.com/Comfy-Org/ComfyUI, read
 * 2026-11-27. A route's options: `workflow` (in the API format, or its file), `inputs` (which field of a node each field
 * of the input sets), `outputs` (nodes whose files are the results), `seed` (`random`, or `fixed` as in the workflow).
 *
 * A run has an id of ours (`prompt_id`; ComfyUI since September 2025), so that a start whose answer was lost is looked
 * up before it is sent again. An older ComfyUI gives it another id; then the run is found by its `client_id`.
 * `api_key` is sent as a bearer token, for proxies; `headers` of the provider serve for other schemes.
 */
export const comfyui = {
  serves: (kind) => kind === 'image' || kind === 'video' || kind === 'audio',
  limits: { label: 'ComfyUI', max_active: 1 },
  file_options: ['workflow'],
  checkOptions,
  listModels: openLister(default_base_url, keyHeaders),
  has_whole_list: true,
  documents: openDocuments(default_base_url, keyHeaders),
  open,
} satisfies Adapter;

function checkOptions(options: JsonObject, _output: JsonObject, input_fields?: readonly string[]): OptionProblem[] {
  return [...readPlan(options).problems, ...inputProblems(options, input_fields)];
}

function keyHeaders({ api_key }: ProviderConfig): Record<string, string> {
  return api_key === undefined ? {} : { authorization: `Bearer ${api_key}` };
}

type Client = { upstream: Upstream; viewOf(file: ViewedFile): RemoteFile };

function open(config: ProviderConfig, parts: AdapterParts): Provider {
  const base_url = (config.base_url ?? default_base_url).replace(/\/+$/, '');
  const key = keyHeaders(config);
  const upstream = openUpstream({ ...config, base_url }, parts, {
    headers: { accept: 'application/json', ...key },
  });
  const credentials = { origin: new URL(base_url).origin, headers: { ...key, ...config.headers } };
  const viewOf = (file: ViewedFile) => {
    const url = `${base_url}/view?${new URLSearchParams({ ...file, ...config.query })}`;
    return Object.keys(credentials.headers).length === 0 ? { url } : { url, credentials };
  };
  const client = { upstream, viewOf };
  return {
    media: 'stream',
    idempotent: true,
    start: (run, signal) => start(client, run, signal),
    poll: async (run, ref, signal) => poll(client, run, readPollState(ref), signal),
    cancel: (_run, ref, signal) => cancel(client, readPollState(ref), signal),
    close: () => upstream.close(),
  };
}

async function start(client: Client, run: RunRequest, signal: AbortSignal): Promise<RunState> {
  const { upstream } = client;
  const { plan, problems } = readPlan(run.options);
  if (!plan) {
    const [wrong] = problems.filter(({ known_names }) => !known_names);
    const message = wrong ? `${wrong.field} ${wrong.message}` : 'workflow is missing';
    throw new NotStarted('refused', `the options of the route: ${message}`);
  }
  const from_input = assign(plan, run);
  const assigned = [...from_input, ...randomSeeds(plan, from_input, run.task_id)];
  const names = await namesOf(assigned);
  const prompt = promptOf(plan, assigned, (file) => `${subfolder}/${names.get(file)}`);
  const prompt_id = promptIdOf(run.task_id, prompt);
  const existing = await findRun(upstream, prompt_id, signal);
  if (existing !== undefined) return accepted(run, existing);
  for (const [file, name] of names) await upload(upstream, { file, name }, signal);
  const json = { prompt, prompt_id, client_id: prompt_id };
  const answer = await upstream.call({ method: 'POST', path: '/prompt', json, signal });
  if (!answer.ok) throw refusalOf(upstream, plan, answer);
  const id = textIn(answer.object(), 'prompt_id');
  if (id === undefined) throw new Error('the answer to the submit names no run');
  return accepted(run, id);
}

function accepted(run: RunRequest, id: string): RunState {
  return goingOn({ id, started_at_ms: run.now_ms }, 'waiting', run.now_ms, poll_intervals[run.kind]);
}

/** Returns the id of a run that an earlier start of the same task has left there. */
async function findRun(upstream: Upstream, prompt_id: string, signal: AbortSignal): Promise<string | undefined> {
  // `is_read: false`: where nobody listens, nothing was started.
  const get = async (path: string) => {
    const answer = await upstream.call({ method: 'GET', path, is_read: false, signal, answer_bytes_max });
    if (!answer.ok) throw upstream.refusal(answer);
    return answer.object();
  };
  const queue = await get('/queue');
  const queued = queuedRuns(queue).find(({ id, client_id }) => id === prompt_id || client_id === prompt_id);
  if (queued) return queued.id;
  return isObject((await get(`/history/${prompt_id}`))[prompt_id]) ? prompt_id : undefined;
}

type QueuedRun = { id: string; client_id: string | undefined; phase: 'waiting' | 'running' };

/** Entries of the queue are `[number, prompt_id, prompt, extra_data, outputs]`. */
function queuedRuns(queue: JsonObject): QueuedRun[] {
  const runs = (name: string, phase: QueuedRun['phase']) =>
    [queue[name] ?? []].flat(1).flatMap((entry): QueuedRun[] => {
      const [, id, , extra] = Array.isArray(entry) ? entry : [];
      const client_id = isObject(extra) ? textIn(extra, 'client_id') : undefined;
      return typeof id === 'string' ? [{ id, client_id, phase }] : [];
    });
  return [...runs('queue_running', 'running'), ...runs('queue_pending', 'waiting')];
}

/** Uploads a file under its name, over the same one of before. */
async function upload(
  upstream: Upstream,
  { file, name }: { file: InputFile; name: string },
  signal: AbortSignal,
): Promise<void> {
  const stream = formStream([
    { name: 'image', filename: name, file },
    { name: 'type', text: 'input' },
    { name: 'subfolder', text: subfolder },
    { name: 'overwrite', text: 'true' },
  ]);
  const answer = await upstream.call({ method: 'POST', path: '/upload/image', stream, signal });
  if (!answer.ok) throw upstream.refusal(answer);
  const response = answer.object();
  if (response['name'] !== name || response['subfolder'] !== subfolder)
    throw new NotStarted('unavailable', 'the machine has stored an uploaded file under another name');
}

async function namesOf(assigned: readonly FieldAssignment[]): Promise<Map<InputFile, string>> {
  const names = new Map<InputFile, string>();
  for (const { value } of assigned) {
    if (typeof value === 'object' && value !== null && !names.has(value)) names.set(value, await fileNameOf(value));
  }
  return names;
}

async function poll(client: Client, run: RunContext, state: PollState, signal: AbortSignal): Promise<RunState> {
  const id = idIn(state, 'id') ?? '';
  const interval = poll_intervals[run.kind];
  const entry = await historyOf(client.upstream, id, signal);
  if (entry) return ended(client, run, entry);
  const queue = await read(client.upstream, '/queue', signal);
  if (!Array.isArray(queue['queue_running']) || !Array.isArray(queue['queue_pending']))
    throw new Error('the answer to the poll is no queue');
  const queued = queuedRuns(queue).find((one) => one.id === id);
  if (queued) return goingOn(state, queued.phase, run.now_ms, interval);
  const missing = unknownRun(state, run.now_ms, interval, missing_max_ms);
  // Its queue is in its memory: a ComfyUI that was started again has no run of before.
  if (missing.phase === 'failed' && state.seen_running !== true)
    throw new NotStarted('unavailable', 'the machine has lost the run before its start');
  return missing;
}

async function historyOf(upstream: Upstream, id: string, signal: AbortSignal): Promise<JsonObject | undefined> {
  const history = await read(upstream, `/history/${encodeURIComponent(id)}`, signal);
  const entry: Json | undefined = history[id];
  return isObject(entry) ? entry : undefined;
}

async function read(upstream: Upstream, path: string, signal: AbortSignal): Promise<JsonObject> {
  const answer: Answer = await upstream.call({ method: 'GET', path, signal, answer_bytes_max });
  if (!answer.ok) throw unanswered(answer);
  return answer.object();
}

function ended({ upstream, viewOf }: Client, run: RunContext, entry: JsonObject): RunState {
  const plan: Plan | undefined = readPlan(run.options).plan;
  const failure = failureIn(upstream, plan, objectIn(entry, 'status'));
  if (failure) return failure;
  const files = filesOf(objectIn(entry, 'outputs'), run.kind, plan?.outputs);
  return { phase: 'done', files: files.map(viewOf) };
}

/** A run that waits is taken out of the queue; one at work is interrupted. Nobody is billed for either. */
async function cancel({ upstream }: Client, state: PollState, signal: AbortSignal): Promise<'stopped' | 'billed'> {
  const id = idIn(state, 'id') ?? '';
  const post = async (path: string, json: JsonObject) => {
    const answer = await upstream.call({ method: 'POST', path, json, is_read: true, signal });
    if (!answer.ok) throw new Error(`the cancel was answered ${answer.status}`);
  };
  await post('/queue', { delete: [id] });
  const queued = queuedRuns(await read(upstream, '/queue', signal)).find((one) => one.id === id);
  if (queued?.phase === 'waiting') return 'billed'; // it is still in the queue: nothing was confirmed
  if (queued) {
    await post('/interrupt', { prompt_id: id });
    return 'stopped';
  }
  const entry = await historyOf(upstream, id, signal);
  return entry && textIn(objectIn(entry, 'status'), 'status_str') !== 'error' ? 'billed' : 'stopped';
}
