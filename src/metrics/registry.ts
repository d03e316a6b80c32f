/**
 * Counters, gauges and histograms in Prometheus' text format 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats/, read 2026-11-27). Our own: the official client was 0.x
 * when this was written, and what is needed of it is this file.
 */

/** Values of labels by their names. They must come from a bounded set: never an account, a key or an id. */
export type Labels = Readonly<Record<string, string>>;

/** Series that one metric may have. What comes later is counted together, with `other` as the value of each label. */
const series_max = 2_000;

const other = 'other';

type Kind = 'counter' | 'gauge' | 'histogram';

/** A distribution of values: `counts` has one number for each upper bound; what is above the last one is in `count` only. */
type Distribution = { readonly bounds: readonly number[]; readonly counts: number[]; sum: number; count: number };

/** The value of one series. */
export type Point = { readonly labels: Labels; readonly value: number | Readonly<Distribution> };

/** A metric with all its series. */
export type Metric = {
  readonly name: string;
  readonly help: string;
  readonly kind: Kind;
  lines(): Iterable<string>;
  points(): Iterable<Point>;
};

/** Values by their labels, bounded. */
class Series<T> {
  readonly #names: readonly string[];
  readonly #make: () => T;
  readonly #values = new Map<string, { readonly labels: readonly string[]; readonly value: T }>();

  constructor(names: readonly string[], make: () => T) {
    this.#names = names;
    this.#make = make;
  }

  of(labels: Labels): T {
    const values = this.#names.map((name) => labels[name] ?? '');
    const key = values.join('\u0000');
    const present = this.#values.get(key);
    if (present) return present.value;
    if (this.#values.size >= series_max && !values.every((value) => value === other))
      return this.of(Object.fromEntries(this.#names.map((name) => [name, other])));
    const value = this.#make();
    this.#values.set(key, { labels: values, value });
    return value;
  }

  clear(): void {
    this.#values.clear();
  }

  /** Yields each value with its labels as they are written, without braces. */
  *entries(): Iterable<[text: string, value: T]> {
    for (const { labels, value } of this.#values.values())
      yield [this.#names.map((name, index) => `${name}="${escaped(labels[index] ?? '')}"`).join(','), value];
  }

  /** Returns a point for each value. */
  points(valueOf: (value: T) => Point['value']): Point[] {
    return [...this.#values.values()].map(({ labels, value }) => ({
      labels: Object.fromEntries(this.#names.map((name, index) => [name, labels[index] ?? ''])),
      value: valueOf(value),
    }));
  }
}

function escaped(value: string): string {
  return value.replace(/[\\"\n]/g, (character) => (character === '\n' ? String.raw`\n` : `\\${character}`));
}

function line(name: string, labels: string, value: number): string {
  return `${name}${labels === '' ? '' : `{${labels}}`} ${numberText(value)}`;
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}

/** A number that only grows while the process lives. */
export class Counter implements Metric {
  readonly kind = 'counter';
  readonly name: string;
  readonly help: string;
  readonly #series: Series<{ sum: number }>;

  constructor(name: string, help: string, labels: readonly string[]) {
    this.name = name;
    this.help = help;
    this.#series = new Series(labels, () => ({ sum: 0 }));
  }

  /** Adds to a series. An amount that is no positive number adds nothing. */
  add(labels: Labels, amount = 1): void {
    if (amount > 0) this.#series.of(labels).sum += amount;
  }

  *lines(): Iterable<string> {
    for (const [labels, { sum }] of this.#series.entries()) yield line(this.name, labels, sum);
  }

  points(): Point[] {
    return this.#series.points(({ sum }) => sum);
  }
}

/** A number that goes up and down, written anew for each scrape. */
export class Gauge implements Metric {
  readonly kind: Kind;
  readonly name: string;
  readonly help: string;
  readonly #series: Series<{ value: number }>;

  /** `kind` is `counter` for a number that something else counts. */
  constructor(name: string, help: string, labels: readonly string[], kind: 'gauge' | 'counter' = 'gauge') {
    this.name = name;
    this.help = help;
    this.kind = kind;
    this.#series = new Series(labels, () => ({ value: 0 }));
  }

  set(labels: Labels, value: number): void {
    this.#series.of(labels).value = value;
  }

  /** Adds to a series since the last `clear`. */
  add(labels: Labels, amount = 1): void {
    this.#series.of(labels).value += amount;
  }

  /** Forgets all series: those that are not set again are gone. */
  clear(): void {
    this.#series.clear();
  }

  *lines(): Iterable<string> {
    for (const [labels, { value }] of this.#series.entries()) yield line(this.name, labels, value);
  }

  points(): Point[] {
    return this.#series.points(({ value }) => value);
  }
}

/** Counts of values, by upper bounds. */
export class Histogram implements Metric {
  readonly kind = 'histogram';
  readonly name: string;
  readonly help: string;
  readonly #bounds: readonly number[];
  readonly #series: Series<Distribution>;

  /** `bounds` ascend; the last bucket, +Inf, is not among them. */
  constructor(name: string, help: string, labels: readonly string[], bounds: readonly number[]) {
    this.name = name;
    this.help = help;
    this.#bounds = bounds;
    this.#series = new Series(labels, () => ({ bounds, counts: bounds.map(() => 0), sum: 0, count: 0 }));
  }

  observe(labels: Labels, value: number): void {
    if (!Number.isFinite(value)) return;
    const series = this.#series.of(labels);
    const index = this.#bounds.findIndex((bound) => value <= bound);
    if (index >= 0) series.counts[index] = (series.counts[index] ?? 0) + 1;
    series.sum += value;
    series.count += 1;
  }

  *lines(): Iterable<string> {
    for (const [labels, { counts, sum, count }] of this.#series.entries()) {
      const before = labels === '' ? '' : `${labels},`;
      let below = 0;
      for (const [index, bound] of this.#bounds.entries()) {
        below += counts[index] ?? 0;
        yield line(`${this.name}_bucket`, `${before}le="${bound}"`, below);
      }
      yield line(`${this.name}_bucket`, `${before}le="+Inf"`, count);
      yield line(`${this.name}_sum`, labels, sum);
      yield line(`${this.name}_count`, labels, count);
    }
  }

  points(): Point[] {
    return this.#series.points((distribution) => distribution);
  }
}

/** Content-Type of what `render` returns. */
export const metrics_content_type = 'text/plain; version=0.0.4; charset=utf-8';

/** Returns all metrics as text; metrics without a series are left out. */
export function render(metrics: Iterable<Metric>): string {
  const lines: string[] = [];
  for (const metric of metrics) {
    const own = [...metric.lines()];
    if (own.length === 0) continue;
    lines.push(`# HELP ${metric.name} ${metric.help}`, `# TYPE ${metric.name} ${metric.kind}`, ...own);
  }
  return `${lines.join('\n')}\n`;
}
