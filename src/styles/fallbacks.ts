import type { JsonObject } from '../catalog/model.ts';
import { mistake, memberOf, needName, needObject, readList } from './fields.ts';
import { readModel } from './request.ts';

/**
 * Models to be asked if the one in `model` fails: `models` of OpenRouter in every style, and `fallbacks` of the messages
 * style, by its documentation ("Model Fallbacks", openrouter.ai/docs/guides/routing/model-fallbacks; read on 2026-11-28).
 */

/** A model as a caller names it, and the field in which it does. */
export type ModelName = { name: string; at: string };

export const fallback_fields = ['models', 'fallbacks'] as const;

/** Most entries of each list, as at OpenRouter. */
const fallbacks_max = 3;

/** Reads the model: the first of `models` where `model` is missing. Throws ApiError 400. */
export function readModelOrFirst(body: JsonObject): string {
  const { model = null, models } = body;
  const [first] = Array.isArray(models) ? models : [];
  return readModel(model === null && typeof first === 'string' ? { model: first } : body);
}

/** Returns the models that a body names, in the order in which they are asked. Throws ApiError 400 naming the field. */
export function readModelNames(body: JsonObject): ModelName[] {
  const model = readModelOrFirst(body);
  const models = readEntries(body, 'models', (value, at) => {
    if (typeof value === 'string' && value !== '') return value;
    throw mistake(at, 'must be the id of a model');
  });
  const fallbacks = readEntries(body, 'fallbacks', (value, at) => {
    const { model: _, ...others } = needObject(value, at);
    const [other] = Object.keys(others);
    if (other !== undefined)
      throw mistake(`${at}.${other}`, 'is not offered: a fallback has a model and nothing else', 'unsupported_field');
    return needName(needObject(value, at), 'model', `${at}.model`);
  });
  if (models.length > 0 && fallbacks.length > 0)
    throw mistake('fallbacks', 'must be left out: models names the fallbacks already');
  const named_alone = memberOf(body, 'model') === undefined ? [] : [{ name: model, at: 'model' }];
  return [...named_alone, ...models, ...fallbacks];
}

function readEntries(
  body: JsonObject,
  field: (typeof fallback_fields)[number],
  read: (value: NonNullable<ReturnType<typeof readList>>[number], at: string) => string,
): ModelName[] {
  const list = readList(body, field, field) ?? [];
  if (list.length > fallbacks_max) throw mistake(field, `must have at most ${fallbacks_max} entries`);
  return list.map((value, index) => {
    const at = `${field}[${index}]`;
    return { name: read(value, at), at: field === 'models' ? at : `${at}.model` };
  });
}
