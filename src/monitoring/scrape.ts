import type { Metrics } from '../metrics/metrics.ts';
import { render, type Metric } from '../metrics/registry.ts';
import { openProcessGauges, type ProcessParts } from './process-gauges.ts';
import { openServiceGauges, type ServiceParts } from './service-gauges.ts';
import package_json from '../../package.json' with { type: 'json' };

/** Returns all metrics of this process and of the service as text. */
export type Scrape = () => Promise<string>;

/** The parts of the app that a scrape reads. */
export type ScrapeParts = ProcessParts &
  ServiceParts & {
    readonly metrics: Metrics;
    onStop(close: () => void): void;
  };

/** Opens the gauges; without it only the counters run. Returns what reads all metrics. Call it once for each reader. */
export function openReading(app: ScrapeParts): () => Promise<Metric[]> {
  const of_process = openProcessGauges(package_json.version);
  const of_service = openServiceGauges();
  app.onStop(() => of_process.close());
  return async () => {
    await of_service.read(app);
    of_process.read(app);
    return [...of_process.metrics, ...of_service.metrics, ...Object.values(app.metrics)];
  };
}

/** Opens a scrape. */
export function openScrape(app: ScrapeParts): Scrape {
  const read = openReading(app);
  return async () => render(await read());
}
