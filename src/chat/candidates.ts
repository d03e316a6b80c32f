import type { Catalog } from '../catalog/catalog.ts';
import type { JsonObject, Model } from '../catalog/model.ts';
import { wrongKind } from '../catalog/model-errors.ts';
import { modelNamed } from '../catalog/names.ts';
import { allowanceOf } from '../styles/allowed.ts';
import type { ChatRequest } from '../styles/codec.ts';
import { fallback_fields, readModelNames, type ModelName } from '../styles/fallbacks.ts';

/** The models that may answer a chat call: the one that it names, then its fallbacks. */

/** A model, and the field that named it unless that is the first of all. */
export type Candidate = { model: Model; why?: string };

/** The body without the names of fallbacks, and the models: at least one, none twice. */
export type Candidates = { body: JsonObject; candidates: readonly [Candidate, ...Candidate[]] };

/** A model that was chosen before: a response in the background has it until it is made. */
export type ChosenModel = { readonly id: string; readonly why?: string };

/** Returns the models that were chosen before, as far as they are there. Throws ApiError 404 if none is. */
export function candidatesChosen(
  catalog: Catalog,
  body: JsonObject,
  chosen: readonly [ChosenModel, ...ChosenModel[]],
): Candidates {
  const there = chosen.filter(({ id }) => catalog.models.has(id));
  const [first, ...others] = there.map(({ id, why }) => ({
    model: chatModel(catalog, { name: id, at: 'model' }),
    ...(why !== undefined && { why }),
  }));
  const candidates: Candidates['candidates'] = first
    ? [first, ...others]
    : [{ model: chatModel(catalog, { name: chosen[0].id, at: 'model' }) }];
  const rest = { ...body };
  for (const field of fallback_fields) delete rest[field];
  return { body: rest, candidates };
}

/**
 * Returns the models of a chat call. `models` and `fallbacks` stay in the body where a route of the first model passes them
 * on: they are for the upstream then. Throws ApiError 400 naming the field, and 404 for a model.
 */
export function candidatesIn(catalog: Catalog, { body, model }: Pick<ChatRequest, 'body' | 'model'>): Candidates {
  const named_first = { name: model, at: (body['model'] ?? null) === null ? 'models[0]' : 'model' };
  const first = { model: chatModel(catalog, named_first) };
  const passed = fallback_fields.filter((field) =>
    first.model.routes.some(({ options }) => allowanceOf(options).pass.has(field)),
  );
  const own_fields = fallback_fields.filter((field) => (body[field] ?? null) !== null && !passed.includes(field));
  if (own_fields.length === 0) return { body, candidates: [first] };
  const rest = { ...body };
  const own: JsonObject = { model };
  for (const field of own_fields) {
    own[field] = rest[field] ?? null;
    delete rest[field];
  }
  const candidates: [Candidate, ...Candidate[]] = [first];
  for (const named of readModelNames(own)) {
    const fallback = chatModel(catalog, named);
    if (!candidates.some((each) => each.model.id === fallback.id)) candidates.push({ model: fallback, why: named.at });
  }
  return { body: rest, candidates };
}

function chatModel(catalog: Catalog, { name, at }: ModelName): Model {
  const model = modelNamed(catalog, name, at);
  if (model.kind !== 'chat') throw wrongKind(model, at);
  return model;
}
