import type { Db } from '../db/database.ts';
import type { Listener } from '../db/notify.ts';
import { finished_channel } from './finish.ts';
import type { TaskRef } from './task.ts';

/**
 * Resolves when the task is final, after `timeout_ms`, or when `signal` says that nobody listens any
 * more. All waiters of a node share one LISTEN connection and hold none of their own.
 */
export type UntilFinal = (ref: TaskRef, timeout_ms: number, signal: AbortSignal) => Promise<void>;

type Parts = { readonly db: Db; readonly listener: Listener; onStop(close: () => void): void };

/** Makes the wait for tasks, which begins to listen when the first one is waited for. */
export function makeUntilFinal(parts: Parts): UntilFinal {
  const waiters: Waiters = new Map();
  let is_listening = false;
  return (ref, timeout_ms, signal) => {
    if (!is_listening) listen(parts, waiters);
    is_listening = true;
    return sleep(waiters, ref, timeout_ms, signal);
  };
}

/** A NOTIFY may be lost with its connection: this often one query asks for all waiters at once. */
const look_every_ms = 1_000;

type Waiter = { account_id: string; done: () => void };

type Waiters = Map<string, Set<Waiter>>;

/** Wakes the waiters from now on. Nobody waits for the connection, which may take as long as the database is away. */
function listen({ db, listener, onStop }: Parts, waiters: Waiters): void {
  const wake = (task_id: string) => {
    for (const waiter of waiters.get(task_id) ?? []) waiter.done();
  };
  const look = async () => {
    if (waiters.size === 0) return;
    const refs = [...waiters].flatMap(([task_id, set]) => [...set].map(({ account_id }) => ({ account_id, task_id })));
    const rows = await db.query<{ id: string }>(
      `select id from tasks join unnest($1::text[], $2::text[]) as waited (account_id, id) using (account_id, id)
        where completed_at is not null`,
      [refs.map((ref) => ref.account_id), refs.map((ref) => ref.task_id)],
    );
    for (const row of rows) wake(row.id);
  };
  const lookQuietly = () => void look().catch(() => undefined); // the next look comes in a second
  const subscribed = listener.subscribe(finished_channel, { onPayload: wake, onGap: lookQuietly });
  void subscribed.then(lookQuietly); // some may have ended before
  const timer = setInterval(lookQuietly, look_every_ms);
  timer.unref();
  onStop(() => {
    clearInterval(timer);
    void subscribed.then((unsubscribe) => unsubscribe());
    for (const task_id of waiters.keys()) wake(task_id);
  });
}

function sleep(waiters: Waiters, ref: TaskRef, timeout_ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const set = waiters.get(ref.task_id) ?? new Set();
    const done = () => {
      clearTimeout(timeout);
      signal.removeEventListener('abort', done);
      set.delete(waiter);
      if (set.size === 0) waiters.delete(ref.task_id);
      resolve();
    };
    const waiter = { account_id: ref.account_id, done };
    const timeout = setTimeout(done, timeout_ms);
    signal.addEventListener('abort', done);
    waiters.set(ref.task_id, set.add(waiter));
    if (signal.aborted) done();
  });
}
