import type { App } from '../app.ts';
import { acceptedAmong } from './attempts.ts';
import type { RunName } from './event-token.ts';

/** Upstreams that say that something has happened: the next look at the run comes at once. */

/** A run is looked at once per this time, however often its upstream calls. */
const rest_ms = 1_000;

/** Upstreams call for many runs at once: all of these are one statement. */
const gather_ms = 20;

/** More runs than one node has; what is beyond is found by its own poll. */
const runs_max = 20_000;

/** A call may come while the run is being looked at, or before its submit was written down: then once more. */
type Notice = RunName & { tries_left: number };

type Notices = {
  waiting: Map<string, Notice>;
  /** Runs that were looked at just now, and what came since. */
  resting: Map<string, Notice | undefined>;
  gathering: boolean;
};

const all = new WeakMap<App, Notices>();

/** Brings the next poll of the run forward, if it is one that its upstream has. Never throws, waits for nothing. */
export function noticeEvent(app: App, run: RunName): void {
  const notices = all.get(app) ?? { waiting: new Map(), resting: new Map(), gathering: false };
  all.set(app, notices);
  take(app, notices, { ...run, tries_left: 2 });
}

function take(app: App, notices: Notices, notice: Notice): void {
  const { task_id } = notice;
  if (notices.resting.has(task_id)) return void notices.resting.set(task_id, notice);
  if (notices.waiting.size + notices.resting.size >= runs_max) return;
  notices.waiting.set(task_id, notice);
  if (notices.gathering) return;
  notices.gathering = true;
  setTimeout(() => {
    notices.gathering = false;
    app.track(bringForward(app, notices));
  }, gather_ms).unref();
}

async function bringForward(app: App, notices: Notices): Promise<void> {
  const batch = [...notices.waiting.values()];
  notices.waiting.clear();
  for (const notice of batch) rest(app, notices, notice.task_id);
  try {
    const accepted = await acceptedAmong(app.db, batch);
    const hastened = await app.engine.hasten('task.poll', [...accepted]);
    for (const notice of batch) {
      const { task_id, tries_left } = notice;
      if (hastened.has(task_id) || tries_left <= 1 || notices.resting.get(task_id)) continue;
      if (notices.resting.has(task_id)) notices.resting.set(task_id, { ...notice, tries_left: tries_left - 1 });
    }
  } catch (error) {
    app.log.debug({ error: String(error) }, 'events of runs were lost; their polls come later');
  }
}

function rest(app: App, notices: Notices, task_id: string): void {
  notices.resting.set(task_id, undefined);
  setTimeout(() => {
    const next = notices.resting.get(task_id);
    notices.resting.delete(task_id);
    if (next) take(app, notices, next);
  }, rest_ms).unref();
}
