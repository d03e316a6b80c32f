import type { Caller } from '../accounts/authenticate.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { JsonObject, Model } from '../catalog/model.ts';
import { aliasNamed, modelsOf } from '../catalog/alias.ts';
import { checkModelAllowed, isModelAllowed, modelRefused } from '../catalog/key-models.ts';
import { unavailableText, wrongKind } from '../catalog/model-errors.ts';
import { modelNamed } from '../catalog/names.ts';
import { ApiError } from '../errors.ts';
import { allowanceOf } from '../styles/allowed.ts';
import type { ChatRequest } from '../styles/codec.ts';
import { fallback_fields, readModelNames, type ModelName } from '../styles/fallbacks.ts';
import { chosenBy, conversationKey } from './sticky.ts';

/** The models that may answer a chat call: the one that it names, then its fallbacks. */

/** A model, and the reason for it: the field that named it unless that is the first of all, and the alias. */
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

/** A call, as far as the choice of its models needs it. */
type NamingCall = { caller: Caller; request: Pick<ChatRequest, 'body' | 'model' | 'style'> };

/**
 * Returns the models of a chat call; an alias stands for the one of its models that the conversation has, and perhaps for
 * the others as fallbacks. `models` and `fallbacks` stay in the body where a route of the first model passes them on: they
 * are for the upstream then. Throws ApiError 400 naming the field, 404 for a model, and 403 for one that the key may not use.
 */
export function candidatesIn(catalog: Catalog, call: NamingCall): Candidates {
  const { body, model: name } = call.request;
  const named_first = { name, at: (body['model'] ?? null) === null ? 'models[0]' : 'model' };
  const [first, ...others] = candidatesNamed(catalog, call, named_first);
  const isPassedOn = (field: string) => first.model.routes.some(({ options }) => allowanceOf(options).pass.has(field));
  const own_fields = fallback_fields.filter((field) => (body[field] ?? null) !== null && !isPassedOn(field));
  if (own_fields.length === 0) return { body, candidates: [first, ...others] };
  const rest = { ...body };
  const own: JsonObject = { model: name };
  for (const field of own_fields) {
    own[field] = rest[field] ?? null;
    delete rest[field];
  }
  const [, ...named_fallbacks] = readModelNames(own);
  const fallbacks = named_fallbacks.flatMap((named) =>
    candidatesNamed(catalog, call, named).map(({ model, why }) => ({ model, why: reason(named.at, why) })),
  );
  return { body: rest, candidates: [first, ...withoutRepeats(first, [...others, ...fallbacks])] };
}

function withoutRepeats(first: Candidate, others: readonly Candidate[]): Candidate[] {
  const ids = new Set([first.model.id]);
  return others.filter(({ model: { id } }) => {
    const is_new = !ids.has(id);
    ids.add(id);
    return is_new;
  });
}

function reason(at: string, why: string | undefined): string {
  return why === undefined ? at : `${at}, ${why}`;
}

/** The models that a name stands for, in the order in which they are asked: of an alias those that the key may use. Throws ApiError 404, 403 if the key may use none, and 502 if none is offered. */
function candidatesNamed(
  catalog: Catalog,
  { caller: { account, key }, request: { body, style } }: NamingCall,
  named: ModelName,
): [Candidate, ...Candidate[]] {
  const alias = aliasNamed(catalog, named.name);
  if (!alias) {
    const model = chatModel(catalog, named);
    checkModelAllowed(catalog, key, model, named.at);
    return [{ model }];
  }
  const of_all = modelsOf(catalog, alias);
  const all = of_all.filter(({ model }) => isModelAllowed(catalog, key.models, model.id));
  if (all.length < of_all.length && all.length === 0) throw modelRefused(alias.id, key.models, named.at);
  const with_routes = all.filter(({ model }) => model.routes.length > 0);
  const offered = with_routes.length > 0 ? with_routes : all;
  const conversation = conversationKey(account.id, body, style.caller.turns_field);
  const chosen = chosenBy(conversation, offered) ?? offered[0];
  if (!chosen) throw new ApiError('upstream_error', unavailableText(alias));
  const why = `alias ${alias.id}`;
  const others = alias.has_fallbacks ? offered.filter((each) => each !== chosen) : [];
  return [{ model: chosen.model, why }, ...others.map(({ model }) => ({ model, why }))];
}

function chatModel(catalog: Catalog, { name, at }: ModelName): Model {
  const model = modelNamed(catalog, name, at);
  if (model.kind !== 'chat') throw wrongKind(model, at);
  return model;
}
