import { count, usageFormat } from '../../../src/styles/usage.ts';

/** `in` and `out`, and nothing about caches. */
export const usage_format = usageFormat({
  read: ({ in: input, out }) => {
    const [input_tokens, output_tokens] = [count(input), count(out)];
    return {
      ...(input_tokens !== undefined && { input_tokens }),
      ...(output_tokens !== undefined && { output_tokens }),
    };
  },
  write: (usage) => ({
    in: usage.input_tokens + usage.cached_input_tokens + usage.cache_write_tokens,
    out: usage.output_tokens,
  }),
  must: ['in', 'out'],
  may: [],
});
