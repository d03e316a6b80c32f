import type { ChatCaller } from '../chat/attempt.ts';
import type { ReceivedChat } from '../chat/priced-request.ts';
import { RequestMemory } from '../chat/request-memory.ts';
import { withUploads, type UploadParts } from '../chat/uploads.ts';
import { isObject } from '../catalog/model.ts';
import { withSummaries, type SummaryParts } from '../conversations/compactions.ts';
import { continueRequest, type ContinuedRequest, type ContinueParts } from '../conversations/continue.ts';
import type { Call } from '../http/endpoint.ts';
import type { CallerCodec, CallerHalf, Codec } from '../styles/codec.ts';

/** Reads the request of a chat: what it continues, what is encrypted in it, and the caller's files. */

/** The parts of the app that what is kept takes. */
export type StateParts = ContinueParts & SummaryParts;

/** Tells whether callers are offered a style. */
export function isOffered(style: Codec): style is CallerCodec {
  return style.caller !== undefined;
}

type Continuing = Pick<Call, 'caller' | 'request_id' | 'body' | 'gone'> & { counts?: boolean; lasts_ms?: number };

/** The request with what it continues, in a style that has such a thing; the memory of that is let go with the request's. */
export async function continuedCall(
  app: ContinueParts,
  { caller: { state } }: CallerCodec,
  { body, ...call }: Continuing,
  { memory }: ChatCaller,
): Promise<ContinuedRequest | undefined> {
  if (!state || !isObject(body)) return undefined;
  return continueRequest(app, state, { ...call, body }, memory);
}

/** The body with what a style keeps encrypted in its items, as every model reads it. Rejects with ApiError 400. */
export async function readableBody(
  app: SummaryParts,
  { caller: { state } }: CallerCodec,
  { caller, body }: Pick<Call, 'caller' | 'body'>,
): Promise<Call['body']> {
  return state && isObject(body) ? withSummaries(app, state, caller.account.id, body) : body;
}

/** The call with the caller's uploaded files in place of their ids. */
export async function readChat(
  app: UploadParts,
  style: CallerCodec,
  call: Pick<Call, 'caller' | 'request_id' | 'body' | 'gone'>,
  { memory }: ChatCaller,
): Promise<ReceivedChat> {
  const { caller, request_id, body, gone } = call;
  const with_files = await withUploads(app, style, { account_id: caller.account.id, caller, body, gone }, memory);
  return with_files ? { caller, request_id, body: with_files } : call;
}

/** The one who called, with the headers that the style has for its upstreams. */
export function callerOf(style: Pick<CallerHalf, 'headers'>, call: Call): ChatCaller {
  const headers: Record<string, string> = {};
  for (const name of style.headers ?? []) {
    const value = call.headers[name];
    if (typeof value === 'string') headers[name] = value;
  }
  const memory = new RequestMemory();
  memory.add(() => call.releaseBody());
  return { headers, gone: call.gone, memory };
}
