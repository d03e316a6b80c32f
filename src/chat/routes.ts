import type { Model, Route } from '../catalog/model.ts';
import { unavailableText } from '../catalog/model-errors.ts';
import type { Semaphore } from '../concurrency/semaphore.ts';
import { ApiError } from '../errors.ts';
import { rememberByObject } from '../lib/remember.ts';
import { routeName, type Block, type RouteHealth } from '../routing/health.ts';
import { candidatesOf, type PricedRequest, type WithFallbacks } from './priced-request.ts';

/** A route under its name in health, attempts and logs. */
export type NamedRoute = { name: string; route: Route };

/** A route of the model that the call names first, or of a fallback: with the call as that model has it. */
export type CallRoute<Priced extends PricedRequest = PricedRequest> = NamedRoute & { priced: Priced };

/** The routes to try, in order. `leaveProbe`: this call alone tests routes that fail; to be called at its first content. */
export type Routing<Priced extends PricedRequest> = {
  routes: readonly CallRoute<Priced>[];
  leaveProbe?: () => void;
};

/** The parts of the app that choosing routes takes. */
export type RoutingParts = { readonly health: RouteHealth; readonly limits: { readonly route_probes: Semaphore } };

/**
 * Puts the routes of a call into the order in which they are tried: those of its fallbacks after its own, open ones last.
 * Rejects with ApiError 502. A model whose every route is open is never refused outright: one call at a time of an
 * account passes, so that the model heals with the first that works (decision 64). Only a model without routes is
 * refused at once.
 */
export async function routesOf<Priced extends PricedRequest>(
  { health, limits }: RoutingParts,
  priced: WithFallbacks<Priced>,
): Promise<Routing<Priced>> {
  const { names, by_name } = callRoutes(candidatesOf<Priced>(priced));
  const account_id = priced.caller.account.id;
  const inOrder = async () => (await health.healthyFirst(names, account_id)).flatMap((name) => by_name.get(name) ?? []);
  const blocked = await health.findBlock(names, account_id);
  if (!blocked) return { routes: await inOrder() };
  if (names.length === 0) throw unavailable(priced.model, blocked);
  const leaveProbe = await enterProbe(limits.route_probes, `${account_id} ${priced.model.id}`, [...by_name.values()]);
  if (!leaveProbe) throw unavailable(priced.model, blocked);
  try {
    const is_still_blocked = await health.findBlock(names, account_id);
    if (!is_still_blocked) leaveProbe(); // a probe worked while this call waited
    return { routes: await inOrder(), leaveProbe };
  } catch (error) {
    leaveProbe();
    throw error;
  }
}

/** A call beyond the one that probes waits so long for the probe to end. */
const probe_wait_ms = 2_000;

/** Resolves to the end of the probe, which ends by itself when no route can begin any more; undefined if another still probes. */
async function enterProbe(
  probes: Semaphore,
  name: string,
  routes: readonly NamedRoute[],
): Promise<(() => void) | undefined> {
  const permit = await probes.acquire(name, { timeout_ms: probe_wait_ms });
  if (!permit) return undefined;
  const timer = setTimeout(permit.release, Math.max(...routes.map(({ route }) => route.timeout_ms.first_byte)));
  return () => {
    clearTimeout(timer);
    permit.release();
  };
}

function unavailable(model: Model, { retry_after_ms }: Block): ApiError {
  const headers = { 'retry-after': retryAfter(retry_after_ms) };
  return new ApiError('upstream_error', unavailableText(model), { headers });
}

/** Names are made once per model, not at each call. */
const namedRoutes = rememberByObject((model: Model): readonly NamedRoute[] =>
  model.routes.map((route) => ({ name: routeName(model.id, route.id), route })),
);

type CallRoutes<Priced extends PricedRequest> = {
  names: readonly string[];
  by_name: ReadonlyMap<string, CallRoute<Priced>>;
};

function callRoutes<Priced extends PricedRequest>(candidates: readonly Priced[]): CallRoutes<Priced> {
  const routes = candidates.flatMap((priced) => namedRoutes(priced.model).map((named) => ({ ...named, priced })));
  return { names: routes.map(({ name }) => name), by_name: new Map(routes.map((route) => [route.name, route])) };
}

/** SDKs sleep for as long as the header says, however long that is: a minute, whatever the upstream said. */
const retry_after_max_s = 60;

export function retryAfter(wait_ms: number): string {
  return String(Math.min(retry_after_max_s, Math.ceil(wait_ms / 1000)));
}
