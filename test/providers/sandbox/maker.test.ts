// isolated: it measures its process
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { CannotMake, Maker } from '../../../src/providers/sandbox/maker.ts';
import { type MediaRequest, readMediaRequest } from '../../../src/providers/sandbox/media-request.ts';
import { libraryThreads } from '../../helpers/library-threads.ts';
import { workedMs } from '../../helpers/work.ts';

let maker = new Maker();
const { signal } = new AbortController();

afterEach(async () => {
  await maker.close();
  maker = new Maker();
});

function image(text: string): MediaRequest {
  return readMediaRequest('image', { width: 32, height: 32 }, text);
}

function videoRequest(text: string, duration = 1): MediaRequest {
  return readMediaRequest('video', { duration }, text);
}

/** Returns how long all threads of this process have computed so far. */
function allWorkedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function sizes(files: Buffer[] | 'busy'): number[] | 'busy' {
  return files === 'busy' ? files : files.map((file) => file.length);
}

describe('Maker', () => {
  it('leaves the event loop free while it makes a video', async () => {
    await maker.make(image('warm'), signal);
    const [own_ms, all_ms] = [workedMs(), allWorkedMs()];
    await maker.make(videoRequest('a long one', 5), signal);
    expect((workedMs() - own_ms) / (allWorkedMs() - all_ms)).toBeLessThan(0.4);
  });

  it('makes images while it makes a video', async () => {
    await maker.make(image('warm'), signal);
    const done: string[] = [];
    const long = maker.make(videoRequest('a long one', 5), signal).then(() => done.push('film'));
    await maker.make(image('quick'), signal).then(() => done.push('picture'));
    await long;
    expect(done).toEqual(['picture', 'film']);
  });

  it('returns the files of one order to all who request it meanwhile', async () => {
    const [first, second] = await Promise.all([maker.make(image('one'), signal), maker.make(image('one'), signal)]);
    expect(first).toBe(second);
  });

  it('reports that it is busy instead of queueing a crowd', async () => {
    const videos = Array.from({ length: 6 }, (_, i) => maker.make(videoRequest(`film ${i}`), signal));
    const results = await Promise.all(videos);
    expect(results.map((result) => result === 'busy')).toEqual([false, false, false, false, true, true]);
    const images = await Promise.all(Array.from({ length: 40 }, (_, i) => maker.make(image(`${i}`), signal)));
    expect(images.filter((result) => result === 'busy')).toHaveLength(8);
    expect(await maker.make(videoRequest('film 5'), signal)).not.toBe('busy');
  });

  it('keeps what it makes for one who gave up and requests it again', async () => {
    const impatient = new AbortController();
    const first = maker.make(videoRequest('slow'), impatient.signal);
    impatient.abort(new Error('too slow'));
    await expect(first).rejects.toThrow('too slow');
    const before_ms = allWorkedMs();
    await maker.make(videoRequest('next'), signal); // films are made in turn, so the first is made by now
    const made_ms = allWorkedMs();
    expect(sizes(await maker.make(videoRequest('slow'), signal))).toHaveLength(1);
    expect(allWorkedMs() - made_ms).toBeLessThan((made_ms - before_ms) / 4); // less than half a film
  });

  it('starts again after its thread was closed', async () => {
    const [broken] = await Promise.allSettled([maker.make(videoRequest('never seen'), signal), maker.close()]);
    expect(broken).toMatchObject({ status: 'rejected', reason: { name: 'Error', message: 'the sandbox was closed' } });
    expect(sizes(await maker.make(image('again'), signal))).toHaveLength(1);
  });

  it('starts again after its thread died', async () => {
    process.once('worker', (thread: Worker) => void thread.terminate());
    const [broken] = await Promise.allSettled([maker.make(videoRequest('never seen'), signal)]);
    expect(broken).toMatchObject({
      status: 'rejected',
      reason: { name: 'Error', message: 'the sandbox thread ended' },
    });
    expect(sizes(await maker.make(image('again'), signal))).toHaveLength(1);
  });

  it('reports what cannot be made and goes on', async () => {
    const impossible = { ...readMediaRequest('image', {}, 'x'), n: 2 ** 33 };
    await expect(maker.make(impossible, signal)).rejects.toThrow(CannotMake);
    expect(sizes(await maker.make(image('fine'), signal))).toHaveLength(1);
  });

  it('keeps a process alive only for its work', async () => {
    const module = fileURLToPath(new URL('../../../src/providers/sandbox/maker.ts', import.meta.url));
    const script = `
      const { Maker } = await import(${JSON.stringify(module)});
      const order = { kind: 'image', text: 'x', seed: 0, width: 32, height: 32, n: 1 };
      const files = await new Maker().make(order, new AbortController().signal);
      console.log(files.length);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let printed = '';
    child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
    const [code] = await once(child, 'close'); // all that it printed has been read
    expect([printed.trim(), code]).toEqual(['1', 0]);
  });

  // By default libvips makes three, and loses an image that comes in the moment when they end (image-threads.ts).
  it.skipIf(process.platform !== 'linux')('gives the library all of its threads with the first image', async () => {
    await maker.make(image('first'), signal);
    expect(await libraryThreads(process.pid)).toBe(16);
  });
});
