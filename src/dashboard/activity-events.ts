import { watchesAdmitted } from '../accounts/sign-in/sessions.ts';
import { callMarks, recentCalls } from '../chat/changes.ts';
import { StreamWriter } from '../chat/stream-writer.ts';
import type { Db, Queryable } from '../db/database.ts';
import type { Answer } from '../http/endpoint.ts';
import type { Clock } from '../lib/clock.ts';
import { projectsByKey } from '../money/ledger.ts';
import { recentTasks, taskMarks } from '../tasks/changes.ts';
import { makeObserver, type Observer, type RecentActivity, type Watcher } from './activity-observer.ts';
import { account_endpoint, type AccountCall } from './page.ts';

/**
 * Says when an account's tasks and calls have changed, as server-sent events; to a member of projects, when those of
 * their projects have. What has changed is in the lists: an event has no content, so it can be lost, and a reader who
 * connects anew reads the list once.
 */
export const activity_events = account_endpoint('GET', '/activity/events', 'read', handleEvents, { limited: 'own' });

/** The browser connects anew by itself, to another node perhaps. */
const stream_ms = 600_000;
const heartbeat_ms = 15_000;

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no', // nginx would hold the events back
};

const changed = Buffer.from('event: changed\ndata: {}\n\n');

type Parts = { readonly db: Db; readonly clock: Clock };

/** The stream ends when the browser goes, the session ends or the service stops. */
function handleEvents(parts: Parts, { account, person, scope, gone, draining }: AccountCall): Answer {
  const writer = new StreamWriter();
  const signal = AbortSignal.any([gone, draining]);
  const end = () => {
    signal.removeEventListener('abort', end);
    clearTimeout(over);
    clearInterval(heartbeat);
    unwatch();
    writer.end();
  };
  const unwatch = observerOf(parts).add({
    account_id: account.id,
    session_id: person.session_id,
    project_ids: scope?.project_ids,
    changed: () => writer.write(changed),
    over: () => end(),
  });
  writer.write(Buffer.from('retry: 1000\n\n'));
  const heartbeat = setInterval(() => writer.write(Buffer.from(': keep-alive\n\n')), heartbeat_ms);
  const over = setTimeout(end, stream_ms);
  signal.addEventListener('abort', end);
  if (signal.aborted) end();
  return { status: 200, headers, body: writer };
}

const observers = new WeakMap<Db['pool'], Observer>();

/** One for all pages of a process. */
function observerOf({ db, clock }: Parts): Observer {
  const existing = observers.get(db.pool);
  if (existing) return existing;
  // Patience of its own: lists and reports that take long do not hold it up.
  const quick: Queryable = { query: (text, values) => db.query(text, values, 'brief') };
  const observer = makeObserver({
    marksOf: (account_ids) => marksOf(quick, account_ids),
    recentOf: (account_ids) => recentOf(quick, account_ids),
    projectsOf: (key_ids) => projectsByKey(quick, key_ids),
    admitted: async (watchers) => new Set(await watchesAdmitted<Watcher>(quick, watchers, new Date(clock.now()))),
  });
  observers.set(db.pool, observer);
  return observer;
}

async function marksOf(db: Queryable, account_ids: readonly string[]): Promise<Map<string, string>> {
  const [tasks, calls] = await Promise.all([taskMarks(db, account_ids), callMarks(db, account_ids)]);
  return new Map(account_ids.map((id) => [id, `${tasks.get(id) ?? ''} ${calls.get(id) ?? ''}`]));
}

async function recentOf(db: Queryable, account_ids: readonly string[]): Promise<Map<string, RecentActivity>> {
  const [tasks, calls] = await Promise.all([recentTasks(db, account_ids), recentCalls(db, account_ids)]);
  return new Map(account_ids.map((id) => [id, { tasks: tasks.get(id) ?? none, calls: calls.get(id) ?? none }]));
}

const none = { newest: [], unfinished: [] };
