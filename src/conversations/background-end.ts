import type { Logger } from 'pino';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { JsonObject } from '../catalog/model.ts';
import { insertRecord, type StoredRecord } from '../chat/record-row.ts';
import { settle, type Charge, type SettleParts } from '../chat/settle.ts';
import type { Notifier } from '../db/notify.ts';
import { retryWhileUnavailable } from '../db/retry-while-unavailable.ts';
import { ApiError } from '../errors.ts';
import { failpoint } from '../lib/failpoint.ts';
import { readUse, type StoredUse } from '../money/upstream.ts';
import { modelOfRoute } from '../routing/health.ts';
import { SseSplitter } from '../net/sse.ts';
import type { Background } from '../styles/codec.ts';
import { objectOf } from '../styles/stream.ts';
import { eventsContent, line_bytes_max } from './background-events.ts';
import {
  endBackground,
  findBackground,
  lastEvent,
  noteDone,
  readEvents,
  readBackgroundResponse,
  responses_channel,
  type BackgroundName,
  type BackgroundRow,
  type BackgroundStatus,
  type NewContent,
} from './background.ts';
import { keepAnswer, storedJson, type KeptFacts } from './continue.ts';
import { outputOf, type StoredParts } from './stored-responses.ts';
import { openTurn } from './turn.ts';

/** The parts of the app that ending a response in the background takes. */
export type EndParts = StoredParts &
  SettleParts & {
    readonly catalog: CatalogHolder;
    readonly log: Logger;
    readonly notifier: Pick<Notifier, 'notify'>;
  };

/** The rest of the work for a response whose status is final, as its row has it: amounts are texts. */
export type EndedResponse = {
  currency: string;
  previous_id: string | null;
  charge: (Omit<Charge, 'cost'> & { cost: string | bigint }) | null;
  upstream: StoredUse | null;
  /** Absent: its worker died, and nobody knows how its call went. */
  record: StoredRecord | null;
  /** The model that answered; absent: that of the row. */
  model?: string;
};

/** The error of a response whose worker died when an upstream had been asked: nobody asks twice. */
export function workerDied(): ApiError {
  return new ApiError('internal_error', 'The server that made this response has stopped. It costs nothing: try again.');
}

/** A status that is final, with its response. */
export type Verdict = { status: BackgroundStatus; response: JsonObject };

/**
 * Ends a response, and does what follows from that. False if it is somebody else's by now. Whoever ends it writes down
 * what it costs in the same moment: if this process dies behind that, its job is another worker's, who does the rest.
 */
export async function endResponse(
  parts: EndParts,
  name: BackgroundName,
  claim: string,
  end: Verdict & { facts: KeptFacts; ended: EndedResponse; events: readonly NewContent[] },
): Promise<boolean> {
  const { status, response, facts, ended, events } = end;
  const contents = [{ id: 'response', json: storedJson(facts, response) }, ...events];
  const is_ended = await retryWhileUnavailable(() =>
    endBackground(parts, name, claim, { status, now: new Date(parts.clock.now()), ended, contents }),
  );
  if (!is_ended) return false;
  await failpoint('response.ended');
  parts.notifier.notify(responses_channel, name.id);
  const row = await findBackground(parts, name);
  if (row) await finishEnded(parts, row);
  return true;
}

/** Settles, records, stores and adds to its conversation what has ended: each of it once, however often this is done. */
export async function finishEnded(parts: EndParts, row: BackgroundRow): Promise<void> {
  const { account_id, id, request_id } = row;
  const ended = row.ended as EndedResponse;
  const { charge, upstream, record, currency, model = row.model } = ended;
  const call = { caller: { account: { id: account_id, currency } }, request_id, model: { id: model } };
  const settled = await settle(parts, call, {
    charge: charge ? { ...charge, cost: BigInt(charge.cost) } : undefined,
    upstream: upstream ? readUse(upstream) : undefined,
  });
  if (record) await insertRecord(parts, record, { cost: settled.charged, upstream_cost: settled.upstream_cost });
  const stored = await readBackgroundResponse(parts, row);
  const is_answer = row.status === 'completed' || row.status === 'incomplete';
  if (stored && is_answer) {
    const { input, response, conversation } = stored;
    const facts = {
      input_json: JSON.stringify(input),
      previous_id: ended.previous_id,
      ...(conversation && { conversation }),
    };
    await keepAnswer(parts, { account_id, request_id }, facts, response);
  }
  if (stored?.conversation) {
    const { id: conversation_id, before } = stored.conversation;
    const { keep_ms } = parts.catalog.current.settings.responses;
    const owner = { name: { account_id, id: conversation_id }, request_id, keep_ms, lasts_ms: 0 };
    const turn = openTurn(parts, owner, before);
    if (is_answer) await turn.append([...stored.input, ...outputOf(stored)]);
    await turn.end();
  }
  await noteDone(parts, { account_id, id }, new Date(parts.clock.now()));
  parts.notifier.notify(responses_channel, id);
}

/** The output in the events that were written down; none of a response without events. */
async function writtenOutput(parts: EndParts, style: Background, row: BackgroundRow): Promise<JsonObject[]> {
  const output = style.openOutput();
  if (!row.is_streamed || !row.sent_at) return output.output();
  const splitter = new SseSplitter(line_bytes_max);
  for (let part = await readEvents(parts, row, -1); part; part = await readEvents(parts, row, part.last))
    for (const { data = '' } of splitter.push(Buffer.from(part.text)))
      if (data.trim() !== '') output.read(objectOf(data));
  return output.output();
}

/**
 * Ends a response that nobody works on: it was cancelled, was not begun in time, or its worker has died. Nothing is
 * charged for it.
 */
export async function endWithout(
  parts: EndParts,
  style: Background,
  row: BackgroundRow,
  claim: string,
  reason: ApiError | 'cancelled',
): Promise<boolean> {
  const stored = await readBackgroundResponse(parts, row);
  const first = stored?.response ?? {
    id: row.id,
    object: 'response',
    model: row.model,
    output: [],
    status: row.status,
  };
  const status = reason === 'cancelled' ? 'cancelled' : 'failed';
  const broken = style.broken(first, await writtenOutput(parts, style, row), undefined);
  const response = reason === 'cancelled' ? style.inStatus(broken, status) : style.failed(broken, reason);
  const events: NewContent[] = [];
  if (row.is_streamed) {
    const next = (await lastEvent(parts, row)) + 1;
    events.push(eventsContent([style.event(style.lastEventType(status), { response }, next)], next));
  }
  const { conversation } = stored ?? {};
  const facts = {
    input_json: JSON.stringify(stored?.input ?? []),
    previous_id: null,
    ...(conversation && { conversation }),
  };
  const { sent_provider: provider, sent_route: route } = row;
  const upstream = provider !== null && route !== null ? { basis: 'unknown' as const, provider, route } : null;
  const model = route === null ? row.model : modelOfRoute(route);
  const ended = { currency: row.currency, previous_id: null, charge: null, upstream, record: null, model };
  return endResponse(parts, row, claim, { status, response, facts, ended, events });
}
