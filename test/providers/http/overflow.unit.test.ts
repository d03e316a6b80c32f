import { expect, test } from 'vitest';
import { overflowOf } from '../../../src/providers/http/overflow.ts';
import { refusalError } from '../../../src/providers/http/refusal.ts';

/** Answers of servers to a request that is longer than the context of the model, and the numbers in them. */
const wordings: [name: string, message: string, numbers: object][] = [
  [
    'Anthropic',
    'prompt is too long: 213462 tokens > 200000 maximum',
    { request_tokens: 213_462, limit_tokens: 200_000 },
  ],
  [
    'Anthropic, with max_tokens',
    'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again',
    { limit_tokens: 200_000 },
  ],
  [
    'OpenAI',
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.",
    { request_tokens: 9_001, limit_tokens: 8_192 },
  ],
  [
    'OpenAI, responses',
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
    {},
  ],
  [
    'OpenAI, configured',
    'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 290000 tokens.',
    { request_tokens: 290_000, limit_tokens: 272_000 },
  ],
  [
    'vLLM',
    "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 tokens and your request has 2104 input tokens (2000 > 4096 - 2104).",
    { limit_tokens: 4_096 },
  ],
  [
    'vLLM, prompt',
    'The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.',
    { request_tokens: 5_000, limit_tokens: 4_096 },
  ],
  [
    'SGLang',
    "The input (40000 tokens) is longer than the model's context length (32768 tokens).",
    { request_tokens: 40_000, limit_tokens: 32_768 },
  ],
  [
    'llama.cpp',
    'request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it',
    { request_tokens: 9_000, limit_tokens: 4_096 },
  ],
  ['llama.cpp, before', 'the request exceeds the available context size. try increasing the context size', {}],
  ['Ollama', 'the input length exceeds the context length', {}],
  [
    'LM Studio',
    'The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length',
    {},
  ],
  [
    'Gemini',
    'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).',
    { request_tokens: 1_196_265, limit_tokens: 1_048_575 },
  ],
  ['Bedrock', 'Input is too long for requested model.', {}],
  [
    'OpenRouter',
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 150000 tokens (140000 of text input, 10000 in the output).",
    { request_tokens: 150_000, limit_tokens: 131_072 },
  ],
  [
    'DeepSeek',
    "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (66000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
    { request_tokens: 70_000, limit_tokens: 65_536 },
  ],
  [
    'xAI',
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    { request_tokens: 537_812, limit_tokens: 131_072 },
  ],
  ['Groq', 'Please reduce the length of the messages or completion.', {}],
  [
    'Mistral',
    'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
    { request_tokens: 40_000, limit_tokens: 32_768 },
  ],
  [
    'Moonshot',
    'Invalid request: Your request exceeded model token limit: 262144 (requested: 270000)',
    { limit_tokens: 262_144 },
  ],
  ['MiniMax', 'invalid params, context window exceeds limit (2013)', {}],
  ['TGI', 'Input validation error: `inputs` must have less than 4096 tokens. Given: 5000', {}],
  [
    'Cerebras',
    'Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192',
    { request_tokens: 9_000, limit_tokens: 8_192 },
  ],
];

test.each(wordings)('%s says that a request is longer than the context: %s', (_, message, numbers) => {
  expect(overflowOf({ code: '', type: '', message })).toEqual(numbers);
  const refusal = refusalError(
    { status: 400, retry_after: undefined, body: JSON.stringify({ error: { message } }) },
    [],
  );
  expect(refusal).toMatchObject({ name: 'InputRefused', type: 'invalid_request', overflow: numbers });
});

test.each([
  ['context_length_exceeded', ''],
  ['400', 'exceed_context_size_error'],
  ['model_max_prompt_tokens_exceeded', ''],
])('the code %j or the type %j alone says it too', (code, type) => {
  expect(overflowOf({ code, type, message: 'too much' })).toEqual({});
});

test.each([
  'max_tokens: 300000 > 128000, which is the maximum allowed number of output tokens',
  "Invalid 'user': string too long. Expected a string with maximum length 64",
  'messages.3: image too large',
  'Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 40000',
  'temperature must be at most 2',
])('%j is another mistake', (message) => {
  expect(overflowOf({ code: '', type: 'invalid_request_error', message })).toBeUndefined();
});

test.each([
  [400, { message: 'Content Exists Risk', type: 'invalid_request_error' }],
  [400, { message: 'Output blocked by content filtering policy', type: 'invalid_request_error' }],
  [400, { message: 'The request was rejected because it was considered high risk', type: 'content_filter' }],
  [400, { message: 'x', code: 'data_inspection_failed' }],
  [400, { message: 'Invalid prompt: flagged as potentially violating our usage policy', code: 'invalid_prompt' }],
  [403, { message: 'Content violates usage guidelines.' }],
])('a content that the upstream refuses is known by its words: %i %j', (status, error) => {
  const refusal = refusalError({ status, retry_after: undefined, body: JSON.stringify({ error }) }, []);
  expect(refusal).toMatchObject({ name: 'InputRefused', type: 'content_policy_violation' });
});
