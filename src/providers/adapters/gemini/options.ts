import type { OptionProblem } from '../../../catalog/check-settings.ts';
import type { JsonObject } from '../../../catalog/model.ts';
import { chatOptionProblems } from '../../http/chat-options.ts';
import { optionProblems } from '../../http/options.ts';
import { costProblems, tokenPriceProblems } from '../../http/upstream-cost.ts';
import { methods } from './work.ts';

const option_names = {
  method: methods,
  safety_settings: undefined,
  tools: undefined,
  webhooks: undefined,
  token_prices: undefined,
  cost_currency: undefined,
};

const lists = ['safety_settings', 'tools'];

/** Checks the options of a chat route: those of every chat route, and `safety_settings`. */
export function geminiChatOptionProblems({ safety_settings = [], ...options }: JsonObject): OptionProblem[] {
  const problem = { field: 'safety_settings', message: 'must be a list, as the Gemini API takes it' };
  return [...chatOptionProblems(options), ...(Array.isArray(safety_settings) ? [] : [problem])];
}

/** Checks the options of a route that makes media. */
export function mediaOptionProblems(options: JsonObject): OptionProblem[] {
  const no_lists = lists.filter((field) => options[field] !== undefined && !Array.isArray(options[field]));
  const { webhooks = false } = options;
  return [
    ...optionProblems(options, option_names),
    ...no_lists.map((field) => ({ field, message: 'must be a list, as the Gemini API takes it' })),
    ...(typeof webhooks === 'boolean' ? [] : [{ field: 'webhooks', message: 'must be true or false' }]),
    ...costProblems(options),
    ...tokenPriceProblems(options),
  ];
}
