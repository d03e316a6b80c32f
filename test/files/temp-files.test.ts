import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Semaphore } from '../../src/concurrency/semaphore.ts';
import { takeTempFiles, withTempFiles, type TempFileParts } from '../../src/files/temp-files.ts';

let data_dir: string;
let parts: TempFileParts;
/** The callers that have a place, and those that were refused. */
let events: string[];

beforeEach(async () => {
  data_dir = await mkdtemp(join(tmpdir(), 'medley-places-'));
  const temp_files = new Semaphore({ name: 'Requests with files', bound: 64, key_bound: 8 });
  parts = { config: { data_dir }, limits: { temp_files } };
  events = [];
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(data_dir, { recursive: true });
});

/** A request that opens its spool and keeps it; answers how it ends. */
function request(
  name: string,
  { account = 'acc', call = { gone: new AbortController().signal } } = {},
): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const over = withTempFiles(parts, account, call, async (spool) => {
    await spool.open();
    await spool.open(); // for its second file
    events.push(name);
    await promise;
  }).catch((error: Error) => void events.push(`${name}: ${error.message.slice(0, 8)}`));
  return () => {
    resolve();
    return over;
  };
}

const eight = ['1', '2', '3', '4', '5', '6', '7', '8'];
/** So many events, once they have happened. */
async function first(count: number): Promise<string[]> {
  await vi.waitUntil(() => events.length >= count, { timeout: 120_000 });
  return events;
}

test('a ninth request of an account waits for a slot, others do not, and an upload is refused at once', async () => {
  const [endFirst, ...ends] = eight.map((name) => request(name));
  const endNinth = request('9');
  const endOther = request('other', { account: 'another' });
  expect(await first(9)).toEqual([...eight, 'other']);
  expect(() => takeTempFiles(parts, 'acc')).toThrow('Too many requests with files');
  takeTempFiles(parts, 'another').release();
  await endFirst?.();
  expect(await first(10)).toEqual([...eight, 'other', '9']);
  await Promise.all([...ends, endNinth, endOther].map((end) => end()));
  takeTempFiles(parts, 'acc').release();
});

test('uploads share the slots of requests', async () => {
  const permits = eight.map(() => takeTempFiles(parts, 'acc'));
  const end = request('9');
  expect(() => takeTempFiles(parts, 'acc')).toThrow('Too many requests with files');
  expect(events).toEqual([]);
  permits[0]?.release();
  expect(await first(1)).toEqual(['9']);
  await end();
});

test('a request that has waited for a minute is refused', async () => {
  const ends = eight.map((name) => request(name));
  expect(await first(8)).toEqual(eight);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  void request('9');
  await vi.advanceTimersByTimeAsync(59_000);
  expect(events).toEqual(eight);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(events).toEqual([...eight, '9: Too many']);
  vi.useRealTimers();
  await Promise.all(ends.map((end) => end()));
});

test('a request whose caller disconnects ends at once and takes no slot when its turn comes', async () => {
  const [endFirst, ...ends] = eight.map((name) => request(name));
  const leaving = new AbortController();
  const call = { gone: leaving.signal };
  void request('left', { call });
  const endNext = request('next');
  expect(await first(8)).toEqual(eight);
  leaving.abort(new Error('the caller is gone'));
  expect(await first(9)).toEqual([...eight, 'left: Too many']);
  await request('left before', { call })();
  await endFirst?.();
  expect(await first(11)).toEqual([...eight, 'left: Too many', 'left before: Too many', 'next']);
  await Promise.all([...ends, endNext].map((end) => end()));
  for (const _ of eight) takeTempFiles(parts, 'acc'); // all of them are free
});
