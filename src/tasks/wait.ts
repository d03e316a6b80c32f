import type { App } from '../app.ts';
import { finished_channel } from './finish.ts';
import type { TaskRef } from './task.ts';

/** Sleeps until tasks are final. */
type Waiting = { untilFinal(ref: TaskRef, timeout_ms: number, signal: AbortSignal): Promise<void> };

const opened = new WeakMap<App, Promise<Waiting>>();

/**
 * Resolves when the task is final, after `timeout_ms`, or when `signal` says that nobody listens any
 * more. All waiters of a node share one LISTEN connection and hold none of their own.
 */
export async function untilFinal(app: App, ref: TaskRef, timeout_ms: number, signal: AbortSignal): Promise<void> {
  const waiting = opened.get(app) ?? openWaiting(app);
  opened.set(app, waiting);
  await (await waiting).untilFinal(ref, timeout_ms, signal);
}

/** A NOTIFY may be lost with its connection: this often one query asks for all waiters at once. */
const look_every_ms = 1_000;

type Waiter = { account_id: string; done: () => void };

async function openWaiting({ db, listener, onStop }: App): Promise<Waiting> {
  const waiters = new Map<string, Set<Waiter>>();
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
  const unsubscribe = await listener.subscribe(finished_channel, { onPayload: wake, onGap: lookQuietly });
  const timer = setInterval(lookQuietly, look_every_ms);
  timer.unref();
  onStop(() => {
    clearInterval(timer);
    unsubscribe();
    for (const task_id of waiters.keys()) wake(task_id);
  });
  return { untilFinal: (ref, timeout_ms, signal) => sleep(waiters, ref, timeout_ms, signal) };
}

function sleep(
  waiters: Map<string, Set<Waiter>>,
  ref: TaskRef,
  timeout_ms: number,
  signal: AbortSignal,
): Promise<void> {
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
