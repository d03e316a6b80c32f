import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import type { AnswerOptions } from '../../src/styles/codec.ts';
import type { Usage } from '../../src/styles/conversation.ts';
import { withMembers } from '../../src/styles/model-name.ts';
import { chargedUsage } from '../../src/styles/usage.ts';
import { plainest_answer } from './carried/answers.ts';
import { plainest } from './carried/row.ts';
import { readAsk, readUsage, renderAnswer, upstreamBody, type Style } from './by-name.ts';

const options: AnswerOptions = { model: 'acme/public', request_id: 'req_1', created: 5, input_tokens_estimated: 3 };
const ask = (style: Style, fields: JsonObject = {}) => readAsk(style, { ...plainest[style], ...fields });
/** All kinds, if input and output were told. */
function wholeUsage(reported: Partial<Usage> | undefined): Usage | undefined {
  const { usage, is_counted } = chargedUsage(reported, { ascii_bytes: 0, other_bytes: 0 }, { input_tokens_counted: 0 });
  return is_counted ? undefined : usage;
}

const bytesOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

describe('a response of the same style', () => {
  it.each([
    ['as JSON.stringify writes it', '{"id":"1","model":"up","a":[1]}', '{"id":"1","model":"acme/public","a":[1]}'],
    [
      'with spaces, escapes and numbers as they were',
      ' { "id" : "\\u0141\\"\\\\" , "model"\n:\t"u\\"p" , "n" : 1.0e+2 } ',
      ' { "id" : "\\u0141\\"\\\\" , "model"\n:\t"acme/public" , "n" : 1.0e+2 } ',
    ],
    [
      'with other models further down',
      '{"a":{"model":"x"},"b":["model"],"model":"up"}',
      '{"a":{"model":"x"},"b":["model"],"model":"acme/public"}',
    ],
    ['with "model" as a value', '{"a":"model","model":"up"}', '{"a":"model","model":"acme/public"}'],
    ['with null for a name', '{"model":null,"a":1}', '{"model":"acme/public","a":1}'],
    ['without a name', '{"a":1}', '{"model":"acme/public","a":1}'],
    ['empty', '{ }', '{"model":"acme/public" }'],
    ['with a byte order mark', '\ufeff{"model":"up"}', '\ufeff{"model":"acme/public"}'],
  ])('%s keeps every other byte', (_, answer, expected) => {
    expect(withMembers(Buffer.from(answer), { model: 'acme/public' }).toString()).toBe(expected);
  });

  it.each([
    ['in any order', '{"model":"up","x":1,"id":"1"}', '{"model":"acme/public","x":1,"id":"own"}'],
    [
      'with ids further down',
      '{"a":{"id":"x"},"id":"1","model":"up"}',
      '{"a":{"id":"x"},"id":"own","model":"acme/public"}',
    ],
    ['with numbers and null', '{"id":12,"model":null}', '{"id":"own","model":"acme/public"}'],
    ['without an id', '{"model":"up"}', '{"id":"own","model":"acme/public"}'],
    ['without either', '{"a":1}', '{"id":"own","model":"acme/public","a":1}'],
    ['with "id" as a value', '{"a":"id","id":"1","model":"up"}', '{"a":"id","id":"own","model":"acme/public"}'],
  ])('%s gets an id of our own', (_, answer, expected) => {
    expect(withMembers(Buffer.from(answer), { id: 'own', model: 'acme/public' }).toString()).toBe(expected);
  });

  it('with an object for its id or its model is none', () => {
    for (const name of ['id', 'model']) {
      const answer = bytesOf({ ...plainest_answer.completions, [name]: {} });
      expect(() => renderAnswer(ask('completions'), 'completions', answer, options), name).toThrow('is none');
    }
  });

  it("with any content changes only in the model's name", () => {
    const rest = fc.dictionary(
      fc.string().filter((key) => key !== 'model'),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(rest, fc.string(), fc.string(), rest, fc.nat(3), (before, from, to, after, indent) => {
        const object = { ...before, model: from, ...after };
        const got = withMembers(Buffer.from(JSON.stringify(object, undefined, indent)), { model: to }).toString();
        expect(got).toBe(JSON.stringify({ ...object, model: to }, undefined, indent));
      }),
    );
  });

  it('is described by usage, finish reason, bytes and content', () => {
    const answer = {
      ...plainest_answer.completions,
      choices: [
        { index: 0, message: { content: 'Łódź', reasoning_content: 'Hm' }, finish_reason: 'length' },
        { index: 1, message: { content: '', tool_calls: [{ function: { name: 'f', arguments: '{}' } }] } },
      ],
      usage: { prompt_tokens: 5, completion_tokens: 2 },
    };
    const rendered = renderAnswer(ask('completions', { n: 2 }), 'completions', bytesOf(answer), options);
    expect(JSON.parse(rendered.bytes.toString())).toEqual({ ...answer, id: 'chatcmpl-req_1', model: 'acme/public' });
    expect(rendered).toMatchObject({
      upstream_id: 'up-1',
      finish: 'length',
      delivered: { ascii_bytes: 1 + 2 + 3, other_bytes: 6 },
      has_content: true,
      usage: { input_tokens: 5, output_tokens: 2 },
    });
  });

  it('has content if it has blocks of unknown types', () => {
    const answer = { ...plainest_answer.messages, content: [{ type: 'new_block' }] };
    expect(renderAnswer(ask('messages'), 'messages', bytesOf(answer), options).has_content).toBe(true);
  });

  it.each<[Style, JsonObject]>([
    ['completions', { choices: [{ message: { role: 'assistant', content: '' }, finish_reason: 'length' }] }],
    ['messages', { content: [], stop_reason: 'max_tokens' }],
  ])('of %s style without content says so', (style, fields) => {
    const answer = { ...plainest_answer[style], ...fields };
    const { has_content, delivered } = renderAnswer(ask(style), style, bytesOf(answer), options);
    expect({ has_content, delivered }).toEqual({ has_content: false, delivered: { ascii_bytes: 0, other_bytes: 0 } });
  });
});

describe('T40: an invalid response throws, whatever its status', () => {
  it.each<[Style, string]>([
    ['completions', '{"error":{"message":"connection lost"}}'],
    ['completions', '{"choices":[]}'],
    ['completions', '{"choices":[{"index":0}]}'],
    ['completions', '{"id":"x","choices":[{"message":{"content":"cut'],
    ['completions', '<html>Bad gateway</html>'],
    ['messages', '{"type":"error","error":{"type":"overloaded_error","message":"x"}}'],
    ['messages', '{"type":"message"}'],
    ['messages', ''],
    ['messages', '[]'],
    ['messages', '{"content":[],"model":{}}'],
  ])('in %s style: %s', (style, text) => {
    expect(() => renderAnswer(ask(style), style, Buffer.from(text), options)).toThrow(Error);
  });
});

describe('a JSON schema that became a tool', () => {
  const schema = { type: 'object', properties: { city: { type: 'string' } } };
  const schema_option = { response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } };

  it('comes back as text with finish_reason stop', () => {
    const request = ask('completions', schema_option);
    const target = {
      style: 'messages' as const,
      model: 'up',
      max_tokens: 100,
      quirks: { structured_output: 'tool' as const },
    };
    const { json_tool = '' } = upstreamBody(request, target);
    const content = [{ type: 'tool_use', id: 't', name: json_tool, input: { city: 'Łódź' } }];
    const answer = { ...plainest_answer.messages, content, stop_reason: 'tool_use' };
    const rendered = renderAnswer(request, 'messages', bytesOf(answer), { ...options, json_tool });
    expect(JSON.parse(rendered.bytes.toString())).toMatchObject({
      choices: [{ message: { content: '{"city":"Łódź"}' }, finish_reason: 'stop' }],
    });
    expect(rendered.finish).toBe('stop');
  });
});

it('tools in a response have the names that the caller sent', () => {
  const name = `mcp__server__${'x'.repeat(80)}`;
  const request = ask('messages', {
    tools: [{ name, input_schema: { type: 'object' } }],
    tool_choice: { type: 'tool', name },
  });
  const sent = upstreamBody(request, { style: 'completions', model: 'up', max_tokens: 100, quirks: {} });
  const [short = ''] = sent.tool_names?.keys() ?? [];
  expect(sent.body).toMatchObject({ tool_choice: { function: { name: short } } });
  expect(short).toMatch(/^[a-zA-Z0-9_-]{64}$/);
  const message = { tool_calls: [{ id: 'c', type: 'function', function: { name: short, arguments: '{}' } }] };
  const answer = { ...plainest_answer.completions, choices: [{ message, finish_reason: 'tool_calls' }] };
  const { bytes } = renderAnswer(request, 'completions', bytesOf(answer), {
    ...options,
    tool_names: sent.tool_names ?? new Map(),
  });
  expect(JSON.parse(bytes.toString())).toMatchObject({ content: [{ type: 'tool_use', name }] });
});

it('T36: finish_reason tool_calls without a call ends the turn, and a call without an id gets one', () => {
  const rendered = (message: JsonObject): unknown => {
    const answer = { ...plainest_answer.completions, choices: [{ message, finish_reason: 'tool_calls' }] };
    return JSON.parse(renderAnswer(ask('messages'), 'completions', bytesOf(answer), options).bytes.toString());
  };
  expect(rendered({ content: 'A' })).toMatchObject({ stop_reason: 'end_turn' });
  expect(rendered({ content: null, tool_calls: [] })).toMatchObject({ stop_reason: 'end_turn', content: [] });
  const nameless = { tool_calls: [{ function: { name: 'f', arguments: '' } }] };
  expect(rendered(nameless)).toMatchObject({
    stop_reason: 'tool_use',
    content: [{ id: expect.stringMatching(/^[a-zA-Z0-9_-]+$/), input: {} }],
  });
});

describe('the usage of a response', () => {
  it('T27: counts cached tokens once in both styles', () => {
    const messages = {
      input_tokens: 3,
      cache_creation_input_tokens: 12_304,
      cache_read_input_tokens: 0,
      output_tokens: 550,
    };
    expect(wholeUsage(readUsage('messages', messages))).toEqual({
      input_tokens: 3,
      cached_input_tokens: 0,
      cache_write_tokens: 12_304,
      cache_write_1h_tokens: 0,
      output_tokens: 550,
      reasoning_tokens: 0,
    });
    const cache_creation = { ephemeral_5m_input_tokens: 4, ephemeral_1h_input_tokens: 12_300 };
    expect(readUsage('messages', { ...messages, cache_creation })).toMatchObject({
      cache_write_tokens: 12_304,
      cache_write_1h_tokens: 12_300,
    });
    const details = { cached_tokens: 60, cache_write_tokens: 10 };
    const completions = { prompt_tokens: 100, completion_tokens: 5, prompt_tokens_details: details };
    expect(wholeUsage(readUsage('completions', completions))).toMatchObject({
      input_tokens: 30,
      cached_input_tokens: 60,
      cache_write_tokens: 10,
    });
  });

  it('T28: leaves unreported kinds absent, so that later events add them instead of zeros', () => {
    expect(readUsage('messages', { input_tokens: 5, cache_read_input_tokens: null, output_tokens: 1 })).toEqual({
      input_tokens: 5,
      output_tokens: 1,
    });
    expect(readUsage('messages', {})).toBeUndefined();
    expect(readUsage('completions', null)).toBeUndefined();
  });

  it.each<[string, JsonObject, object]>([
    [
      'a null count, which the total replaces',
      { prompt_tokens: 10, completion_tokens: null, total_tokens: 14 },
      { input_tokens: 10, output_tokens: 4 },
    ],
    [
      'more cached than there was',
      { prompt_tokens: 10, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 50 } },
      { input_tokens: 0, cached_input_tokens: 10 },
    ],
    [
      'names of another vendor',
      { prompt_tokens: 10, completion_tokens: 1, cache_read_input_tokens: 4, cache_creation_input_tokens: 2 },
      { input_tokens: 4, cached_input_tokens: 4, cache_write_tokens: 2 },
    ],
  ])('is corrected for %s', (_, fields, expected) => {
    expect(readUsage('completions', fields)).toMatchObject(expected);
  });

  it.each([-1, 0.5, 1e308, 2e9, '7', Number.NaN])('is ignored with %s tokens', (count) => {
    const fields = JSON.parse(
      JSON.stringify({ prompt_tokens: count, completion_tokens: count, input_tokens: count }),
    ) as JsonObject;
    expect(wholeUsage(readUsage('completions', fields))).toBeUndefined();
    expect(wholeUsage(readUsage('messages', fields))).toBeUndefined();
  });

  it('is never above what the upstream reported', () => {
    const counts = fc.option(fc.nat(12), { nil: null });
    const fields = fc.record({
      prompt_tokens: counts,
      completion_tokens: counts,
      total_tokens: counts,
      cached: counts,
      written: counts,
      thought: counts,
    });
    fc.assert(
      fc.property(fields, ({ cached, written, thought, ...token_counts }) => {
        const usage = wholeUsage(
          readUsage('completions', {
            ...token_counts,
            prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
            completion_tokens_details: { reasoning_tokens: thought },
          }),
        );
        const { input_tokens = 0, cached_input_tokens = 0, cache_write_tokens = 0 } = usage ?? {};
        const { prompt_tokens, completion_tokens, total_tokens } = token_counts;
        // Without a count of the completion, all beyond the prompt is completion.
        const rest = completion_tokens === null ? 0 : (total_tokens ?? 0) - (prompt_tokens ?? 0) - completion_tokens;
        const caching = (cached ?? 0) + (written ?? 0);
        const beside = rest > 0 && rest === caching && rest !== thought ? caching : 0; // the prompt leaves it out
        expect(input_tokens + cached_input_tokens + cache_write_tokens).toBe(usage ? (prompt_tokens ?? 0) + beside : 0);
      }),
    );
  });
});
