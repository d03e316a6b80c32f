import type { AttemptRoute, CallParts } from '../chat/call.ts';
import {
  attemptModeration,
  priceModerationRequest,
  type ModerationParts,
  type PricedModerationRequest,
} from '../chat/moderate.ts';
import type { Answer, Call, Endpoint } from '../http/endpoint.ts';
import type { AddressRules } from '../net/address.ts';
import { completions_errors } from '../styles/completions/errors.ts';
import { refuseBlocked } from './blocked.ts';
import { moderation_answer, moderation_body } from './call-schemas.ts';
import { answerWhole, body_limit_bytes, cost_headers } from './chat.ts';
import { callerOf } from './chat-request.ts';

/** The parts of the app that moderation takes; rankings need no others. */
export type ModeratingParts = CallParts & ModerationParts & { addressRules(): AddressRules };

export const moderate: Endpoint<ModeratingParts> = {
  method: 'POST',
  path: '/v1/moderations',
  window: 'chat',
  format: completions_errors,
  body_limit_bytes,
  lenient_query: true,
  long_integers: true,
  docs: {
    tag: 'Moderation',
    summary: 'Classify texts and images',
    description: 'In the format of the OpenAI SDKs: whether a text or an image is harmful, and in which way.',
    body: {
      schema: moderation_body,
      examples: { texts: { model: 'sandbox/moderation', input: ['a red bicycle', '[[flag violence]]'] } },
    },
    responses: {
      200: { description: 'The result of each input.', schema: moderation_answer, headers: cost_headers },
      404: { description: 'There is no moderation model with this id.' },
    },
    errors: [402, 403, 404, 502, 504],
  },
  handle: answerModeration,
};

/** Answers a body of the path. */
export function answerModeration(app: ModeratingParts, call: Call): Promise<Answer> {
  refuseBlocked(call.caller);
  const priced = priceModerationRequest(app, call);
  const caller = callerOf({}, call);
  caller.memory.add(() => (priced.request.body = {}));
  const attempt: AttemptRoute<PricedModerationRequest> = (request, route, context) =>
    attemptModeration(app, request, route, context);
  return answerWhole(app, priced, attempt, caller);
}
