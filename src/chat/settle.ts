import type { App } from '../app.ts';
import type { Units } from '../catalog/price.ts';
import { whileAway } from '../db/while-away.ts';
import { exact, type Money } from '../money/money.ts';
import type { UpstreamUse } from '../money/upstream.ts';
import type { Usage } from '../styles/conversation.ts';
import type { CallOrder } from './order.ts';
import type { ChatOutcome } from './outcome.ts';
import { chargedUsage } from '../styles/usage.ts';
import { costOf, unitsOf } from './price.ts';

/** What a call is charged for. `counted_here`: the upstream did not tell all of it. */
export type Charge = { usage: Usage; units: Units; counted_here: boolean; cost: Money };

/**
 * What is charged, by how the call ended (docs/chat-billing.md). Nothing came: nothing, unless we let an upstream go
 * that had the request. Complete: the upstream's own usage. Cut, failed or left in the middle: the input, and the
 * output that was told or received, whichever is more. What the upstream does not tell is counted from what went through.
 */
export function chargeOf(order: CallOrder, outcome: ChatOutcome): Charge | undefined {
  const { usage: told, delivered, has_content, is_complete, is_abandoned } = outcome;
  if (!has_content && !is_complete && !is_abandoned) return undefined;
  const { input_tokens_counted, pricing } = order;
  const { usage, is_counted } = chargedUsage(told, delivered, { input_tokens_counted, is_complete });
  const units = unitsOf(pricing, usage);
  return { usage, units, counted_here: is_counted, cost: costOf(pricing, units) };
}

type Closed = Awaited<ReturnType<App['holds']['close']>>;

/** What the caller was charged, and what the upstream charges us; null if that is unknown, or none was asked. */
export type Settled = { charged: Money; upstream_cost: Money | null };

/**
 * Ends the hold of a call, once: with its charge, first from the hold, the rest from what is available;
 * or without one; and books what the upstream charges for it along with that.
 */
export function settle(
  app: App,
  order: CallOrder,
  charge: Charge | undefined,
  upstream?: UpstreamUse,
): Promise<Settled> {
  const { caller, request_id } = order;
  const ref = { account_id: caller.account.id, ref: request_id };
  const end = charge
    ? { ...ref, cost: charge.cost, beyond_hold: true, units: charge.units, upstream }
    : { ...ref, cost: null, upstream };
  return whileAway(() => app.holds.close(end)).then(
    (closed) => booked(app, order, charge, closed),
    (error: unknown) => {
      tellUnsettled(app, order, charge, error);
      throw error;
    },
  );
}

/** So that an operator can book by hand what was given for nothing. */
function tellUnsettled(app: App, { caller, request_id, model }: CallOrder, charge: Charge | undefined, err: unknown) {
  const { id, currency } = caller.account;
  const facts = { account_id: id, ref: request_id, model: model.id, cost: exact(charge?.cost ?? 0n), currency, err };
  app.log.error(facts, 'a chat call could not be settled: its hold is given back later, and its cost is lost');
}

function booked(
  app: App,
  { caller, request_id, model }: CallOrder,
  charge: Charge | undefined,
  closed: Closed,
): Settled {
  const lost = (charge?.cost ?? 0n) - closed.charged;
  if (lost > 0n) {
    const ref = { account_id: caller.account.id, ref: request_id };
    const facts = { ...ref, model: model.id, loss: exact(lost), currency: caller.account.currency };
    const why =
      closed.state === 'settled'
        ? 'cost more than its account has, or its key may spend'
        : 'was settled after its hold was given back or lost';
    app.log.error(facts, `a chat call ${why}: the difference is lost`);
  }
  return { charged: closed.charged, upstream_cost: closed.upstream_cost };
}
