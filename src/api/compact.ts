import { refuseBlocked } from './blocked.ts';
import { answerWhole, body_limit_bytes, cost_headers, type ChatParts } from './chat.ts';
import { callerOf, continuedCall, isOffered, readableBody, readChat, type StateParts } from './chat-request.ts';
import { isObject } from '../catalog/model.ts';
import { attemptCompaction, priceCompaction, type PricedCompaction } from '../chat/compact.ts';
import type { AttemptRoute } from '../chat/call.ts';
import { encryptSummary } from '../conversations/compactions.ts';
import { shownItem } from '../conversations/continue.ts';
import type { Answer, Call, Endpoint } from '../http/endpoint.ts';
import type { CallerCodec, Codec, StateHalf } from '../styles/codec.ts';

type Parts = ChatParts & StateParts;

/** The endpoint of each style that makes a long conversation short. */
export function compactEndpoints(styles: readonly Codec[]): Endpoint<Parts>[] {
  return styles
    .filter(isOffered)
    .flatMap((style) => (style.caller.state ? [compactEndpoint(style, style.caller.state)] : []));
}

function compactEndpoint(style: CallerCodec, state: StateHalf): Endpoint<Parts> {
  const { path, summary, description, response } = state.compaction.endpoint;
  return {
    method: 'POST',
    path,
    body_limit_bytes,
    lenient_query: true,
    long_integers: true,
    window: 'chat',
    format: style.caller.errors,
    docs: {
      tag: 'Chat',
      summary,
      description,
      body: {
        schema: style.caller.endpoint.body,
        examples: { text: { model: 'sandbox/chat', input: 'Hello' } },
      },
      responses: {
        200: { description: response, headers: cost_headers },
        404: { description: 'There is no chat model with this id.' },
      },
      errors: [402, 403, 404, 502, 504],
    },
    handle: (app, call) => compact(app, style, state, call),
  };
}

async function compact(app: Parts, style: CallerCodec, { compaction }: StateHalf, call: Call): Promise<Answer> {
  refuseBlocked(call.caller);
  const caller = callerOf(style.caller, call);
  try {
    const { caller: payer, request_id, gone, body: sent } = call;
    const account_id = payer.account.id;
    const continued = await continuedCall(
      app,
      style,
      { caller: payer, request_id, body: sent, gone, counts: true },
      caller,
    );
    const whole = continued?.body ?? sent;
    const messages = compaction
      .userMessages(isObject(whole) ? whole : {})
      .map((item, index) => shownItem(`msg_${request_id}_in${index}`, item));
    const body = await readableBody(app, style, { caller: payer, body: whole });
    const received = await readChat(app, style, { caller: payer, request_id, body, gone }, caller);
    const encrypt = (text: string) => encryptSummary(app, account_id, text);
    const priced = priceCompaction(app, style, received, { compaction, messages, encrypt });
    const attempt: AttemptRoute<PricedCompaction> = (...args) => attemptCompaction(app, ...args);
    return await answerWhole(app, priced, attempt, caller);
  } catch (error) {
    caller.memory.release();
    throw error;
  }
}
