/**
 * Returns how to ask for `work`, which reads something anew. It runs at once, never twice at the same time, and once more
 * for whatever was asked meanwhile: after a pause of `pauseMs()` since it began, so that what changes all the time is not
 * read all the time.
 */
export function oneAtATime(work: () => Promise<unknown>, pauseMs: () => number): () => void {
  let asked = 0;
  const run = async () => {
    const seen = asked;
    const pause = wait(pauseMs());
    await work().catch(() => undefined); // the list shows its own failure
    await pause;
    if (asked > seen) void run();
    else asked = 0;
  };
  return () => {
    asked += 1;
    if (asked === 1) void run();
  };
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
