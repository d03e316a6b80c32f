import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { inputSize } from '../../src/styles/input-size.ts';
import { readAsk, upstreamBody, type Style } from './by-name.ts';

/** Bodies as well-known tools send them, without their length. */

const schema = { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', properties: {} };
const cached = { cache_control: { type: 'ephemeral' } };

const claude_code: JsonObject = {
  model: 'm',
  max_tokens: 128_000,
  stream: true,
  system: [
    { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1; cch=00000;' },
    { type: 'text', text: 'You are Claude Code.', ...cached },
    { type: 'text', text: 'Instructions.', ...cached },
  ],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: '<system-reminder>a</system-reminder>' },
        { type: 'text', text: 'Look at a.png' },
      ],
    },
    { role: 'system', content: 'Environment.' },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: '', signature: 'EqQ=' },
        { type: 'tool_use', id: 'toolu_1', name: 'Read', input: { file_path: 'a.png' } },
        { type: 'tool_use', id: 'toolu_2', name: 'ToolSearch', input: { query: 'edit' } },
      ],
    },
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'toolu_1',
          content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }],
        },
        {
          type: 'tool_result',
          tool_use_id: 'toolu_2',
          content: [{ type: 'tool_reference', tool_name: 'Edit' }],
          ...cached,
        },
        { type: 'text', text: 'Tool loaded.' },
      ],
    },
  ],
  tools: [
    { name: 'Read', description: 'Reads', input_schema: schema },
    { name: 'DeferredToolPlaceholder', description: '', input_schema: schema, defer_loading: true },
    { name: 'Edit', description: 'Edits', input_schema: schema, defer_loading: true, eager_input_streaming: true },
  ],
  thinking: { type: 'adaptive', display: 'omitted' },
  output_config: { effort: 'high' },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  metadata: { user_id: '{"device_id":"d","session_id":"s"}' },
};

const claude_code_title: JsonObject = {
  model: 'm',
  max_tokens: 32_000,
  tools: [],
  thinking: { type: 'disabled' },
  temperature: 1,
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Name this.' }] }],
  output_config: {
    effort: 'high',
    format: {
      type: 'json_schema',
      schema: {
        type: 'object',
        properties: { title: { type: 'string' } },
        required: ['title'],
        additionalProperties: false,
      },
    },
  },
};

const opencode: JsonObject = {
  model: 'm',
  max_tokens: 32_000,
  stream: true,
  stream_options: { include_usage: true },
  tool_choice: 'auto',
  messages: [
    { role: 'system', content: 'You are opencode.' },
    { role: 'user', content: 'Title, please.' },
    { role: 'user', content: 'Look.' },
    {
      role: 'assistant',
      content: '',
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'read', arguments: '{"p":1}' } }],
    },
    { role: 'tool', tool_call_id: 'call_1', content: 'found' },
  ],
  tools: [{ type: 'function', function: { name: 'read', description: 'Reads', parameters: schema } }],
  reasoning_effort: 'low',
};

/** An SDK in Python with every field set to None, and the whole of an answer pushed back. */
const python: JsonObject = {
  model: 'm',
  messages: [
    { role: 'developer', content: [{ type: 'text', text: 'Short.', ...cached }] },
    { role: 'user', content: 'Hi', name: null },
    {
      role: 'assistant',
      content: 'Hello',
      refusal: null,
      annotations: [],
      audio: null,
      function_call: null,
      tool_calls: null,
    },
    { role: 'user', content: 'More' },
  ],
  ...Object.fromEntries(
    [
      'audio',
      'frequency_penalty',
      'logprobs',
      'max_tokens',
      'metadata',
      'modalities',
      'n',
      'response_format',
      'seed',
      'stop',
    ]
      .concat([
        'stream',
        'stream_options',
        'temperature',
        'tool_choice',
        'tools',
        'top_p',
        'user',
        'parallel_tool_calls',
      ])
      .map((name) => [name, null]),
  ),
};

function sent(style: Style, body: JsonObject): JsonObject {
  const ask = readAsk(style, body);
  expect(inputSize(ask).ascii_bytes).toBeGreaterThan(0);
  const target = {
    style: style === 'messages' ? 'completions' : 'messages',
    model: 'up',
    max_tokens: 8000,
    quirks: {},
  } as const;
  return upstreamBody(ask, target).body;
}

describe('the requests of a tool reach models of the other style', () => {
  it('T41: from Claude Code', () => {
    const call = (id: string, name: string, input: JsonObject): JsonObject => ({
      id,
      type: 'function',
      function: { name, arguments: JSON.stringify(input) },
    });
    const tool = (name: string, description: string): JsonObject => ({
      type: 'function',
      function: { name, description, parameters: schema },
    });
    expect(sent('messages', claude_code)).toEqual({
      model: 'up',
      max_tokens: 8000,
      stream: true,
      stream_options: { include_usage: true },
      reasoning_effort: 'high',
      user: '{"device_id":"d","session_id":"s"}',
      messages: [
        { role: 'system', content: 'You are Claude Code.\n\nInstructions.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: '<system-reminder>a</system-reminder>' },
            { type: 'text', text: 'Look at a.png' },
          ],
        },
        { role: 'system', content: 'Environment.' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            call('toolu_1', 'Read', { file_path: 'a.png' }),
            call('toolu_2', 'ToolSearch', { query: 'edit' }),
          ],
        },
        { role: 'tool', tool_call_id: 'toolu_1', content: '(see the image in the next user message)' },
        { role: 'tool', tool_call_id: 'toolu_2', content: 'Tool now available: Edit' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'From the result of the tool call toolu_1:' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
            { type: 'text', text: 'Tool loaded.' },
          ],
        },
      ],
      tools: [tool('Read', 'Reads'), tool('DeferredToolPlaceholder', ''), tool('Edit', 'Edits')],
    });
  });

  it('from the titles of Claude Code', () => {
    const got = sent('messages', claude_code_title);
    expect(got).toMatchObject({
      temperature: 1,
      response_format: { type: 'json_schema', json_schema: { name: 'output', strict: true } },
    });
    expect(Object.keys(got).toSorted()).toEqual(['max_tokens', 'messages', 'model', 'response_format', 'temperature']);
  });

  it('from opencode', () => {
    expect(sent('completions', opencode)).toEqual({
      model: 'up',
      max_tokens: 8000,
      stream: true,
      system: [{ type: 'text', text: 'You are opencode.' }],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Title, please.' },
            { type: 'text', text: 'Look.' },
          ],
        },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name: 'read', input: { p: 1 } }] },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'call_1', content: [{ type: 'text', text: 'found' }] }],
        },
      ],
      tools: [{ name: 'read', description: 'Reads', input_schema: schema }],
      tool_choice: { type: 'auto' },
      thinking: { type: 'adaptive' },
      output_config: { effort: 'low' },
    });
  });

  it('from an SDK that sends null for everything', () => {
    expect(sent('completions', python)).toEqual({
      model: 'up',
      max_tokens: 8000,
      system: [{ type: 'text', text: 'Short.', ...cached }],
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
        { role: 'assistant', content: [{ type: 'text', text: 'Hello' }] },
        { role: 'user', content: [{ type: 'text', text: 'More' }] },
      ],
    });
  });
});

it('the system prompt of Claude Code reaches an upstream of every other style without its billing line', () => {
  const ask = readAsk('messages', claude_code);
  for (const style of ['completions', 'responses', 'gemini'] as const) {
    const { body } = upstreamBody(ask, { style, model: 'u', max_tokens: 4000, quirks: {} });
    const text = JSON.stringify(body);
    expect(text).toContain('You are Claude Code.');
    expect(text).toContain('Instructions.');
    expect(text).not.toContain('billing');
  }
  const { body } = upstreamBody(ask, { style: 'messages', model: 'u', max_tokens: 4000, quirks: {} });
  expect(body['system']).toEqual(claude_code['system']);
});
