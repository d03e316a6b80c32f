import { ApiError } from '../errors.ts';
import { holdRecord, type Funds, type HoldAnswer, type HoldRequest, type Holds } from '../money/holds.ts';
import { budgetReached } from '../money/account-budgets.ts';
import { balanceView, estimateView } from '../money/money.ts';
import { candidatesOf, type PricedCall, type PricedRequest } from './priced-request.ts';
import { planHold, shortageOf, type HoldPlan, type Shortage, type TokensByModel } from './plan.ts';

/** A hold may be cut down because of money that somebody else takes in the same moment. */
const tries_max = 3;

/** Beyond its route's times a call is over, whatever became of its node; then the sweep releases. */
const grace_ms = 300_000;

/** The hold of a call, and the most tokens that each answer may have for it; models that the money does not pay have none. */
export type CallHold = { hold: HoldRequest; max_tokens: TokensByModel };

/** The part of the app that holding money takes. */
export type HoldParts = { readonly holds: Holds };

/**
 * Reserves the money of a call, by the plan for the money that there is. Answers what is held, and what each answer may have:
 * upstreams are sent that, or a hundred calls at once would each write what the balance pays once. Rejects with ApiError
 * 402 or 403.
 */
export async function takeHold(
  { holds }: HoldParts,
  priced: PricedCall,
  hold: (request: HoldRequest, max_tokens: TokensByModel) => Promise<HoldAnswer> = (request) => holds.hold(request),
): Promise<CallHold> {
  let plan = fullPlan(holds, priced) ?? planNow(holds, priced, await readFunds(holds, priced));
  for (let tries = 1; ; tries++) {
    if ('outcome' in plan) throw await refusal(holds, priced, plan);
    const request = requestOf(priced, plan);
    const answer = await hold(request, plan.max_tokens);
    const { outcome } = answer;
    if (outcome === 'held' || outcome === 'exists') return { hold: request, max_tokens: plan.max_tokens };
    if (tries === tries_max) throw await refusal(holds, priced, { ...shortageOf(priced, answer), outcome });
    plan = planNow(holds, priced, answer);
  }
}

/**
 * Looks at a hold again, before an upstream is asked: while this process stood still, the lease that the hold was answered
 * out of may have ended. Rejects with ApiError 402 if others have taken its money.
 */
export async function confirmHold({ holds }: HoldParts, priced: PricedRequest, hold: HoldRequest): Promise<void> {
  if (await holds.confirm(hold)) return;
  throw await refusal(holds, priced, { outcome: 'insufficient', least: hold.amount, affordable: 0n });
}

/** The plan for what is known to be there, if it is full: a smaller hold has to be true of this moment, as the account may have been topped up. */
function fullPlan(holds: Holds, priced: PricedCall): HoldPlan | undefined {
  const funds = holds.funds(priced.caller.account.id, keyNameOf(priced));
  const plan = funds && planHold(priced, funds);
  return plan && !('outcome' in plan) && plan.is_full ? plan : undefined;
}

function requestOf(priced: PricedCall, { amount, cost_max }: HoldPlan): HoldRequest {
  const { caller, request_id, model } = priced;
  const routes = candidatesOf(priced).flatMap((candidate) => candidate.model.routes);
  const routes_ms = routes.reduce((sum, route) => sum + route.timeout_ms.total, 0);
  return {
    account_id: caller.account.id,
    ...keyNameOf(priced),
    ref: request_id,
    amount,
    cost_max,
    model: model.id,
    kind: model.kind,
    expires_in_ms: routes_ms + grace_ms,
  };
}

/** Others may have been answered along with this one, and have taken their part by now. */
function planNow(holds: Holds, priced: PricedCall, answered: Funds): HoldPlan | Shortage {
  return planHold(priced, holds.funds(priced.caller.account.id, keyNameOf(priced)) ?? answered);
}

function keyNameOf({ caller }: PricedRequest): Pick<HoldRequest, 'key_id' | 'budget_id'> {
  return { key_id: caller.key.id, budget_id: caller.key.budget_id };
}

function readFunds(holds: Holds, priced: PricedRequest): Promise<Funds> {
  const { caller, request_id, model } = priced;
  return holds.readFunds({
    account_id: caller.account.id,
    ...keyNameOf(priced),
    ref: request_id,
    model: model.id,
    kind: model.kind,
  });
}

async function refusal(
  holds: Holds,
  { caller, model }: PricedRequest,
  { outcome, least, affordable }: Shortage,
): Promise<ApiError> {
  const of_call = { key_id: caller.key.id, model: model.id };
  const { currency } = caller.account;
  const needed = `${estimateView(least, currency).amount} ${currency}`;
  const left = `${balanceView(affordable, currency).amount} ${currency}`;
  if (outcome === 'insufficient') {
    const message = caller.key.is_limited
      ? `The call needs a hold of at least ${needed}, which is more than the account has. Ask an owner of the account.`
      : `The call needs a hold of at least ${needed}, but only ${left} is available. Top up the balance.`;
    return new ApiError('insufficient_balance', message, {
      refusal: { reason: 'insufficient_balance', ...of_call },
    });
  }
  const budget = await holds.refusedBy({ account_id: caller.account.id, key_id: caller.key.id });
  if (budget)
    return budgetReached(budget, { what: 'call', needed, currency, is_limited: caller.key.is_limited, ...of_call });
  const message =
    `This key's monthly spend limit is reached: the call needs a hold of at least ${needed}, ${left} is left. ` +
    'Create a key with a higher limit or use another key.';
  return new ApiError('key_limit', message, {
    code: 'monthly_limit',
    refusal: { reason: 'monthly_limit', ...of_call },
  });
}

/** Returns the hold that an SQL function makes together with what it is for: it stays until that has ended, whatever becomes of a node. */
export function lastingHold(request: HoldRequest): string {
  const { expires_in_ms: _, ...lasting } = request;
  return holdRecord(lasting);
}
