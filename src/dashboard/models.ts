import type { CatalogHolder } from '../catalog/catalog.ts';
import type { RouteHealth } from '../routing/health.ts';
import type { Clock } from '../lib/clock.ts';
import type { Db } from '../db/database.ts';
import { readAvailabilities, availabilityOfListed } from '../api/models.ts';
import { listedAlias, listedModels, type ListedModel } from '../catalog/alias.ts';
import type { Model } from '../catalog/model.ts';
import { unknownModel } from '../catalog/model-errors.ts';
import { modelRecord } from '../catalog/view.ts';
import { datedChanges, dayOf, type DatedChange } from '../catalog/dated.ts';
import { paceOfCalls } from '../chat/pace.ts';
import { taskDurations } from '../tasks/durations.ts';
import type { Answer } from '../http/endpoint.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import type { ProjectScope } from '../accounts/project-scope.ts';
import type { ModelView, PaceView, PriceChangeView, PriceView } from './views/models.ts';

/** The parts of the app that showing models takes. */
type Parts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly catalog: CatalogHolder;
  readonly health: RouteHealth;
};

const pace_ms = 7 * 86_400_000;

/** All models that anybody may list, with how they have served this account. */
export const list_models = account_endpoint('GET', '/models', 'read', listAll, { limited: 'own' });

async function listAll(app: Parts, { account, scope }: AccountCall): Promise<Answer> {
  const shown = listedModels(app.catalog.current).filter(({ model }) => !model.hidden);
  const view: { data: ModelView[] } = { data: await renderModels(app, { account_id: account.id, scope }, shown) };
  return { status: 200, body: view };
}

/** A model by its id; a hidden one too, as in `/v1/models`. */
export const get_model = account_endpoint('GET', '/models/{+id}', 'read', readOne, { limited: 'own' });

async function readOne(app: Parts, { account, params, scope }: AccountCall): Promise<Answer> {
  const id = params['id'] ?? '';
  const { models, retired } = app.catalog.current;
  const model = models.get(id);
  const listed = model ? { model, members: [model] } : listedAlias(app.catalog.current, id);
  if (!listed) throw unknownModel(id, 'id', retired.get(id)?.retirement);
  const [view] = await renderModels(app, { account_id: account.id, scope }, [listed]);
  if (!view) throw new Error('a model was not rendered');
  return { status: 200, body: view };
}

/** The pace of whoever is limited to projects is of these. */
async function renderModels(
  app: Parts,
  { account_id, scope }: { account_id: string; scope: ProjectScope | undefined },
  listed: readonly ListedModel[],
): Promise<ModelView[]> {
  const models = listed.map(({ model }) => model);
  const [paces, statusOf] = await Promise.all([
    pacesOf(app, { account_id, scope }, models),
    readAvailabilities(app, account_id),
  ]);
  const { base_currency } = app.catalog.current.settings;
  return listed.map((one) => {
    const { model } = one;
    const {
      object: _,
      type: __,
      created: ___,
      created_at: ____,
      ...record
    } = modelRecord(model, base_currency, availabilityOfListed(statusOf, one));
    const { members } = one;
    const behind = members[0] === model ? {} : { models: members.map(({ id }) => id) };
    return { ...record, ...behind, pace: paces.get(model.id) ?? null };
  });
}

async function pacesOf(
  { db, clock }: Parts,
  { account_id, scope }: { account_id: string; scope: ProjectScope | undefined },
  models: readonly Model[],
): Promise<Map<string, PaceView>> {
  const since = new Date(clock.now() - pace_ms);
  const only = models.length === 1 ? models[0]?.id : undefined;
  const range = { account_id, since, model: only, projects: scope?.project_ids };
  const [tasks, calls] = await Promise.all([taskDurations(db, range), paceOfCalls(db, range)]);
  return new Map(
    [...tasks.map((pace) => ({ ...pace, first_p50_ms: null })), ...calls].map(({ model, ...pace }) => [model, pace]),
  );
}

const changes_max = 500;

/** Changes of prices and ends of models that the catalogue has dates for, the latest first. */
export const list_price_changes = account_endpoint('GET', '/price-changes', 'read', listChanges, { limited: 'same' });

function listChanges(app: Pick<Parts, 'catalog' | 'clock'>): Answer {
  const { settings } = app.catalog.current;
  const today = dayOf(app.clock.now());
  const shown = datedChanges(app.catalog.configured).filter(({ model }) => !model.hidden);
  const view: { data: PriceChangeView[] } = {
    data: shown.slice(0, changes_max).map((change) => renderChange(change, settings.base_currency, today)),
  };
  return { status: 200, body: view };
}

function renderChange(change: DatedChange, currency: string, today: string): PriceChangeView {
  const { model, on } = change;
  const shared = { model: model.id, display_name: model.name, on, is_coming: on > today };
  if (change.is === 'end') return { ...shared, is: 'end', replaced_by: change.replaced_by ?? null };
  const price = ({ from: _from, ...row }: typeof change.row): PriceView => ({ ...row, currency });
  return { ...shared, is: 'price', price: price(change.row), before: change.before ? price(change.before) : null };
}
