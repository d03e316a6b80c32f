import type { Logger } from 'pino';
import package_json from '../../package.json' with { type: 'json' };
import type { Config } from '../config.ts';
import type { Queryable } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { openMetrics, type Metrics } from '../metrics/metrics.ts';
import { openRefusals, type Refusals } from '../money/refusals.ts';
import { openTracing } from '../tracing/tracing.ts';
import type { Tracer } from '../tracing/tracer.ts';

/** Opens the counters of this process, its traces, and the counts of refused requests. */
export function openWatch(
  { traces, role }: Config,
  { db, clock, log }: { db: Queryable; clock: Clock; log: Logger },
  onStop: (close: () => Promise<void>) => void,
): { metrics: Metrics; tracer: Tracer | undefined; refusals: Pick<Refusals, 'note'> } {
  const metrics = openMetrics();
  const tracer = openTracing(traces, { log, lost: metrics.spans_lost, version: package_json.version, role }, onStop);
  return { metrics, tracer, refusals: openRefusals({ db, clock, log, metrics }, onStop) };
}
