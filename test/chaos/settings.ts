import type { Place } from './place.ts';

/** Retries come soon enough for a run to end, and outlast every fault. */
export const retry_delays_ms = [200, 1_000, 2_000, 4_000, 8_000];
const webhooks = `webhooks: { retry_delays: [${retry_delays_ms.map((delay_ms) => `${delay_ms}ms`).join(', ')}], timeout: 5s }`;

const schema =
  '{ type: object, required: [prompt], additionalProperties: false, properties: { prompt: { type: string } } }';

/** No caller of the run comes near it, but for the hasty one. */
export const chat_per_minute = 60;

const limits = 'timeout: { start: 4s, total: 60s }, poll: { first: 50ms, max: 500ms }';

/** The same upstream by four models: one route; two; two and the operator's choice to go on; two that may be asked again. */
export function serviceYaml({ upstream_port }: Place, storage: string): string {
  const base_url = `"http://127.0.0.1:${upstream_port}"`;
  return `version: 1
${storage}
currencies: { USD: "1", PLN: "${rates.PLN}" }
limits: { generate_per_minute: 1000000, chat_per_minute: ${chat_per_minute}, other_per_minute: 1000000, failed_per_24h: 1000000 }
net: { allow: ["127.0.0.0/8"] }
${webhooks}
providers:
  once: { adapter: chaos, base_url: ${base_url}, allow_private: true }
  again: { adapter: chaos-again, base_url: ${base_url}, allow_private: true }
  talk: { adapter: chaos-openai, base_url: "http://127.0.0.1:${upstream_port}/v1", allow_private: true }
  talk-ant: { adapter: chaos-anthropic, base_url: ${base_url}, allow_private: true }
models:
${model('one', 'once', ['one-a'], '')}
${model('two', 'once', ['two-a', 'two-b'], '')}
${model('failover', 'once', ['failover-a', 'failover-b'], 'on_ambiguous_submit: failover, ')}
${model('again', 'again', ['again-a', 'again-b'], '')}
${chatModel('talk', 'talk', '')}
${chatModel('think', 'talk', 'capabilities: [reasoning],')}
${chatModel('messages', 'talk-ant', '')}
`;
}

/** In the base currency, a token, in millionths: dear enough that a few calls empty a small balance. */
export const token_prices = { input: 100, output: 1_000 };

/** Both are less than what a call without `max_tokens` may have of a small balance, or a small limit. */
const chat_tokens = { max: 1_000, default: 300 };

/** A unit of the base currency in those of an account. */
export const rates = { USD: 1, PLN: 3.65 } as const;

const chat_limits = 'timeout: { connect: 2s, first_byte: 3s, idle: 3s, total: 20s }';

function chatModel(name: string, provider: string, more: string): string {
  const routes = ['a', 'b'].map((end) => {
    const route = `${name}-${end}`;
    return `      - { id: ${route}, provider: ${provider}, upstream_model: ${route}, ${chat_limits} }`;
  });
  return `  - id: chaos/${name}
    kind: chat
    ${more === '' ? '' : `${more.slice(0, -1)}\n    `}max_output_tokens: ${chat_tokens.max}
    default_output_tokens: ${chat_tokens.default}
    price:
      - { unit: input_token, per: 1000000, amount: "${token_prices.input}" }
      - { unit: output_token, per: 1000000, amount: "${token_prices.output}" }
    routes:
${routes.join('\n')}`;
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
