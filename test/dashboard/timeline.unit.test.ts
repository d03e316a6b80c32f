import { expect, it } from 'vitest';
import { timelineOf } from '../../src/dashboard/timeline.ts';

it('a route that did not start has its end before the next route begins, also in the same millisecond', () => {
  const now = new Date('2026-11-15T12:00:00Z');
  const times = { created_at: now, started_at: now, completed_at: now };
  const task = { currency: 'USD', status: 'succeeded' as const, error_type: null, error_message: null, ...times };
  const attempt = { reason: null, message: null, created_at: now, ended_at: now };
  const attempts = [
    { ...attempt, number: 1, route: 'a', state: 'not_started' as const },
    { ...attempt, number: 2, route: 'b', state: 'done' as const },
  ];
  const moments = timelineOf({ task, attempts, entries: [], attempt_log: [], waiting: [], now, sees_routes: false });
  expect(moments.map(({ title }) => title)).toEqual([
    'Created',
    'Route 1 was tried',
    'Route 1 did not start: the next one is tried',
    'Route 2 was tried',
    'The run started',
    'Route 2 finished',
    'Succeeded',
  ]);
});

it('a queued task shows its place, and to operators what it waits for', () => {
  const now = new Date('2026-11-15T12:00:00Z');
  const times = { created_at: now, started_at: null, completed_at: null };
  const task = { currency: 'USD', status: 'queued' as const, error_type: null, error_message: null, ...times };
  const waiting = [{ provider: 'Black Forest Labs', place: 3, reason: 'waits for Black Forest Labs: 24 of 24 active' }];
  const lastFor = (sees_routes: boolean) =>
    timelineOf({ task, attempts: [], entries: [], attempt_log: [], waiting, now, sees_routes }).at(-1);
  const title = 'Queued: position 3';
  expect(lastFor(true)).toMatchObject({ title, detail: 'waits for Black Forest Labs: 24 of 24 active' });
  expect(lastFor(false)).toMatchObject({ title, detail: 'The model provider is full.' });
});
