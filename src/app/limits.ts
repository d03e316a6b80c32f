import { totalmem } from 'node:os';
import { hashingLimit } from '../accounts/sign-in/hashing.ts';
import { mailLimit } from '../accounts/mailer.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import { Semaphore } from '../concurrency/semaphore.ts';
import { readsLimit } from '../db/reads.ts';
import { probeLimits } from '../storage/probe.ts';
import { thumbnailLimits } from '../storage/thumbnails.ts';
import { uploadLimit } from '../storage/upload-limit.ts';

/** Everything that this process does only so much of at once. Operators see it on the page Queue & workers. */
export type Limits = ReturnType<typeof openLimits>;

/** Keys are accounts unless it says something else. */
export function openLimits({ catalog }: { catalog: CatalogHolder }) {
  return {
    /** Chat calls of each API key at once: whoever reads slowly holds a connection to an upstream as long as the call may last. */
    chat_calls: new Semaphore({
      name: 'Chat, embeddings, rankings and moderation',
      key_bound: () => catalog.current.settings.limits.chat_at_once,
    }),

    /** Calls that test a model all of whose routes are open. The key is an account and a model. */
    route_probes: new Semaphore({ name: 'Tests of failing routes', key_bound: 1 }),

    body_memory: new Semaphore({
      name: 'Memory for large request bodies',
      unit: 'bytes',
      bound: bodiesBytesMax(),
      key_bound: 'fair',
    }),

    /** Files that are fetched for upstreams which fetch none: each is in memory three times. Eight calls with the most. */
    link_memory: new Semaphore({
      name: 'Memory for files behind chat links',
      unit: 'bytes',
      bound: 8 * 67_108_864,
      key_bound: 'fair',
    }),

    /** Files inside of requests for media: base64 and JSON make five times of it. Eight requests with the most. */
    input_memory: new Semaphore({ name: 'Memory for files in media requests', unit: 'bytes', bound: 8 * 32_000_000 }),

    /** Files are on the disk before anything counts them. */
    temp_files: new Semaphore({ name: 'Requests with files', bound: 64, key_bound: 8 }),

    input_downloads: new Semaphore({ name: 'Downloads of input files', bound: 8, key_bound: 2 }),

    ...probeLimits(),
    ...thumbnailLimits(),
    ...uploadLimit(),

    mails: mailLimit(),
    password_hashes: hashingLimit(),

    ...readsLimit(),

    /** Jobs that wait for somebody else share a node freely; the database sets the pace before this does. */
    start_slots: new Semaphore({ name: 'Task starts', bound: 1_024, key_bound: 'fair' }),

    /** Each has a connection to an upstream for as long as its answer is written. */
    response_slots: new Semaphore({ name: 'Responses in the background', bound: 256, key_bound: 'fair' }),

    /** Each makes four calls at once. */
    batch_slots: new Semaphore({ name: 'Batches', bound: 16, key_bound: 'fair' }),

    /** An upstream that answers at once keeps a start waiting for minutes, and a result that comes slowly its poll. */
    poll_slots: new Semaphore({ name: 'Task polls', bound: 256, key_bound: 'fair' }),
  };
}

/**
 * A body of 31 MB takes 100 to 150 MB while it is on its way: its bytes, what is parsed of them, and what is sent on.
 * So all of them take a third of the memory at most. Thirty that hung took 4.3 GB before they were counted, 1.3 since.
 */
function bodiesBytesMax(): number {
  const memory_bytes = Math.min(totalmem(), process.constrainedMemory() || Infinity);
  return Math.max(bodies_bytes_min, Math.min(512_000_000, Math.floor(memory_bytes / 16)));
}

/** Two of the largest that there may be. */
const bodies_bytes_min = 64_000_000;
