import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { leaving_ms, whole_pause_ms } from './chat-upstream.ts';
import {
  openJournal,
  points,
  type Account,
  type ChatNote,
  type ChatOrder,
  type Journal,
  type Key,
  type Place,
} from './place.ts';
import type { Random } from './random.ts';

const way_weights = { answer: 72, 'no usage': 6, cut: 6, break: 4, silent: 3, refuse: 6, 'refuse all': 3 } as const;
const model_weights = { 'chaos/talk': 45, 'chaos/think': 30, 'chaos/messages': 25 } as const;

/** Calls in a row that are for the same poor account, some of them at once. */
const burst = 8;
const at_once_max = 40;
const call_limit_ms = 45_000;
const tries_max = 100;

type Pace = { duration_ms: number; share: () => number; until_ms: number };
/** `api`: by its number. */
type PlannedCall = {
  account: Account;
  key: Key;
  api: number;
  model: string;
  stream: boolean;
  max_tokens: number | undefined;
};
type Answer = Pick<ChatNote, 'outcome' | 'status' | 'request_id'>;

/** Callers of chat, of whom many leave: before the first byte, at a ping, a word, the finish reason, the usage. */
export class Callers {
  calls = 0;
  readonly #place: Place;
  readonly #random: Random;
  readonly #journal: Journal<ChatNote>;

  constructor(place: Place, random: Random) {
    this.#place = place;
    this.#random = random;
    this.#journal = openJournal(place.folder, 'chats');
  }

  /** As many calls that the service has taken or refused; those that nobody answered are made anew. */
  async run(count: number, { duration_ms, share, until_ms }: Pace): Promise<void> {
    const begun_at_ms = performance.now();
    const under_way = new Set<Promise<void>>();
    for (let i = 0; i < count && performance.now() < until_ms; i++) {
      const wait_ms = begun_at_ms + (i * duration_ms) / count - performance.now();
      if (wait_ms > 0) await sleep(wait_ms);
      while (i > count * share() && performance.now() < until_ms) await sleep(50);
      const one: Promise<void> = this.#callOn(i, until_ms).finally(() => under_way.delete(one));
      under_way.add(one);
      if (under_way.size >= at_once_max) await Promise.race(under_way);
    }
    await Promise.all(under_way);
  }

  async #callOn(i: number, until_ms: number): Promise<void> {
    const random = this.#random;
    const planned = this.#choose(i);
    for (let tries = 1; tries <= tries_max; tries++) {
      const order: ChatOrder = {
        call: randomUUID(),
        way: random.weighted(way_weights),
        leaves_at: random.chance(0.45) ? (points[random.whole(0, points.length - 1)] ?? 'ping') : 'never',
        is_dense: random.chance(0.3),
        output_tokens: random.chance(0.5) ? 1_000_000 : random.whole(20, 200),
        pause_ms: random.chance(0.1) ? random.whole(200, 700) : random.whole(5, 60),
      };
      const at_ms = Date.now();
      const answer = await this.#call(planned, order);
      const { account, key, api, model, stream, max_tokens } = planned;
      const ids = { account_id: account.id, key_id: key.id, api, model, stream, max_tokens };
      this.#journal.add({ at_ms, ended_at_ms: Date.now(), call: order.call, ...ids, ...answer, order });
      if (answer.outcome !== 'unreached' && answer.status !== 503) break;
      if (performance.now() > until_ms) return;
      await sleep(random.whole(100, 700) * Math.min(tries, 6));
    }
    this.calls += 1;
  }

  /** Poor accounts have their turn one after the other, until their money is gone. */
  #choose(i: number): PlannedCall {
    const random = this.#random;
    const [rich, poor] = [false, true].map((is_poor) =>
      this.#place.accounts.filter((each) => each.is_poor === is_poor),
    );
    const account =
      i % 2 === 0 ? poor?.[Math.floor(i / 2 / burst) % poor.length] : rich?.[random.whole(0, rich.length - 1)];
    const key = account?.keys[random.whole(0, account.keys.length - 1)];
    if (!account || !key) throw new Error('there are accounts of both kinds');
    const max_tokens = random.chance(account.is_poor ? 0.3 : 0.5) ? random.whole(50, 900) : undefined;
    const api = i % this.#place.api_ports.length; // in turn, whatever account it is of
    return { account, key, api, model: random.weighted(model_weights), stream: random.chance(0.6), max_tokens };
  }

  #call({ key, api, model, stream, max_tokens }: PlannedCall, order: ChatOrder): Promise<Answer> {
    const is_messages = max_tokens !== undefined && this.#random.chance(0.4);
    const text = `${JSON.stringify(order)}\n${'~'.repeat(this.#random.whole(0, 1_500))}`;
    const body = JSON.stringify({
      model,
      stream,
      ...(max_tokens !== undefined && { max_tokens }),
      ...(stream && !is_messages && { stream_options: { include_usage: true } }),
      messages: [{ role: 'user', content: text }],
    });
    const path = `/v1/${is_messages ? 'messages' : 'chat/completions'}`;
    return callOnce({ port: this.#place.api_ports[api] ?? 0, path, key: key.text, body, stream }, order);
  }
}

type Wire = { port: number; path: string; key: string; body: string; stream: boolean };

const marks: { readonly [at in ChatOrder['leaves_at']]?: RegExp } = {
  'first word': /wor |end /,
  'last word': /end /,
  'finish reason': /"finish_reason":"stop"|"stop_reason":"end_turn"/,
  usage: /"completion_tokens":[1-9]|"output_tokens":[1-9]\d/,
};

/** A whole answer says nothing on its way: its caller leaves when the upstream has come about that far. */
function leavesAfter(order: ChatOrder, stream: boolean): number | undefined {
  const at = points.findIndex((point) => point === order.leaves_at);
  if (at < 0) return undefined;
  if (!stream) return at === 0 ? leaving_ms / 2 : leaving_ms / 4 + at * whole_pause_ms;
  return at <= 1 ? leaving_ms / 2 : undefined;
}

/** Makes one call and leaves it where its order says so. Never rejects. */
function callOnce({ port, path, key, body, stream }: Wire, order: ChatOrder): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  let [status, request_id, text] = [0, '', ''];
  const end = (outcome: ChatNote['outcome']) => {
    clearTimeout(leaving);
    clearTimeout(limit);
    resolve({ outcome, status, request_id });
    call.destroy();
  };
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' };
  const call = request({ host: '127.0.0.1', port, path, method: 'POST', headers }, (answer) => {
    status = answer.statusCode ?? 0;
    request_id = String(answer.headers['x-request-id'] ?? '');
    const mark = stream && status === 200 ? marks[order.leaves_at] : undefined;
    answer.setEncoding('utf8');
    answer.on('data', (piece: string) => {
      text += piece;
      if (mark?.test(text)) end('left');
    });
    answer.on('error', () => end('broken'));
    answer.on('end', () => end(outcomeOf(status, text, stream)));
  });
  const after_ms = leavesAfter(order, stream);
  const leaving = after_ms === undefined ? undefined : setTimeout(() => end('left'), after_ms);
  const limit = setTimeout(() => end('broken'), call_limit_ms);
  call.on('error', (error: NodeJS.ErrnoException) => end(error.code === 'ECONNREFUSED' ? 'unreached' : 'broken'));
  call.end(body);
  return promise;
}

function outcomeOf(status: number, text: string, stream: boolean): ChatNote['outcome'] {
  if (status >= 400) return status < 500 ? 'refused' : 'failed';
  if (!stream) return text.endsWith('}') ? 'complete' : 'broken';
  if (/"error":/.test(text)) return 'failed';
  return /data: \[DONE\]\n|"type":"message_stop"\}\n/.test(text) ? 'complete' : 'broken';
}
