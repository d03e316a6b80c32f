import type { Db } from '../db/database.ts';
import type { Listener } from '../db/notify.ts';
import { finished_channel } from './finish.ts';

/** Sleeps until tasks are final. Waiters hold no database connection. */
export type Waiting = {
  /** Resolves when the task is final, after `timeout_ms`, or when `signal` says that nobody listens any more. */
  untilFinal(task_id: string, timeout_ms: number, signal: AbortSignal): Promise<void>;
  close(): void;
};

/** A NOTIFY may be lost with its connection: this often one query asks for all waiters at once. */
const look_every_ms = 1_000;

/** Listens for finished tasks on one connection for all waiters of this node. */
export async function openWaiting(db: Db, listener: Listener): Promise<Waiting> {
  const waiters = new Map<string, Set<() => void>>();
  const wake = (task_id: string) => {
    for (const resolve of waiters.get(task_id) ?? []) resolve();
  };
  const look = async () => {
    if (waiters.size === 0) return;
    const rows = await db.query<{ id: string }>(
      'select id from tasks where id = any ($1) and completed_at is not null',
      [[...waiters.keys()]],
    );
    for (const row of rows) wake(row.id);
  };
  const lookQuietly = () => void look().catch(() => undefined); // the next look comes in a second
  const unsubscribe = await listener.subscribe(finished_channel, { onPayload: wake, onGap: lookQuietly });
  const timer = setInterval(lookQuietly, look_every_ms);
  timer.unref();

  const untilFinal = (task_id: string, timeout_ms: number, signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timeout);
        signal.removeEventListener('abort', done);
        const set = waiters.get(task_id);
        set?.delete(done);
        if (set?.size === 0) waiters.delete(task_id);
        resolve();
      };
      const timeout = setTimeout(done, timeout_ms);
      signal.addEventListener('abort', done);
      const set = waiters.get(task_id) ?? new Set();
      waiters.set(task_id, set.add(done));
      if (signal.aborted) done();
    });

  return {
    untilFinal,
    close: () => {
      clearInterval(timer);
      unsubscribe();
      for (const set of waiters.values()) for (const done of set) done();
    },
  };
}
