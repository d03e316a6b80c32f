import type { JsonObject } from '../catalog/model.ts';
import type { Ask } from './ask.ts';
import { writeCompletions } from './completions/render-request.ts';
import { readCompletions } from './completions/request.ts';
import type { CallerStyle, Conversation } from './conversation.ts';
import { writeContents } from './gemini/request.ts';
import { writeMessages } from './messages/render-request.ts';
import { readMessages } from './messages/request.ts';
import type { Target, UpstreamBody } from './quirks.ts';
import { writeResponses } from './responses/render-request.ts';
import { readResponses } from './responses/request.ts';
import { sameResponsesBody } from './responses/passthrough.ts';
import { sameCompletionsBody, sameMessagesBody } from './messages/passthrough.ts';

export type { Target, UpstreamBody };

const same_bodies: { readonly [style in CallerStyle]: (ask: Ask, target: Target) => JsonObject } = {
  completions: sameCompletionsBody,
  messages: sameMessagesBody,
  responses: sameResponsesBody,
};

const readers: { readonly [style in CallerStyle]: (body: JsonObject) => Conversation } = {
  completions: readCompletions,
  messages: readMessages,
  responses: readResponses,
};

/**
 * What is sent to an upstream for `ask`. Throws ApiError 400, naming the field, for what cannot be carried
 * to an upstream of another style.
 */
export function upstreamBody(ask: Ask, target: Target): UpstreamBody {
  if (ask.style === target.style) return { body: same_bodies[ask.style](ask, target) };
  const conversation = readers[ask.style](ask.body);
  if (target.style === 'responses') return writeResponses(conversation, ask, target);
  if (target.style === 'contents') return writeContents(conversation, ask, target);
  if (target.style === 'messages') return writeMessages(conversation, ask, target);
  return writeCompletions(conversation, ask, target);
}
