import type { Ask } from './ask.ts';
import { writeCompletions } from './completions-body.ts';
import { readCompletions } from './completions-request.ts';
import { writeGemini } from './gemini-body.ts';
import { writeMessages } from './messages-body.ts';
import { readMessages } from './messages-request.ts';
import type { Target, UpstreamBody } from './quirks.ts';
import { sameCompletionsBody, sameMessagesBody } from './same-style.ts';

export type { Target, UpstreamBody };

/**
 * What is sent to an upstream for `ask`. Throws ApiError 400, naming the field, for what cannot be carried
 * to an upstream of another style.
 */
export function upstreamBody(ask: Ask, target: Target): UpstreamBody {
  if (target.style === 'gemini') {
    return writeGemini(ask.style === 'completions' ? readCompletions(ask.body) : readMessages(ask.body), ask, target);
  }
  if (ask.style === 'completions') {
    if (target.style === 'completions') return { body: sameCompletionsBody(ask, target) };
    return writeMessages(readCompletions(ask.body), ask, target);
  }
  if (target.style === 'messages') return { body: sameMessagesBody(ask, target) };
  return writeCompletions(readMessages(ask.body), ask, target);
}
