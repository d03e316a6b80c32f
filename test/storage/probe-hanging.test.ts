// nightly: each file that hangs costs 1.5 to 3 s of a core
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openProber, probeLimits } from '../../src/storage/probe.ts';
import { childrenOf, endless, processorTime, startProbing } from './probing.ts';
import * as samples from './samples.ts';

const limits = probeLimits();
const { probe: probeMedia, probeForCaller, close } = openProber(limits);
afterAll(() => close());

describe('a file that leads the parser into an endless loop', () => {
  test('delays neither results nor other accounts', async () => {
    const started = performance.now();
    const hanging = Array.from({ length: 4 }, () => probeForCaller('acct_1', endless));
    expect(limits.caller_files.waiting('acct_1')).toBe(3);
    expect((await probeForCaller('acct_2', samples.wav(1))).ok).toBe(true);
    expect((await probeMedia(samples.wav(1))).ok).toBe(true);
    expect(limits.caller_files.waiting('acct_1')).toBe(3); // the first hangs still
    const results = await Promise.all(hanging);
    expect(results.map((result) => result.ok)).toEqual(hanging.map(() => false));
    expect(performance.now() - started).toBeGreaterThan(4 * 3_000 - 100); // one behind the other
  });

  test('leaves the rest working, also again and again', async () => {
    const results = await Promise.all([endless, endless, samples.wav(1)].map((bytes) => probeMedia(bytes)));
    expect(results.map((result) => result.ok)).toEqual([false, false, true]);
  });
});

test('the processes that measure files survive the Ctrl-C that reaches the whole terminal, as long as the service does', async () => {
  const service = startProbing(`
    await probeMedia(Buffer.from('x'));
    const hanging = probeMedia(Buffer.from('${endless.toString('base64')}', 'base64'));
    console.log('at work');
    console.log((await hanging).reason);`);
  onTestFinished(() => void service.kill('SIGKILL'));
  await once(service.stdout, 'data');
  const [child = 0] = await childrenOf(service.pid ?? 0);
  const before = await processorTime(child);
  await vi.waitFor(async () => expect(await processorTime(child)).toBeGreaterThan(before + 5), { timeout: 120_000 }); // 50 ms in the loop
  process.kill(child, 'SIGINT');
  process.kill(child, 'SIGTERM');
  const [reason] = await once(service.stdout, 'data');
  expect(String(reason)).toBe('timeout\n'); // not `crashed`
});

/** Longer than a measurement may take of a processor. */
const stopped_ms = 2_000;

test('an honest file is measured even if the machine gives its process no time for two seconds', async () => {
  const hour = samples.mp3(137_813); // 0.3 s of a processor
  await probeMedia(samples.wav(1));
  const children = await childrenOf(process.pid);
  const used = async () => (await Promise.all(children.map(processorTime))).reduce((sum, time) => sum + time, 0);
  const before = await used();
  const measured = probeMedia(hour);
  await vi.waitFor(async () => expect(await used()).toBeGreaterThan(before + 2), { timeout: 120_000 }); // it is at work
  for (const child of children) process.kill(child, 'SIGSTOP');
  await delay(stopped_ms);
  for (const child of children) process.kill(child, 'SIGCONT');
  expect(await measured).toMatchObject({ ok: true, probe: { duration: 3600.013 } });
});
