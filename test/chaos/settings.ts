import type { Place } from './place.ts';

/** Retries come soon enough for a run to end, and outlast every fault. */
export const retry_delays_ms = [200, 1_000, 2_000, 4_000, 8_000];
const webhooks = `webhooks: { retry_delays: [${retry_delays_ms.map((delay_ms) => `${delay_ms}ms`).join(', ')}], timeout: 5s }`;

const schema =
  '{ type: object, required: [prompt], additionalProperties: false, properties: { prompt: { type: string } } }';

const limits = 'timeout: { start: 4s, total: 60s }, poll: { first: 50ms, max: 500ms }';

/** The same upstream by four models: one route; two; two and the operator's choice to go on; two that may be asked again. */
export function serviceYaml({ upstream_port }: Place): string {
  const base_url = `"http://127.0.0.1:${upstream_port}"`;
  return `version: 1
limits: { generate_per_minute: 1000000, other_per_minute: 1000000, failed_per_24h: 1000000 }
net: { allow: ["127.0.0.0/8"] }
${webhooks}
providers:
  once: { adapter: chaos, base_url: ${base_url}, allow_private: true }
  again: { adapter: chaos-again, base_url: ${base_url}, allow_private: true }
models:
${model('one', 'once', ['one-a'], '')}
${model('two', 'once', ['two-a', 'two-b'], '')}
${model('failover', 'once', ['failover-a', 'failover-b'], 'on_ambiguous_submit: failover, ')}
${model('again', 'again', ['again-a', 'again-b'], '')}
`;
}

function model(name: string, provider: string, routes: readonly string[], more: string): string {
  const lines = routes.map(
    (route) => `      - { id: ${route}, provider: ${provider}, upstream_model: ${route}, ${more}${limits} }`,
  );
  return `  - id: chaos/${name}
    kind: image
    input_schema: ${schema}
    price: [{ unit: image, amount: "0.031415" }]
    routes:
${lines.join('\n')}`;
}

/** For operators' commands, which do not know the adapters of the run. */
export const commandsYaml = `version: 1\n${webhooks}\n`;
