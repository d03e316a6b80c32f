/** Work on many rows, a few of them at once. */

export type RowState =
  | { state: 'waiting' | 'running' | 'stopped' }
  | { state: 'done'; text: string; cost: string; took_ms: number; request_id: string }
  | { state: 'failed'; message: string; request_id: string | undefined };

export const waiting_row: RowState = { state: 'waiting' };

type Options = {
  count: number;
  at_once: number;
  signal: AbortSignal;
  run: (index: number) => Promise<RowState>;
  show: (index: number, state: RowState) => void;
};

/** Ends when all rows have ended, or no more are begun because `signal` says so: those are shown as stopped. */
export async function runRows({ count, at_once, signal, run, show }: Options): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < count) {
      const index = next;
      next += 1;
      if (signal.aborted) {
        show(index, { state: 'stopped' });
        continue;
      }
      show(index, { state: 'running' });
      show(index, await run(index));
    }
  };
  await Promise.all(Array.from({ length: Math.min(at_once, count) }, work));
}
