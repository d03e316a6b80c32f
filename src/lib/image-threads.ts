/** Threads that libvips takes for one image at most: one that computes, with `sharp.concurrency(1)`, and two that write. */
const threads_per_image = 4;

/** The number of images at once: that of libuv's threads, which is 4 where nothing says another one. */
const images_at_once = 4;

/**
 * Gives sharp's library all of its threads at once and for good. It is called in the main thread of a process, before
 * anything loads sharp: the library reads this from the environment of the process when it begins.
 *
 * By default libvips ends threads that were idle for 15 s, and an image that is begun in the moment when the last of them
 * goes waits until another image is begun (8.18.7, `vips_threadset_run`). Until then neither the thread that asked for it
 * nor the process can end. It happened in a whole run of the tests on a busy machine; with that moment made 60 ms long, in
 * 4 of 4 tries. Threads of a fixed number never end. With too few of them images wait for each other without end.
 */
export function keepImageThreads(): void {
  const pool_size = Number(process.env['UV_THREADPOOL_SIZE']) || images_at_once;
  process.env['VIPS_MAX_THREADS'] ??= String(threads_per_image * Math.max(pool_size, images_at_once));
}
