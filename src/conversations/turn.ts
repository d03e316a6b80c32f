import type { Logger } from 'pino';
import type { JsonObject } from '../catalog/model.ts';
import type { Clock } from '../lib/clock.ts';
import { ApiError } from '../errors.ts';
import { appendItems, conversation_bytes_max, conversation_items_max } from './items.ts';
import type { ConversationName } from './conversations.ts';
import type { StoredParts } from './stored-responses.ts';

/**
 * The turn of a call in a conversation: while it has it, no other call begins there, on any node, and nobody adds items.
 * A node that dies loses its turns by their time.
 */
export type ConversationTurn = {
  /** Its items have places before this one. */
  readonly next_place: string;
  /** Adds what was said, and ends the turn. A failure is logged: the caller has an answer all the same. */
  append(items: readonly JsonObject[]): Promise<void>;
  /** Ends it without that; to be called whatever became of the call. Never rejects. */
  end(): Promise<void>;
};

/** The parts of the app that a turn takes. */
export type TurnParts = StoredParts & { readonly clock: Clock; readonly log: Logger };

const turn_ms = 30_000;
const renew_every_ms = 8_000;

/** The owner of a turn. `lasts_ms`: it is not renewed, since nobody waits for it on this node. */
export type TurnOwner = { name: ConversationName; request_id: string; keep_ms: number; lasts_ms?: number };

type TurnRequest = TurnOwner & { items: number; json_bytes: number };

/**
 * Takes the turn for a call that adds at least so much. Rejects with ApiError 400 where another has it, where there is no
 * such conversation, and where it has as much as it may.
 */
export async function takeTurn(parts: TurnParts, request: TurnRequest): Promise<ConversationTurn> {
  const { name, request_id, keep_ms, lasts_ms = turn_ms } = request;
  const now = parts.clock.now();
  const [row] = await parts.db.query<{ items: number; json_bytes: string; next_place: string }>(
    `update conversations set turn = $3, turn_until = $5, used_at = $4, expires_at = $6
      where account_id = $1 and id = $2 and expires_at > $4 and (turn is null or turn_until <= $4)
      returning items, json_bytes::text, next_place::text`,
    [name.account_id, name.id, request_id, new Date(now), new Date(now + lasts_ms), new Date(now + keep_ms)],
  );
  if (!row) throw await refusal(parts, name, new Date(now));
  const turn = openTurn(parts, request, row.next_place);
  const is_full =
    row.items + request.items > conversation_items_max ||
    Number(row.json_bytes) + request.json_bytes > conversation_bytes_max;
  if (!is_full) return turn;
  await turn.end();
  throw fullConversation();
}

async function refusal({ db }: TurnParts, name: ConversationName, now: Date): Promise<ApiError> {
  const [there] = await db.query('select id from conversations where account_id = $1 and id = $2 and expires_at > $3', [
    name.account_id,
    name.id,
    now,
  ]);
  return there ? lockedConversation() : unknownConversation(name.id);
}

/** The words and the code of the style's own service (2026-03). */
export function lockedConversation(): ApiError {
  const message = 'Another process is currently operating on this conversation. Please retry in a few seconds.';
  return new ApiError('invalid_request', message, { param: 'conversation', code: 'conversation_locked' });
}

/** A conversation of another account is as unknown as one that never was. To be thrown where a call names it. */
export function unknownConversation(id: string): ApiError {
  const message = `Conversation with id ${JSON.stringify(id.slice(0, 80))} not found.`;
  return new ApiError('not_found', message, { param: 'conversation' });
}

/** The 400 for a conversation that has as much as it may. */
export function fullConversation(): ApiError {
  const message = `A conversation has at most ${conversation_items_max} items and ${conversation_bytes_max / 1_000_000} MB: begin another one.`;
  return new ApiError('invalid_request', message, { param: 'conversation', code: 'context_length_exceeded' });
}

/** Returns a turn that was taken before, perhaps by another node. */
export function openTurn(
  parts: TurnParts,
  { name, request_id, keep_ms, lasts_ms }: TurnOwner,
  next_place: string,
): ConversationTurn {
  const { db, clock, log } = parts;
  const mine = [name.account_id, name.id, request_id];
  const facts = { account_id: name.account_id, request_id, conversation_id: name.id };
  const renew = () => {
    const until = new Date(clock.now() + turn_ms);
    db.query('update conversations set turn_until = $4 where account_id = $1 and id = $2 and turn = $3', [
      ...mine,
      until,
    ]).catch((error: unknown) => log.warn({ ...facts, err: error }, 'the turn of a call could not be renewed'));
  };
  const renewal = lasts_ms === undefined ? setInterval(renew, renew_every_ms) : undefined;
  let is_over = false;
  const stop = () => {
    is_over = true;
    clearInterval(renewal);
  };
  return {
    next_place,
    append: async (items) => {
      if (is_over) return;
      try {
        const now = clock.now();
        const times = { now: new Date(now), expires_at: new Date(now + keep_ms), turn: request_id };
        const outcome = await appendItems(parts, name, items, times);
        if (typeof outcome === 'string') log.warn({ ...facts, outcome }, 'a turn was not added to its conversation');
        stop();
      } catch (error) {
        log.error({ ...facts, err: error }, 'a turn was not added to its conversation: it goes on without it');
      }
    },
    end: async () => {
      if (is_over) return;
      stop();
      const ending = db.query(
        'update conversations set turn = null, turn_until = null where account_id = $1 and id = $2 and turn = $3',
        mine,
      );
      await ending.catch(() => undefined); // it ends by its time
    },
  };
}
