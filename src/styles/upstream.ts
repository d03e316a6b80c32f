import type { JsonObject } from '../catalog/model.ts';
import type { Ask } from './ask.ts';
import type { Style } from './conversation.ts';
import { notCarried } from './fields.ts';
import type { Quirks } from './quirks.ts';
import { sameCompletionsBody, sameMessagesBody } from './same-style.ts';

/** Who is asked: `max_tokens` is the most that may be asked of it. */
export type Target = { style: Style; model: string; max_tokens: number; quirks: Quirks };

export type UpstreamBody = {
  body: JsonObject;
  /** A tool that the upstream is made to call in place of a JSON schema: its arguments are the text. */
  json_tool?: string;
  /** Tool names that were changed for the upstream: what the caller knows them by. */
  tool_names?: Map<string, string>;
};

/**
 * What is sent to an upstream for `ask`. Throws ApiError 400, naming the field, for what cannot be carried
 * to an upstream of the other style.
 */
export function upstreamBody(ask: Ask, target: Target): UpstreamBody {
  if (ask.style !== target.style) throw notCarried('model', 'This request');
  return { body: ask.style === 'completions' ? sameCompletionsBody(ask, target) : sameMessagesBody(ask, target) };
}
