import type { App } from '../app.ts';
import { ApiError } from '../errors.ts';
import { balanceView, estimateView, type Money } from '../money/money.ts';
import type { CallOrder } from './order.ts';
import { holdFor } from './price.ts';

type HoldRequest = Parameters<App['holds']['hold']>[0];

/** With less than this for the answer, a call is refused rather than begun. */
const output_tokens_min = 256;

/** A hold may be cut down because of money that somebody else takes in the same moment. */
const tries_max = 3;

/** Beyond its route's times a call is over, whatever became of its node; then the sweep releases. */
const grace_ms = 300_000;

/**
 * Reserves the money of a call: for its input and the output it may have, or as much as is there, down
 * to 256 tokens of output; then the answer may be no longer than that buys, or a hundred calls at once would
 * each write what the balance pays once. Answers what each answer may have, at once if the hold is pledged. Rejects
 * with ApiError 402 or 403.
 */
export function takeHold(app: App, order: CallOrder): number | Promise<number> {
  const request = requestOf(app, order);
  return app.holds.pledge(request) ? order.max_tokens : holdWhatIsThere(app, order, request);
}

/** A hold for all that the call may cost. */
function requestOf(app: App, order: CallOrder): HoldRequest {
  const { caller, request_id, model } = order;
  const routes_ms = model.routes.reduce((sum, route) => sum + route.timeout_ms.total, 0);
  return {
    account_id: caller.account.id,
    key_id: caller.key.id,
    budget_id: caller.key.budget_id,
    ref: request_id,
    amount: holdFor(order.pricing, order.input_tokens_estimated, order.output_tokens_held),
    model: model.id,
    kind: model.kind,
    expires_in_ms: routes_ms + grace_ms,
  };
}

async function holdWhatIsThere(app: App, order: CallOrder, request: HoldRequest): Promise<number> {
  const { pricing, input_tokens_estimated, ask } = order;
  let { amount } = request;
  for (let tries = 1; ; tries++) {
    const answer = await app.holds.hold({ ...request, amount });
    if (answer.outcome === 'held' || answer.outcome === 'exists') {
      return tries === 1 ? order.max_tokens : Math.min(order.max_tokens, tokensFor(order, amount));
    }
    const { available, remaining } = answer;
    const output_tokens_least = Math.min(order.output_tokens_held, ask.n * output_tokens_min);
    const least = holdFor(pricing, input_tokens_estimated, output_tokens_least);
    const affordable = remaining !== null && remaining < available ? remaining : available;
    if (available < least) throw refusal(order, 'insufficient', least, available);
    if (affordable < least) throw refusal(order, 'over_limit', least, affordable);
    if (tries === tries_max) throw refusal(order, answer.outcome, least, affordable);
    amount = affordable;
  }
}

/** How many tokens of output, of each of the answers, a hold of this amount pays for. */
function tokensFor(order: CallOrder, amount: Money): number {
  const { pricing, input_tokens_estimated, ask } = order;
  const for_input = holdFor(pricing, input_tokens_estimated, 0);
  const for_output = amount - for_input;
  const per_million = holdFor(pricing, input_tokens_estimated, 1_000_000) - for_input;
  if (per_million <= 0n) return order.max_tokens;
  return Math.max(output_tokens_min, Number((for_output * 1_000_000n) / per_million / BigInt(ask.n)));
}

function refusal(order: CallOrder, outcome: 'insufficient' | 'over_limit', least: Money, affordable: Money): ApiError {
  const { currency } = order.caller.account;
  const needed = `${estimateView(least, currency).amount} ${currency}`;
  const left = `${balanceView(affordable, currency).amount} ${currency}`;
  if (outcome === 'insufficient') {
    const message = `The call needs a hold of at least ${needed}, but only ${left} is available. Top up the balance.`;
    return new ApiError('insufficient_balance', message);
  }
  const message =
    `This key's monthly spend limit is reached: the call needs a hold of at least ${needed}, ${left} is left. ` +
    'Create a key with a higher limit or use another key.';
  return new ApiError('key_limit', message, { code: 'monthly_limit' });
}
