import type { Db, Queryable } from '../db/database.ts';
import type { Listener } from '../db/notify.ts';
import { watch, type Watcher } from '../db/watched.ts';
import type { Model, Route } from './model.ts';

/** An operator's override of one model while the service runs; the rest comes from the file (decision 19). */
export type Override = {
  model: string;
  is_off: boolean;
  /** Ids of routes; those that are not named follow in their own order. */
  route_order: readonly string[];
  /** Ids of routes that take nothing new. */
  drained: readonly string[];
};

type Models = { readonly models: ReadonlyMap<string, Model> };

/** The catalogue with what operators changed. What names a model or a route that there is not changes nothing. */
export function withOverrides<C extends Models>(catalog: C, overrides: readonly Override[]): C {
  const changed = overrides.flatMap((override): [string, Model][] => {
    const model = catalog.models.get(override.model);
    return model ? [[model.id, changedModel(model, override)]] : [];
  });
  if (changed.length === 0) return catalog;
  const models = new Map(catalog.models);
  for (const [id, model] of changed) models.set(id, model); // in its old place
  return { ...catalog, models };
}

function changedModel(model: Model, { is_off, route_order, drained }: Override): Model {
  const place = (route: Route) => route_order.indexOf(route.id) + 1 || Number.POSITIVE_INFINITY;
  const routes = model.routes.toSorted((a, b) => (place(a) === place(b) ? 0 : place(a) - place(b)));
  const startable = routes.filter(({ id }) => !drained.includes(id));
  const is_reordered = routes.some((route, index) => route !== model.routes[index]);
  return { ...model, routes: is_off ? [] : startable, changed: { is_off, is_reordered, routes, startable } };
}

/** Returns the routes on which an accepted run may start, even if the model takes no new runs. */
export function startableRoutes({ routes, changed }: Model): readonly Route[] {
  return changed?.startable ?? routes;
}

/** Every route that can be used, in the order in which they are tried, with those that take nothing new. */
export function allRoutes({ routes, changed }: Model): readonly Route[] {
  return changed?.routes ?? routes;
}

const columns = 'model, is_off, route_order, drained';

export async function listOverrides(db: Queryable): Promise<Override[]> {
  return db.query<Override>(`select ${columns} from model_overrides order by model`);
}

/** Switches a model off, or on again. */
export async function switchModel(db: Queryable, model: string, is_off: boolean, now: Date): Promise<void> {
  await db.query(
    `insert into model_overrides (model, is_off, updated_at) values ($1, $2, $3)
     on conflict (model) do update set is_off = $2, updated_at = $3`,
    [model, is_off, now],
  );
  await removeUnchanged(db, model);
}

/** Sets the order in which routes are tried; without any, it is that of the configuration. */
export async function orderRoutes(db: Queryable, model: string, ids: readonly string[], now: Date): Promise<void> {
  await db.query(
    `insert into model_overrides (model, route_order, updated_at) values ($1, $2, $3)
     on conflict (model) do update set route_order = $2, updated_at = $3`,
    [model, ids, now],
  );
  await removeUnchanged(db, model);
}

/** Drains a route, which then takes nothing new, or ends that. */
export async function drainRoute(
  db: Queryable,
  { model, route, drained }: { model: string; route: string; drained: boolean },
  now: Date,
): Promise<void> {
  await db.query(
    `insert into model_overrides (model, drained, updated_at) values ($1, case when $3 then array[$2] else '{}' end, $4)
     on conflict (model) do update set updated_at = $4, drained = array_remove(model_overrides.drained, $2)
       || case when $3 then array[$2] else '{}' end`,
    [model, route, drained, now],
  );
  await removeUnchanged(db, model);
}

async function removeUnchanged(db: Queryable, model: string): Promise<void> {
  await db.query(
    `delete from model_overrides where model = $1 and not is_off and route_order = '{}' and drained = '{}'`,
    [model],
  );
}

/** NOTIFY on this channel: a row has changed. */
export const overrides_channel = 'model_overrides';

export type OverrideWatcher = Watcher;

/** Keeps the catalogue at what operators changed, on this node. What cannot be read stays as it was. */
export async function watchOverrides(
  db: Db,
  catalog: { override(overrides: readonly Override[]): void },
  listener: Listener,
  onError: (error: unknown) => void,
): Promise<OverrideWatcher> {
  let seen = '';
  const read = async () => {
    const overrides = await listOverrides(db);
    const text = JSON.stringify(overrides);
    if (text === seen) return;
    seen = text;
    catalog.override(overrides);
  };
  return watch({ listener, channel: overrides_channel }, read, onError);
}
