import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { ApiError } from '../../src/errors.ts';
import type { ChatEvent } from '../../src/styles/conversation.ts';
import { isCovered } from '../../src/styles/allowed.ts';
import { customArguments, customInput, customTool } from '../../src/styles/custom-tools.ts';
import { withoutTools } from '../../src/styles/hosted-tools.ts';
import { readAsk } from './by-name.ts';

const own = { type: 'function', name: 'f' };
const web = { type: 'web_search' };
const ask = (body: JsonObject) => readAsk('responses', { model: 'm', input: 'Hi', ...body });
const reduced = (body: JsonObject) => withoutTools(ask(body), isCovered);

function refusalOf(body: JsonObject): unknown {
  try {
    return reduced(body);
  } catch (error) {
    return error instanceof ApiError ? [error.status, error.extras.param, error.extras.code] : error;
  }
}

describe('a request with tools that its model does not get', () => {
  it('is the same object if it has none of them', () => {
    const request = ask({ tools: [own], tool_choice: 'required' });
    expect(withoutTools(request, isCovered)).toEqual({ request, left_out: [] });
    expect(withoutTools(request, isCovered).request).toBe(request);
  });

  it.each<[JsonObject, JsonObject]>([
    [{ tool_choice: 'required' }, { tool_choice: 'required' }],
    [{ tool_choice: { type: 'function', name: 'f' } }, { tool_choice: { type: 'function', name: 'f' } }],
    [
      { tool_choice: { type: 'allowed_tools', mode: 'required', tools: [own, web] } },
      { tool_choice: { type: 'allowed_tools', mode: 'required', tools: [own] } },
    ],
    [{ tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [web] } }, { tool_choice: 'none' }],
  ])('keeps a choice that the other tools can meet: %j', (choice, expected) => {
    const { request, left_out } = reduced({ tools: [web, own, web], ...choice });
    expect(request.body).toEqual({ model: 'm', input: 'Hi', tools: [own], ...expected });
    expect(left_out).toEqual(['web_search']);
  });

  it.each<JsonObject>([
    { tools: [web], tool_choice: 'required' },
    { tools: [web, own], tool_choice: { type: 'web_search' } },
    { tools: [web, own], tool_choice: { type: 'allowed_tools', mode: 'required', tools: [web] } },
  ])('is refused by name if it makes the model use them: %j', (body) => {
    expect(refusalOf(body)).toEqual([400, 'tools[0].type', 'unsupported_field']);
  });
});

describe('a custom tool as a function', () => {
  it.each(['', 'a\n"b"\\', '{"input":1}', '*** Begin Patch'])('has the input %j in its arguments', (input) => {
    expect(customInput(customArguments(input))).toBe(input);
  });

  it.each([
    ['{"patch":"x"}', 'x'],
    ['x = 1', 'x = 1'],
    ['{"a":"x","b":"y"}', '{"a":"x","b":"y"}'],
    ['{"input":{"a":1}}', '{"input":{"a":1}}'],
  ])('has the input that weak models write as %s', (text, input) => {
    expect(customInput(text)).toBe(input);
  });

  it('is called as such in a stream of chat completions, with its text at the end', () => {
    const request = readAsk('completions', {
      model: 'm',
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [{ type: 'custom', custom: { name: 'f' } }],
    });
    const options = { model: 'm', request_id: 'req_1', created: 1, input_tokens_estimated: 1 };
    const writer = request.style.caller.openWriter(request, options);
    const usage = () => ({
      input_tokens: 1,
      cached_input_tokens: 0,
      cache_write_tokens: 0,
      cache_write_1h_tokens: 0,
      output_tokens: 1,
      reasoning_tokens: 0,
    });
    const events: ChatEvent[] = [
      { type: 'tool_call', index: 0, id: 'a', name: 'f' },
      { type: 'tool_arguments', index: 0, json: '{"input":"a' },
      { type: 'tool_arguments', index: 0, json: '\\nb"}' },
      { type: 'finish', reason: 'tool_calls' },
      { type: 'end' },
    ];
    const text = events.map((event) => writer.write(event, usage)).join('');
    const deltas = [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => JSON.parse(data).choices[0].delta);
    expect(deltas).toEqual([
      { tool_calls: [{ index: 0, id: 'a', type: 'custom', custom: { name: 'f', input: '' } }] },
      { tool_calls: [{ index: 0, custom: { input: 'a\nb' } }] },
      {},
    ]);
  });

  it('tells the grammar, in either place that the styles have it', () => {
    const grammar = { syntax: 'regex', definition: '\\d+' };
    const described = 'd\n\n`input` must match this regex grammar:\n\n\\d+';
    for (const format of [
      { type: 'grammar', ...grammar },
      { type: 'grammar', grammar },
    ])
      expect(customTool({ name: 'f', description: 'd', format }, 'tools[0]').description).toBe(described);
    expect(customTool({ name: 'f', format: { type: 'text' } }, 'tools[0]')).not.toHaveProperty('description');
  });
});
