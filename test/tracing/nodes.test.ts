import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startTestApp } from '../helpers/app.ts';
import { startCollector } from '../helpers/collector.ts';
import { startReceiver } from '../helpers/receiver.ts';
import { drawTrace } from './picture.ts';

/** `MEDLEY_TEST_DRAW=1 npm test -- test/tracing/nodes.test.ts` draws the picture of docs/monitoring.md anew. */
const image = join(import.meta.dirname, '../../docs/screenshots/trace.svg');

const yaml = 'version: 1\nnet: { allow: ["127.0.0.0/8"] }\n';

test('a task that an API node takes and a worker runs is one trace, as it is drawn in the guide', async () => {
  const collector = await startCollector();
  const receiver = await startReceiver();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const api = await startTestApp({ yaml, worker: false, env: { ...env, MEDLEY_ROLE: 'api' } });
  const worker = await api.beside({ yaml, worker: true, env: { ...env, MEDLEY_ROLE: 'worker' } });
  try {
    const client = await api.client();
    const { json } = await client.call('POST', '/v1/generate?wait=120', {
      model: 'sandbox/video',
      input: { prompt: 'waves', duration: 1 },
      webhook_url: `${receiver.url}/done`,
    });
    expect(json.status).toBe('succeeded');
    const names = () => collector.spans.map(({ name }) => name);
    await expect.poll(names).toContain('webhook task.succeeded');
    await expect.poll(names).toContain('POST /v1/generate');
    const [root] = collector.spans.filter(({ name }) => name === 'POST /v1/generate');
    const role = (id: string) =>
      collector.texts
        .find((text) => text.includes(`"spanId":"${id}"`))
        ?.match(/"medley\.role","value":\{"stringValue":"(\w+)"/)?.[1];
    const withRoles = () =>
      collector.spans
        .filter(({ traceId }) => traceId === root?.traceId)
        .map((span) => ({ ...span, facts: { ...span.facts, role: role(span.spanId) } }));
    await expect.poll(() => new Set(withRoles().map(({ facts }) => facts.role))).toEqual(new Set(['api', 'worker']));
    if (process.env['MEDLEY_TEST_DRAW']) writeFileSync(image, drawTrace(withRoles()));
    const expected = kindsIn(readFileSync(image, 'utf8'));
    await expect.poll(() => kindsIn(drawTrace(withRoles()))).toEqual(expected); // some come with a later batch
  } finally {
    await worker.stop();
    await api.stop();
    await receiver.stop();
    await collector.stop();
  }
});

/** The names in a picture; there may be more polls or fewer. */
function kindsIn(svg: string): string[] {
  return [...new Set([...svg.matchAll(/class="name"[^>]*>([^<]+)/g)].map(([, name = '']) => name))].toSorted();
}
