import type { Caller } from '../accounts/authenticate.ts';
import { isObject, type JsonObject } from '../catalog/model.ts';
import type { CallParts } from '../chat/call.ts';
import { lastingHold, takeHold } from '../chat/hold.ts';
import { candidatesOf, priceChatRequest, type PricedChatRequest, type PricingParts } from '../chat/priced-request.ts';
import { StreamWriter } from '../chat/stream-writer.ts';
import type { UploadParts } from '../chat/uploads.ts';
import { endWithout, type EndParts } from '../conversations/background-end.ts';
import { eventsContent } from '../conversations/background-events.ts';
import type { StoredRequest } from '../conversations/background-run.ts';
import {
  claimUnsent,
  findBackground,
  prepareBackground,
  readBackgroundResponse,
  readEvents,
  requestCancel,
  responses_channel,
  run_queue,
  unfinished_max,
  type BackgroundName,
  type BackgroundRow,
  type InsertResult,
} from '../conversations/background.ts';
import { keepsResponses, storedJson, type ContinuedRequest } from '../conversations/continue.ts';
import type { StoredParts } from '../conversations/stored-responses.ts';
import type { Listener } from '../db/notify.ts';
import { ApiError } from '../errors.ts';
import type { Answer, Call } from '../http/endpoint.ts';
import { newId } from '../lib/ids.ts';
import { whileLeased } from '../leases/while-leased.ts';
import type { HoldAnswer } from '../money/holds.ts';
import type { Engine } from '../queue/queue.ts';
import type { Background, CallerCodec } from '../styles/codec.ts';
import { mistake } from '../styles/fields.ts';
import { refuseBlocked } from './blocked.ts';
import { callerOf, continuedCall, readableBody, readChat, type StateParts } from './chat-request.ts';

/** The parts of the app that a response in the background takes, until a worker has it. */
export type BackgroundParts = PricingParts &
  StateParts &
  UploadParts &
  Pick<CallParts, 'holds'> &
  FollowParts & { readonly engine: Pick<Engine, 'wake'> };

/** The parts of the app that following one takes. */
export type FollowParts = StoredParts & EndParts & { readonly listener: Listener };

/** Time that may pass before a worker begins; money is held for so long. */
const queued_ms_max = 3_600_000;

/** The turn in a conversation ends with its call; this is for the case that nothing ever ends it. */
const turn_ms = 3 * 3_600_000;

const crowded_retry_s = 10;

/** Tells whether a call is to be answered in the background. */
export function isInBackground(
  app: StateParts,
  style: CallerCodec,
  { caller, body }: Pick<Call, 'caller' | 'body'>,
): boolean {
  return (
    style.caller.state !== undefined && isObject(body) && body['background'] === true && keepsResponses(app, caller)
  );
}

/** Creates a response that a worker makes: its money is held now. Throws ApiError as every call does. */
export async function answerInBackground(app: BackgroundParts, style: CallerCodec, call: Call): Promise<Answer> {
  refuseBlocked(call.caller);
  const { state } = style.caller;
  if (!state) throw new ApiError('invalid_request', 'This style has no responses in the background.');
  const caller = callerOf(style.caller, call);
  let continued: ContinuedRequest | undefined;
  try {
    const { caller: payer, request_id, gone, body: sent } = call;
    continued = await continuedCall(
      app,
      style,
      { caller: payer, request_id, body: sent, gone, lasts_ms: turn_ms },
      caller,
    );
    if (!continued)
      throw mistake('background', 'is not offered: nothing is stored for this account', 'unsupported_field');
    if (continued.echo['store'] !== true) throw tooLarge(app);
    const { background: _, ...body } = continued.body;
    const readable = await readableBody(app, style, { caller: payer, body });
    const received = await readChat(app, style, { caller: payer, request_id, body: readable, gone }, caller);
    const priced = priceChatRequest(app, style, { ...received, echo: continued.echo });
    const { row, queued } = await create(app, style, state.background, priced, { ...continued, body });
    if (!priced.request.stream) return { status: 200, body: queued };
    return streamOf(app, row, -1, call);
  } catch (error) {
    await continued?.end();
    throw error;
  } finally {
    caller.memory.release();
  }
}

function tooLarge({ catalog }: StateParts): ApiError {
  const { response_bytes_max } = catalog.current.settings.responses;
  return mistake('input', `must have at most ${response_bytes_max / 1_000_000} MB for a response in the background`);
}

type Created = { row: BackgroundName; queued: JsonObject };

async function create(
  app: BackgroundParts,
  style: CallerCodec,
  background: Background,
  priced: PricedChatRequest,
  { body, echo, facts }: ContinuedRequest,
): Promise<Created> {
  const { caller, request_id, model, request } = priced;
  const created_ms = app.clock.now();
  const id = style.caller.answerId(request_id);
  const created = Math.floor(created_ms / 1000);
  const queued = background.queued({ body, echo, model: model.id, request_id, created });
  const chosen = chosenOf(priced);
  const stored: StoredRequest = {
    caller: callerFacts(caller),
    body,
    echo,
    facts,
    pricing: priced.pricing,
    ...(chosen && { chosen }),
  };
  const first_events = ['response.created', 'response.queued'].map((type, index) =>
    background.event(type, { response: queued }, index),
  );
  const row = {
    account_id: caller.account.id,
    id,
    request_id,
    model: model.id,
    currency: caller.account.currency,
    is_streamed: request.stream,
    created_at: new Date(created_ms),
    begin_before: new Date(created_ms + queued_ms_max),
    expires_at: new Date(created_ms + app.catalog.current.settings.responses.keep_ms),
  };
  const insert = await prepareBackground(app, row, [
    { id: 'request', json: JSON.stringify(stored) },
    { id: 'response', json: storedJson(facts, queued) },
    ...(request.stream ? [eventsContent(first_events, 0)] : []),
  ]);
  await takeHold(app, priced, async (hold, max_tokens) => {
    const tokens = max_tokens.get(model.id) ?? Math.min(...max_tokens.values());
    const { outcome, available, remaining } = await whileLeased(() => insert(lastingHold(hold), tokens));
    if (outcome === 'crowded') throw crowded();
    return { outcome: wordOf(outcome), available, remaining };
  });
  app.engine.wake(run_queue);
  return { row, queued };
}

/** The models of a call, if it names several or an operator chose among them: a reload may change that until it is made. */
function chosenOf(priced: PricedChatRequest): StoredRequest['chosen'] {
  const [first, ...others] = candidatesOf<PricedChatRequest>(priced).map(({ model, model_reason, pricing }) => ({
    id: model.id,
    ...(model_reason !== undefined && { why: model_reason }),
    pricing,
  }));
  if (!first || (others.length === 0 && first.why === undefined)) return undefined;
  return [first, ...others];
}

/** Returns the facts of a caller that are stored. Of the key's rules these are only those that apply later: the others were checked. */
function callerFacts({
  account,
  key: { id, name, budget_id, models, requests_per_minute, log_content },
}: Caller): Caller {
  const more = {
    ...(budget_id !== undefined && { budget_id }),
    ...(models && { models }),
    ...(requests_per_minute !== undefined && { requests_per_minute }),
    ...(log_content && { log_content }),
  };
  return { account, key: { id, name, ...more } };
}

function wordOf(outcome: Exclude<InsertResult['outcome'], 'crowded'>): HoldAnswer['outcome'] {
  if (outcome === 'created') return 'held';
  return outcome === 'leased' ? 'insufficient' : outcome;
}

function crowded(): ApiError {
  const message = `${unfinished_max} responses of this account are made in the background. Try again when some of them have ended.`;
  return new ApiError('rate_limit', message, { headers: { 'retry-after': String(crowded_retry_s) } });
}

/** A response in the background as it is now. Undefined if its content is among the stored responses, or there is none. */
export async function backgroundResponse(
  app: StoredParts,
  background: Background,
  row: BackgroundRow,
): Promise<JsonObject | undefined> {
  const stored = await readBackgroundResponse(app, row);
  if (!stored || row.completed_at) return stored?.response;
  return background.inStatus(stored.response, row.cancel_requested ? 'cancelled' : row.status);
}

/** Whoever makes it hears of this within two seconds. */
const cancel_wait_ms = 5_000;

/** Cancels a response. One that no upstream was asked for ends now, at no cost. Throws ApiError 400 if it has ended. */
export async function cancelBackground(
  app: FollowParts,
  background: Background,
  row: BackgroundRow,
  gone: AbortSignal,
): Promise<void> {
  if (row.status === 'cancelled' || row.cancel_requested) return;
  if (!(await requestCancel(app, row)))
    throw new ApiError('invalid_request', 'Cannot cancel a response that has ended.', { param: 'id' });
  const claim = newId('item');
  if (await claimUnsent(app, row, claim)) {
    await endWithout(app, background, row, claim, 'cancelled');
    return;
  }
  const late = AbortSignal.timeout(cancel_wait_ms);
  const news = await follow(app, row, AbortSignal.any([gone, late]));
  try {
    while (!gone.aborted && !late.aborted && !(await findBackground(app, row))?.completed_at) await news.next();
  } finally {
    news.stop();
  }
}

const look_every_ms = 1_000;
const heartbeat_ms = 15_000;

/** Resolves at the next change of a response, after a second, or when nobody waits any more. */
async function follow(
  { listener }: Pick<FollowParts, 'listener'>,
  { id }: BackgroundName,
  signal: AbortSignal,
): Promise<{ next(): Promise<void>; stop(): void }> {
  let wake: (() => void) | undefined;
  let has_news = false;
  const tell = () => {
    has_news = true;
    wake?.();
  };
  const onPayload = (payload: string) => payload === id && tell();
  const unsubscribe = await listener.subscribe(responses_channel, { onPayload, onGap: tell });
  signal.addEventListener('abort', tell);
  return {
    next: async () => {
      if (!has_news && !signal.aborted) {
        const { promise, resolve } = Promise.withResolvers<void>();
        const timer = setTimeout(resolve, look_every_ms);
        wake = resolve;
        await promise;
        clearTimeout(timer);
      }
      has_news = false;
    },
    stop: () => {
      unsubscribe();
      signal.removeEventListener('abort', tell);
    },
  };
}

const stream_headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no', // nginx would hold the events back
};

/** The events of a response behind a number, as they come; another node goes on where this one stops. */
export function streamOf(app: FollowParts, name: BackgroundName, after: number, call: Call): Answer {
  const writer = new StreamWriter();
  const following = writeEvents(app, name, after, writer, AbortSignal.any([call.gone, call.draining])).then(
    (is_whole) => (is_whole ? writer.end() : writer.cut()),
    (error: unknown) => {
      app.log.warn({ response_id: name.id, err: error }, 'the events of a response could not be read');
      writer.cut();
    },
  );
  void following;
  return { status: 200, headers: stream_headers, body: writer };
}

/** Returns false if the stream has no end here: its reader left, or the service stops. */
async function writeEvents(
  app: FollowParts,
  name: BackgroundName,
  after: number,
  writer: StreamWriter,
  signal: AbortSignal,
): Promise<boolean> {
  const news = await follow(app, name, signal);
  let last = after;
  try {
    while (!signal.aborted) {
      const row = await findBackground(app, name);
      if (!row) return false;
      for (
        let part = await readEvents(app, name, last);
        part && !signal.aborted;
        part = await readEvents(app, name, last)
      ) {
        const texts = part.text.split('\n\n').slice(0, -1);
        const unread = texts.slice(Math.max(0, last + 1 - part.first));
        last = part.last;
        if (!writer.write(Buffer.from(unread.map((text) => `${text}\n\n`).join('')))) await writer.drained();
      }
      if (row.completed_at) return !signal.aborted;
      if (performance.now() - writer.written_at_ms >= heartbeat_ms) writer.write(Buffer.from(': keep-alive\n\n'));
      await news.next();
    }
    return false;
  } finally {
    news.stop();
  }
}
