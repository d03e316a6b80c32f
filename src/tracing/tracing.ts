import type { Logger } from 'pino';
import type { TracesConfig } from '../config.ts';
import type { Counter } from '../metrics/registry.ts';
import { openOtlp } from './otlp.ts';
import { Tracer } from './tracer.ts';

/** A collector that is away is in the log once in this time. */
const log_every_ms = 60_000;

/** Opens the tracer of a process; undefined where the environment names no collector. */
export function openTracing(
  config: TracesConfig | undefined,
  { log, lost, version, role }: { log: Logger; lost: Counter; version: string; role: string },
  onStop: (close: () => Promise<void>) => void,
): Tracer | undefined {
  if (!config) return undefined;
  let logged_at_ms = Number.NEGATIVE_INFINITY;
  const exporter = openOtlp({
    ...config,
    resource: { 'service.version': version, 'medley.role': role, ...config.resource },
    version,
    onLost: (count, reason) => {
      lost.add({}, count);
      if (performance.now() - logged_at_ms < log_every_ms) return;
      logged_at_ms = performance.now();
      log.warn({ count, reason }, 'spans of traces were lost');
    },
  });
  onStop(() => exporter.close());
  return new Tracer(exporter.add, config.ratio);
}
