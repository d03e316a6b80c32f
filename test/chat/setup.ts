import { limits, type Limits } from '../helpers/catalog.ts';
import { startChatUpstream, type ChatUpstream } from '../helpers/chat-upstream.ts';
import { startTestApp, type Client, type TestApp, type TestAppOptions } from '../helpers/app.ts';

/** One model per cell: `c2c` is asked in completions style and has an upstream of that style, and so on. */
export function yamlOf(upstream: ChatUpstream, more = '', providers = '', stated: Limits = {}): string {
  return `
version: 1
${limits({ chat_per_minute: 1_000_000, ...stated })}
providers:
  oai: { adapter: openai, base_url: "${upstream.url}/v1", api_key: env:TEST_UPSTREAM_KEY, allow_private: true }
  ant: { adapter: anthropic, base_url: "${upstream.url}", api_key: env:TEST_UPSTREAM_KEY, allow_private: true }
  far: { adapter: openai,    base_url: "${upstream.url}/v1", api_key: env:TEST_UPSTREAM_KEY, allow_private: true, links: pass }
  gem: { adapter: gemini, base_url: "${upstream.url}", api_key: env:TEST_UPSTREAM_KEY, allow_private: true }
${providers.replaceAll('URL', upstream.url)}models:
  - id: acme/oai
    kind: chat
    max_output_tokens: 1000
    price: &price
      - { unit: input_token, per: 1000000, amount: "2.00" }
      - { unit: cached_input_token, per: 1000000, amount: "0.20" }
      - { unit: cache_write_token, per: 1000000, amount: "2.50" }
      - { unit: output_token, per: 1000000, amount: "10.00" }
    routes: [{ provider: oai, upstream_model: gpt-x }]
  - id: acme/ant
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: ant, upstream_model: claude-x }]
  - id: acme/gem
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: gem, upstream_model: gemini-x }]
  - id: acme/two
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes:
      - { provider: oai, upstream_model: first, timeout: { first_byte: 3s, idle: 3s, total: 9s } }
      - { provider: ant, upstream_model: second }
${more}`;
}

export type Stage = { test: TestApp; client: Client; upstream: ChatUpstream; stop(): Promise<void> };

export async function setStage(options: TestAppOptions & { more?: string; providers?: string } = {}): Promise<Stage> {
  process.env['TEST_UPSTREAM_KEY'] = 'sk-upstream-secret-0123456789';
  const upstream = await startChatUpstream();
  const { more, providers, ...rest } = options;
  const test = await startTestApp({ yaml: yamlOf(upstream, more, providers), ...rest });
  const stop = async () => {
    await test.stop();
    await upstream.stop();
  };
  return { test, client: await test.client(), upstream, stop };
}

/** For reports of usage: the default is this month, without what was charged just before its beginning. */
export const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);

export const hello = [{ role: 'user', content: 'Hello' }];

/** An answer of an upstream of completions style. */
export function completion(
  content: string,
  usage: object = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
) {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'gpt-x',
    choices: [
      { index: 0, message: { role: 'assistant', content, refusal: null }, logprobs: null, finish_reason: 'stop' },
    ],
    usage,
  };
}

/** An answer of an upstream of messages style. */
export function message(text: string, usage: object = { input_tokens: 10, output_tokens: 5 }) {
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-x',
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage,
  };
}

/** An answer of an upstream of Gemini's style. */
export function generated(
  parts: object[],
  usageMetadata: object = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
  more: object = { finishReason: 'STOP' },
) {
  return {
    candidates: [{ content: { parts, role: 'model' }, index: 0, ...more }],
    usageMetadata,
    modelVersion: 'gemini-x',
    responseId: 'resp-1',
  };
}

/** A text with the upstreams' ids in place of our own ones, to compare it byte by byte with what an upstream sent. */
export function withUpstreamIds(text: string): string {
  return text.replaceAll(/"(?<style>chatcmpl-|msg_|resp_)req_\w{26}"/g, '"$<style>1"');
}
