import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { openMetrics } from '../../src/metrics/metrics.ts';
import { openProcessGauges } from '../../src/monitoring/process-gauges.ts';
import { openServiceGauges } from '../../src/monitoring/service-gauges.ts';
import { expressionsIn } from './expressions.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

const of_process = openProcessGauges('0');
of_process.close();
const metrics = [...Object.values(openMetrics()), ...of_process.metrics, ...openServiceGauges().metrics];
const names = metrics.map(({ name }) => name);

/** Names of metrics in a text, histograms by their own name. */
function namesIn(text: string): string[] {
  const series = text.match(/\b(?:medley|process)_[a-z_]+\b/g) ?? [];
  return series.map((name) => (names.includes(name) ? name : name.replace(/_(?:bucket|sum|count)$/, '')));
}

const endings = { counter: /_total$/, histogram: /_seconds$/, gauge: /(?<!_total)$/ };

test('every metric has a name of its own with its unit, and a sentence', () => {
  expect(new Set(names).size).toBe(names.length);
  for (const { name, help, kind } of metrics) {
    expect(name).toMatch(/^(medley|process)_[a-z_]+$/);
    expect(help).toMatch(/^[A-Z1].*\.$/);
    expect([kind, name]).toEqual([kind, expect.stringMatching(endings[kind])]);
  }
});

test('the guide names every metric, and no other', () => {
  const [, tables = ''] = read('docs/monitoring.md').split('## What there is');
  const documented = namesIn(tables.split('## Prometheus')[0] ?? '');
  expect([...new Set(documented)].toSorted()).toEqual(names.toSorted());
});

test('rules and dashboard ask only for metrics that there are', () => {
  const metric_names = expressionsIn(root).flatMap(({ expression }) => namesIn(expression));
  expect(metric_names.length).toBeGreaterThan(40);
  for (const name of metric_names) expect(names).toContain(name);
});

test('the guide says what to do about every alert', () => {
  const rules: { groups: { rules: { alert: string }[] }[] } = parse(read('deploy/prometheus/medley.rules.yml'));
  const guide = read('docs/monitoring.md');
  const alerts = rules.groups.flatMap((group) => group.rules.map(({ alert }) => alert));
  expect(alerts.length).toBeGreaterThan(10);
  for (const alert of alerts) expect(guide).toContain(`\`${alert}\``);
});
