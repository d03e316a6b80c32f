import { describe, expect, test } from 'vitest';
import { makeRouteSpeeds } from '../../src/routing/speeds.ts';

describe('speeds of routes', () => {
  const name = (route: string) => route;

  test('put the fastest first, and unmeasured routes behind in their order', () => {
    const speeds = makeRouteSpeeds(() => 0);
    speeds.note('slow', { first_content_ms: 900, tokens_per_s: 90 });
    speeds.note('quick', { first_content_ms: 100, tokens_per_s: 10 });
    speeds.note('silent', {});
    const all = ['new', 'slow', 'silent', 'quick'];
    expect(speeds.fastestFirst(all, name, 'latency')).toEqual(['quick', 'slow', 'new', 'silent']);
    expect(speeds.fastestFirst(all, name, 'throughput')).toEqual(['slow', 'quick', 'new', 'silent']);
  });

  test('follow what changes, and are forgotten after ten minutes', () => {
    let now = 0;
    const speeds = makeRouteSpeeds(() => now);
    const order = () => speeds.fastestFirst(['a', 'b'], name, 'latency');
    speeds.note('a', { first_content_ms: 500 });
    speeds.note('b', { first_content_ms: 100 });
    expect(order()).toEqual(['b', 'a']);
    for (let count = 0; count < 20; count++) speeds.note('b', { first_content_ms: 5000 });
    expect(order()).toEqual(['a', 'b']);
    now = 600_001;
    speeds.note('b', { first_content_ms: 9000 });
    expect(order()).toEqual(['b', 'a']);
  });
});
