import type { Logger } from 'pino';
import type { Db } from '../db/database.ts';
import type { Engine } from '../queue/queue.ts';
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
  readonly parts: Parts;
  waiting: Map<string, Notice>;
  /** Runs that were looked at just now, and what came since. */
  resting: Map<string, Notice | undefined>;
  gathering: boolean;
};

type Parts = {
  readonly db: Db;
  readonly engine: Pick<Engine, 'promote'>;
  readonly log: Logger;
  track(work: Promise<unknown>): void;
};

/** Brings the next poll of the run forward, if it is one that its upstream has. Never throws, waits for nothing. */
export type NoticeEvent = (run: RunName) => void;

/** Makes the memory of the events that came just now. */
export function makeNoticeEvent(parts: Parts): NoticeEvent {
  const notices: Notices = { parts, waiting: new Map(), resting: new Map(), gathering: false };
  return (run) => take(notices, { ...run, tries_left: 2 });
}

function take(notices: Notices, notice: Notice): void {
  const { task_id } = notice;
  if (notices.resting.has(task_id)) return void notices.resting.set(task_id, notice);
  if (notices.waiting.size + notices.resting.size >= runs_max) return;
  notices.waiting.set(task_id, notice);
  if (notices.gathering) return;
  notices.gathering = true;
  setTimeout(() => {
    notices.gathering = false;
    notices.parts.track(bringForward(notices));
  }, gather_ms).unref();
}

async function bringForward(notices: Notices): Promise<void> {
  const { db, engine, log } = notices.parts;
  const batch = [...notices.waiting.values()];
  notices.waiting.clear();
  for (const notice of batch) rest(notices, notice.task_id);
  try {
    const accepted = await acceptedAmong(db, batch);
    const promoted = await engine.promote('task.poll', [...accepted]);
    for (const notice of batch) {
      const { task_id, tries_left } = notice;
      if (promoted.has(task_id) || tries_left <= 1 || notices.resting.get(task_id)) continue;
      if (notices.resting.has(task_id)) notices.resting.set(task_id, { ...notice, tries_left: tries_left - 1 });
    }
  } catch (error) {
    log.debug({ error: String(error) }, 'events of runs were lost; their polls come later');
  }
}

function rest(notices: Notices, task_id: string): void {
  notices.resting.set(task_id, undefined);
  setTimeout(() => {
    const next = notices.resting.get(task_id);
    notices.resting.delete(task_id);
    if (next) take(notices, next);
  }, rest_ms).unref();
}
