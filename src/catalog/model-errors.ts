import { ApiError } from '../errors.ts';
import { endText } from './dated.ts';
import type { Kind, Model, Retirement } from './model.ts';

/** Paths of the endpoints for each kind of model, for people. */
const paths: { readonly [kind in Kind]: string } = {
  chat: 'POST /v1/chat/completions, /v1/messages or /v1/responses',
  embedding: 'POST /v1/embeddings',
  rerank: 'POST /v1/rerank',
  moderation: 'POST /v1/moderations',
  image: 'POST /v1/generate or /v1/images/generations',
  video: 'POST /v1/generate or /v1/videos',
  audio: 'POST /v1/generate, /v1/audio/speech or, if it writes down what is said, /v1/audio/transcriptions',
};

/** The 404 for a model that another path serves, which the message names. To be thrown. */
export function wrongKind({ id, kind }: Pick<Model, 'id' | 'kind'>, param = 'model'): ApiError {
  const article = /^[aeiou]/.test(kind) ? 'an' : 'a';
  const message = `${JSON.stringify(id)} is ${article} ${kind} model: use ${paths[kind]}.`;
  return new ApiError('not_found', message, { param, code: 'model_not_found' });
}

/** The beginning of every message about an unknown model. Of a long id it shows the first 128 characters. */
export function unknownModelText(id: string): string {
  return `There is no model ${JSON.stringify(id.slice(0, 128))}.`;
}

/** The 404 for an unknown model, or one that has ended, in the parameter of this name. To be thrown. */
export function unknownModel(id: string, param: string, retirement?: Retirement): ApiError {
  const message = retirement
    ? `${id} ${endText(retirement, 'ended')}`
    : `${unknownModelText(id)} GET /v1/models lists the models.`;
  return new ApiError('not_found', message, { param, code: 'model_not_found' });
}

/** The beginning of every message about a model whose routes are all unusable for now. */
export function unavailableText({ id }: Pick<Model, 'id'>): string {
  return `${id} is not available upstream at the moment.`;
}
