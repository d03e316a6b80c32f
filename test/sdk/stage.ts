import type { ChatUpstream } from '../helpers/chat-upstream.ts';
import { setStage, type Stage } from '../chat/setup.ts';
import { anthropicCallers } from './anthropic.ts';
import { langchainCallers } from './langchain.ts';
import { openaiCallers } from './openai.ts';
import type { Caller, Place } from './task.ts';
import { vercelCallers } from './vercel.ts';

/** By their names, which tests have before the service has its address. */
export const caller_names = [
  'openai 6',
  'openai 7',
  '@anthropic-ai/sdk 0',
  '@anthropic-ai/sdk 1',
  '@ai-sdk/openai',
  '@ai-sdk/openai-compatible',
  '@ai-sdk/anthropic',
  '@langchain/openai',
  '@langchain/anthropic',
];

/** Every model with the upstream model behind it and the style of its upstream. */
const models = [
  { model: 'acme/oai', behind: 'gpt-x', upstream: 'completions' },
  { model: 'acme/ant', behind: 'claude-x', upstream: 'messages' },
  { model: 'acme/gem', behind: 'gemini-x', upstream: 'gemini' },
] as const;

export const cells = caller_names.flatMap((name) => models.map((one) => [name, one.model, one] as const));

/** One that is asked in the responses style by callers of all styles. */
const in_responses = `
  - id: acme/res
    kind: chat
    max_output_tokens: 1000
    price: [{ unit: input_token, per: 1000000, amount: "2.00" }, { unit: output_token, per: 1000000, amount: "10.00" }]
    routes: [{ provider: oai, upstream_model: res-x, options: { responses: always } }]
`;

/** Their routes are paused after their failures, which must not reach the other models. */
export const broken = `
  - id: acme/broken
    kind: chat
    max_output_tokens: 1000
    price: [{ unit: input_token, per: 1000000, amount: "2.00" }, { unit: output_token, per: 1000000, amount: "10.00" }]
    routes: [{ provider: oai, upstream_model: broken }]
  - id: acme/silent
    kind: chat
    max_output_tokens: 1000
    price: [{ unit: input_token, per: 1000000, amount: "2.00" }, { unit: output_token, per: 1000000, amount: "10.00" }]
    routes: [{ provider: oai, upstream_model: silent, timeout: { first_byte: 300ms, idle: 300ms, total: 300ms } }]
`;

export type SdkStage = {
  stage: Stage;
  upstream: ChatUpstream;
  caller(name: string, place?: Place): Caller;
  /** Throws if an SDK wanted to reach another machine. */
  stop(): Promise<void>;
};

export async function setSdkStage(): Promise<SdkStage> {
  // A key of somebody's must not decide a test, nor a tracing service hear of it.
  for (const name of Object.keys(process.env)) {
    if (/^(OPENAI|ANTHROPIC|LANGCHAIN|LANGSMITH|AI_GATEWAY)_/.test(name)) delete process.env[name];
  }
  const stage = await setStage({ more: in_responses + broken });
  const outside: string[] = [];
  const within = globalThis.fetch;
  globalThis.fetch = (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    if (url.startsWith('http://127.0.0.1:') || url.startsWith(stage.test.url)) return within(input, init);
    outside.push(url);
    return Promise.reject(new Error(`a test wanted to reach ${url}`));
  };
  const own = { url: stage.test.url, key: stage.client.key };
  return {
    stage,
    upstream: stage.upstream,
    caller: (name, place = own) => {
      const callers = [openaiCallers, anthropicCallers, vercelCallers, langchainCallers].flatMap((make) => make(place));
      const sdk_caller = callers.find((caller) => caller.name === name);
      if (!sdk_caller) throw new Error(`no caller ${name}`);
      return sdk_caller;
    },
    stop: async () => {
      globalThis.fetch = within;
      await stage.stop();
      if (outside.length > 0) throw new Error(`addresses of others: ${outside.join(', ')}`);
    },
  };
}
