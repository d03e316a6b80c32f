import type { OptionProblem } from '../../../catalog/check-settings.ts';
import type { JsonObject } from '../../../catalog/model.ts';
import { optionProblems } from '../../http/options.ts';
import { costProblems, tokenPriceProblems } from '../../http/upstream-cost.ts';

const option_names = {
  delivery: ['inline', 'uri'],
  background: undefined,
  webhooks: undefined,
  token_prices: undefined,
  cost_currency: undefined,
};

const switches = ['background', 'webhooks'];

/** Checks the options of a route. */
export function interactionOptionProblems(options: JsonObject): OptionProblem[] {
  const no_switches = switches.filter((field) => !['undefined', 'boolean'].includes(typeof options[field]));
  return [
    ...optionProblems(options, option_names),
    ...no_switches.map((field) => ({ field, message: 'must be true or false' })),
    ...costProblems(options),
    ...tokenPriceProblems(options),
  ];
}
