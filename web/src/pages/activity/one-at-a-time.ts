/**
 * Returns a function that runs `work`, which reads something anew: it runs at once, never twice at the same time, and once more
 * for all calls meanwhile: after a pause of `pauseMs()` since it began, so that what changes all the time is not
 * read all the time.
 */
export function oneAtATime(work: () => Promise<unknown>, pauseMs: () => number): () => void {
  let call_count = 0;
  const run = async () => {
    const seen_count = call_count;
    const pause = wait(pauseMs());
    await work().catch(() => undefined); // the list shows its own failure
    await pause;
    if (call_count > seen_count) void run();
    else call_count = 0;
  };
  return () => {
    call_count += 1;
    if (call_count === 1) void run();
  };
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
