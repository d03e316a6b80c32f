import { inspect } from 'node:util';
import { openGuard } from '../../../src/net/guard.ts';
import type { Json, Provider, RunFile, RunRequest, RunState } from '../../../src/providers/provider.ts';
import type { RateClock } from '../../../src/concurrency/token-bucket.ts';
import { prober } from '../../helpers/prober.ts';
import type { Imitation } from '../imitations/imitation.ts';
import { jumpingClock, type JumpingClock } from '../rate-clock.ts';
import { configOf, never } from '../upstreams.ts';
import type { Conformance } from './case.ts';

/** An adapter before an imitation of its provider, and a run to ask for. */
export type Bench = { imitation: Imitation; provider: Provider; rate_clock: JumpingClock; run: RunRequest };

const guard = openGuard();
/** Outside the test of the pace nobody waits for it. */
const wide_awake: RateClock = { now: () => performance.now(), sleep: async () => undefined };

export async function openBench(subject: Conformance): Promise<Bench> {
  const rate_clock = jumpingClock();
  const imitation = await subject.imitate(() => rate_clock.now());
  return { imitation, provider: openProvider(subject, imitation.url), rate_clock, run: runOf(subject.run) };
}

export async function closeBench({ imitation, provider }: Bench): Promise<void> {
  await imitation.stop();
  await provider.close?.();
}

export function openProvider(
  { name, adapter, base_path = '', config = {} }: Pick<Conformance, 'name' | 'adapter' | 'base_path' | 'config'>,
  url: string,
  rate_clock = wide_awake,
): Provider {
  const provider = adapter.open?.(configOf(name, url + base_path, config), { guard, prober, rate_clock });
  if (!provider) throw new Error(`${name} opens nothing`);
  return provider;
}

/** A run as the module tasks asks for it. */
export function runOf(more: Pick<RunRequest, 'kind' | 'model' | 'input'> & Partial<RunRequest>): RunRequest {
  return {
    task_id: 'task_1',
    options: {},
    output: {},
    start_limit_ms: 60_000,
    total_limit_ms: 900_000,
    now_ms: 1_700_000_000_000,
    ...more,
  };
}

/** The reference of a run that was just started. */
export async function refOf(provider: Provider, run: RunRequest): Promise<Json> {
  const state = await provider.start(run, never);
  if (!('ref' in state)) throw new Error(`the run is ${inspect(state)}`);
  return state.ref;
}

/** Starts a run and polls it until it is over. */
export async function runToEnd(provider: Provider, run: RunRequest): Promise<RunState> {
  return pollToEnd(provider, run, await provider.start(run, never));
}

/** The same, and it has to have worked. */
export async function filesOf(provider: Provider, run: RunRequest): Promise<RunFile[]> {
  const state = await runToEnd(provider, run);
  if (state.phase !== 'done') throw new Error(`the run is ${inspect(state)}`);
  return state.files;
}

const polls_max = 20;

export async function pollToEnd(provider: Provider, run: RunRequest, first: RunState): Promise<RunState> {
  let state = first;
  for (let polls = 0; 'ref' in state && polls < polls_max; polls++) state = await provider.poll(run, state.ref, never);
  return state;
}

/** The bytes of a result, fetched as the tasks room does. */
export async function bytesOf(file: RunFile): Promise<Buffer> {
  if ('bytes' in file) return file.bytes;
  if (!('url' in file)) throw new Error('the result is no file');
  const may_have_key = file.credentials?.origin === new URL(file.url).origin;
  const { bytes } = await guard.download(file.url, {
    rules: { allow: [], allow_private: true },
    connect_timeout_ms: 60_000,
    idle_timeout_ms: 60_000,
    timeout_ms: 60_000,
    redirects_max: 3,
    size_bytes_max: 100_000_000,
    headers: may_have_key ? (file.credentials?.headers ?? {}) : {},
  });
  return bytes;
}
