import type { Json } from '../../catalog/model.ts';
import type { Likelihood, TokenLikelihood } from '../conversation.ts';
import { isObject } from '../fields.ts';

/** Reads `logprobs` of a choice; nothing of what has no number. */
export function readLogprobs(logprobs: Json | undefined): TokenLikelihood[] {
  if (!isObject(logprobs) || !Array.isArray(logprobs['content'])) return [];
  return logprobs['content'].flatMap((each) => {
    const [of_token] = readLikelihood(each);
    if (!of_token || !isObject(each)) return [];
    const { top_logprobs: others } = each;
    return [{ ...of_token, others: Array.isArray(others) ? others.flatMap(readLikelihood) : [] }];
  });
}

function readLikelihood(value: Json): Likelihood[] {
  if (!isObject(value)) return [];
  const { token, logprob } = value;
  return typeof token === 'string' && typeof logprob === 'number' ? [{ token, logprob }] : [];
}
