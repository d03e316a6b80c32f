import { describe, expect, it } from 'vitest';
import { keysChanged, newest_max, unfinished_max, type RecentRow, type RecentRows } from '../../src/tasks/changes.ts';

/** Rows of an account as the statement reads them: task `n` has the key and the status of `rows[n]`. */
function recentOf(rows: readonly (readonly [key_id: string, status: string] | undefined)[]): RecentRows {
  const all = rows.flatMap((row, n): RecentRow[] =>
    row ? [{ id: `task_${String(n).padStart(6, '0')}`, key_id: row[0], status: row[1] }] : [],
  );
  return {
    newest: all.toReversed().slice(0, newest_max),
    unfinished: all.filter(({ status }) => status === 'queued' || status === 'running').slice(0, unfinished_max),
  };
}

const changed = (before: Parameters<typeof recentOf>[0], now: typeof before) => [
  ...keysChanged(recentOf(before), recentOf(now)),
];

const many = (count: number, key_id: string, status = 'succeeded') =>
  Array.from({ length: count }, () => [key_id, status] as const);

describe('the keys whose tasks have changed', () => {
  const done = ['own', 'succeeded'] as const;

  it('are those of tasks that were created, have started or have ended', () => {
    expect(changed([], [done])).toEqual(['own']);
    expect(changed([done], [done])).toEqual([]);
    expect(changed([done], [done, ['other', 'queued']])).toEqual(['other']);
    expect(changed([['own', 'queued'], done], [['own', 'running'], done])).toEqual(['own']);
    expect(changed([['own', 'running'], done], [['own', 'failed'], done])).toEqual(['own']);
  });

  it('have one whose task ends however many newer ones there are', () => {
    const newer = many(newest_max, 'other');
    expect(changed([['own', 'running'], ...newer], [['own', 'running'], ...newer])).toEqual([]);
    expect(changed([['own', 'queued'], ...newer], [['own', 'running'], ...newer])).toEqual(['own']);
    expect(changed([['own', 'running'], ...newer], [['own', 'succeeded'], ...newer])).toEqual(['own']);
  });

  it('have none whose old task is pushed out of sight by others, or comes back as they are removed', () => {
    const [full, fuller] = [many(newest_max - 1, 'other'), many(newest_max, 'other')];
    expect(changed([done, ...full], [done, ...fuller])).toEqual(['other']);
    const gone = [done, undefined, ...many(newest_max - 2, 'other')];
    expect(changed([done, ...fuller], gone)).toEqual([]);
  });

  it('have none whose task waits behind as many as are looked at, and one as it moves', () => {
    const waiting = many(unfinished_max, 'other', 'queued');
    const behind = [...waiting, ['own', 'queued']] as const;
    const newer = many(newest_max, 'third');
    expect(changed([...behind, ...newer.slice(1)], [...behind, ...newer])).toEqual(['third']);
    const next = [['other', 'succeeded'], ...behind.slice(1)] as const;
    expect(changed([...behind, ...newer], [...next, ...newer])).toEqual(['other']);
    const ended = [...next.slice(0, -1), ['own', 'failed']] as const;
    expect(changed([...next, ...newer], [...ended, ...newer])).toEqual(['own']);
  });
});
