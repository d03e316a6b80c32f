import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../src/catalog/model.ts';
import { readQuirks, type Quirks } from '../../src/styles/quirks.ts';
import { messages as messages_style } from '../../src/styles/messages/codec.ts';
import { countedBody } from '../../src/styles/messages/passthrough.ts';
import { requests } from './samples.ts';
import { readAsk, upstreamBody, type Style } from './by-name.ts';

const hi = { role: 'user', content: 'Hi' };
const sealed = { google: { thought_signature: 'c2VhbA==' } };

function sent(style: Style, body: JsonObject, quirks: Quirks = {}, max_tokens = 4000): JsonObject {
  return upstreamBody(readAsk(style, body), { style, model: 'upstream', max_tokens, quirks }).body;
}

const chat = (fields: JsonObject): JsonObject => ({ model: 'm', messages: [hi], ...fields });
const messages = (fields: JsonObject): JsonObject => ({ model: 'm', max_tokens: 1000, messages: [hi], ...fields });

describe('a body for an upstream of the same style', () => {
  it.each<[Style, JsonObject]>([
    ['completions', chat({ max_tokens: 50 })],
    ['messages', messages({})],
  ])('of %s changes only in the name of the model', (style, body) => {
    const odd = {
      ...body,
      unknown: { deep: [null, { a: -0.5 }] },
      temperature: null,
      cache_control: { type: 'ephemeral' },
      messages: [{ ...hi, new_field: 1 }, { role: 'assistant', content: [{ type: 'new_block', x: null }] }, hi],
    };
    expect(sent(style, odd)).toEqual({ ...odd, model: 'upstream' });
  });

  it('T37: keeps thinking, signatures and redacted thinking unchanged', () => {
    const content = [
      { type: 'thinking', thinking: '', signature: 'EqQBCgIYAhIM+/=' },
      { type: 'redacted_thinking', data: 'x' },
      { type: 'tool_use', id: 't', name: 'f', input: {} },
    ];
    const turns = [
      hi,
      { role: 'assistant', content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't' }] },
    ];
    expect(sent('messages', messages({ messages: turns }))['messages']).toEqual(turns);
  });

  it('T38: loses thinking of another upstream, unsigned or with its own signature, and nothing else', () => {
    const thinking = { type: 'thinking', thinking: 'b', signature: 's' };
    const turns = [
      hi,
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'a', signature: '' },
          { type: 'thinking', thinking: 'c', signature: 'gemini:toolu_1:c2VhbA==' },
          thinking,
          { type: 'text', text: 'A' },
        ],
      },
      hi,
      { role: 'assistant', content: [{ type: 'thinking', thinking: 'a' }] },
      hi,
    ];
    const expected = [hi, { role: 'assistant', content: [thinking, { type: 'text', text: 'A' }] }, hi, hi];
    expect(sent('messages', messages({ messages: turns }))['messages']).toEqual(expected);
  });

  it('for counting leaves out fields that upstreams refuse there', () => {
    const tools = [{ name: 'f', input_schema: {} }];
    const body = {
      model: 'm',
      messages: [hi],
      tools,
      stream: true,
      metadata: {},
      thinking: { type: 'adaptive' },
      new: 1,
    };
    const ask = readAsk('messages', body, 'count');
    const counted = { model: 'up', messages: [hi], tools, new: 1 };
    const target = { style: messages_style, model: 'up', max_tokens: 1, quirks: {} };
    expect(countedBody(ask, target)).toEqual({ ...counted, thinking: { type: 'adaptive' } });
    expect(countedBody(ask, { ...target, quirks: { thinking: 'budget' } })).toEqual(counted);
  });

  it("never changes the caller's object", () => {
    fc.assert(
      fc.property(fc.constantFrom(...requests.messages), fc.integer({ min: 1, max: 9000 }), (body, max_tokens) => {
        const before = JSON.stringify(body);
        sent('messages', body, { thinking: 'adaptive', sampling: false }, max_tokens);
        expect(JSON.stringify(body)).toBe(before);
      }),
    );
  });
});

describe('the limit of the output', () => {
  it.each<[string, JsonObject, Quirks, JsonObject]>([
    ['stays where the caller wrote it', { max_completion_tokens: 50 }, {}, { max_completion_tokens: 50 }],
    ['is cut to what the model may write', { max_tokens: 9000 }, {}, { max_tokens: 4000 }],
    ['is given to a caller who set none', {}, {}, { max_tokens: 4000 }],
    ['is set in place of null', { max_tokens: null }, {}, { max_tokens: 4000 }],
    [
      'stands once: both names are an error upstream',
      { max_tokens: 5, max_completion_tokens: 6 },
      {},
      { max_completion_tokens: 6 },
    ],
    [
      'moves to where the model wants it',
      { max_tokens: 5 },
      { max_tokens_field: 'max_completion_tokens' },
      { max_completion_tokens: 5 },
    ],
    [
      'moves back for servers that know the old name',
      { max_completion_tokens: 5 },
      { max_tokens_field: 'max_tokens' },
      { max_tokens: 5 },
    ],
  ])('%s', (_, fields, quirks, expected) => {
    expect(sent('completions', chat(fields), quirks)).toEqual({ model: 'upstream', messages: [hi], ...expected });
  });

  it('exceeds the thinking budget, or thinking is left out', () => {
    const body = messages({
      max_tokens: 32_000,
      thinking: { type: 'enabled', budget_tokens: 31_999, display: 'omitted' },
    });
    expect(sent('messages', body, {}, 8000)['thinking']).toEqual({
      type: 'enabled',
      budget_tokens: 7744,
      display: 'omitted',
    });
    expect(sent('messages', body, {}, 1100)).not.toHaveProperty('thinking');
    expect(sent('messages', body, {}, 64_000)).toEqual({ ...body, model: 'upstream' });
  });

  it.each(['reasoning', 'thinking'])('exceeds the budget that some servers count beside it: %s', (holder) => {
    const name = holder === 'reasoning' ? 'max_tokens' : 'budget_tokens';
    const body = chat({ max_tokens: 9000, [holder]: { [name]: 8000, more: true } });
    const quirks = { reasoning_object: true };
    expect(sent('completions', body, quirks, 9000)[holder]).toEqual({ [name]: 8000, more: true });
    expect(sent('completions', body, quirks, 4000)[holder]).toEqual({ [name]: 3744, more: true });
    expect(sent('completions', body, quirks, 300)[holder]).toEqual({ [name]: 150, more: true });
  });

  it('of 0 warms a cache', () => {
    expect(sent('messages', messages({ max_tokens: 0 }))['max_tokens']).toBe(0);
  });
});

describe('T30: usage in a stream', () => {
  it.each<[string, JsonObject, Quirks, Json | undefined]>([
    ['is asked for', {}, {}, { include_usage: true }],
    [
      'is asked for although the caller said no',
      { stream_options: { include_usage: false, include_obfuscation: false } },
      {},
      { include_usage: true, include_obfuscation: false },
    ],
    [
      'is not asked of upstreams that refuse it',
      { stream_options: { include_usage: true } },
      { stream_options: false },
      undefined,
    ],
  ])('%s', (_, fields, quirks, expected) => {
    expect(sent('completions', chat({ stream: true, ...fields }), quirks)['stream_options']).toEqual(expected);
  });

  it('needs no request in whole responses', () => {
    expect(sent('completions', chat({}))).not.toHaveProperty('stream_options');
  });
});

describe('a route whose model differs', () => {
  const developer = { role: 'developer', content: 'A' };
  const effort = { output_config: { effort: 'medium' } };
  it.each<[string, Style, JsonObject, Quirks, JsonObject, string[]]>([
    [
      'no developer messages',
      'completions',
      { messages: [developer, hi] },
      { developer_role: false },
      { messages: [{ role: 'system', content: 'A' }, hi] },
      [],
    ],
    [
      'no thinking in messages',
      'completions',
      { messages: [{ role: 'assistant', content: 'A', reasoning_content: 'x', reasoning_details: [] }, hi] },
      { reasoning_field: 'none' },
      { messages: [{ role: 'assistant', content: 'A' }, hi] },
      [],
    ],
    [
      'no seals of calls either',
      'completions',
      {
        messages: [{ role: 'assistant', extra_content: sealed, tool_calls: [{ id: 'a', extra_content: sealed }] }, hi],
      },
      { reasoning_field: 'none' },
      { messages: [{ role: 'assistant', tool_calls: [{ id: 'a' }] }, hi] },
      [],
    ],
    ['no sampling', 'completions', { temperature: 1, top_p: 1 }, { sampling: false }, {}, ['temperature', 'top_p']],
    ['no sampling', 'messages', { temperature: 1, top_k: 1 }, { sampling: false }, {}, ['temperature', 'top_k']],
    ['no effort', 'completions', { reasoning_effort: 'low' }, { reasoning_effort: false }, {}, ['reasoning_effort']],
    ['no thinking', 'messages', { thinking: { type: 'adaptive' } }, { thinking: 'none' }, {}, ['thinking']],
    ['always thinking', 'messages', { thinking: { type: 'disabled' } }, { thinking: 'always' }, {}, ['thinking']],
    [
      'adaptive thinking',
      'messages',
      { thinking: { type: 'enabled', budget_tokens: 9000 } },
      { thinking: 'adaptive' },
      { thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } },
      [],
    ],
    [
      'thinking by a budget',
      'messages',
      { max_tokens: 3000, thinking: { type: 'adaptive' }, ...effort },
      { thinking: 'budget' },
      { thinking: { type: 'enabled', budget_tokens: 2744 } },
      [],
    ],
  ])('is sent %s (%s)', (_, style, fields, quirks, expected, absent) => {
    const got = sent(style, style === 'messages' ? messages(fields) : chat(fields), quirks);
    expect(got).toMatchObject(expected);
    expect(JSON.stringify(got)).not.toContain('reasoning_');
    expect(Object.keys(got).filter((field) => absent.includes(field))).toEqual([]);
  });

  it('has these differences in its options', () => {
    const options = { thinking: 'budget', stream_options: false, tool_id_length_max: 64, else: 1 };
    expect(readQuirks(options)).toEqual({
      quirks: { thinking: 'budget', stream_options: false, tool_id_length_max: 64 },
      problems: [],
    });
    const wrong = readQuirks({ thinking: 'yes', tool_id_length_max: 5, sampling: 1 });
    expect(wrong.quirks).toEqual({});
    expect(wrong.problems.map(({ field }) => field)).toEqual(['thinking', 'sampling', 'tool_id_length_max']);
  });
});
