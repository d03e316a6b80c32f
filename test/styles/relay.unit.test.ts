import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SseSplitter } from '../../src/net/sse.ts';
import { withMembers } from '../../src/styles/model-name.ts';
import type { Relay } from '../../src/styles/relay.ts';
import { framings, onWire, answerOf, scripts, upstream_model, type CollectedAnswer, type WireStyle } from './wire.ts';
import { openRelay, type NamedRelayOptions, type Style } from './by-name.ts';
import { depth } from '../helpers/depth.ts';

const model = 'acme/水';

function relayOf(caller: Style, upstream: WireStyle, more: Partial<NamedRelayOptions> = {}): Relay {
  return openRelay({
    caller,
    upstream,
    model,
    wants_usage: true,
    request_id: 'req_1',
    input_tokens_estimated: 7,
    created: 1,
    line_bytes_max: 64_000_000,
    ...more,
  });
}

/** Returns the bytes that are sent for input in these pieces, push by push, and for the end of the connection. */
function run(relay: Relay, bytes: Buffer, cuts: readonly number[] = []): string[] {
  const places = [0, ...cuts.filter((at) => at < bytes.length).toSorted((a, b) => a - b), bytes.length];
  const sent = places.slice(1).map((to, index) => relay.push(bytes.subarray(places[index], to))?.toString() ?? '');
  return [...sent, relay.failure ? '' : (relay.end()?.toString() ?? '')];
}

function sentFor(relay: Relay, bytes: Buffer, cuts: readonly number[] = []): string {
  return run(relay, bytes, cuts).join('');
}

type Event = { event: string; data: string };

function eventsIn(text: string): Event[] {
  const splitter = new SseSplitter(64_000_000);
  const frames = splitter.push(Buffer.from(text));
  expect(splitter.rest()?.data).toBeUndefined();
  return frames.flatMap(({ event, data }) => (data === undefined ? [] : [{ event, data }]));
}

/** Put together as a caller of the style does, which fails on what is out of order. */
function collect(style: Style, text: string): CollectedAnswer {
  return style === 'completions' ? collectCompletions(eventsIn(text)) : collectMessages(eventsIn(text));
}

function collectCompletions(events: readonly Event[]): CollectedAnswer {
  const answer: CollectedAnswer = { text: '', thinking: '', calls: [], finish: '' };
  expect(events.at(-1)?.data).toBe('[DONE]');
  for (const { data } of events.slice(0, -1)) {
    const chunk = JSON.parse(data);
    expect(chunk).toMatchObject({ model, id: 'chatcmpl-1'.replace('chatcmpl-1', chunk.id) });
    const [choice] = chunk.choices;
    if (!choice) continue;
    expect(answer.finish).toBe('');
    answer.text += choice.delta.content ?? '';
    answer.thinking += choice.delta.reasoning_content ?? '';
    for (const { index, id, type, function: called } of choice.delta.tool_calls ?? []) {
      if (id !== undefined) {
        expect([index, type]).toEqual([answer.calls.length, 'function']);
        answer.calls.push({ id, name: called.name, arguments: '' });
      }
      const call = answer.calls[index];
      if (!call) throw new Error('arguments of a call that was not begun');
      call.arguments += called.arguments;
    }
    answer.finish = choice.finish_reason ?? answer.finish;
  }
  return answer;
}

function collectMessages(events: readonly Event[]): CollectedAnswer {
  const answer: CollectedAnswer = { text: '', thinking: '', calls: [], finish: '' };
  const types = events.map(({ event }) => event).filter((name) => name !== 'ping');
  expect(types.filter((name) => name === 'message_start')).toEqual(['message_start']);
  expect([types[0], types.at(-2), types.at(-1)]).toEqual(['message_start', 'message_delta', 'message_stop']);
  let blocks = 0;
  let open: string | undefined;
  for (const { event, data } of events) {
    const value = JSON.parse(data);
    expect(value.type).toBe(event);
    if (event === 'message_start') expect(value.message).toMatchObject({ model, content: [], stop_reason: null });
    if (event === 'message_delta') answer.finish = value.delta.stop_reason;
    if (!event.startsWith('content_block')) continue;
    expect(value.index).toBe(blocks);
    expect(open === undefined).toBe(event === 'content_block_start');
    if (event === 'content_block_start') {
      open = value.content_block.type;
      const { id, name } = value.content_block;
      if (open === 'tool_use') answer.calls.push({ id, name, arguments: '' });
    } else if (event === 'content_block_stop') {
      open = undefined;
      blocks += 1;
    } else {
      const { type, text, thinking, partial_json } = value.delta;
      const expected = {
        text_delta: 'text',
        thinking_delta: 'thinking',
        signature_delta: 'thinking',
        input_json_delta: 'tool_use',
      };
      expect(Object.entries(expected).find(([name]) => name === type)?.[1]).toBe(open);
      answer.text += text ?? '';
      answer.thinking += thinking ?? '';
      const call = answer.calls.at(-1);
      if (partial_json !== undefined && call) call.arguments += partial_json;
    }
  }
  return answer;
}

/** A call without arguments has an empty object in completions style, and nothing in messages style. */
function comparable(answer: CollectedAnswer): CollectedAnswer {
  return { ...answer, calls: answer.calls.map((call) => ({ ...call, arguments: call.arguments || '{}' })) };
}

const styles: readonly Style[] = ['completions', 'messages'];
const upstreams: readonly WireStyle[] = [...styles, 'responses', 'gemini', 'converse'];
const cells = styles.flatMap((caller) => upstreams.map((upstream) => [caller, upstream] as const));
const ends = {
  completions: '"finish_reason":"',
  messages: '"type":"message_stop"',
  responses: '"type":"response.completed"',
  gemini: '"finishReason":"',
  converse: '"stopReason":"',
};
const cutPlaces = fc.array(fc.nat(4_000), { maxLength: 40 });

describe.each(cells)('a stream for a caller of %s style from an upstream of %s style', (caller, upstream) => {
  const streams = fc.tuple(scripts(upstream), framings);

  test('T42, T33: arrives without a changed character, however it is cut, and each push sends whole events', () => {
    fc.assert(
      fc.property(streams, cutPlaces, ([script, framing], cuts) => {
        const bytes = Buffer.from(onWire(upstream, script, framing));
        const relay = relayOf(caller, upstream);
        const pushes = run(relay, bytes, cuts);
        expect(relay.failure).toBeUndefined();
        expect(relay.is_complete).toBe(true);
        const sent = pushes.join('');
        expect(comparable(collect(caller, sent))).toEqual(comparable(answerOf(script, caller)));
        for (const push of pushes) eventsIn(push);
        const untouched = bytes
          .toString()
          .replaceAll(upstream_model, model)
          .replaceAll(/"(chatcmpl-|msg_|resp_)1"/g, '"$1req_1"');
        expect(sent).toBe(caller === upstream ? untouched : sentFor(relayOf(caller, upstream), bytes));
        expect(relay.usage).toMatchObject({ input_tokens: 10, output_tokens: 5 });
      }),
      { numRuns: depth(30, 100) },
    );
  });

  test('T42: arrives with every kind of content at every single cut', () => {
    const script = [
      { say: 'thinking', text: 'Größe 😀' },
      { say: 'signature', text: 'c2ln' },
      { say: 'text', text: '水は😀\n' },
      { say: 'call', index: 0, name: 'look' },
      { say: 'arguments', index: 0, text: '{"city":"Łó' },
      { say: 'arguments', index: 0, text: 'dź"}' },
      { say: 'call', index: 1, name: 'wait' },
    ] as const;
    for (const end of ['\n', '\r\n', '\r']) {
      const bytes = Buffer.from(onWire(upstream, script, { end, space: '', comments: true, spread: false }));
      const whole = sentFor(relayOf(caller, upstream), bytes);
      expect(comparable(collect(caller, whole))).toEqual(comparable(answerOf(script, caller)));
      expect(sentFor(relayOf(caller, upstream), bytes, Array.from(bytes.keys()).slice(1))).toBe(whole);
      const step = end === '\n' ? 1 : 4;
      for (let at = 1; at < bytes.length; at += step)
        expect(sentFor(relayOf(caller, upstream), bytes, [at])).toBe(whole);
    }
  });

  test('T47: sends nothing before the first content, whatever comes', () => {
    fc.assert(
      fc.property(streams, ([script, framing]) => {
        const bytes = Buffer.from(onWire(upstream, script, framing));
        const relay = relayOf(caller, upstream);
        for (const byte of bytes) {
          const sent = relay.push(Buffer.from([byte]));
          if (relay.has_content) return;
          expect(sent).toBeUndefined();
        }
        throw new Error('a stream with content has shown none');
      }),
      { numRuns: depth(15, 50) },
    );
  });

  test('T26: never ends cleanly when it is cut at any byte, and sends whole events only', () => {
    fc.assert(
      fc.property(streams, ([script, framing]) => {
        const bytes = Buffer.from(onWire(upstream, script, framing));
        const whole = sentFor(relayOf(caller, upstream), bytes);
        // JSON over several lines has a space behind its colons.
        const complete_at = bytes.toString('latin1').search(new RegExp(ends[upstream].replace(':', ': ?')));
        for (let to = 0; to < bytes.length; to += 1 + Math.floor(bytes.length / 200)) {
          const relay = relayOf(caller, upstream);
          const sent = sentFor(relay, bytes.subarray(0, to));
          eventsIn(sent);
          expect(relay.failure === undefined).toBe(relay.is_complete);
          expect(relay.is_complete && to <= complete_at).toBe(false);
          if (relay.is_complete) continue;
          expect(sent).not.toMatch(/\[DONE\]|message_stop/);
          expect(eventsIn(whole).slice(0, eventsIn(sent).length)).toEqual(eventsIn(sent));
        }
      }),
      { numRuns: depth(3, 6) },
    );
  });

  test('T43: has no content in comments and pings, and no event is written into another', () => {
    const relay = relayOf(caller, upstream);
    expect(relay.push(Buffer.from(': ping\n\n: ping\n\n'))).toBeUndefined();
    const ping = upstream === 'messages' ? 'event: ping\ndata: {"type":"ping"}\n\n' : 'data:\n\n';
    expect(relay.push(Buffer.from(ping))).toBeUndefined();
    expect(relay.has_content).toBe(false);
  });

  test('T45: relays a frame of 10 MB whole', () => {
    const text = '水'.repeat(3_333_333);
    const bytes = Buffer.from(
      onWire(upstream, [{ say: 'text', text }], { end: '\n', space: ' ', comments: false, spread: false }),
    );
    const cuts = Array.from({ length: Math.floor(bytes.length / 65_536) }, (_, index) => (index + 1) * 65_536);
    expect(collect(caller, sentFor(relayOf(caller, upstream), bytes, cuts)).text === text).toBe(true);
  });

  test('accepts a last event without its empty line, and ignores what follows the end', () => {
    const script = [{ say: 'text', text: 'Hi' }] as const;
    const framing = { end: '\n', space: ' ', comments: false, spread: false };
    const wire = onWire(upstream, script, framing);
    const relay = relayOf(caller, upstream);
    expect(collect(caller, sentFor(relay, Buffer.from(wire.trimEnd())))).toEqual(answerOf(script, caller));
    expect([relay.is_complete, relay.failure]).toEqual([true, undefined]);
    if (upstream === 'gemini') return; // where nothing but the end of the connection is the end
    const late = relayOf(caller, upstream);
    const more = `${wire}data: {"type":"error","error":{"message":"late"}}\n\ndata: [DONE]\n\ndata: oops\n\n`;
    expect(collect(caller, sentFor(late, Buffer.from(more)))).toEqual(answerOf(script, caller));
    expect([late.is_complete, late.failure]).toEqual([true, undefined]);
  });

  test('is unharmed by a byte order mark and empty data lines, also after a heartbeat', () => {
    const script = [{ say: 'text', text: 'Hi' }] as const;
    const wire = onWire(upstream, script, { end: '\n', space: ' ', comments: false, spread: false });
    const sent = sentFor(
      relayOf(caller, upstream),
      Buffer.from(`\uFEFFdata:\n\n${wire.replace('\n\n', '\n\ndata: \n\n')}`),
    );
    expect(sent).not.toContain('\uFEFF');
    expect(eventsIn(sent).some(({ data }) => data === '')).toBe(false);
    expect(collect(caller, sent)).toEqual(answerOf(script, caller));
  });
});

const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: upstream_model, choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const done = `${chunk({}, 'tool_calls')}data: [DONE]\n\n`;
const begin = (index: number | undefined, id: string | undefined, name: string, json = '') => ({
  ...(index !== undefined && { index }),
  ...(id !== undefined && { id }),
  type: 'function',
  function: { name, arguments: json },
});
const more = (index: number, json: string) => ({ index, function: { arguments: json } });
const calls = (...tool_calls: object[]) => chunk({ tool_calls });

describe('the model and the id in the frames of a stream that keeps its style', () => {
  const before = ['', '"model_x":"model",', '"choices":[{"model":"inner"}],', '"text":"\\"model\\":",'];
  const values = ['"a"', '"ab"', '"a\\""', '1', '12', 'null', undefined];
  const frames = before.flatMap((first) =>
    values.flatMap((value) =>
      ['', '"id":"a",', '"id":"b",'].map(
        (id) => `{${first}${id}${value === undefined ? '' : `"model":${value},`}"choices":[]}`,
      ),
    ),
  );

  test("replace the upstream's own, whatever the frame before contained", () => {
    const pairs = frames.flatMap((one) => frames.flatMap((other) => [one, other]));
    const own = { id: 'chatcmpl-req_1', model };
    const relay = relayOf('completions', 'completions');
    relay.push(Buffer.from(chunk({ content: 'begun' })));
    for (const data of pairs) {
      const sent = relay.push(Buffer.from(`data: ${data}\n\n`))?.toString();
      expect(sent, data).toBe(`data: ${withMembers(Buffer.from(data), own).toString()}\n\n`);
    }
  });
});

describe('overlapping tool calls become separate blocks for callers of messages style', () => {
  const a = { id: 'a', name: 'x', arguments: '{"n":1}' };
  const b = { id: 'b', name: 'y', arguments: '{"n":22}' };
  const c = { id: 'c', name: 'z', arguments: '{}' };
  test.each([
    [
      'one piece of each in turn',
      [
        calls(begin(0, 'a', 'x'), begin(1, 'b', 'y')),
        calls(more(0, '{"n"'), more(1, '{"n":2')),
        calls(more(0, ':1}'), more(1, '2}')),
      ],
      [a, b],
    ],
    [
      'a third begins while the second still runs',
      [
        calls(begin(0, 'a', 'x')),
        calls(begin(1, 'b', 'y')),
        calls(more(0, '{"n":1}')),
        calls(more(1, '{"n":2')),
        calls(begin(2, 'c', 'z', '{}')),
        calls(more(1, '2}')),
      ],
      [a, b, c],
    ],
    [
      'the first without arguments',
      [calls(begin(0, 'a', 'x')), calls(begin(1, 'b', 'y', '{"n":22}'))],
      [{ ...a, arguments: '' }, b],
    ],
    [
      'text between the arguments',
      [calls(begin(0, 'a', 'x', '{"n"')), chunk({ content: '\n' }), calls(more(0, ':1}'))],
      [a],
    ],
    [
      'thinking between the arguments',
      [calls(begin(0, 'a', 'x', '{"n"')), chunk({ reasoning_content: 'Hm' }), calls(more(0, ':1}'))],
      [a],
    ],
    [
      'an empty list of calls beside text',
      [chunk({ content: 'Hi', tool_calls: [] }), calls(begin(0, 'a', 'x', '{"n":1}'))],
      [a],
    ],
    [
      'calls without an index',
      [calls(begin(undefined, 'a', 'x', '{"n":1}')), calls(begin(undefined, 'b', 'y', '{"n":22}'))],
      [a, b],
    ],
    ['all calls with the index 0', [calls(begin(0, 'a', 'x', '{"n":1}'), begin(0, 'b', 'y', '{"n":22}'))], [a, b]],
    ['the name in each piece', [calls(begin(0, 'a', 'x', '{"n"')), calls(begin(0, 'a', 'x', ':1}'))], [a]],
    [
      'arguments as an object',
      [calls({ index: 0, id: 'a', type: 'function', function: { name: 'x', arguments: { n: 1 } } })],
      [a],
    ],
  ])('in the case: %s', (_, parts, expected) => {
    const relay = relayOf('messages', 'completions');
    const answer = collect('messages', sentFor(relay, Buffer.from(parts.join('') + done)));
    expect(relay.failure).toBeUndefined();
    expect(answer).toMatchObject({ calls: expected, finish: 'tool_use' });
  });

  test('beside two signed thoughts, which are two blocks', () => {
    const detail = (text: string) =>
      chunk({ reasoning_details: [{ type: 'reasoning.text', text, signature: `of ${text}` }] });
    const sent = sentFor(
      relayOf('messages', 'completions'),
      Buffer.from(detail('one') + detail('two') + chunk({ content: 'x' }) + done),
    );
    expect(sent.match(/"type":"thinking","thinking":""/g)).toHaveLength(2);
    collect('messages', sent);
  });
});

describe('an unusual upstream stream', () => {
  const start = `data: {"type":"message_start","message":{"id":"m","model":"${upstream_model}","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}\n\n`;
  const rest = [
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } },
    { type: 'message_stop' },
  ].map((event) => `data: ${JSON.stringify(event)}\n\n`);

  test('without event names gets the names that the SDKs of messages style need', () => {
    const sent = sentFor(
      relayOf('messages', 'messages'),
      Buffer.from(`${start.replace('"content"', '"role":"assistant","stop_reason":null,"content"')}${rest.join('')}`),
    );
    expect(collect('messages', sent)).toMatchObject({ text: 'Hi', finish: 'end_turn' });
  });

  test('with content in parts has content, which callers get as text', () => {
    const parts = chunk({ content: [{ type: 'text', text: 'Hi' }] }) + chunk({}, 'stop');
    const same = relayOf('completions', 'completions');
    const sent = same.push(Buffer.from(parts));
    expect(collect('completions', String(sent) + String(same.end()))).toMatchObject({ text: 'Hi', finish: 'stop' });
    expect(same.delivered).toEqual({ ascii_bytes: 2, other_bytes: 0 });
    expect(collect('messages', sentFor(relayOf('messages', 'completions'), Buffer.from(parts))).text).toBe('Hi');
  });

  test('T30: passes its usage on to callers who requested it, and to nobody else', () => {
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    const last = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: upstream_model, choices: [], usage })}\n\n`;
    const bytes = Buffer.from(`${chunk({ content: 'Hi' })}${chunk({}, 'stop')}${last}data: [DONE]\n\n`);
    for (const upstream of styles) {
      const wire =
        upstream === 'completions'
          ? bytes
          : Buffer.from(
              onWire('messages', [{ say: 'text', text: 'Hi' }], {
                end: '\n',
                space: ' ',
                comments: false,
                spread: false,
              }),
            );
      const events = eventsIn(sentFor(relayOf('completions', upstream), wire));
      expect(JSON.parse(events.at(-2)?.data ?? '')).toMatchObject({ choices: [], model, usage });
      expect(new Set(events.slice(0, -1).map(({ data }) => JSON.parse(data).id)).size).toBe(1);
      const relay = relayOf('completions', upstream, { wants_usage: false });
      const unasked = eventsIn(sentFor(relay, wire));
      for (const { data } of unasked.slice(0, -1)) {
        expect(JSON.parse(data).choices).toHaveLength(1);
        expect(JSON.parse(data)).not.toHaveProperty('usage');
      }
      expect(relay.usage).toMatchObject({ input_tokens: 10, output_tokens: 5 });
    }
  });

  test('in translation begins with no output tokens, because some callers add them to those of the end', () => {
    const [first] = eventsIn(sentFor(relayOf('messages', 'completions'), Buffer.from(chunk({ content: 'Hi' }) + done)));
    expect(JSON.parse(first?.data ?? '').message.usage).toMatchObject({ input_tokens: 7, output_tokens: 0 });
  });

  test('T27: has its cached tokens counted once, whether they are reported at its start or its end', () => {
    const usage = {
      input_tokens: 3,
      cache_creation_input_tokens: 12_304,
      cache_read_input_tokens: 0,
      output_tokens: 550,
    };
    const wire = onWire('messages', [{ say: 'text', text: 'Hi' }], {
      end: '\n',
      space: ' ',
      comments: false,
      spread: false,
    });
    const shown_texts = wire
      .replace('"usage":{"output_tokens":5}', `"usage":${JSON.stringify(usage)}`)
      .replace('"input_tokens":10', '"input_tokens":3,"cache_creation_input_tokens":12304');
    for (const caller of styles) {
      const relay = relayOf(caller, 'messages');
      const sent = sentFor(relay, Buffer.from(shown_texts));
      expect(relay.usage).toMatchObject({
        input_tokens: 3,
        cache_write_tokens: 12_304,
        cached_input_tokens: 0,
        output_tokens: 550,
      });
      const usage_events = {
        completions: '"prompt_tokens":12307,"completion_tokens":550,"total_tokens":12857',
        messages: JSON.stringify(usage),
      };
      expect(sent).toContain(usage_events[caller]);
    }
  });
});
