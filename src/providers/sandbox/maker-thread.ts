/**
 * The thread in which the sandbox makes its files: encoding a film takes seconds of work that must
 * not stop the service. Pictures and melodies are made as they come, films one after another.
 */
import { parentPort } from 'node:worker_threads';
import { assert } from '../../lib/assert.ts';
import { makeAudio } from './audio.ts';
import { makeImages } from './image.ts';
import type { Order, VideoOrder } from './order.ts';

export type Question = { key: string; order: Order };
export type Answer = { key: string; files: Uint8Array<ArrayBuffer>[] } | { key: string; error: string };

assert(parentPort, 'the maker runs as a thread of its own');
const port = parentPort;
const send = (message: Answer, transfer: ArrayBuffer[]) => port.postMessage(message, transfer);
port.on('message', ({ key, order }: Question) => void answer(key, order));

async function answer(key: string, order: Order): Promise<void> {
  try {
    // Copies have memory of their own, which changes hands without being copied again.
    const files = (await makeFiles(order)).map((file) => new Uint8Array(file));
    const transfer = files.map((file) => file.buffer);
    send({ key, files }, transfer);
  } catch (error) {
    send({ key, error: String(error) }, []);
  }
}

let last_film: Promise<unknown> = Promise.resolve();

async function makeFiles(order: Order): Promise<Buffer[]> {
  if (order.kind === 'image') return makeImages(order);
  if (order.kind === 'audio') return [makeAudio(order)];
  const film = last_film.then(() => makeFilm(order));
  last_film = film.catch(() => undefined);
  return [await film];
}

/** The parts for films are loaded with the first of them: the first picture comes 0.1 s sooner. */
async function makeFilm(order: VideoOrder): Promise<Buffer> {
  const { makeVideo } = await import('./video.ts');
  return makeVideo(order);
}
