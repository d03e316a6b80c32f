import type { Json } from '../model.ts';
import { ListError, type ListedModel } from './listed.ts';
import { readLitellm } from './litellm.ts';
import { readModelsDev } from './models-dev.ts';
import { readOpenaiCompatible } from './openai-compatible.ts';
import { readOpenrouter } from './openrouter.ts';

/** Lists of models that others keep, by their form. */
export const list_forms = {
  litellm: readLitellm,
  openrouter: readOpenrouter,
  'models.dev': readModelsDev,
  'openai-compatible': readOpenaiCompatible,
} as const satisfies Record<string, (list: Json) => ListedModel[]>;

export type ListForm = keyof typeof list_forms;

/** The models of a list. Throws ListError for what is none. */
export function readList(form: ListForm, text: string): ListedModel[] {
  let list: Json;
  try {
    list = JSON.parse(text);
  } catch {
    throw new ListError('is no JSON.');
  }
  const models = list_forms[form](list);
  if (models.length === 0) throw new ListError(`has no models in the form of ${form}.`);
  return models;
}
