import type { JsonObject } from '../../../src/catalog/model.ts';
import { submitted } from '../imitations/fal.ts';
import {
  sampleFile,
  startImitation,
  type ReceivedRequest,
  type Imitation,
  type Reply,
  type Role,
} from '../imitations/imitation.ts';
import { prediction } from '../imitations/replicate.ts';
import { startGate, type SwitchedProxy } from './gate.ts';

/**
 * Ways in which a provider fails a submit. `refused`: nobody listens. `silent`: no answer comes.
 * `dropped` and `never` take the run; then they drop it before its start, or never begin it.
 */
export const ways = [
  'refused',
  '401',
  '402',
  '404',
  '429 in seconds',
  '429 by date',
  '500',
  '502',
  '503',
  '504',
  'cut',
  'page',
  'silent',
  'dropped',
  'never',
] as const;
export type Way = (typeof ways)[number];

/** Nobody who has sent the submit knows whether there is a run; here there never is. */
const ambiguous_ways: ReadonlySet<Way> = new Set<Way>(['502', '504', 'cut', 'page', 'silent']);

function replyOf(way: Way): Reply | undefined {
  switch (way) {
    case '401':
      return { status: 401, json: { detail: 'Unauthenticated' } };
    case '402':
      return { status: 402, json: { detail: 'Insufficient credit' } };
    case '404':
      return { status: 404, json: { detail: 'no such model' } };
    case '429 in seconds':
      return { status: 429, headers: { 'retry-after': '1' }, json: { detail: 'slow down' } };
    case '429 by date':
      return { status: 429, headers: { 'retry-after': soon() }, json: { detail: 'slow down' } };
    case '500':
      return { status: 500, json: { detail: 'oops' } };
    case '502':
      return { status: 502, text: '<h1>Bad gateway</h1>' };
    case '503':
      return { status: 503, json: {} };
    case '504':
      return { status: 504, text: '' };
    case 'cut':
      return 'cut';
    case 'page':
      return { text: '<h1>Welcome</h1>' };
    case 'silent':
      return 'hang';
    default:
      return undefined;
  }
}

function soon(): string {
  return new Date(Date.now() + 2_000).toUTCString();
}

/** A run that a provider has taken, and its outcome. */
export type Run = {
  prompt: string;
  way: Way | undefined;
  polls: number;
  state: 'going' | 'done' | 'flagged' | 'canceled';
};

/** A provider and its journal. */
export type Site = {
  url: string;
  gate: SwitchedProxy;
  imitation: Imitation;
  /** By the provider's own id. */
  runs: Map<string, Run>;
  /** Prompt → how often it was submitted. */
  submits: Map<string, number>;
  /** Prompts of submits after which nobody but the provider knows whether there is a run. */
  lost: string[];
  /** Submits that were answered in each way. */
  failed: Map<Way, number>;
  /** From now on it fails in this way, each submit or three of four; without one it works. */
  fail(way: Way | undefined, share?: 'all' | 'most'): Promise<void>;
  stop(): Promise<void>;
};

/** The way in which a provider describes a run. */
type Tongue = {
  roleOf(method: string, path: string): Role;
  id(path: string): string;
  prompt(json: JsonObject): string;
  accepted(url: string, path: string, id: string): Reply;
  going(url: string, id: string, run: Run): Reply;
  result(url: string, id: string, run: Run): Reply;
};

/** Prompts that begin so are found unfit by either provider, once their run has started. */
export const flagged_prompt = 'flagged';

export async function startSite(tongue: Tongue): Promise<Site> {
  const file = await sampleFile('image');
  const site: Pick<Site, 'runs' | 'submits' | 'lost' | 'failed'> = {
    runs: new Map(),
    submits: new Map(),
    lost: [],
    failed: new Map(),
  };
  let failing: { way: Way; share: 'all' | 'most' } | undefined;
  let heard = 0;
  const submit = (request: ReceivedRequest, url: string): Reply => {
    const prompt = tongue.prompt(request.json);
    site.submits.set(prompt, (site.submits.get(prompt) ?? 0) + 1);
    heard += 1;
    const way = failing && (failing.share === 'all' || heard % 4 !== 0) ? failing.way : undefined;
    if (way) site.failed.set(way, (site.failed.get(way) ?? 0) + 1);
    if (way && ambiguous_ways.has(way)) site.lost.push(prompt);
    const reply = way && replyOf(way);
    if (reply) return reply;
    const id = `${'0'.repeat(20)}${String(site.runs.size).padStart(6, '0')}`;
    site.runs.set(id, { prompt, way, polls: 0, state: 'going' });
    return tongue.accepted(url, request.path, id);
  };
  const answer = (request: ReceivedRequest, { url }: { url: string }): Reply => {
    if (request.role === 'file') return { bytes: file };
    if (request.role === 'submit') return submit(request, url);
    const id = tongue.id(request.path);
    const run = site.runs.get(id);
    if (!run) return { status: 404, json: { detail: 'not found' } };
    if (request.role === 'cancel' && run.state === 'going') run.state = 'canceled';
    if (request.role === 'poll') run.polls += 1;
    if (run.way === undefined && run.state === 'going' && run.polls >= 2) {
      run.state = run.prompt.startsWith(flagged_prompt) ? 'flagged' : 'done';
    }
    return request.role === 'result' ? tongue.result(url, id, run) : tongue.going(url, id, run);
  };
  const roleOf = ({ method, path }: { method: string; path: string }) => tongue.roleOf(method, path);
  const imitation = await startImitation({ roleOf, answer });
  const gate = await startGate(imitation.url);
  const fail: Site['fail'] = async (way, share = 'all') => {
    failing = way === undefined ? undefined : { way, share };
    await (way === 'refused' ? gate.shut() : gate.open());
  };
  return {
    ...site,
    url: gate.url,
    gate,
    imitation,
    fail,
    stop: async () => {
      await gate.shut();
      await imitation.stop();
    },
  };
}

/** As Replicate tells of its runs. */
export const predictions: Tongue = {
  roleOf: (method, path) => {
    if (path.startsWith('/delivery/')) return 'file';
    if (path.endsWith('/cancel')) return 'cancel';
    return method === 'POST' ? 'submit' : 'poll';
  },
  id: (path) => path.split('/')[3] ?? '',
  prompt: ({ input }) => promptIn(input),
  accepted: (url, _, id) => ({ status: 201, json: prediction(url, id, { status: 'starting' }) }),
  going: (url, id, run) => ({ json: prediction(url, id, stateOfPrediction(url, run)) }),
  result: () => ({ status: 404, json: {} }),
};

function stateOfPrediction(url: string, run: Run): JsonObject {
  const started_at = '2026-08-01T10:00:01.000000Z';
  switch (run.state) {
    case 'done':
      return { status: 'succeeded', started_at, output: `${url}/delivery/a.png`, metrics: { predict_time: 2.5 } };
    case 'flagged':
      return { status: 'failed', started_at, error: 'NSFW content detected. Try running it again.' };
    case 'canceled':
      return { status: 'canceled' };
    case 'going':
      if (run.way === 'dropped') return { status: 'aborted' };
      return run.way === 'never' ? { status: 'starting' } : { status: 'processing', started_at };
  }
}

/** As fal's queue does. */
export const queue: Tongue = {
  roleOf: (method, path) => {
    if (path.startsWith('/files/')) return 'file';
    if (path.endsWith('/cancel')) return 'cancel';
    if (method === 'POST') return 'submit';
    return path.endsWith('/status') ? 'poll' : 'result';
  },
  id: (path) => path.split('/')[4] ?? '',
  prompt: (json) => promptIn(json),
  accepted: (url, path, id) => ({ json: submitted(url, path, id) }),
  going: (_, id, run) => {
    if (run.state === 'canceled') return { json: { status: 'OK' } };
    if (run.state !== 'going' || run.way === 'dropped') return { json: { status: 'COMPLETED', request_id: id } };
    return { status: 202, json: { status: run.way === 'never' ? 'IN_QUEUE' : 'IN_PROGRESS' } };
  },
  result: (url, _, run) => {
    if (run.state === 'done') return { json: { images: [{ url: `${url}/files/a.png` }] } };
    if (run.state === 'flagged') {
      const detail = [{ loc: ['body', 'prompt'], msg: 'The content was flagged.', type: 'content_policy_violation' }];
      return { status: 422, json: { detail } };
    }
    return { status: 503, headers: { 'x-fal-error-type': 'runner_scheduling_failure' }, json: { detail: 'no runner' } };
  },
};

function promptIn(value: unknown): string {
  return typeof value === 'object' && value !== null && 'prompt' in value ? String(value.prompt) : '';
}
