import type { Funds } from '../money/holds.ts';
import { money_max, type Money } from '../money/money.ts';
import { ownCallsOf, type PricedRequest } from './priced-request.ts';
import { holdFor, outputTokensFor, toolsHold } from './price.ts';

/** The hold of a call, and the output limit that its upstream gets. */
export type HoldPlan = {
  amount: Money;
  /** The most that it can cost: above the amount only where there is plenty of money. */
  cost_max: Money;
  max_tokens: number;
  /** More money would change nothing. */
  is_full: boolean;
};

/** A hold that does not fit: the least amount that the call needs, and the available amount. */
export type Shortage = { outcome: 'insufficient' | 'over_limit'; least: Money; affordable: Money };

/** So many times the hold have to be there for an input to be held for as it usually comes out. */
const plenty = 20n;

/**
 * The hold of a call by the money of its account and what its key may spend. With plenty, for the input as it usually
 * comes out and the longest answer that may be; without, for the usual answer and every byte as a token, as far as the
 * money goes. So no call costs more than was held for it, or than there is apart from all other holds.
 */
export function planHold(priced: PricedRequest, funds: Funds): HoldPlan | Shortage {
  const affordable = affordableOf(funds);
  return generousPlan(priced, affordable) ?? tightPlan(priced, affordable) ?? shortageOf(priced, funds);
}

/** Returns the shortage of a call: its least amount and the money that is there, for the caller. */
export function shortageOf(priced: PricedRequest, funds: Funds): Shortage {
  const { output, input_tokens_most } = priced;
  const least = costAtMost(priced, input_tokens_most, output.least);
  const { available } = funds;
  return available < least
    ? { outcome: 'insufficient', least, affordable: available }
    : { outcome: 'over_limit', least, affordable: affordableOf(funds) };
}

function affordableOf({ available, remaining }: Funds): Money {
  return remaining !== null && remaining < available ? remaining : available;
}

function costAtMost(priced: PricedRequest, input_tokens: number, max_tokens: number): Money {
  const { hold_pricing, request, output } = priced;
  // Behind each call of a tool of our own, a model reads again what it has written.
  const reread_tokens = ownCallsOf(priced) * max_tokens;
  const amount = holdFor(hold_pricing, input_tokens + reread_tokens, request.n * Math.max(max_tokens, output.sent_min));
  const with_tools = amount + costOfTools(priced);
  return with_tools < money_max ? with_tools : money_max;
}

function costOfTools({ hold_pricing, hosted }: PricedRequest): Money {
  return hosted ? toolsHold(hold_pricing, hosted) : 0n;
}

function generousPlan(priced: PricedRequest, affordable: Money): HoldPlan | undefined {
  const { output, input_tokens_estimated, input_tokens_most } = priced;
  for (const max_tokens of output.most === output.usual ? [output.most] : [output.most, output.usual]) {
    const amount = costAtMost(priced, input_tokens_estimated, max_tokens);
    if (amount * plenty > affordable) continue;
    const cost_max = costAtMost(priced, input_tokens_most, max_tokens);
    if (cost_max <= affordable) return { amount, cost_max, max_tokens, is_full: max_tokens === output.most };
  }
  return undefined;
}

function tightPlan(priced: PricedRequest, affordable: Money): HoldPlan | undefined {
  const { output, request, hold_pricing, input_tokens_most } = priced;
  const planFor = (max_tokens: number): HoldPlan | undefined => {
    const amount = costAtMost(priced, input_tokens_most, max_tokens);
    return amount <= affordable ? { amount, cost_max: amount, max_tokens, is_full: false } : undefined;
  };
  const usual = planFor(output.usual);
  if (usual) return usual;
  const left = affordable - costOfTools(priced);
  const bought = outputTokensFor(hold_pricing, input_tokens_most, left, ownCallsOf(priced)) ?? 0n;
  const max_tokens = Number(bought / BigInt(request.n));
  return max_tokens >= output.least ? planFor(max_tokens) : undefined;
}
