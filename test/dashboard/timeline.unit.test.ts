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
  const moments = timelineOf({ task, attempts, entries: [], attempt_log: [], sees_routes: false });
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
