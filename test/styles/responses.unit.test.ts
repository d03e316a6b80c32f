import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SseSplitter } from '../../src/net/sse.ts';
import type { Relay } from '../../src/styles/relay.ts';
import { responsesStream } from '../chat/responses-streams.ts';
import { framings, onWire, answerOf, scripts, type Piece, type WireStyle } from './wire.ts';
import { openRelay, type NamedRelayOptions } from './by-name.ts';

const model = 'acme/水';

function relayFrom(upstream: NamedRelayOptions['upstream']): Relay {
  return openRelay({
    caller: 'responses',
    upstream,
    model,
    wants_usage: true,
    request_id: 'req_1',
    input_tokens_estimated: 7,
    created: 1,
    line_bytes_max: 64_000_000,
  });
}

/** Returns the bytes that are sent for input in these pieces, and for the end of the connection. */
function sentFor(relay: Relay, bytes: Buffer, cuts: readonly number[] = []): string {
  const places = [0, ...cuts.filter((at) => at < bytes.length).toSorted((a, b) => a - b), bytes.length];
  const sent = places.slice(1).map((to, index) => relay.push(bytes.subarray(places[index], to))?.toString() ?? '');
  return sent.join('') + (relay.failure ? '' : (relay.end()?.toString() ?? ''));
}

type Item = {
  id: string;
  type: string;
  status?: string;
  call_id?: string;
  name?: string;
  arguments?: string;
  encrypted_content?: string;
  content?: { type: string; text: string }[];
  summary?: { text: string }[];
};
type Event = {
  type: string;
  sequence_number: number;
  output_index: number;
  item_id?: string;
  item: Item;
  delta: string;
  text: string;
  arguments: string;
  response: { id: string; model: string; status: string; output: Item[]; usage: object | null };
};

function eventsIn(text: string): Event[] {
  const splitter = new SseSplitter(64_000_000);
  const frames = splitter.push(Buffer.from(text));
  expect(splitter.rest()?.data).toBeUndefined();
  return frames.flatMap(({ event, data }) => {
    if (data === undefined) return [];
    const body = JSON.parse(data) as Event;
    expect(event).toBe(body.type);
    return [body];
  });
}

/** Put together from the pieces, as a caller does who reads no response at the end: it must come to the same. */
function collect(events: readonly Event[]): Item[] {
  const items: Item[] = [];
  const texts: string[] = [];
  const open = new Set<number>();
  for (const { type, output_index: index, item_id, item, delta, text, arguments: json } of events) {
    if (type === 'response.output_item.added') {
      expect(index).toBe(items.length);
      items.push(item);
      texts.push('');
      open.add(index);
    } else if (type.endsWith('.delta')) {
      expect([open.has(index), item_id]).toEqual([true, items[index]?.id]);
      texts[index] += delta;
    } else if (type === 'response.output_text.done' || type === 'response.reasoning_summary_text.done') {
      expect(text).toBe(texts[index]);
    } else if (type === 'response.function_call_arguments.done') {
      expect(json).toBe(texts[index] || '{}');
    } else if (type === 'response.output_item.done') {
      expect([open.delete(index), item.id]).toEqual([true, items[index]?.id]);
      items[index] = item;
    }
  }
  expect([...open]).toEqual([]);
  return items;
}

function expectAnswer(events: readonly Event[], script: readonly Piece[], style: WireStyle): void {
  const last = events.at(-1);
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
  expect(events.slice(0, 2).map(({ type }) => type)).toEqual(['response.created', 'response.in_progress']);
  expect(last?.type).toBe('response.completed');
  expect(last?.response).toMatchObject({ id: 'resp_req_1', model, status: 'completed' });
  const items = collect(events);
  expect(last?.response.output).toEqual(items);
  expect(new Set(items.map(({ id }) => id)).size).toBe(items.length);
  const expected = answerOf(script, style === 'messages' ? 'messages' : 'completions');
  const contents = items.flatMap(({ content = [] }) => content.map(({ text }) => text));
  const thoughts = items.flatMap(({ summary = [] }) => summary.map(({ text }) => text));
  expect([contents.join(''), thoughts.join('')]).toEqual([expected.text, expected.thinking]);
  const calls = items.filter(({ type }) => type === 'function_call');
  expect(calls.map(({ call_id, name, arguments: json }) => [call_id, name, json])).toEqual(
    expected.calls.map(({ id, name, arguments: json }) => [id, name, json || '{}']),
  );
}

describe('a stream of another style for a caller of the responses style', () => {
  const upstreams: readonly WireStyle[] = ['completions', 'messages', 'gemini'];

  it.each(upstreams)('from %s has all its content in consistent events', (style) => {
    fc.assert(
      fc.property(scripts(style), framings, fc.array(fc.nat(4_000), { maxLength: 8 }), (script, framing, cuts) => {
        const relay = relayFrom(style);
        const sent = sentFor(relay, Buffer.from(onWire(style, script, framing)), cuts);
        expect([relay.failure, relay.is_complete]).toEqual([undefined, true]);
        expectAnswer(eventsIn(sent), script, style);
      }),
      { numRuns: 300 },
    );
  });

  it('has each thought signature with its own thought', () => {
    const script: Piece[] = [
      { say: 'thinking', text: 'Hm.' },
      { say: 'signature', text: 'c2ln' },
      { say: 'text', text: 'So.' },
    ];
    const framing = { end: '\n', space: ' ', comments: false, spread: false };
    const events = eventsIn(sentFor(relayFrom('messages'), Buffer.from(onWire('messages', script, framing))));
    expect(events.at(-1)?.response.output).toMatchObject([
      { type: 'reasoning', summary: [{ text: 'Hm.' }], encrypted_content: 'signature:c2ln' },
      { type: 'message' },
    ]);
  });
});

describe('a stream of the responses style', () => {
  const whole = responsesStream(['Grü', 'ße 😀']).join('');
  const relayed = whole.replaceAll('"gpt-x"', JSON.stringify(model)).replaceAll('"resp_1"', '"resp_req_1"');

  it("keeps its bytes but for the model's name and the response's id, wherever it is cut", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(whole.length + 10), { maxLength: 12 }), (cuts) => {
        const relay = relayFrom('responses');
        expect(sentFor(relay, Buffer.from(whole), cuts)).toBe(relayed);
        expect(relay).toMatchObject({ is_complete: true, finish: 'completed', failure: undefined });
        expect(relay.usage).toMatchObject({ input_tokens: 10, output_tokens: 5 });
        expect(relay.delivered).toEqual({ ascii_bytes: 4, other_bytes: 8 });
      }),
    );
  });

  it('is incomplete if it ends anywhere before its last event', () => {
    const bytes = Buffer.from(whole);
    const end = bytes.lastIndexOf('event: response.completed');
    fc.assert(
      fc.property(fc.nat(end - 1), (at) => {
        const relay = relayFrom('responses');
        sentFor(relay, bytes.subarray(0, at));
        expect([relay.is_complete, relay.failure !== undefined]).toEqual([false, true]);
      }),
    );
  });

  it.each([
    ['data that is no JSON', 'data: {"type":\n\n'],
    ['data that is no object', 'data: [1]\n\n'],
  ])('with %s is a failure', (_, text) => {
    const relay = relayFrom('responses');
    sentFor(relay, Buffer.from(text));
    expect(relay.failure?.type).toBe('malformed');
  });

  it('loses events that only some servers add', () => {
    const relay = relayFrom('responses');
    const sent = sentFor(relay, Buffer.from(`data: \n\n${whole}data: [DONE]\n\n: bye\n\n`));
    expect(sent).toBe(`${relayed}: bye\n\n`);
    expect(relay.failure).toBeUndefined();
  });
});
