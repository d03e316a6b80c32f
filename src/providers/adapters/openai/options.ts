import type { OptionProblem } from '../../../catalog/check-settings.ts';
import type { JsonObject } from '../../../catalog/model.ts';
import { optionProblems } from '../../http/options.ts';
import { costProblems, tokenPriceProblems } from '../../http/upstream-cost.ts';

const option_names = {
  operation: ['speech', 'transcription'],
  response_format: ['b64_json', 'url', 'none'],
  stream_format: ['sse', 'audio'],
  body_as: ['multipart', 'json'],
  token_prices: undefined,
  cost_currency: undefined,
};

/** Checks the options of a route that makes media. */
export function mediaOptionProblems(options: JsonObject): OptionProblem[] {
  return [...optionProblems(options, option_names), ...costProblems(options), ...tokenPriceProblems(options)];
}
