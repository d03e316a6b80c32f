import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ALL_FORMATS, BufferSource, Input } from 'mediabunny';
import sharp from 'sharp';
import { afterAll, describe, expect, it } from 'vitest';
import {
  InputRefused,
  type Json,
  NotStarted,
  type RunRequest,
  type RunState,
} from '../../../src/providers/provider.ts';
import { sandbox } from '../../../src/providers/sandbox/adapter.ts';
import { prober } from '../../helpers/prober.ts';

const provider = sandbox.open(undefined, { prober });
const { signal } = new AbortController();
const now_ms = 1_000_000;

afterAll(() => provider.close?.());

function request(kind: RunRequest['kind'], prompt: string, more: Partial<RunRequest> = {}): RunRequest {
  const input = {
    prompt,
    ...(kind === 'image' && { width: 64, height: 64 }),
    ...(kind !== 'image' && { duration: 1 }),
  };
  return {
    task_id: 'task_x',
    kind,
    model: kind,
    input,
    options: {},
    output: {},
    start_limit_ms: 60_000,
    total_limit_ms: 900_000,
    now_ms,
    ...more,
  };
}

function start(kind: RunRequest['kind'], prompt: string, more?: Partial<RunRequest>): Promise<RunState> {
  return provider.start(request(kind, prompt, more), signal);
}

/** The state `after_ms` after the start, as another process sees it that knows the stored ref only. */
async function later(state: RunState, after_ms: number): Promise<RunState> {
  const other = sandbox.open(undefined, { prober });
  const stored: Json = JSON.parse(JSON.stringify(refOf(state)));
  try {
    return await other.poll(request('image', '', { now_ms: now_ms + after_ms }), stored, signal);
  } finally {
    await other.close?.();
  }
}

function refOf(state: RunState): Json {
  if (!('ref' in state)) throw new Error(`the run is ${state.phase}, not under way`);
  return state.ref;
}

function filesOf(state: RunState): Buffer[] {
  if (state.phase !== 'done') throw new Error(`the run is ${state.phase}, not done: ${JSON.stringify(state)}`);
  return state.files.map((file) => ('bytes' in file ? file.bytes : Buffer.alloc(0)));
}

describe('a sandbox run without directives', () => {
  it('makes an image at once', async () => {
    const [file] = filesOf(await start('image', 'a red bicycle'));
    expect(await sharp(file).metadata()).toMatchObject({ format: 'png', width: 64, height: 64 });
  });

  it('makes as many images as n says', async () => {
    const input = { prompt: 'x', width: 32, height: 32, n: 3 };
    expect(filesOf(await start('image', 'x', { input }))).toHaveLength(3);
  });

  it.each([
    ['video', 'video/mp4'],
    ['audio', 'audio/wav'],
  ] as const)('is seen running before it returns its %s', async (kind, type) => {
    const state = await start(kind, 'a red bicycle');
    expect(state).toMatchObject({ phase: 'running', poll_after_ms: 500 });
    expect(await later(state, 499)).toMatchObject({ phase: 'running', poll_after_ms: 1 });
    const [file] = filesOf(await later(state, 500));
    using media = new Input({ formats: ALL_FORMATS, source: new BufferSource(file ?? Buffer.alloc(0)) });
    expect(await media.getMimeType()).toContain(type);
    expect(await media.computeDuration()).toBeCloseTo(1, 3);
  });
});

describe('directives of the sandbox', () => {
  it('make a run take 3 s and no longer: [[delay 3s]]', async () => {
    const state = await start('image', '[[delay 3s]] a red bicycle');
    expect(state).toMatchObject({ phase: 'running', poll_after_ms: 3_000 });
    expect(await later(state, 2_000)).toMatchObject({ phase: 'running', poll_after_ms: 1_000 });
    expect(await later(state, 2_999)).toMatchObject({ phase: 'running', poll_after_ms: 1 });
    expect(await later(state, 3_000)).toMatchObject({ phase: 'done' });
  });

  it('are not drawn: the image is that of the prompt without them', async () => {
    const plain = filesOf(await start('image', 'a red bicycle'));
    expect(filesOf(await later(await start('image', '[[delay 1s]] a red bicycle'), 1_000))).toEqual(plain);
  });

  it('start a run that fails: [[fail]]', async () => {
    expect(await start('image', '[[fail]]')).toMatchObject({
      phase: 'failed',
      type: 'upstream_error',
      simulated: true,
    });
    const video_run = await start('video', '[[fail]]');
    expect(video_run.phase).toBe('running');
    expect(await later(video_run, 500)).toMatchObject({ phase: 'failed', type: 'upstream_error', simulated: true });
  });

  it('start a run that is blocked for its content: [[moderate]]', async () => {
    const failed = { phase: 'failed', type: 'content_policy_violation', simulated: true };
    expect(await start('image', '[[moderate]]')).toMatchObject(failed);
  });

  it('can be combined: a failure waits for its delay', async () => {
    const state = await start('audio', '[[fail]] [[delay 10s]]');
    expect(await later(state, 9_999)).toMatchObject({ phase: 'running' });
    expect(await later(state, 10_000)).toMatchObject({ phase: 'failed', type: 'upstream_error' });
  });

  it('refuse a run: [[fail before start]]', async () => {
    const refusal = start('image', '[[fail before start]] [[delay 3s]]');
    await expect(refusal).rejects.toThrow(NotStarted);
    await expect(refusal).rejects.toMatchObject({ reason: 'refused', simulated: true });
  });

  it('make a run end by its time limit of 20 s: [[hang]]', async () => {
    const state = await start('image', '[[hang]]');
    expect(state).toMatchObject({ phase: 'running' });
    expect(await later(state, 19_999)).toMatchObject({ phase: 'running', poll_after_ms: 1 });
    expect(await later(state, 20_000)).toMatchObject({ phase: 'failed', type: 'timeout', simulated: true });
  });

  it('count as text when they are malformed', async () => {
    expect(await start('image', '[[delay soon]] [[explode]]')).toMatchObject({ phase: 'done' });
  });
});

describe('options of a sandbox route', () => {
  it('refuse every run before its start', async () => {
    const refusal = start('image', 'x', { options: { behaviour: { fail: 'before_start' } } });
    await expect(refusal).rejects.toMatchObject({ name: 'NotStarted', reason: 'refused', simulated: true });
  });

  it('delay every run', async () => {
    const state = await start('image', 'x', { options: { behaviour: { delay: '2s' } } });
    expect(await later(state, 1_999)).toMatchObject({ phase: 'running' });
    expect(await later(state, 2_000)).toMatchObject({ phase: 'done' });
  });
});

describe('a sandbox run', () => {
  it('is fully described by its ref, so that two processes get the same bytes', async () => {
    const state = await start('audio', 'a red bicycle');
    expect(filesOf(await later(state, 600))).toEqual(filesOf(await later(state, 60_000)));
  });

  it('has a ref that any database stores', async () => {
    const state = await start('image', '[[delay 1s]] N\u0000UL \ud83d \u202e');
    expect(JSON.stringify(refOf(state))).not.toMatch(/\\u/); // no escape: no control character, no half pair
  });

  it('starts the same however often it is started', async () => {
    expect(provider.idempotent).toBe(true);
    expect(await start('video', 'x')).toEqual(await start('video', 'x'));
  });

  it.each([[{ prompt: 'x', width: 0 }], [{ prompt: 'x', n: 1e308 }], [{ prompt: 5 }]])(
    'with impossible input is refused on every route: %j',
    async (input) => {
      const refusal = start('image', '', { input });
      await expect(refusal).rejects.toThrow(InputRefused);
      await expect(refusal).rejects.toMatchObject({ type: 'invalid_request' });
    },
  );

  it('is stopped by a cancel', async () => {
    const state = await start('image', '[[hang]]');
    expect(await provider.cancel?.(request('image', ''), refOf(state), signal)).toBe('stopped');
  });

  it('counts as running, not lost, when its image cannot be made in time', async () => {
    const state = await provider.start(request('image', 'late'), AbortSignal.abort());
    expect(state).toMatchObject({ phase: 'running' });
    expect(await later(state, 1_000)).toMatchObject({ phase: 'done' });
  });
});

describe('the sandbox without the optional video encoder', () => {
  it('lacks only videos', async () => {
    const module = fileURLToPath(new URL('../../../src/providers/sandbox/adapter.ts', import.meta.url));
    const script = `
      import Module from 'node:module';
      const resolve = Module._resolveFilename;
      Module._resolveFilename = (name, ...rest) => {
        if (name === 'h264-mp4-encoder') throw new Error('not installed');
        return resolve.call(Module, name, ...rest);
      };
      const { sandbox } = await import(${JSON.stringify(module)});
      const provider = sandbox.open(undefined, {});
      const start = (request) => provider.start(request, new AbortController().signal).catch((error) => error);
      const film = await start(${JSON.stringify(request('video', 'x'))});
      const picture = await start(${JSON.stringify(request('image', 'x'))});
      console.log(film.name, film.reason, film.simulated, picture.phase);`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    expect(stdout.trim()).toBe('NotStarted unavailable false done');
  });
});
