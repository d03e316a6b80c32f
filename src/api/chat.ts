import type { App } from '../app.ts';
import { ApiError, type ErrorFormat } from '../errors.ts';
import type { Answer, Call, Endpoint } from './endpoint.ts';

const body_limit_bytes = 32_000_000;

const conversation = {
  type: 'object',
  required: ['model'],
  properties: { model: { type: 'string', description: 'Model id.' } },
};

const responses = { 404: { description: 'There is no chat model of this name here.' } };

export const chat_completions: Endpoint<App> = {
  method: 'POST',
  path: '/v1/chat/completions',
  window: 'chat',
  format: 'completions',
  body_limit_bytes,
  lenient_query: true,
  docs: { tag: 'Chat', summary: 'Chat in the chat-completions style', body: { schema: conversation }, responses },
  handle: refuse,
};

export const messages: Endpoint<App> = {
  ...chatMessages('/v1/messages', 'Chat in the messages style'),
  window: 'chat',
};

/** Free of charge, so it counts with the reads. */
export const count_tokens: Endpoint<App> = chatMessages(
  '/v1/messages/count_tokens',
  'Count the tokens of a conversation',
);

function chatMessages(path: string, summary: string): Endpoint<App> & { public?: false } {
  return {
    method: 'POST',
    path,
    format: 'messages' satisfies ErrorFormat,
    body_limit_bytes,
    lenient_query: true,
    docs: { tag: 'Chat', summary, body: { schema: conversation }, responses },
    handle: refuse,
  };
}

/** There is no chat model here: a missing model is a 400, any named one a 404. */
function refuse(app: App, { body }: Call): Answer {
  const id = body?.['model'];
  if (id === undefined || id === null) throw new ApiError('invalid_request', 'model is required.', { param: 'model' });
  if (typeof id !== 'string' || id === '') {
    throw new ApiError('invalid_request', 'model must be a non-empty string.', { param: 'model' });
  }
  const shown = JSON.stringify(id.slice(0, 128));
  const model = app.catalog.current.models.get(id);
  const message =
    model && model.kind !== 'chat'
      ? `${shown} is ${model.kind === 'video' ? 'a' : 'an'} ${model.kind} model: use POST /v1/generate.`
      : `There is no chat model ${shown} here.`;
  throw new ApiError('not_found', message, { param: 'model' });
}
