import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { ApiError } from '../../../src/errors.ts';
import type { CallerCodec } from '../../../src/styles/codec.ts';
import { completions } from '../../../src/styles/completions/codec.ts';
import { converse } from '../../../src/styles/converse/codec.ts';
import { gemini } from '../../../src/styles/gemini/codec.ts';
import { hasLongCaches, withoutLongCaches } from '../../../src/styles/long-caches.ts';
import { messages } from '../../../src/styles/messages/codec.ts';
import type { Quirks } from '../../../src/styles/quirks.ts';
import { readChatRequest, upstreamBody } from '../../../src/styles/request.ts';
import { responses } from '../../../src/styles/responses/codec.ts';
import { mayReason } from '../../../src/styles/thinking.ts';

const claude = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0';
const nova = 'us.amazon.nova-2-lite-v1:0';

function sentBy(
  style: CallerCodec,
  body: JsonObject,
  { quirks = {}, model = claude }: { quirks?: Quirks; model?: string } = {},
) {
  return upstreamBody(readChatRequest(style, body), { style: converse, model, max_tokens: 4_000, quirks });
}

const userMessage = (text: string): JsonObject => ({ role: 'user', content: [{ type: 'text', text }] });
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tools = [{ name: 'weather', description: 'Tells the weather.', input_schema: parameters }];
const spec = { name: 'weather', description: 'Tells the weather.', inputSchema: { json: parameters } };
const plain: JsonObject = { model: 'm', max_tokens: 100, messages: [userMessage('Hi')] };
const converted = (more: JsonObject, options?: { quirks?: Quirks; model?: string }) =>
  sentBy(messages, { ...plain, ...more }, options).body;
const turns = (...list: JsonObject[]) => ({ messages: list });

describe('a request for Converse', () => {
  it.each<[CallerCodec, JsonObject]>([
    [
      completions,
      {
        model: 'm',
        max_tokens: 100,
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Hi' },
        ],
      },
    ],
    [messages, { ...plain, system: 'Be brief.' }],
    [responses, { model: 'm', max_output_tokens: 100, instructions: 'Be brief.', input: 'Hi' }],
    [
      gemini,
      {
        model: 'm',
        contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
        systemInstruction: { parts: [{ text: 'Be brief.' }] },
        generationConfig: { maxOutputTokens: 100 },
      },
    ],
  ])('is the same from callers of every style', (style, body) => {
    expect(sentBy(style, body).body).toEqual({
      messages: [{ role: 'user', content: [{ text: 'Hi' }] }],
      system: [{ text: 'Be brief.' }],
      inferenceConfig: { maxTokens: 100 },
    });
  });

  it('has its settings, without those that Claude refuses together', () => {
    const settings = {
      temperature: 1.0,
      top_p: 0.5,
      top_k: 7,
      stop_sequences: ['END', ' '],
      metadata: { user_id: 'u' },
    };
    expect(converted(settings)).toMatchObject({
      inferenceConfig: { maxTokens: 100, temperature: 1, stopSequences: ['END'] },
      additionalModelRequestFields: { top_k: 7 },
    });
    expect(converted(settings)['inferenceConfig']).not.toHaveProperty('topP');
    expect(converted(settings, { model: nova })).toMatchObject({
      inferenceConfig: { temperature: 1, topP: 0.5 },
      additionalModelRequestFields: { inferenceConfig: { topK: 7 } },
    });
    expect(converted(settings, { model: 'meta.llama3' })).not.toHaveProperty('additionalModelRequestFields');
    expect(converted(settings, { quirks: { sampling: false } })['inferenceConfig']).toEqual({
      maxTokens: 100,
      stopSequences: ['END'],
    });
    expect(converted({ max_tokens: 9_000 })['inferenceConfig']).toEqual({ maxTokens: 4_000 });
  });

  it('has images and documents as bytes, with names that AWS takes, and a text beside them', () => {
    const base64 = (media_type: string) => ({ type: 'base64', media_type, data: 'AAAA' });
    const content = [
      { type: 'image', source: base64('image/png') },
      { type: 'document', source: base64('application/pdf'), title: 'Ünder/score_d  (1) [draft].pdf' },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'words' } },
    ];
    expect(converted(turns({ role: 'user', content }))['messages']).toEqual([
      {
        role: 'user',
        content: [
          { image: { format: 'png', source: { bytes: 'AAAA' } } },
          { document: { format: 'pdf', name: 'nder score d (1) [draft] pdf', source: { bytes: 'AAAA' } } },
          {
            document: { format: 'txt', name: 'document 2', source: { bytes: Buffer.from('words').toString('base64') } },
          },
          { text: '(See the document.)' },
        ],
      },
    ]);
  });

  it('has tools, and the choice of them', () => {
    expect(converted({ tools })['toolConfig']).toEqual({ tools: [{ toolSpec: spec }] });
    const choices: [JsonObject, JsonObject][] = [
      [{ type: 'auto' }, { auto: {} }],
      [{ type: 'any' }, { any: {} }],
      [{ type: 'tool', name: 'weather' }, { tool: { name: 'weather' } }],
    ];
    for (const [tool_choice, toolChoice] of choices)
      expect(converted({ tools, tool_choice })['toolConfig']).toEqual({ tools: [{ toolSpec: spec }], toolChoice });
    expect(converted({ tools, tool_choice: { type: 'none' } })).toMatchObject({
      toolConfig: { tools: [{ toolSpec: spec }] },
      system: [{ text: 'Call no tool now.' }],
    });
    expect(converted({ tools, tool_choice: { type: 'any' } }, { quirks: { forced_tools: false } })).toMatchObject({
      toolConfig: { tools: [{ toolSpec: spec }] },
      system: [{ text: 'Call one of the tools now.' }],
    });
    const single = { type: 'auto', disable_parallel_tool_use: true };
    expect(converted({ tools, tool_choice: single })['system']).toEqual([{ text: 'Call at most one tool at a time.' }]);
  });

  const history = turns(
    userMessage('Weather?'),
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
        { type: 'thinking', thinking: 'Unsigned.', signature: '' },
        { type: 'redacted_thinking', data: 'ZW5j' },
        { type: 'tool_use', id: 'call 1', name: 'weather', input: { city: 'Rome' } },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'call 1', is_error: true, content: [{ type: 'text', text: 'Down.' }] },
      ],
    },
  );

  it('has calls and results, and gives signed thinking back to the models that signed it', () => {
    const id = expect.stringMatching(/^call_1_[0-9a-f]{8}$/);
    const toolUse = { toolUseId: id, name: 'weather', input: { city: 'Rome' } };
    const result = {
      role: 'user',
      content: [{ toolResult: { toolUseId: id, content: [{ text: 'Down.' }], status: 'error' } }],
    };
    const thought = { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'c2ln' } } };
    expect(converted({ ...history, tools })['messages']).toEqual([
      { role: 'user', content: [{ text: 'Weather?' }] },
      { role: 'assistant', content: [thought, { reasoningContent: { redactedContent: 'ZW5j' } }, { toolUse }] },
      result,
    ]);
    expect(converted({ ...history, tools }, { model: nova })['messages']).toEqual([
      { role: 'user', content: [{ text: 'Weather?' }] },
      { role: 'assistant', content: [{ toolUse }] },
      result,
    ]);
  });

  it('names the tools of its history where the caller has none any more: AWS refuses it otherwise', () => {
    expect(converted(history)).toMatchObject({
      toolConfig: { tools: [{ toolSpec: { name: 'weather', inputSchema: { json: { type: 'object' } } } }] },
      system: [{ text: 'Call no tool any more.' }],
    });
  });

  it('has points of caches behind what is to be kept, for an hour only where that is paid for', () => {
    const cache_control = { type: 'ephemeral', ttl: '1h' };
    const marked = { type: 'text', text: 'Long.', cache_control };
    const [tool = {}] = tools;
    const body = converted({
      system: [marked],
      tools: [{ ...tool, cache_control: { type: 'ephemeral' } }],
      ...turns({ role: 'user', content: [marked, { type: 'text', text: 'Hi' }] }),
    });
    const point = { cachePoint: { type: 'default', ttl: '1h' } };
    expect(body).toMatchObject({
      system: [{ text: 'Long.' }, point],
      toolConfig: { tools: [{ toolSpec: spec }, { cachePoint: { type: 'default' } }] },
      messages: [{ role: 'user', content: [{ text: 'Long.' }, point, { text: 'Hi' }] }],
    });
    expect(hasLongCaches(body)).toBe(true);
    expect(JSON.stringify(withoutLongCaches(body))).toBe(JSON.stringify(body).replaceAll(',"ttl":"1h"', ''));
  });

  it('asks for JSON by a tool, or by the schema where the route says that the model knows it', () => {
    const output_config = { format: { type: 'json_schema', schema: parameters } };
    const forced = sentBy(messages, { ...plain, output_config });
    expect(forced.json_tool).toBe('json_output');
    expect(forced.body['toolConfig']).toMatchObject({ toolChoice: { tool: { name: 'json_output' } } });
    const native = converted({ output_config }, { quirks: { structured_output: 'native' } });
    const { schema } = (native['outputConfig'] as { textFormat: { structure: { jsonSchema: { schema: string } } } })
      .textFormat.structure.jsonSchema;
    expect(JSON.parse(schema)).toEqual({ ...parameters, additionalProperties: false });
    expect(native).not.toHaveProperty('toolConfig');
  });

  it.each<[string, JsonObject, Quirks, JsonObject | undefined]>([
    [
      claude,
      { type: 'enabled', budget_tokens: 2_000 },
      { thinking: 'budget' },
      { thinking: { type: 'enabled', budget_tokens: 2_000 } },
    ],
    [claude, { type: 'adaptive' }, {}, { thinking: { type: 'adaptive' } }],
    [claude, { type: 'disabled' }, {}, { thinking: { type: 'disabled' } }],
    [claude, { type: 'adaptive' }, { thinking: 'none' }, undefined],
    [
      nova,
      { type: 'enabled', budget_tokens: 2_000 },
      {},
      { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'low' } },
    ],
    [nova, { type: 'disabled' }, {}, { reasoningConfig: { type: 'disabled' } }],
    ['openai.gpt-oss-120b-1:0', { type: 'enabled', budget_tokens: 9_000 }, {}, { reasoning_effort: 'medium' }],
    ['deepseek.r1-v1:0', { type: 'adaptive' }, {}, undefined],
    [
      'arn:aws:bedrock:eu-west-1:1:application-inference-profile/x',
      { type: 'adaptive' },
      { model_family: 'claude' },
      { thinking: { type: 'adaptive' } },
    ],
  ])('tells %s of thinking in its own words: %j', (model, thinking, quirks, expected) => {
    const body = converted({ thinking, max_tokens: 4_000, temperature: 0.5 }, { model, quirks });
    expect(body['additionalModelRequestFields']).toEqual(expected);
    const is_on = expected !== undefined && thinking['type'] !== 'disabled';
    expect(mayReason([], {}, { requested: {}, sent: body })).toBe(is_on);
  });

  it('begins with the user, has one turn of each role in a row, and ends without white space', () => {
    const greeting = { role: 'assistant', content: 'Hello!' };
    const body = converted(turns(greeting, userMessage('a'), userMessage('b'), { role: 'assistant', content: 'So: ' }));
    expect(body['messages']).toEqual([
      { role: 'user', content: [{ text: '(The conversation begins with the assistant.)' }] },
      { role: 'assistant', content: [{ text: 'Hello!' }] },
      { role: 'user', content: [{ text: 'a' }, { text: 'b' }] },
      { role: 'assistant', content: [{ text: 'So:' }] },
    ]);
  });

  it.each<[JsonObject, string]>([
    [{ n: 2 }, 'n'],
    [
      turns({ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }] }),
      'messages[0].content[0]',
    ],
    [
      turns({ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/tiff;base64,AAAA' } }] }),
      'messages[0].content[0]',
    ],
    [
      turns({ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.example/x.png' } }] }),
      'messages[0].content[0]',
    ],
    [turns({ role: 'user', content: ' ' }), 'messages'],
  ])('is refused with %j, naming the field', (more, param) => {
    const send = () => sentBy(completions, { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...more });
    expect(send).toThrow(ApiError);
    expect(send).toThrow(
      expect.objectContaining({ extras: expect.objectContaining({ param: expect.stringContaining(param) }) }),
    );
  });
});
