import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { SseSplitter } from '../../src/net/sse.ts';
import { PartialOutput } from '../../src/styles/responses/partial-output.ts';
import { objectOf } from '../../src/styles/stream.ts';
import { openRelay } from './by-name.ts';
import { framings, onWire, scripts, type WireStyle } from './wire.ts';

function eventsOf(style: WireStyle, sent: string): JsonObject[] {
  const relay = openRelay({
    caller: 'responses',
    upstream: style,
    model: 'acme/chat',
    wants_usage: true,
    request_id: 'req_1',
    input_tokens_estimated: 7,
    created: 1,
    line_bytes_max: 64_000_000,
  });
  const parts = [relay.push(Buffer.from(sent)), relay.end()];
  const splitter = new SseSplitter(64_000_000);
  return parts.flatMap((bytes) =>
    splitter.push(bytes ?? Buffer.alloc(0)).flatMap(({ data }) => (data === undefined ? [] : [objectOf(data)])),
  );
}

function outputOf(events: readonly JsonObject[]): JsonObject[] {
  const reader = new PartialOutput();
  for (const event of events) reader.read(event);
  return reader.output();
}

/** All text in an output: what was said, thought, and written into calls. */
function textIn(output: readonly unknown[]): string {
  type Item = { content?: { text?: string }[]; summary?: { text?: string }[]; arguments?: string };
  return (output as readonly Item[])
    .map(
      ({ content = [], summary = [], arguments: json = '' }) =>
        [...summary, ...content].map(({ text = '' }) => text).join('') + json,
    )
    .join('');
}

describe('the output of a stream so far', () => {
  it.each(['completions', 'messages', 'gemini'] as const)(
    'from %s is the whole one at its end, and has at any place the text that has come, with nothing in progress',
    (style) => {
      fc.assert(
        fc.property(scripts(style), framings, fc.nat(), (script, framing, place) => {
          const events = eventsOf(style, onWire(style, script, framing));
          const { response } = events.at(-1) ?? {};
          expect(response).toMatchObject({ status: 'completed', output: outputOf(events) });
          const seen = events.slice(0, place % events.length);
          const output = outputOf(seen);
          expect(JSON.stringify(output)).not.toContain('in_progress');
          // An item that is done may have more than its pieces: a call without arguments has "{}".
          const done_at = seen.findIndex(({ type }) => type === 'response.output_item.done');
          const early = done_at === -1 ? seen : seen.slice(0, done_at);
          const pieces = early.map(({ type, delta }) => (String(type).endsWith('.delta') ? String(delta) : ''));
          expect(textIn(outputOf(early))).toHaveLength(pieces.join('').length);
        }),
        { numRuns: 200 },
      );
    },
  );

  const place = { output_index: 0, item_id: 'i' };
  const added = (item: JsonObject) => ({ type: 'response.output_item.added', ...place, item: { id: 'i', ...item } });
  it.each<[string, JsonObject[], JsonObject[]]>([
    [
      'a call of a function',
      [
        added({ type: 'function_call', status: 'in_progress', call_id: 'c', name: 'f', arguments: '' }),
        { type: 'response.function_call_arguments.delta', ...place, delta: '{"a"' },
        { type: 'response.function_call_arguments.delta', ...place, delta: ':1' },
      ],
      [{ id: 'i', type: 'function_call', status: 'incomplete', call_id: 'c', name: 'f', arguments: '{"a":1' }],
    ],
    [
      'a call of a custom tool',
      [
        added({ type: 'custom_tool_call', call_id: 'c', name: 'f', input: '' }),
        { type: 'response.custom_tool_call_input.delta', ...place, delta: '*** Begin' },
      ],
      [{ id: 'i', type: 'custom_tool_call', status: 'incomplete', call_id: 'c', name: 'f', input: '*** Begin' }],
    ],
    [
      'a refusal, of which nobody said that it begins',
      [{ type: 'response.refusal.delta', ...place, content_index: 0, delta: 'No' }],
      [
        {
          id: 'i',
          type: 'message',
          status: 'incomplete',
          role: 'assistant',
          content: [{ type: 'refusal', refusal: 'No' }],
        },
      ],
    ],
    [
      'a summary of two parts',
      [
        added({ type: 'reasoning', summary: [] }),
        { type: 'response.reasoning_summary_text.delta', ...place, summary_index: 0, delta: 'Hm' },
        { type: 'response.reasoning_summary_text.delta', ...place, summary_index: 1, delta: 'So' },
      ],
      [
        {
          id: 'i',
          type: 'reasoning',
          status: 'incomplete',
          summary: [
            { type: 'summary_text', text: 'Hm' },
            { type: 'summary_text', text: 'So' },
          ],
        },
      ],
    ],
    [
      'a text with a source',
      [
        added({ type: 'message', status: 'in_progress', role: 'assistant', content: [] }),
        { type: 'response.output_text.delta', ...place, content_index: 0, delta: 'See' },
        {
          type: 'response.output_text.annotation.added',
          ...place,
          content_index: 0,
          annotation: { type: 'url_citation', url: 'https://a.example' },
        },
      ],
      [
        {
          id: 'i',
          type: 'message',
          status: 'incomplete',
          role: 'assistant',
          content: [
            {
              type: 'output_text',
              text: 'See',
              annotations: [{ type: 'url_citation', url: 'https://a.example' }],
              logprobs: [],
            },
          ],
        },
      ],
    ],
    [
      'a search that has not come back',
      [added({ type: 'web_search_call', status: 'in_progress' })],
      [{ id: 'i', type: 'web_search_call', status: 'failed' }],
    ],
    [
      'a message without a word',
      [added({ type: 'message', status: 'in_progress', role: 'assistant', content: [] })],
      [],
    ],
    [
      'events that are none',
      [{ type: 'response.output_item.added', item: 'x' }, { type: 'response.output_text.annotation.added' }, {}],
      [],
    ],
  ])('has %s', (_, events, output) => {
    expect(outputOf(events)).toEqual(output);
  });
});
