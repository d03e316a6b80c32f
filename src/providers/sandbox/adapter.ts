/**
 * The built-in provider: makes real files without a network and behaves as the directives in the
 * prompt and the route's options say. A run is all in its `ref`, so it survives any restart.
 */
import { assert } from '../../lib/assert.ts';
import { isRecord } from '../../lib/is-record.ts';
import {
  type Adapter,
  type AdapterParts,
  InputRefused,
  type Json,
  NotStarted,
  type Provider,
  type RunRequest,
  type RunState,
} from '../provider.ts';
import type { Prober } from '../../storage/probe.ts';
import { openSandboxChat } from './chat.ts';
import { embed } from './embedding.ts';
import { moderate } from './moderation.ts';
import { rerank } from './rerank.ts';
import { videoAvailable } from './encoder.ts';
import { CannotMake, Maker } from './maker.ts';
import { type MediaRequest, readMediaRequest } from './media-request.ts';
import { imageSeed } from './image-seed.ts';
import { type Outcome, readOutcome, readScript } from './script.ts';
import { readRecording, readTranscriptRequest, type TranscriptRequest, writeTranscript } from './transcript.ts';

/** Duration of a run without a directive: videos and audio are seen running for a moment. */
const usual_ms: Record<Run['order']['kind'], number> = { image: 0, video: 500, audio: 500, transcript: 0 };

/** `[[hang]]` ends here, whatever the model's own time limit is. */
const hang_ms_max = 20_000;

/** It knows when a run ends: to look more often than routes do anyway would only cost. */
const pause_ms_max = 10_000;
const busy_pause_ms = 500;

/** A run as its `ref` holds it; everything that happens follows from it and the time. */
type Run = { order: MediaRequest | TranscriptRequest; ending: Outcome; started_at_ms: number; ready_at_ms: number };

/** Makes the sandbox. Starting a run twice is the same as once: nothing is kept and nothing is billed. */
export const sandbox = {
  serves: (kind) => kind !== 'video' || videoAvailable(),
  open: openSandbox,
  openChat: (_config: unknown, { prober }: Pick<AdapterParts, 'prober'>) => ({
    ...openSandboxChat(prober),
    embed,
    rerank,
    moderate,
  }),
} satisfies Adapter;

function openSandbox(_config: unknown, { prober }: Pick<AdapterParts, 'prober'>): Provider {
  const maker = new Maker();
  return {
    idempotent: true,
    media: 'data',
    start: async (request, signal) => {
      const run = await openRun(prober, request);
      try {
        return await stateOf(maker, run, request.now_ms, signal);
      } catch {
        return { phase: 'running', ref: run, poll_after_ms: busy_pause_ms }; // made when it is polled
      }
    },
    poll: async (request, ref, signal) => stateOf(maker, readRun(ref), request.now_ms, signal),
    cancel: async () => 'stopped',
    close: () => maker.close(),
  };
}

/** A new run, unless its script refuses it before the start. */
async function openRun(prober: Prober, { kind, model, input, options, now_ms }: RunRequest): Promise<Run> {
  const prompt = input['prompt'] ?? '';
  if (typeof prompt !== 'string') throw new InputRefused('invalid_request', 'The sandbox needs prompt to be a text.');
  const script = readScript(prompt, options);
  const request =
    model === 'transcript'
      ? await readRecording(prober, input, script.text)
      : readMediaRequest(kind, { ...input, ...imageSeed(input) }, script.text);
  if (script.refuse) {
    throw new NotStarted('refused', 'The sandbox refused the run before its start, as requested.', {
      simulated: true,
    });
  }
  if (kind === 'video' && !videoAvailable()) {
    throw new NotStarted('unavailable', 'The sandbox cannot make videos: its video encoder is not installed.');
  }
  const ready_at_ms = now_ms + (script.delay_ms ?? usual_ms[request.kind]);
  return { order: request, ending: script.outcome, started_at_ms: now_ms, ready_at_ms };
}

function readRun(ref: Json): Run {
  assert(isRecord(ref) && isRecord(ref['order']), 'a run of the sandbox has an order');
  const { order: request, started_at_ms, ready_at_ms } = ref;
  const { kind, text } = request;
  assert(typeof started_at_ms === 'number' && typeof ready_at_ms === 'number', 'a run has its times');
  const outcome = readOutcome(ref['ending']);
  if (kind === 'transcript')
    return { order: readTranscriptRequest(request), ending: outcome, started_at_ms, ready_at_ms };
  assert(kind === 'image' || kind === 'video' || kind === 'audio', 'an order has a kind');
  assert(typeof text === 'string', 'an order has a text');
  return { order: readMediaRequest(kind, request, text), ending: outcome, started_at_ms, ready_at_ms };
}

async function stateOf(maker: Maker, run: Run, now_ms: number, signal: AbortSignal): Promise<RunState> {
  const end_ms = run.ending === 'hang' ? run.started_at_ms + hang_ms_max : run.ready_at_ms;
  if (now_ms < end_ms) {
    const poll_after_ms = Math.min(end_ms - now_ms, pause_ms_max);
    return { phase: 'running', ref: run, poll_after_ms, simulated: true };
  }
  if (run.ending !== 'done') return { phase: 'failed', simulated: true, ...failures[run.ending] };
  const { order } = run;
  if (order.kind === 'transcript') return { phase: 'done', files: [writeTranscript(order)] };
  try {
    const files = await maker.make(order, signal);
    if (files === 'busy') return { phase: 'running', ref: run, poll_after_ms: busy_pause_ms };
    return { phase: 'done', files: files.map((bytes) => ({ bytes })) };
  } catch (error) {
    if (error instanceof CannotMake) return { phase: 'failed', type: 'internal_error', message: error.message };
    throw error;
  }
}

const failures = {
  fail: { type: 'upstream_error', message: 'The sandbox failed the run, as requested.' },
  moderate: { type: 'content_policy_violation', message: 'The sandbox found the content unfit, as requested.' },
  hang: { type: 'timeout', message: 'The sandbox did not finish within 20 seconds, as requested.' },
} as const;
