import { Semaphore } from '../concurrency/semaphore.ts';

/** Each has up to 15 MiB of its file in memory: what is read, what is being put together, what is being sent. */
const uploads_max = 16;

export type UploadLimit = { bucket_uploads: Semaphore };

export function uploadLimit(): UploadLimit {
  return { bucket_uploads: new Semaphore({ name: 'Uploads to the bucket', bound: uploads_max }) };
}
