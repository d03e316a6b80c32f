import { Type } from 'typebox';
import type { Caller } from '../accounts/authenticate.ts';
import type { Catalog, CatalogHolder } from '../catalog/catalog.ts';
import { kinds, units, type Model } from '../catalog/model.ts';
import { aliasNamed, listedAlias, listedModels, type ListedModel } from '../catalog/alias.ts';
import { checkModelAllowed, modelRefused, offerOfKey } from '../catalog/key-models.ts';
import { aliasesOf, modelNamed } from '../catalog/names.ts';
import { allRoutes } from '../catalog/overrides.ts';
import { modelRecord } from '../catalog/view.ts';
import { ApiError } from '../errors.ts';
import { routeName, type Availability, type RouteHealth } from '../routing/health.ts';
import type { Answer, Call, Endpoint, ParameterDocs, Query } from '../http/endpoint.ts';
import { oneOf, wholeNumber } from '../http/query.ts';
import { modelsOrGemini } from './gemini/models.ts';
import { listOf } from './schemas.ts';

/** The parts of the app that listing models takes. */
type Parts = { readonly catalog: CatalogHolder; readonly health: RouteHealth };

const status_description = [
  '`available`: every route of the model takes tasks.',
  '`degraded`: some are paused because they kept failing, or were taken out by the operator, or the next task tests whether they work again.',
  '`unavailable`: all are paused; creating a task answers 502 `upstream_error` or 504 `timeout` until a pause is over, after 5 minutes at most. Or the operator has switched the model off: 502 until it is on again.',
  'At most a second old.',
].join(' ');

export const model_schema = Type.Object(
  {
    id: Type.String({ description: 'The id for `model` in requests.', examples: ['sandbox/image'] }),
    aliases: Type.Array(Type.String(), { description: 'Other names for `model` in requests.' }),
    object: Type.Literal('model'),
    type: Type.Literal('model'),
    created: Type.Integer({ description: 'Seconds since 1970.' }),
    created_at: Type.String({ format: 'date-time' }),
    owned_by: Type.String(),
    display_name: Type.String(),
    modality: Type.Enum([...kinds]),
    description: Type.String(),
    input_schema: Type.Object({}, { description: 'JSON Schema 2020-12 of `input`.', additionalProperties: true }),
    output_types: Type.Array(Type.String()),
    pricing: Type.Array(
      Type.Object({
        unit: Type.Enum([...units]),
        amount: Type.String({ description: 'Decimal text, for `per` units.' }),
        per: Type.Integer(),
        currency: Type.String(),
        when: Type.Optional(
          Type.Object({}, { description: 'Inputs to which this price applies.', additionalProperties: true }),
        ),
        above_input_tokens: Type.Optional(
          Type.Integer({ description: 'Chat: for calls whose whole input, cached or not, has more tokens than this.' }),
        ),
      }),
      { description: 'For each unit, the first row whose `when` fits the input applies.' },
    ),
    limits: Type.Record(Type.String(), Type.Number()),
    capabilities: Type.Array(Type.String()),
    status: Type.Enum(['available', 'degraded', 'unavailable'], { description: status_description }),
    retires: Type.Optional(
      Type.String({ format: 'date', description: 'The first day, UTC, on which the model is no longer offered.' }),
    ),
    replaced_by: Type.Optional(Type.String({ description: 'The model to use instead.' })),
    models: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'Of an alias: the models behind it; each conversation stays with one. Prices are those of the most expensive one, limits and capabilities those that all have.',
      }),
    ),
  },
  { description: 'A model.' },
);

const cursor = (description: string): ParameterDocs => ({ description, schema: { type: 'string' } });

/** Upper bound for `limit`; without `limit` all models are returned. */
const limit_max = 1_000;

export const list_models: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/models',
  lenient_query: true,
  docs: {
    tag: 'Models',
    summary: 'List the models',
    description:
      'Returns all models unless `limit` is set. SDKs of the OpenAI and Anthropic styles can read the records.',
    query: {
      limit: { description: 'Number of models.', schema: { type: 'integer', minimum: 1, maximum: limit_max } },
      after_id: cursor('Models after this one.'),
      before_id: cursor('Models before this one.'),
      modality: { description: 'Only this kind.', schema: { enum: kinds } },
    },
    responses: { 200: { description: 'The models in the order of the catalogue.', schema: listOf(model_schema) } },
  },
  handle: modelsOrGemini<Parts>('list', handleList),
};

async function handleList(app: Parts, { query, caller }: Call): Promise<Answer> {
  const { current } = app.catalog;
  const modality = oneOf(query, 'modality', kinds);
  const shown = listedModels(offerOfKey(current, caller.key)).filter(
    ({ model: { kind, hidden } }) => !hidden && (modality === undefined || kind === modality),
  );
  const { page, has_more } = cutPage(shown, query);
  const statusOf = await readAvailabilities(app, caller.account.id);
  return {
    status: 200,
    body: {
      object: 'list',
      data: page.map((one) => recordOf(current, one, availabilityOfListed(statusOf, one))),
      has_more,
      first_id: page[0]?.model.id ?? null,
      last_id: page.at(-1)?.model.id ?? null,
    },
  };
}

function recordOf(catalog: Catalog, { model, members }: ListedModel, status: Availability): object {
  const { id, ...record } = modelRecord(model, catalog.settings.base_currency, status);
  if (members[0] === model) return { id, aliases: aliasesOf(catalog, model), ...record };
  return { id, aliases: [], ...record, models: members.map((member) => member.id) };
}

/**
 * Returns a function that tells a model's standing for an account, by the health of its routes and the
 * operator's overrides.
 */
export async function readAvailabilities(
  { health }: Parts,
  account_id?: string,
): Promise<(model: Model) => Availability> {
  const availabilityOf = await health.readAvailability();
  return (model: Model) => {
    const { id, routes } = model;
    const names = routes.map((route) => routeName(id, route.id));
    const availability = availabilityOf(names, account_id);
    return availability === 'available' && routes.length < allRoutes(model).length ? 'degraded' : availability;
  };
}

/** The standing of a model, or of an alias by that of its models. */
export function availabilityOfListed(statusOf: (model: Model) => Availability, { members }: ListedModel): Availability {
  const [first = 'unavailable', ...others] = members.map(statusOf);
  return others.every((each) => each === first) ? first : 'degraded';
}

function cutPage(models: readonly ListedModel[], query: Query): { page: readonly ListedModel[]; has_more: boolean } {
  const limit = wholeNumber(query, 'limit', { min: 1, max: limit_max }) ?? models.length;
  const after = positionOf(models, query, 'after_id');
  const before = positionOf(models, query, 'before_id');
  if (after !== undefined && before !== undefined) {
    throw new ApiError('invalid_request', 'after_id and before_id cannot be given together.', { param: 'before_id' });
  }
  if (before !== undefined) {
    const first = Math.max(0, before - limit);
    return { page: models.slice(first, before), has_more: first > 0 };
  }
  const first = after === undefined ? 0 : after + 1;
  return { page: models.slice(first, first + limit), has_more: first + limit < models.length };
}

function positionOf(models: readonly ListedModel[], query: Query, name: string): number | undefined {
  const id = query.get(name);
  if (id === undefined) return undefined;
  const position = models.findIndex(({ model }) => model.id === id);
  if (position !== -1) return position;
  throw new ApiError('invalid_request', `${name} must be the id of a model in this list.`, { param: name });
}

export const get_model: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/models/{+id}',
  lenient_query: true,
  docs: {
    tag: 'Models',
    summary: 'Get a model',
    description: 'Returns one model with its input schema, prices, limits and capabilities.',
    params: {
      id: {
        description: 'Model id; a slash in it may be sent plain or as %2F.',
        schema: { type: 'string' },
        example: 'sandbox/image',
      },
    },
    responses: { 200: { description: 'The model.', schema: model_schema } },
    errors: [403, 404],
  },
  handle: modelsOrGemini<Parts>('get', handleGet),
};

/** The model or the alias of this name. Throws ApiError 404, and 403 where the key may not use it. */
function listedNamed(current: Catalog, { key }: Caller, name: string): ListedModel {
  if (aliasNamed(current, name)) {
    const alias = listedAlias(offerOfKey(current, key), name);
    if (alias) return alias;
    if (listedAlias(current, name)) throw modelRefused(name, key.models, 'id');
  }
  const model = modelNamed(current, name, 'id');
  checkModelAllowed(current, key, model, 'id');
  return { model, members: [model] };
}

async function handleGet(app: Parts, { params, caller }: Call): Promise<Answer> {
  const { current } = app.catalog;
  const listed = listedNamed(current, caller, params['id'] ?? '');
  const statusOf = await readAvailabilities(app, caller.account.id);
  return { status: 200, body: recordOf(current, listed, availabilityOfListed(statusOf, listed)) };
}
