import { list_currency, mayTypeListPrice } from '../../catalog/added/part.ts';
import {
  addModels,
  changeModel,
  listAddedModels,
  removeModels,
  type AddedModel,
  type AddedProvider,
} from '../../catalog/added/rows.ts';
import { units, type Kind, type Unit } from '../../catalog/model.ts';
import type { ModelEntry, PriceEntry } from '../../catalog/schema.ts';
import type { SessionCall } from '../../http/endpoint.ts';
import { isRecord } from '../../lib/is-record.ts';
import { adapters } from '../../providers/index.ts';
import { unlistedModel, type NamingOptions, type OfferedModel } from '../../providers/offer/offer.ts';
import { ApiError, invalidField } from '../../errors.ts';
import { changeAdded, marginIn, providerIn, reading, storedKey, type OfferParts } from './providers.ts';
import { session_endpoint } from '../page.ts';
import { priceViews, readOffer, shippedOffer, usdRate } from '../provider-offer.ts';
import type { ModelsAdded, OfferedModelView, ProviderOffer } from '../views/admin-providers.ts';

/** The models of providers that operators add. */

/** Lists what a provider offers now, by its own list or by the default catalogue. A list that cannot be read is told. */
export const admin_provider_offer = session_endpoint(
  'GET',
  '/dash/admin/providers/{name}/offer',
  'operator',
  async (app, call) => {
    const provider = await providerIn(app, call);
    const added = new Set((await listAddedModels(app.db)).map(({ id }) => id));
    if (isShipped(provider)) {
      const models = shippedOffer(provider).map((entry) => shippedView(provider, entry, added));
      const view: ProviderOffer = { models, problem: null, may_type: false, document: null };
      return { status: 200, body: view };
    }
    let problem: string | null = null;
    const offer = await offerOf(app, provider).catch((error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
      problem = error.message;
      return [];
    });
    const models = offer.map((model) => offeredView(provider, model, added));
    const { documents, has_whole_list = false } = adapters[provider.entry.adapter] ?? {};
    const document = documents?.noun ?? null;
    const view: ProviderOffer = { models, problem, may_type: !has_whole_list, document };
    return { status: 200, body: view };
  },
);

async function offerOf(app: OfferParts, provider: AddedProvider): Promise<OfferedModel[]> {
  return (await readOffer(provider, await storedKey(app, provider.name), reading(app))) ?? [];
}

/** Its models are those of the default catalogue. */
function isShipped(provider: Pick<AddedProvider, 'preset'>): boolean {
  return shippedOffer(provider).length > 0;
}

function shippedView({ prefix }: AddedProvider, entry: ModelEntry, added: ReadonlySet<string>): OfferedModelView {
  const id = prefix + entry.id;
  return {
    upstream_model: entry.id,
    id,
    name: entry.name ?? null,
    kind: entry.kind,
    kinds: [],
    context_tokens: entry.limits?.['context_tokens'] ?? null,
    list_price: priceViews(entry.price, list_currency),
    is_added: added.has(id),
  };
}

/** Kinds that a model of a list may be: a list of OpenAI's style says nothing of them. */
const choosable_kinds = ['chat', 'embedding', 'rerank', 'moderation', 'image'] as const;

function offeredView(provider: AddedProvider, model: OfferedModel, added: ReadonlySet<string>): OfferedModelView {
  const { upstream_model, name, kind, context_tokens } = model;
  const entry = kind === undefined ? undefined : model.entry(namingOf(provider), kind);
  const id = entry?.id ?? upstream_model;
  return {
    upstream_model,
    id,
    name: name ?? null,
    kind: entry?.kind ?? null,
    kinds: entry && isChoosable(entry.kind) && !hasWholeList(provider) ? choosable_kinds : [],
    context_tokens: context_tokens ?? null,
    list_price: priceViews(entry?.price, list_currency),
    is_added: added.has(id),
  };
}

function hasWholeList({ entry }: AddedProvider): boolean {
  return adapters[entry.adapter]?.has_whole_list === true;
}

function isChoosable(kind: Kind): kind is (typeof choosable_kinds)[number] {
  return choosable_kinds.some((each) => each === kind);
}

function namingOf({ name, prefix, entry }: AddedProvider): NamingOptions {
  const url = entry.base_url === undefined ? undefined : `${entry.base_url}/models`;
  const date = new Date().toISOString().slice(0, 10);
  return { provider: name, prefix, source: url === undefined ? undefined : { url, date } };
}

/** A model that an operator wants, as the body has it. */
type Choice = {
  upstream_model: string;
  kind: (typeof choosable_kinds)[number] | undefined;
  price: PriceEntry[] | null;
};

const models_max = 1_000;

/** Adds models: their prices for callers are the list's with the margin, or those that were typed. */
export const admin_add_models = session_endpoint(
  'POST',
  '/dash/admin/providers/{name}/models',
  'operator',
  async (app, call) => {
    const provider = await providerIn(app, call);
    const chosen_models = wantedIn(call.body);
    const rows = isShipped(provider)
      ? chosen_models.map((each) => shippedRow(provider, each))
      : await listedRows(app, provider, chosen_models);
    const rate = usdRate(app.catalog.current.settings);
    for (const row of rows) refuseFree(row, rate);
    const added = rows.map(({ id }) => id);
    const audit_entry = {
      action: 'provider.models.add',
      subject: provider.name,
      details: { models: added.slice(0, 50), count: added.length },
    };
    await changeAdded(app, call, audit_entry, async (tx, now) => {
      const [taken] = await addModels(tx, rows, now);
      if (taken !== undefined)
        throw invalidField(
          'models',
          `${taken} was added over another provider already. Remove it there, or give this provider a prefix.`,
        );
    });
    const view: ModelsAdded = { added };
    return { status: 201, body: view };
  },
  { body_limit_bytes: 1_000_000, needs_proof: true },
);

function wantedIn(body: SessionCall['body']): Choice[] {
  const models = body?.['models'];
  if (!Array.isArray(models) || models.length === 0 || models.length > models_max)
    throw invalidField('models', `Choose 1 to ${models_max} models.`);
  const chosen_models = models.map((model: unknown): Choice => {
    const upstream_model = isRecord(model) ? model['upstream_model'] : undefined;
    if (
      !isRecord(model) ||
      typeof upstream_model !== 'string' ||
      !/^[^\s\0](?:[^\t\n\r\0]{0,198}[^\s\0])?$/.test(upstream_model)
    )
      throw invalidField('models', 'Each model needs its name at the provider: 1 to 200 characters.');
    const kind = choosable_kinds.find((each) => each === model['kind']);
    return {
      upstream_model,
      kind,
      price: model['price'] === undefined ? null : priceIn(model['price'], upstream_model),
    };
  });
  const names = new Set(chosen_models.map(({ upstream_model }) => upstream_model));
  if (names.size < chosen_models.length) throw invalidField('models', 'Each model can be chosen once.');
  return chosen_models;
}

const amount_form = /^\d{1,9}(?:\.\d{1,12})?$/;
const rows_max = 12;

/** Rows of a price that was typed: for callers in the base currency, of the provider in that of lists. */
export function priceIn(value: unknown, model: string, field: 'price' | 'list_price' = 'price'): PriceEntry[] {
  const rows: readonly unknown[] = Array.isArray(value) ? value : [];
  if (rows.length === 0 || rows.length > rows_max)
    throw invalidField(field, `The price of ${model} needs at least one amount.`);
  return rows.map((row) => {
    const { unit, amount, per } = isRecord(row) ? row : {};
    const own_unit = units.find((each): each is Unit => each === unit);
    const is_count = typeof per === 'number' && Number.isSafeInteger(per) && per >= 1 && per <= 1_000_000_000;
    if (own_unit === undefined || !is_count)
      throw invalidField(field, `The price of ${model} is for no unit that there is.`);
    if (typeof amount !== 'string' || !amount_form.test(amount))
      throw invalidField(field, `The price of ${model} must be a decimal such as 0.25; 0 makes it free.`);
    return { unit: own_unit, amount, per };
  });
}

function shippedRow(provider: AddedProvider, { upstream_model, price }: Choice): AddedModel {
  if (!shippedOffer(provider).some(({ id }) => id === upstream_model))
    throw invalidField('models', `${upstream_model} is not in the default catalogue of this version.`);
  const id = provider.prefix + upstream_model;
  return { id, provider: provider.name, entry: null, shipped: upstream_model, margin: null, price };
}

/** The list is read again: prices come from the provider, not from whoever asks. */
async function listedRows(
  app: OfferParts,
  provider: AddedProvider,
  chosen_models: readonly Choice[],
): Promise<AddedModel[]> {
  const all_typed = chosen_models.every(({ price, kind }) => price !== null && kind !== undefined);
  const offer = await offerOf(app, provider).catch((error: unknown) => {
    if (all_typed && error instanceof ApiError) return []; // without a list, what was typed is all that there is
    throw error;
  });
  const by_name = new Map(offer.map((model) => [model.upstream_model, model]));
  return chosen_models.map(({ upstream_model, kind, price }) => {
    const listed = by_name.get(upstream_model);
    const chosen_kind = kind ?? listed?.kind;
    if (chosen_kind === undefined || (!listed && kind === undefined))
      throw invalidField('models', `${upstream_model} is not in the provider's list, or of no kind that can be added.`);
    if (!listed && hasWholeList(provider))
      throw invalidField('models', `${upstream_model} is not in the provider's list.`);
    const model = listed ?? unlistedModel(upstream_model, kind ?? 'chat');
    const entry = model.entry(namingOf(provider), chosen_kind);
    if (!entry) throw invalidField('models', `${upstream_model} cannot be added as a model of kind ${chosen_kind}.`);
    return { id: entry.id, provider: provider.name, entry, shipped: null, margin: null, price };
  });
}

/** Refuses a model without a price, which would be free for callers, at the operator's cost. */
function refuseFree({ id, entry, price }: AddedModel, rate: string | null): void {
  if (price !== null) return;
  if (rate === null) throw typed(id);
  if (entry !== null && (entry.price ?? []).length === 0)
    throw invalidField('price', `The list has no price of ${id}. Type one; 0 makes it free.`);
}

function typed(id: string): ApiError {
  return invalidField(
    'price',
    `List prices are in ${list_currency}, which is not among the currencies here. Type the price of ${id}.`,
  );
}

/** The entry at what the provider asks, which is also what a run costs the operator; null: nobody knows it. */
function entryAt(row: AddedModel, rows: PriceEntry[] | null): ModelEntry | null {
  const { entry } = row;
  if (entry === null || !mayTypeListPrice(row))
    throw invalidField('list_price', `${row.id} has a list price. Only the price for callers can be typed.`);
  const price = rows ?? [];
  return { ...entry, price, routes: entry.routes.map((route) => ({ ...route, cost: price })) };
}

/**
 * Changes the margin or the price of a model; null gives back the provider's margin, or the list's price. `list_price` is
 * what the provider asks, where no list says it.
 */
export const admin_change_added_model = session_endpoint(
  'POST',
  '/dash/admin/providers/{name}/models/change',
  'operator',
  async (app, call) => {
    const { row } = await addedModelIn(app, call);
    const { body } = call;
    const margin =
      body?.['margin'] === undefined ? row.margin : body['margin'] === null ? null : marginIn(body['margin']);
    const price =
      body?.['price'] === undefined ? row.price : body['price'] === null ? null : priceIn(body['price'], row.id);
    const list_rows = body?.['list_price'];
    const entry =
      list_rows === undefined
        ? row.entry
        : entryAt(row, list_rows === null ? null : priceIn(list_rows, row.id, 'list_price'));
    refuseFree({ ...row, entry, price }, usdRate(app.catalog.current.settings));
    const before = { margin: row.margin, price: row.price, list_price: row.entry?.price ?? null };
    const details = { before, margin, price, list_price: entry?.price ?? null };
    await changeAdded(app, call, { action: 'provider.models.change', subject: row.id, details }, async (tx, now) => {
      if (!(await changeModel(tx, { id: row.id, entry, margin, price }, now))) throw noModel();
    });
    return { status: 200, body: { ok: true } };
  },
  { needs_proof: true },
);

async function addedModelIn(app: OfferParts, call: SessionCall): Promise<{ provider: AddedProvider; row: AddedModel }> {
  const provider = await providerIn(app, call);
  const rows = await listAddedModels(app.db);
  const row = rows.find(({ id, provider: name }) => id === call.body?.['model'] && name === provider.name);
  if (row) return { provider, row };
  throw noModel();
}

function noModel(): ApiError {
  return new ApiError('not_found', 'There is no such model among those that were added here.', { param: 'model' });
}

/** Removes models; callers get 404 for them from then on. */
export const admin_remove_added_model = session_endpoint(
  'POST',
  '/dash/admin/providers/{name}/models/remove',
  'operator',
  async (app, call) => {
    const { row } = await addedModelIn(app, call);
    await changeAdded(app, call, { action: 'provider.models.remove', subject: row.id }, async (tx) => {
      const removed = await removeModels(tx, [row.id]);
      if (removed.length === 0) throw noModel();
    });
    return { status: 200, body: { ok: true } };
  },
);
