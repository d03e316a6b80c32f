import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  makeObserver,
  watchers_max,
  watchers_of_account_max,
  type Reads,
  type RecentActivity,
  type Watcher,
} from '../../src/dashboard/activity-observer.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/**
 * A service whose accounts change when `marks` do, and whose sessions are over when they are in `over`. In account "a" are
 * calls of keys, whose project is the part before the dot.
 */
function makeService() {
  const marks = new Map<string, string>();
  const calls: { id: string; key_id: string; status: string }[] = [];
  const addCall = (key_id: string) => {
    calls.unshift({ id: `req_${String(calls.length).padStart(9, '0')}`, key_id, status: 'ended' });
    marks.set('a', String(calls.length));
  };
  const reads_of_rows: (readonly string[])[] = [];
  const over = new Set<string>();
  const looks: (readonly string[])[] = [];
  let is_down = false;
  const reads: Reads = {
    marksOf: async (ids) => {
      looks.push(ids);
      if (is_down) throw new Error('the database is away');
      return new Map(ids.map((id) => [id, marks.get(id) ?? '']));
    },
    recentOf: async (ids) => {
      reads_of_rows.push(ids);
      if (is_down) throw new Error('the database is away');
      return new Map(ids.map((id) => [id, recentOf(id === 'a' ? [...calls] : [])]));
    },
    projectsOf: async (key_ids) => new Map(key_ids.map((key_id) => [key_id, key_id.split('.')[0] ?? ''])),
    admitted: async (watchers) => new Set(watchers.filter(({ session_id }) => !over.has(session_id))),
  };
  const seen: string[] = [];
  const watcher = (account_id: string, session_id = 'session', project_ids?: readonly string[]): Watcher => ({
    account_id,
    session_id,
    project_ids,
    changed: () => seen.push(`${[account_id, ...(project_ids ?? [])].join(' ')} changed`),
    over: () => seen.push(`${session_id} over`),
  });
  const setDown = (next: boolean) => void (is_down = next);
  return { observer: makeObserver(reads), marks, over, looks, seen, watcher, setDown, addCall, reads_of_rows };
}

function recentOf(newest: RecentActivity['calls']['newest']): RecentActivity {
  return { tasks: { newest: [], unfinished: [] }, calls: { newest, unfinished: [] } };
}

const aLook = () => vi.advanceTimersByTimeAsync(400);

describe('an observer of accounts', () => {
  it('tells each watcher once that it watches, and then of every change of its account alone', async () => {
    const { observer, marks, seen, watcher } = makeService();
    observer.add(watcher('a'));
    observer.add(watcher('b'));
    await aLook();
    expect(seen.splice(0)).toEqual(['a changed', 'b changed']);
    await aLook();
    expect(seen).toEqual([]);
    marks.set('b', 'more');
    await aLook();
    expect(seen.splice(0)).toEqual(['b changed']);
    observer.add(watcher('b')); // what changed before is in the list that it reads now
    expect(seen).toEqual(['b changed']);
  });

  it('looks at all accounts at once, and at none when nobody watches', async () => {
    const { observer, looks, watcher } = makeService();
    const stops = ['a', 'b', 'a'].map((id) => observer.add(watcher(id)));
    await aLook();
    expect(looks.at(-1)).toEqual(['a', 'b']);
    stops[0]?.();
    stops[0]?.(); // a second time changes nothing
    await aLook();
    expect(looks.at(-1)).toEqual(['a', 'b']);
    for (const stop of stops) stop();
    await aLook();
    const count = looks.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(looks).toHaveLength(count);
    expect(vi.getTimerCount()).toBe(0);
    observer.add(watcher('c'));
    await aLook();
    expect(looks.at(-1)).toEqual(['c']);
  });

  it('makes up for looks that failed', async () => {
    const { observer, marks, seen, watcher, setDown } = makeService();
    observer.add(watcher('a'));
    await aLook();
    setDown(true);
    marks.set('a', 'more');
    await vi.advanceTimersByTimeAsync(10_000);
    expect(seen.splice(0)).toEqual(['a changed']);
    setDown(false);
    await aLook();
    expect(seen).toEqual(['a changed']);
  });

  it('tells nothing to those whose session is over but that', async () => {
    const { observer, marks, over, seen, watcher } = makeService();
    const leaving = watcher('a', 'theirs');
    const stop = observer.add({
      ...leaving,
      over: () => {
        stop();
        leaving.over();
      },
    });
    await aLook();
    expect(seen.splice(0)).toEqual(['a changed']);
    over.add('theirs');
    marks.set('a', 'more');
    await aLook();
    await aLook();
    expect(seen).toEqual(['theirs over']);
  });

  it('has as many watchers of one account, and of all, as it says, and room again when one leaves', async () => {
    const { observer, watcher } = makeService();
    const accounts = Array.from({ length: watchers_max / watchers_of_account_max }, (_, i) => `account ${i}`);
    const stops = accounts.map((id) =>
      Array.from({ length: watchers_of_account_max }, () => observer.add(watcher(id))),
    );
    const refusal = expect.objectContaining({ kind: 'rate_limit' });
    expect(() => observer.add(watcher('another'))).toThrow(refusal);
    stops[0]?.[0]?.();
    expect(() => observer.add(watcher('account 1'))).toThrow(refusal); // it has its share
    expect(() => observer.add(watcher('another'))).not.toThrow();
    expect(() => observer.add(watcher('account 0'))).toThrow(refusal);
  });
});

describe('an observer for members of projects', () => {
  it('tells each of them once that they watch, and then of rows of their own projects alone', async () => {
    const { observer, addCall, seen, watcher } = makeService();
    addCall('shop.1');
    observer.add(watcher('a', 'session', ['shop']));
    observer.add(watcher('a', 'session', ['club', 'shop']));
    observer.add(watcher('a', 'session', []));
    observer.add(watcher('a'));
    await aLook();
    expect(seen.splice(0).toSorted()).toEqual(['a changed', 'a changed', 'a club shop changed', 'a shop changed']);
    addCall('club.1');
    await aLook();
    expect(seen.splice(0)).toEqual(['a changed', 'a club shop changed']);
    addCall('another.1');
    await aLook();
    expect(seen.splice(0)).toEqual(['a changed']);
    addCall('another.1');
    addCall('shop.2');
    await aLook();
    expect(seen.splice(0)).toEqual(['a changed', 'a shop changed', 'a club shop changed']);
    await aLook();
    expect(seen).toEqual([]);
  });

  it('reads rows where an account has changed and such a member watches, and nowhere else', async () => {
    const { observer, addCall, marks, reads_of_rows, watcher } = makeService();
    observer.add(watcher('a'));
    observer.add(watcher('b'));
    addCall('shop.1');
    await aLook();
    expect(reads_of_rows).toEqual([]);
    const stop = observer.add(watcher('a', 'session', ['shop']));
    await aLook();
    expect(reads_of_rows.splice(0)).toEqual([['a']]);
    marks.set('b', 'more');
    await aLook();
    expect(reads_of_rows).toEqual([]);
    addCall('club.1');
    await aLook();
    expect(reads_of_rows.splice(0)).toEqual([['a']]);
    stop();
    addCall('shop.1');
    await aLook();
    expect(reads_of_rows).toEqual([]);
  });

  it('tells whoever comes later at once, and misses nothing of a look that failed', async () => {
    const { observer, addCall, seen, setDown, watcher } = makeService();
    observer.add(watcher('a', 'session', ['shop']));
    await aLook();
    seen.length = 0;
    observer.add(watcher('a', 'session', ['club']));
    expect(seen.splice(0)).toEqual(['a club changed']);
    setDown(true);
    addCall('shop.1');
    await aLook();
    expect(seen).toEqual([]);
    setDown(false);
    await aLook();
    expect(seen).toEqual(['a shop changed']);
  });

  it('tells somebody who comes while the last one goes that they watch', async () => {
    const { observer, addCall, seen, watcher } = makeService();
    const stop = observer.add(watcher('a', 'session', ['shop']));
    await aLook();
    seen.length = 0;
    addCall('another.1');
    vi.advanceTimersByTime(400); // the look has begun
    stop();
    observer.add(watcher('a', 'session', ['club']));
    await aLook();
    expect(seen).toEqual(['a club changed']);
  });
});
