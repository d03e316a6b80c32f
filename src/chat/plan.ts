import type { Funds } from '../money/holds.ts';
import { money_max, type Money } from '../money/money.ts';
import { candidatesOf, ownCallsOf, type PricedCall, type PricedRequest } from './priced-request.ts';
import { holdFor, outputTokensFor, toolsHold } from './price.ts';

/** The hold of a call: that of the most expensive of its models. */
export type HoldPlan = {
  amount: Money;
  /** The most that it can cost: above the amount only where there is plenty of money. */
  cost_max: Money;
  /** The output limit that an upstream gets, by its model. A model that the money does not pay is not there. */
  max_tokens: TokensByModel;
  /** More money would change nothing. */
  is_full: boolean;
};

/** Output tokens that each answer may have, by the id of the model. */
export type TokensByModel = ReadonlyMap<string, number>;

type ModelPlan = Omit<HoldPlan, 'max_tokens'> & { max_tokens: number };

/** A hold that does not fit: the least amount that the call needs, and the available amount. */
export type Shortage = { outcome: 'insufficient' | 'over_limit'; least: Money; affordable: Money };

/** So many times the hold have to be there for an input to be held for as it usually comes out. */
const plenty = 20n;

/**
 * The hold of a call by the money of its account and what its key may spend. With plenty, for the input as it usually
 * comes out and the longest answer that may be; without, for the usual answer and every byte as a token, as far as the
 * money goes. So no call costs more than was held for it, or than there is apart from all other holds.
 */
export function planHold(priced: PricedCall, funds: Funds): HoldPlan | Shortage {
  const affordable = affordableOf(funds);
  const candidates = candidatesOf(priced);
  const plans = candidates.flatMap((candidate) => {
    const plan = generousPlan(candidate, affordable) ?? tightPlan(candidate, affordable);
    return plan ? [{ id: candidate.model.id, plan }] : [];
  });
  if (plans.length === 0) return shortageOf(priced, funds);
  return {
    amount: most(plans.map(({ plan }) => plan.amount)),
    cost_max: most(plans.map(({ plan }) => plan.cost_max)),
    max_tokens: new Map(plans.map(({ id, plan }) => [id, plan.max_tokens])),
    is_full: plans.length === candidates.length && plans.every(({ plan }) => plan.is_full),
  };
}

function most(amounts: readonly Money[]): Money {
  return amounts.reduce((largest, amount) => (amount > largest ? amount : largest), 0n);
}

/**
 * Returns the most tokens that an answer may have for so much money, at the highest prices of the request; undefined if it
 * does not pay the least that is begun.
 */
export function tokensWithin(priced: PricedRequest, money: Money): number | undefined {
  const { output, input_tokens_most } = priced;
  if (costAtMost(priced, input_tokens_most, output.most) <= money) return output.most;
  const bought = Math.min(output.most, tokensBought(priced, money));
  return bought >= output.least && costAtMost(priced, input_tokens_most, bought) <= money ? bought : undefined;
}

/** Returns the shortage of a call: the least amount that one of its models needs, and the money that is there, for the caller. */
export function shortageOf(priced: PricedCall, funds: Funds): Shortage {
  const [first, ...others] = candidatesOf(priced).map((each) =>
    costAtMost(each, each.input_tokens_most, each.output.least),
  );
  const least = others.reduce((smallest, amount) => (amount < smallest ? amount : smallest), first ?? money_max);
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
  // After each call of a tool of our own, a model reads again what it has written.
  const reread_tokens = ownCallsOf(priced) * max_tokens;
  const amount = holdFor(hold_pricing, input_tokens + reread_tokens, request.n * Math.max(max_tokens, output.sent_min));
  const with_tools = amount + costOfTools(priced);
  return with_tools < money_max ? with_tools : money_max;
}

function costOfTools({ hold_pricing, hosted }: PricedRequest): Money {
  return hosted ? toolsHold(hold_pricing, hosted) : 0n;
}

function generousPlan(priced: PricedRequest, affordable: Money): ModelPlan | undefined {
  const { output, input_tokens_estimated, input_tokens_most } = priced;
  for (const max_tokens of output.most === output.usual ? [output.most] : [output.most, output.usual]) {
    const amount = costAtMost(priced, input_tokens_estimated, max_tokens);
    if (amount * plenty > affordable) continue;
    const cost_max = costAtMost(priced, input_tokens_most, max_tokens);
    if (cost_max <= affordable) return { amount, cost_max, max_tokens, is_full: max_tokens === output.most };
  }
  return undefined;
}

function tightPlan(priced: PricedRequest, affordable: Money): ModelPlan | undefined {
  const { output, input_tokens_most } = priced;
  const planFor = (max_tokens: number): ModelPlan | undefined => {
    const amount = costAtMost(priced, input_tokens_most, max_tokens);
    return amount <= affordable ? { amount, cost_max: amount, max_tokens, is_full: false } : undefined;
  };
  const usual = planFor(output.usual);
  if (usual) return usual;
  const bought = tokensBought(priced, affordable);
  return bought >= output.least ? planFor(bought) : undefined;
}

function tokensBought(priced: PricedRequest, money: Money): number {
  const { request, hold_pricing, input_tokens_most } = priced;
  const left = money - costOfTools(priced);
  const bought = outputTokensFor(hold_pricing, input_tokens_most, left, ownCallsOf(priced)) ?? 0n;
  return Number(bought / BigInt(request.n));
}
