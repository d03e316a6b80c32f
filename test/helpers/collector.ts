import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

/** A span as it came, with its attributes as an object. */
export type CollectedSpan = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  status: { code?: number; message?: string };
  facts: Record<string, unknown>;
};

/** A real HTTP collector of OTLP on loopback. */
export type Collector = {
  url: string;
  spans: CollectedSpan[];
  /** The metrics of each body that had some. */
  metrics: CollectedMetric[][];
  /** The bodies as they came, as text. */
  texts: string[];
  headers: Record<string, unknown>[];
  /** Its answers from now on: a status, or none at all. */
  answer(status: number | 'hang'): void;
  stop(): Promise<void>;
};

/** A metric as it came. */
export type CollectedMetric = {
  name: string;
  description: string;
  gauge?: { dataPoints: CollectedPoint[] };
  sum?: { dataPoints: CollectedPoint[]; aggregationTemporality: number; isMonotonic: boolean };
  histogram?: { dataPoints: CollectedPoint[]; aggregationTemporality: number };
};

export type CollectedPoint = {
  attributes: { key: string; value: { stringValue: string } }[];
  startTimeUnixNano: string;
  timeUnixNano: string;
  asDouble?: number;
  count?: string;
  sum?: number;
  bucketCounts?: string[];
  explicitBounds?: number[];
};

type Wire = {
  resourceMetrics?: { scopeMetrics: { metrics: CollectedMetric[] }[] }[];
  resourceSpans?: {
    resource: { attributes: { key: string; value: object }[] };
    scopeSpans: { spans: (Omit<CollectedSpan, 'facts'> & { attributes: { key: string; value: object }[] })[] }[];
  }[];
};

export async function startCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  const metrics: CollectedMetric[][] = [];
  const texts: string[] = [];
  const headers: Record<string, unknown>[] = [];
  let answer: number | 'hang' = 200;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      headers.push(request.headers);
      if (answer === 'hang') return;
      if (answer === 200) {
        const text = gunzipSync(Buffer.concat(chunks)).toString();
        texts.push(text);
        const body = JSON.parse(text) as Wire;
        if (body.resourceMetrics)
          metrics.push(body.resourceMetrics.flatMap((each) => each.scopeMetrics.flatMap((scope) => scope.metrics)));
        for (const { scopeSpans } of body.resourceSpans ?? [])
          for (const scope of scopeSpans)
            for (const { attributes, ...span } of scope.spans)
              spans.push({
                ...span,
                facts: Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]])),
              });
      }
      response.writeHead(answer, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    metrics,
    texts,
    headers,
    answer: (next) => (answer = next),
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
