import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  Medley,
  type CallOptions,
  type ChatChunk,
  type ChatStream,
  type MedleyOptions,
} from '../../clients/typescript/src/index.ts';

/** No service here: its own timers would stand still, too. */
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const request = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] };
const clientOf = (options: MedleyOptions) => new Medley({ base_url: 'http://127.0.0.1:9', api_key: 'k', ...options });

test.each<[number, MedleyOptions, CallOptions]>([
  [600_000, {}, {}],
  [7_000, { timeout_ms: 7_000 }, {}],
  [8_000, { timeout_ms: 7_000 }, { timeout_ms: 8_000 }],
])('a whole answer may take %i ms where the client has %j and the call %j', async (most_ms, settings, options) => {
  let is_aborted = false;
  const silent = (_url: string, { signal }: RequestInit) =>
    new Promise<Response>((_resolve, reject) => {
      signal?.addEventListener('abort', () => {
        is_aborted = true;
        reject(signal.reason);
      });
    });
  const call = clientOf({ ...settings, fetch: silent }).chat.create(request, options);
  const error = call.catch((reason: unknown) => reason);
  await vi.advanceTimersByTimeAsync(most_ms - 1);
  expect(is_aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  const message = `No complete answer came within ${most_ms} ms.`;
  expect(await error).toMatchObject({ name: 'RequestTimeoutError', message });
});

test('a stream that says nothing for a minute throws, and signs of life keep it open', async () => {
  const silences_ms = [...Array.from({ length: 20 }, () => 50_000), 61_000];
  const beat = new TextEncoder().encode(': keep-alive\n\n');
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    await vi.advanceTimersByTimeAsync(silences_ms.shift() ?? 0);
    controller.enqueue(beat);
  };
  const body = new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 });
  const stream = clientOf({ fetch: async () => new Response(body) }).chat.stream(request);
  const message = 'Nothing came for 60000 ms.';
  await expect(partsOf(stream)).rejects.toMatchObject({ name: 'RequestTimeoutError', message });
  expect(silences_ms).toEqual([]);
});

async function partsOf(stream: ChatStream): Promise<ChatChunk[]> {
  const parts: ChatChunk[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}
