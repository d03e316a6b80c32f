import { expect, test } from 'vitest';
import { Counter, Gauge, Histogram, render } from '../../src/metrics/registry.ts';

test('counters, gauges and histograms are written in the text format of Prometheus', () => {
  const requests = new Counter('requests_total', 'Requests.', ['route', 'status']);
  requests.add({ route: '/v1/tasks/{id}', status: '200' });
  requests.add({ route: '/v1/tasks/{id}', status: '200' }, 2);
  requests.add({ route: '/', status: '404' }, 0.5);
  const open = new Gauge('open', 'Open connections.', []);
  open.set({}, 3);
  const seconds = new Histogram('seconds', 'Time.', ['route'], [0.1, 1]);
  for (const value of [0.1, 0.5, 7]) seconds.observe({ route: 'a' }, value);
  expect(render([requests, open, seconds])).toBe(`# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{route="/v1/tasks/{id}",status="200"} 3
requests_total{route="/",status="404"} 0.5
# HELP open Open connections.
# TYPE open gauge
open 3
# HELP seconds Time.
# TYPE seconds histogram
seconds_bucket{route="a",le="0.1"} 1
seconds_bucket{route="a",le="1"} 2
seconds_bucket{route="a",le="+Inf"} 3
seconds_sum{route="a"} 7.6
seconds_count{route="a"} 3
`);
});

test('a metric without a series is left out', () => {
  const silent = new Counter('silent_total', 'Never counted.', ['route']);
  silent.add({ route: 'a' }, 0);
  silent.add({ route: 'a' }, Number.NaN);
  silent.add({ route: 'a' }, -1);
  expect(render([silent])).toBe('\n');
});

test('quotes, backslashes and line ends in labels are escaped', () => {
  const odd = new Gauge('odd', 'Odd names.', ['model']);
  odd.set({ model: 'a"b\\c\nd' }, Number.POSITIVE_INFINITY);
  expect(render([odd])).toContain(String.raw`odd{model="a\"b\\c\nd"} +Inf`);
});

test('a metric has at most 2,000 series and one for all others, however many labels come', () => {
  const calls = new Counter('calls_total', 'Calls.', ['model', 'route']);
  for (let i = 0; i < 10_000; i++) calls.add({ model: `m${i}`, route: 'r' });
  const lines = render([calls])
    .split('\n')
    .filter((line) => line.startsWith('calls_total{'));
  expect(lines).toHaveLength(2_001);
  expect(lines).toContain('calls_total{model="other",route="other"} 8000');
});

test('labels that differ only in where one ends and the next begins are two series', () => {
  const pairs = new Counter('pairs_total', 'Pairs.', ['a', 'b']);
  pairs.add({ a: 'x', b: 'yz' });
  pairs.add({ a: 'xy', b: 'z' });
  expect(render([pairs]).match(/^pairs_total\{/gm)).toHaveLength(2);
});
