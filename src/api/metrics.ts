import { ApiError } from '../errors.ts';
import type { Endpoint } from '../http/endpoint.ts';
import { metrics_content_type } from '../metrics/registry.ts';
import { hasToken, type MetricsParts } from '../monitoring/metrics-server.ts';
import { openScrape, type Scrape } from '../monitoring/scrape.ts';

/** GET /metrics on the port of the API, for whoever has MEDLEY_METRICS_TOKEN. Without that setting nobody is offered it. */
export function metricsEndpoint(): Endpoint<MetricsParts> {
  let scrape: Scrape | undefined;
  return {
    method: 'GET',
    path: '/metrics',
    public: true,
    lenient_query: true,
    docs: { tag: 'Service', summary: 'Read the metrics of this process', hidden: true, responses: {} },
    handle: async (app, { headers }) => {
      const { metrics_token } = app.config;
      if (metrics_token === undefined || !hasToken(headers, metrics_token))
        throw new ApiError(
          'unauthenticated',
          'The token is missing or wrong. Send that of MEDLEY_METRICS_TOKEN as "Authorization: Bearer TOKEN".',
        );
      scrape ??= openScrape(app);
      return {
        status: 200,
        body: await scrape(),
        headers: { 'content-type': metrics_content_type, 'cache-control': 'no-store' },
      };
    },
  };
}
