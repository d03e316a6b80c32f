import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  makeObserver,
  watchers_max,
  watchers_of_account_max,
  type Reads,
  type Watcher,
} from '../../src/dashboard/activity-observer.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A service whose accounts change when `marks` do, and whose sessions are over when they are in `over`. */
function makeService() {
  const marks = new Map<string, string>();
  const over = new Set<string>();
  const looks: (readonly string[])[] = [];
  let is_down = false;
  const reads: Reads = {
    marksOf: async (ids) => {
      looks.push(ids);
      if (is_down) throw new Error('the database is away');
      return new Map(ids.map((id) => [id, marks.get(id) ?? '']));
    },
    admitted: async (watchers) => new Set(watchers.filter(({ session_id }) => !over.has(session_id))),
  };
  const seen: string[] = [];
  const watcher = (account_id: string, session_id = 'session'): Watcher => ({
    account_id,
    session_id,
    changed: () => seen.push(`${account_id} changed`),
    over: () => seen.push(`${session_id} over`),
  });
  const setDown = (next: boolean) => void (is_down = next);
  return { observer: makeObserver(reads), marks, over, looks, seen, watcher, setDown };
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
