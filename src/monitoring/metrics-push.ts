import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import type { MetricsPushConfig } from '../config.ts';
import type { Metric, Point } from '../metrics/registry.ts';
import { attributesOf, nanoseconds, postOtlp, reasonOf } from '../tracing/otlp.ts';
import { openReading, type ScrapeParts } from './scrape.ts';
import package_json from '../../package.json' with { type: 'json' };

/** The parts of the app that sending metrics takes. */
export type MetricsPushParts = Omit<ScrapeParts, 'onStop'> & {
  readonly log: Logger;
  onStop(close: () => Promise<void> | void): void;
};

const send_ms = 10_000;
/** Time for the last numbers when the process stops. */
const close_ms = 2_000;

/** Numbers since the start of the process, not since the last time: one that is lost is made up for by the next. */
const cumulative = 2;

/**
 * Sends all metrics to a collector by OTLP over HTTP, as JSON, until the app stops: every `every_ms`, and once at the
 * end. A collector that is away costs numbers and nothing else.
 */
export function startMetricsPush(app: MetricsPushParts, config: MetricsPushConfig): void {
  const read = openReading(app);
  // Several processes count the same series: each is an instance of its own.
  const resource = attributesOf({
    'service.version': package_json.version,
    'service.instance.id': randomUUID(),
    'medley.role': app.config.role,
    ...config.resource,
  });
  let is_failing = false;
  let sending: Promise<void> | undefined;
  const send = async (limit_ms: number) => {
    const signal = AbortSignal.timeout(limit_ms);
    try {
      await postOtlp(config, bodyOf(resource, await read()), signal);
      is_failing = false;
    } catch (error) {
      if (!is_failing) app.log.warn({ reason: reasonOf(error) }, 'the collector did not take the metrics');
      is_failing = true;
    }
  };
  const timer = setInterval(() => {
    sending ??= send(send_ms).finally(() => (sending = undefined));
  }, config.every_ms);
  timer.unref();
  app.onStop(async () => {
    clearInterval(timer);
    const late = new Promise<'late'>((resolve) => setTimeout(resolve, close_ms, 'late').unref());
    if ((await Promise.race([late, sending])) !== 'late') await Promise.race([late, send(close_ms)]);
  });
}

function bodyOf(resource: ReturnType<typeof attributesOf>, metrics: readonly Metric[]): string {
  const startTimeUnixNano = nanoseconds(performance.timeOrigin);
  const timeUnixNano = nanoseconds(performance.timeOrigin + performance.now());
  const pointOf = ({ labels, value }: Point) => {
    const common = { attributes: attributesOf(labels), startTimeUnixNano, timeUnixNano };
    if (typeof value === 'number') return { ...common, asDouble: value };
    const { bounds, counts, sum, count } = value;
    const above = count - counts.reduce((total, each) => total + each, 0);
    const bucketCounts = [...counts, above].map(String);
    return { ...common, count: String(count), sum, bucketCounts, explicitBounds: bounds };
  };
  const metricOf = ({ name, help, kind }: Metric, points: Point[]) => {
    const dataPoints = points.map(pointOf);
    const description = { name, description: help };
    if (kind === 'gauge') return { ...description, gauge: { dataPoints } };
    if (kind === 'histogram') return { ...description, histogram: { dataPoints, aggregationTemporality: cumulative } };
    return { ...description, sum: { dataPoints, aggregationTemporality: cumulative, isMonotonic: true } };
  };
  const sent = metrics.flatMap((metric) => {
    const points = [...metric.points()].filter(({ value }) => typeof value !== 'number' || Number.isFinite(value));
    return points.length === 0 ? [] : [metricOf(metric, points)];
  });
  const scope = { name: 'medley', version: package_json.version };
  return JSON.stringify({
    resourceMetrics: [{ resource: { attributes: resource }, scopeMetrics: [{ scope, metrics: sent }] }],
  });
}
