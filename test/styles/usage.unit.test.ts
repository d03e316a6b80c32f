import { expect, it } from 'vitest';
import { learnUsage, newStreamState } from '../../src/styles/stream.ts';
import { chargedUsage } from '../../src/styles/usage.ts';
import { readUsage, type CallerStyle } from './by-name.ts';

it.each<[string, CallerStyle, Record<string, number | object>, object]>([
  [
    'a total without details, as Google’s compatible endpoint tells it',
    'completions',
    { prompt_tokens: 7, completion_tokens: 20, total_tokens: 527 },
    { input_tokens: 7, output_tokens: 520, reasoning_tokens: 500 },
  ],
  [
    'reasoning beside the output, in the total',
    'completions',
    {
      prompt_tokens: 7,
      completion_tokens: 20,
      total_tokens: 127,
      completion_tokens_details: { reasoning_tokens: 100 },
    },
    { input_tokens: 7, output_tokens: 120, reasoning_tokens: 100 },
  ],
  [
    'reasoning beside the output, in no total',
    'completions',
    { prompt_tokens: 7, completion_tokens: 20, completion_tokens_details: { reasoning_tokens: 100 } },
    { input_tokens: 7, output_tokens: 120, reasoning_tokens: 100 },
  ],
  [
    'reasoning within the output',
    'completions',
    { prompt_tokens: 7, completion_tokens: 20, total_tokens: 27, completion_tokens_details: { reasoning_tokens: 15 } },
    { input_tokens: 7, output_tokens: 20, reasoning_tokens: 15 },
  ],
  [
    'a cache beside the prompt, which is no output',
    'completions',
    { prompt_tokens: 7, completion_tokens: 20, total_tokens: 1_027, cache_read_input_tokens: 1_000 },
    { input_tokens: 7, cached_input_tokens: 1_000, output_tokens: 20 },
  ],
  [
    'a total of the responses style',
    'responses',
    { input_tokens: 7, output_tokens: 20, total_tokens: 527, output_tokens_details: {} },
    { input_tokens: 7, output_tokens: 520, reasoning_tokens: 500 },
  ],
  [
    'more thoughts than output of the messages style',
    'messages',
    { input_tokens: 7, output_tokens: 20, output_tokens_details: { thinking_tokens: 500 } },
    { input_tokens: 7, output_tokens: 520, reasoning_tokens: 500 },
  ],
  [
    'thoughts of Gemini with their number',
    'gemini',
    { promptTokenCount: 7, candidatesTokenCount: 20, thoughtsTokenCount: 500, totalTokenCount: 527 },
    { input_tokens: 7, output_tokens: 520, reasoning_tokens: 500 },
  ],
  [
    'thoughts of Gemini in the total alone',
    'gemini',
    { promptTokenCount: 7, candidatesTokenCount: 20, totalTokenCount: 527 },
    { input_tokens: 7, output_tokens: 520, reasoning_tokens: 500 },
  ],
  [
    'what tools of Google’s brought in, which is no output',
    'gemini',
    { promptTokenCount: 7, candidatesTokenCount: 20, toolUsePromptTokenCount: 500, totalTokenCount: 527 },
    { input_tokens: 507, output_tokens: 20 },
  ],
])('usage is read completely: %s', (_, style, fields, usage) => {
  expect(readUsage(style, JSON.parse(JSON.stringify(fields)))).toEqual(usage);
});

it('input that was counted here is all of it: parts that an upstream reports without the whole are not charged beside it', () => {
  const reported = { cached_input_tokens: 900, cache_write_tokens: 50, cache_write_1h_tokens: 50, output_tokens: 5 };
  const { usage, is_counted } = chargedUsage(
    reported,
    { ascii_bytes: 20, other_bytes: 0 },
    { input_tokens_counted: 1_000 },
  );
  expect(usage).toMatchObject({ input_tokens: 1_000, cached_input_tokens: 0, cache_write_tokens: 0, output_tokens: 5 });
  expect([usage.cache_write_1h_tokens, is_counted]).toEqual([0, true]);
});

it('a later report of the input replaces an earlier one as a whole, and one of the output leaves it', () => {
  const state = newStreamState();
  learnUsage(state, { input_tokens: 100, cached_input_tokens: 900, cache_write_tokens: 3 });
  learnUsage(state, { output_tokens: 7 });
  expect(state.usage).toEqual({ input_tokens: 100, cached_input_tokens: 900, cache_write_tokens: 3, output_tokens: 7 });
  learnUsage(state, { input_tokens: 1_000, output_tokens: 50 });
  expect(state.usage).toEqual({ input_tokens: 1_000, output_tokens: 50 });
});
