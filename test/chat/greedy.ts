import type { ChatUpstream, Script } from '../helpers/chat-upstream.ts';
import { completion, generated, message } from './setup.ts';
import { chunk, done, event, messageStart, usageChunk } from './streams.ts';

/** The bill of an upstream, in millionths, and the maximum output that it was sent. `tag`: what stands in the text as `#tag#`. */
export type Bill = {
  model: string;
  tag: string | undefined;
  max_tokens: number;
  output_tokens: number;
  for_an_hour: boolean;
  cost: number;
};

/** In the base currency, for a million tokens. */
export const prices = { input: 5, cache_write: 6.25, cache_write_1h: 10, output: 25 };

/**
 * Upstreams of all styles that always use all that they may: every byte of a text is a token that is written to the
 * cache, for an hour if that is asked for anywhere (Gemini's tells of no writes), and each answer has as many tokens as
 * it may have. `more`: what an upstream does instead, at no charge; how many times the prices one takes.
 */
export function playGreedy(
  upstream: ChatUpstream,
  models: readonly string[],
  pause = (): number | Promise<void> => 0,
  { instead, timesOf = () => 1 }: { instead?: () => Script | undefined; timesOf?: (model: string) => number } = {},
): Bill[] {
  const bills: Bill[] = [];
  for (const model of models) {
    upstream.script(model, ({ path, body }) => {
      const other = instead?.();
      if (other) return other;
      const input_tokens = bytesIn(body);
      if (path.endsWith('/messages') && budgetOf(body) >= Number(body['max_tokens'])) return too_large_a_budget;
      const max_tokens = boundOf(body);
      const output_tokens = max_tokens * answersOf(body);
      const for_an_hour = JSON.stringify(body).includes('"ttl":"1h"');
      const input_price = priceOfInput(path, for_an_hour);
      const once = input_tokens * input_price + output_tokens * prices.output;
      const cost = Math.round(once * timesOf(model));
      const [, tag] = /#(\w+)#/.exec(JSON.stringify(body)) ?? [];
      bills.push({ model, tag, max_tokens, output_tokens, for_an_hour, cost });
      return answer(path, body, { input_tokens, output_tokens, for_an_hour }, pause());
    });
  }
  return bills;
}

function priceOfInput(path: string, for_an_hour: boolean): number {
  if (path.includes('enerateContent')) return prices.input;
  return for_an_hour ? prices.cache_write_1h : prices.cache_write;
}

export function costOf(bills: readonly Bill[]): number {
  return bills.reduce((sum, { cost }) => sum + cost, 0);
}

type Body = Record<string, unknown>;

function isBody(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Of everything that the model reads as text. */
function bytesIn(value: unknown, is_text = false): number {
  if (typeof value === 'string') return is_text ? Buffer.byteLength(value) : 0;
  if (Array.isArray(value)) return value.reduce((sum: number, each) => sum + bytesIn(each, is_text), 0);
  if (!isBody(value)) return 0;
  const texts = new Set(['text', 'content', 'system', 'instructions', 'input', 'description']);
  return Object.entries(value).reduce((sum, [key, each]) => sum + bytesIn(each, texts.has(key)), 0);
}

function boundOf(body: Body): number {
  const config = isBody(body['generationConfig']) ? body['generationConfig'] : {};
  const names = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'];
  const bounds = [...names.map((name) => body[name]), config['maxOutputTokens']].filter((each) => each !== undefined);
  if (bounds.length !== 1) throw new Error(`an upstream is sent one bound, not ${JSON.stringify(bounds)}`);
  return Math.max(Number(bounds[0]), budgetOf(body));
}

/** Of thinking, which some servers count beside the answer. */
function budgetOf({ thinking, reasoning, generationConfig }: Body): number {
  const { thinkingConfig } = isBody(generationConfig) ? generationConfig : {};
  const budgets = [
    isBody(thinking) ? thinking['budget_tokens'] : 0,
    isBody(reasoning) ? reasoning['max_tokens'] : 0,
    isBody(thinkingConfig) ? thinkingConfig['thinkingBudget'] : 0,
  ];
  return Math.max(...budgets.map((budget) => Number(budget ?? 0)));
}

const too_large_a_budget: Script = {
  status: 400,
  json: { type: 'error', error: { type: 'invalid_request_error', message: 'budget_tokens: must be below max_tokens' } },
};

function answersOf(body: Body): number {
  const config = isBody(body['generationConfig']) ? body['generationConfig'] : {};
  return Number(body['n'] ?? config['candidateCount'] ?? 1);
}

type Used = { input_tokens: number; output_tokens: number; for_an_hour: boolean };

function answer(
  path: string,
  body: Body,
  { input_tokens: input, output_tokens: output, for_an_hour }: Used,
  pause: number | Promise<void>,
): Script {
  const stream = body['stream'] === true || path.includes('streamGenerateContent');
  const slowly = (first: string, ...parts: string[]): Script => ({ stream: [first, pause, ...parts] });
  if (path.endsWith('/messages')) {
    const [hour, minutes] = for_an_hour ? [input, 0] : [0, input];
    const cache_creation = { ephemeral_5m_input_tokens: minutes, ephemeral_1h_input_tokens: hour };
    const usage = { input_tokens: 0, cache_creation_input_tokens: input, cache_creation, output_tokens: output };
    if (!stream) return { json: message('x', usage) };
    const delta = { stop_reason: 'max_tokens', stop_sequence: null };
    return slowly(
      messageStart({ ...usage, output_tokens: 1 }),
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'x' } }),
      event({ type: 'content_block_stop', index: 0 }),
      event({ type: 'message_delta', delta, usage: { output_tokens: output } }),
      event({ type: 'message_stop' }),
    );
  }
  if (path.endsWith('/responses')) return { json: response(input, output) };
  if (path.includes('enerateContent')) {
    const usage = { promptTokenCount: input, candidatesTokenCount: output, totalTokenCount: input + output };
    const whole = generated([{ text: 'x' }], usage);
    return stream ? slowly(`data: ${JSON.stringify(whole)}\r\n\r\n`) : { json: whole };
  }
  const usage = {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: input },
  };
  if (!stream) return { json: completion('x', usage) };
  const counted = usageChunk(input, output).replace(/"usage":\{[^}]*\}/, `"usage":${JSON.stringify(usage)}`);
  return slowly(chunk({ role: 'assistant', content: 'x' }), chunk({}, {}, 'length'), counted, done);
}

function response(input: number, output: number): object {
  const content = [{ type: 'output_text', text: 'x', annotations: [] }];
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1_700_000_000,
    status: 'completed',
    model: 'native',
    output: [{ type: 'message', id: 'msg_1', status: 'completed', role: 'assistant', content }],
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: input },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: input + output,
    },
  };
}
