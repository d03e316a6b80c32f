import type { Login } from '../accounts/sign-in/login.ts';
import { readAvailabilities } from '../api/models.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Db } from '../db/database.ts';
import { ApiError } from '../errors.ts';
import type { Endpoint } from '../http/endpoint.ts';
import type { Clock } from '../lib/clock.ts';
import { servedByModel } from '../monitoring/model-hours.ts';
import type { RouteHealth } from '../routing/health.ts';
import type { ModelStatusView } from './views/status.ts';

/** The parts of the app that showing its status takes. */
type Parts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly catalog: CatalogHolder;
  readonly health: RouteHealth;
  readonly login: Login;
};

/** Answers for the page Status: to anybody if the operator says so, else to who has signed in. Without numbers of calls, which are the operator's own. */
export const get_status: Endpoint<Parts> = {
  method: 'GET',
  path: '/status.json',
  public: true,
  docs: { tag: 'Dashboard', summary: 'Status of the models', hidden: true, responses: { 200: { description: 'ok' } } },
  handle: async (app, { headers }) => {
    const is_public = app.catalog.current.settings.status_page.public;
    if (!is_public && !(await app.login.sessionOf(headers))) {
      throw new ApiError('unauthenticated', 'The status of this service is for its users. Sign in to see it.');
    }
    const { at, models } = await latest(app);
    return { status: 200, body: { at, is_public, models }, headers: { 'cache-control': 'no-store' } };
  },
};

type Latest = { at: string; models: ModelStatusView[] };

/** Anybody may ask, as often as they like: each service looks once in this time. */
const again_after_ms = 15_000;
const looks = new WeakMap<CatalogHolder, { at_ms: number; look: Promise<Latest> }>();

function latest(app: Parts): Promise<Latest> {
  const now_ms = app.clock.now();
  const before = looks.get(app.catalog);
  if (before && now_ms - before.at_ms < again_after_ms) return before.look;
  const look = lookAtModels(app, now_ms);
  looks.set(app.catalog, { at_ms: now_ms, look });
  look.catch(() => looks.delete(app.catalog));
  return look;
}

async function lookAtModels(app: Parts, now_ms: number): Promise<Latest> {
  const [servedBy, availabilityOf] = await Promise.all([servedByModel(app.db, now_ms), readAvailabilities(app)]);
  const shown = [...app.catalog.current.models.values()].filter(({ hidden }) => !hidden);
  return {
    at: new Date(now_ms).toISOString(),
    models: shown.map((model) => {
      const { id, name, kind } = model;
      return { id, name, kind, status: availabilityOf(model), ...servedBy(id) };
    }),
  };
}
