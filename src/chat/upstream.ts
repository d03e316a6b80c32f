import type { Logger } from 'pino';
import type { Route, Settings } from '../catalog/model.ts';
import { fitCosts, upstreamCharge } from '../catalog/upstream-cost.ts';
import type { Db } from '../db/database.ts';
import { retryWhileUnavailable } from '../db/retry-while-unavailable.ts';
import type { Clock } from '../lib/clock.ts';
import { noteUnknownCost } from '../money/ledger.ts';
import type { UpstreamUse } from '../money/upstream.ts';
import { routeName } from '../routing/health.ts';
import type { PricedRequest } from './priced-request.ts';
import type { ChatOutcome } from './outcome.ts';
import { withSearchCost } from './own-search.ts';
import { unitsOf } from './price.ts';
import type { Charge } from './settle.ts';

/**
 * Returns the upstream's charge for a call, by the cost rows of its route and the usage that the caller is
 * charged by. Undefined if no route answered. Unknown if nothing was delivered.
 */
export function useOf(
  settings: Settings,
  priced: PricedRequest,
  outcome: ChatOutcome,
  charge: Charge | undefined,
): UpstreamUse | undefined {
  const { route } = outcome;
  if (!route) return undefined;
  const rows = withSearchCost(
    fitCosts(route.cost, () => ({})),
    priced,
    settings,
  );
  const facts = {
    rows,
    units: charge && unitsOf({ rows }, charge.usage),
    held_units: {},
    rate: priced.pricing.rate,
    is_counted: charge?.counted_here ?? false,
  };
  return {
    ...upstreamCharge(settings, facts),
    provider: route.provider,
    route: routeName(priced.model.id, route.id),
  };
}

/** The parts of the app that noting a cost takes. */
export type LostCostParts = { readonly db: Db; readonly clock: Clock; readonly log: Logger };

/** Notes in the ledger, for the operator, that a route was asked, gave nothing, and may charge for it all the same. */
export async function noteLost(
  parts: LostCostParts,
  priced: PricedRequest,
  route: Route,
  number: number,
): Promise<void> {
  const lost = {
    account_id: priced.caller.account.id,
    ref: priced.request_id,
    number,
    provider: route.provider,
    route: routeName(priced.model.id, route.id),
    model: priced.model.id,
    kind: priced.model.kind,
  };
  try {
    await retryWhileUnavailable(() => noteUnknownCost(parts.db, lost, new Date(parts.clock.now())));
  } catch (error) {
    parts.log.error({ request_id: lost.ref, route: lost.route, err: error }, 'an unknown cost could not be noted');
  }
}
