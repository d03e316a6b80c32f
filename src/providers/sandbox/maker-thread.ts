/**
 * The thread in which the sandbox makes its files: encoding a video takes seconds of work that must
 * not stop the service. Images and audio are made as they come, videos one after another.
 */
import { parentPort } from 'node:worker_threads';
import { assert } from '../../lib/assert.ts';
import { makeAudio } from './audio.ts';
import { makeImages } from './image.ts';
import type { MediaRequest, VideoRequest } from './media-request.ts';

export type Question = { key: string; request: MediaRequest };
export type Answer = { key: string; files: Uint8Array<ArrayBuffer>[] } | { key: string; error: string };

assert(parentPort, 'the maker runs as a thread of its own');
const port = parentPort;
const send = (message: Answer, transfer: ArrayBuffer[]) => port.postMessage(message, transfer);
port.on('message', ({ key, request }: Question) => void answer(key, request));

async function answer(key: string, request: MediaRequest): Promise<void> {
  try {
    // Copies have memory of their own, which changes hands without being copied again.
    const files = (await makeFiles(request)).map((file) => new Uint8Array(file));
    const transfer = files.map((file) => file.buffer);
    send({ key, files }, transfer);
  } catch (error) {
    send({ key, error: String(error) }, []);
  }
}

let last_video: Promise<unknown> = Promise.resolve();

async function makeFiles(request: MediaRequest): Promise<Buffer[]> {
  if (request.kind === 'image') return makeImages(request);
  if (request.kind === 'audio') return [makeAudio(request)];
  const video = last_video.then(() => makeVideoAlone(request));
  last_video = video.catch(() => undefined);
  return [await video];
}

/** The parts for videos are loaded with the first of them: the first image comes 0.1 s sooner. */
async function makeVideoAlone(request: VideoRequest): Promise<Buffer> {
  const { makeVideo } = await import('./video.ts');
  return makeVideo(request);
}
