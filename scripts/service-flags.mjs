/**
 * Node's flags for the service. Objects of a chat call live for as long as its upstream takes: longer than a
 * young generation of 32 MB lasts under load, so that they were copied, moved to the old one and left there.
 * With 64 MB, and an old one that is collected when it has doubled, not quadrupled: 319 to 335 MB at the peak
 * instead of 338 to 420, at 0.97 to 1.07 of the calls (256 connections, paired).
 */
export const service_flags = ['--max-semi-space-size=64', '--heap-growing-percent=100'];

/**
 * Settings of glibc's allocator for the service; others ignore them. By default it gives each thread an arena
 * of its own, and after one large block has been freed it takes all blocks of that size from the arenas, where
 * they leave holes: after five minutes of `npm run fuzz` 805 MB were resident, with these 451. A call takes
 * the same CPU (0.277 and 0.286 ms, means of six pairs whose rounds differ by a third).
 */
export const service_env = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '131072',
};
