import type { Clock } from '../../lib/clock.ts';
import type { Notifier } from '../../db/notify.ts';
import type { CatalogHolder } from '../../catalog/catalog.ts';
import { readAvailabilities } from '../../api/models.ts';
import type { SessionCall } from '../../http/endpoint.ts';
import type { Model, Route } from '../../catalog/model.ts';
import {
  allRoutes,
  drainRoute,
  orderRoutes,
  overrides_channel,
  switchModel,
  type OverrideWatcher,
} from '../../catalog/overrides.ts';
import type { Queryable, Db } from '../../db/database.ts';
import { ApiError, invalidField } from '../../errors.ts';
import { openRoutes, routeName, type OpenRouteView, type Availability } from '../../routing/health.ts';
import { runsByRoute } from '../../tasks/overview.ts';
import { auditAction } from '../audit-action.ts';
import { changeAsOperator, type OperatorChange } from '../operator-change.ts';
import { session_endpoint } from '../page.ts';
import type { AdminModel, AdminRoute } from '../views/admin.ts';

/** The parts of the app that changing models takes. */
type Parts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly notifier: Notifier;
  readonly overrides: Pick<OverrideWatcher, 'refresh'> | undefined;
};

/** Models and routes: how they are, and what operators change about them while the service runs (decision 19). */

type ModelContext = {
  availabilityOf: (model: Model) => Availability;
  /** The open circuits of a route: that of all accounts first. */
  troubles: ReadonlyMap<string, readonly OpenRouteView[]>;
  running: ReadonlyMap<string, number>;
};

/** In the order of the catalogue, with their routes and what is known of those. */
export const admin_models = session_endpoint('GET', '/dash/admin/models', 'operator', async (app) => {
  const [availabilityOf, open, running] = await Promise.all([
    readAvailabilities(app),
    openRoutes(app.db, new Date(app.clock.now())),
    runsByRoute(app.db),
  ]);
  const context = { availabilityOf, troubles: Map.groupBy(open, ({ route }) => route), running };
  const data = [...app.catalog.current.models.values()].map((model) => renderModel(model, context));
  return { status: 200, body: { data } };
});

function renderModel(model: Model, context: ModelContext): AdminModel {
  const { id, kind, name, hidden, changed } = model;
  return {
    id,
    kind,
    name,
    standing: availabilityIn(model, context),
    hidden,
    is_off: changed?.is_off ?? false,
    is_reordered: changed?.is_reordered ?? false,
    routes: allRoutes(model).map((route) => renderRoute(model, route, context)),
  };
}

/** Returns the standing that an operator sees: a model that only some accounts cannot use fully is not fully available. */
function availabilityIn(model: Model, { availabilityOf, troubles }: ModelContext): Availability {
  const availability = availabilityOf(model);
  const is_troubled = model.routes.some(({ id }) => troubles.has(routeName(model.id, id)));
  return availability === 'available' && is_troubled ? 'degraded' : availability;
}

function renderRoute(model: Model, route: Route, { troubles, running }: ModelContext): AdminRoute {
  const { id, provider, upstream_model } = route;
  const name = routeName(model.id, id);
  const open = troubles.get(name) ?? [];
  const [trouble] = open;
  return {
    id,
    name,
    provider,
    upstream_model,
    state: trouble ? 'open' : 'closed',
    accounts_paused: trouble && trouble.account_id !== null ? open.length : null,
    cause: trouble?.cause ?? null,
    retry_at: trouble?.retry_at.toISOString() ?? null,
    is_drained: model.changed !== undefined && !model.changed.startable.includes(route),
    running: running.get(name) ?? 0,
  };
}

/** The model that the body names. Ids have slashes, so they are no part of a path. */
export function modelIn({ catalog }: { catalog: CatalogHolder }, { body }: Pick<SessionCall, 'body'>): Model {
  const id = body?.['model'];
  if (typeof id !== 'string') throw invalidField('model', 'model must be the id of a model.');
  const model = catalog.current.models.get(id);
  if (!model) throw new ApiError('not_found', 'There is no such model.', { param: 'model' });
  return model;
}

/** The route of this model that the body names. */
export function routeIn(model: Model, { body }: Pick<SessionCall, 'body'>): Route {
  const id = body?.['route'];
  if (typeof id !== 'string') throw invalidField('route', 'route must be the id of a route.');
  const route = allRoutes(model).find((each) => each.id === id);
  if (!route) throw new ApiError('not_found', 'There is no such route.', { param: 'route' });
  return route;
}

function flagIn({ body }: SessionCall, name: string): boolean {
  const flag = body?.[name];
  if (typeof flag !== 'boolean') throw invalidField(name, `${name} must be true or false.`);
  return flag;
}

/** Changes a model or a route. This node acts on it at once; the others get a notification. */
async function change(
  app: Parts,
  call: SessionCall,
  audit_entry: OperatorChange,
  work: (tx: Queryable, now: Date) => Promise<void>,
): Promise<void> {
  await changeAsOperator(app, call, audit_entry, work);
  await app.overrides?.refresh();
  app.notifier.notify(overrides_channel, audit_entry.subject);
}

/** The model takes no new work, or does again. What it has accepted goes on. */
export const admin_switch_model = session_endpoint(
  'POST',
  '/dash/admin/models/switch',
  'operator',
  async (app, call) => {
    const { id } = modelIn(app, call);
    const on = flagIn(call, 'on');
    const audit_entry = { action: on ? 'model.on' : 'model.off', subject: id };
    await change(app, call, audit_entry, (tx, now) => switchModel(tx, id, !on, now));
    return { status: 200, body: { ok: true } };
  },
);

/** In which order the routes of a model are tried; an empty list gives back that of the configuration. */
export const admin_order_routes = session_endpoint(
  'POST',
  '/dash/admin/models/order',
  'operator',
  async (app, call) => {
    const model = modelIn(app, call);
    const requested: unknown = call.body?.['routes'];
    const route_ids = allRoutes(model).map(({ id }) => id);
    const ids = Array.isArray(requested) ? route_ids.filter((id) => requested.includes(id)) : [];
    if (!Array.isArray(requested) || ids.length !== requested.length) {
      throw invalidField('routes', `routes must be a list with each of these at most once: ${route_ids.join(', ')}.`);
    }
    const routes = ids.toSorted((a, b) => requested.indexOf(a) - requested.indexOf(b));
    const audit_entry = { action: 'model.order', subject: model.id, details: { before: route_ids, routes } };
    await change(app, call, audit_entry, (tx, now) => orderRoutes(tx, model.id, routes, now));
    return { status: 200, body: { ok: true } };
  },
);

/** The route takes nothing new, or does again. What runs on it goes on. */
export const admin_drain_route = session_endpoint('POST', '/dash/admin/routes/drain', 'operator', async (app, call) => {
  const model = modelIn(app, call);
  const { id } = routeIn(model, call);
  const drained = flagIn(call, 'drained');
  const audit_entry = { action: drained ? 'route.drain' : 'route.fill', subject: routeName(model.id, id) };
  await change(app, call, audit_entry, (tx, now) => drainRoute(tx, { model: model.id, route: id, drained }, now));
  return { status: 200, body: { ok: true } };
});

/** Lets a route be used again at once, whatever it did. */
export const admin_reset_route = session_endpoint('POST', '/dash/admin/routes/reset', 'operator', async (app, call) => {
  const route = call.body?.['route'];
  if (typeof route !== 'string') throw invalidField('route', 'route must be the name of a route.');
  await app.health.closeCircuits(route);
  await auditAction(app, call, 'route.reset', route);
  return { status: 200, body: { ok: true } };
});
