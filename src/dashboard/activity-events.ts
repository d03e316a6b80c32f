import { callMarks } from '../chat/record.ts';
import { StreamWriter } from '../chat/stream-writer.ts';
import type { Db } from '../db/database.ts';
import { ApiError } from '../errors.ts';
import type { Answer } from '../http/endpoint.ts';
import { taskMarks } from '../tasks/list.ts';
import { account_endpoint, type AccountCall } from './page.ts';

/**
 * Says when an account's tasks and calls have changed, as server-sent events. What has changed is in the lists: an event
 * has no content, so it can be lost, and a reader who connects anew reads the list once.
 */
export const activity_events = account_endpoint('GET', '/activity/events', 'read', handleEvents);

/** A page that is open has one of these. */
const streams_max = 500;
const streams_of_account_max = 50;

/** The browser connects anew by itself, and whoever may look no more is refused then. */
const stream_ms = 60_000;
const heartbeat_ms = 15_000;

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no', // nginx would hold the events back
};

function handleEvents({ db }: { db: Db }, { account, gone, draining }: AccountCall): Answer {
  const writer = new StreamWriter();
  const changed = Buffer.from('event: changed\ndata: {}\n\n');
  const unwatch = observerOf(db).add(account.id, () => writer.write(changed));
  writer.write(Buffer.from('retry: 1000\n\n'));
  const heartbeat = setInterval(() => writer.write(Buffer.from(': keep-alive\n\n')), heartbeat_ms);
  const signal = AbortSignal.any([gone, draining]);
  const end = () => {
    signal.removeEventListener('abort', end);
    clearTimeout(over);
    clearInterval(heartbeat);
    unwatch();
    writer.end();
  };
  const over = setTimeout(end, stream_ms);
  signal.addEventListener('abort', end);
  if (signal.aborted) end();
  return { status: 200, headers, body: writer };
}

/** Rows appear within a second of their event: half of it is the browser's. */
const look_every_ms = 400;

type Observer = {
  /**
   * Calls `tell` once the account is watched, so that nothing is missed before, and whenever its tasks or calls have
   * changed. Throws ApiError 429 if too many watch.
   */
  add(account_id: string, tell: () => void): () => void;
};

const observers = new WeakMap<Db['pool'], Observer>();

function observerOf(db: Db): Observer {
  const existing = observers.get(db.pool);
  if (existing) return existing;
  const observer = makeObserver((ids) => marksOf(db, ids));
  observers.set(db.pool, observer);
  return observer;
}

/** Patience of its own: lists and reports that take long do not hold it up. */
async function marksOf(db: Db, account_ids: readonly string[]): Promise<Map<string, string>> {
  const quick = { query: <T>(text: string, values?: readonly unknown[]) => db.query<T>(text, values, 'brief') };
  const [tasks, calls] = await Promise.all([taskMarks(quick, account_ids), callMarks(quick, account_ids)]);
  return new Map(account_ids.map((id) => [id, `${tasks.get(id) ?? ''} ${calls.get(id) ?? ''}`]));
}

/**
 * Looks at all accounts that somebody watches, in two statements for all, as long as somebody does. A look that fails is
 * made up for by the next one.
 */
function makeObserver(read: (account_ids: readonly string[]) => Promise<Map<string, string>>): Observer {
  const watchers = new Map<string, Set<() => void>>();
  const marks = new Map<string, string>();
  let timer: NodeJS.Timeout | undefined;
  const look = async () => {
    const now = await read([...watchers.keys()]).catch(() => new Map<string, string>());
    for (const [id, mark] of now) {
      const before = marks.get(id);
      if (watchers.has(id)) marks.set(id, mark);
      if (before !== mark) for (const tell of watchers.get(id) ?? []) tell();
    }
    timer = watchers.size > 0 ? setTimeout(() => void look(), look_every_ms) : undefined;
    timer?.unref();
  };
  return {
    add: (account_id, tell) => {
      const set = watchers.get(account_id) ?? new Set();
      const all = watchers.values().reduce((sum, { size }) => sum + size, 0);
      if (all >= streams_max || set.size >= streams_of_account_max) {
        throw new ApiError('rate_limit', 'Too many pages show live rows at the moment. They are read again regularly.');
      }
      watchers.set(account_id, set.add(tell));
      if (marks.has(account_id)) tell();
      timer ??= setTimeout(() => void look(), 0);
      return () => {
        set.delete(tell);
        if (set.size > 0 || watchers.get(account_id) !== set) return;
        watchers.delete(account_id);
        marks.delete(account_id);
      };
    },
  };
}
