import type { JsonObject } from '../../src/catalog/model.ts';
import type { Style } from './by-name.ts';

const png = 'iVBORw0KGgo=';
const weather = { type: 'object', properties: { city: { type: 'string', minLength: 1 } }, required: ['city'] };

/** Requests with everything in them that the readers know. */
export const requests: { readonly [style in Style]: readonly JsonObject[] } = {
  completions: [
    {
      model: 'm',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'developer', content: [{ type: 'text', text: 'Really.' }] },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?', cache_control: { type: 'ephemeral' } },
            { type: 'image_url', image_url: { url: `data:image/png;charset=x;base64,${png}`, detail: 'low' } },
            { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
            { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } },
            { type: 'file', file: { filename: 'a.txt', file_data: 'data:text/plain;base64,aGVsbG8=' } },
          ],
        },
        {
          role: 'assistant',
          content: null,
          reasoning_details: [{ type: 'reasoning.text', text: 'Hm.', signature: 'sig' }],
          tool_calls: [
            {
              id: 'functions.weather:0',
              type: 'function',
              function: { name: 'weather', arguments: '{"city":"Łódź"}' },
            },
            { id: 'call_2', type: 'function', function: { name: 'weather', arguments: '' } },
          ],
        },
        { role: 'tool', tool_call_id: 'functions.weather:0', content: '7 °C' },
        { role: 'tool', tool_call_id: 'call_2', content: [{ type: 'text', text: 'no city' }] },
        { role: 'user', content: 'And now?' },
        { role: 'system', content: 'Answer in Polish.' },
        { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
        { role: 'user', content: 'Please.' },
      ],
      tools: [
        { type: 'function', function: { name: 'weather', description: 'Weather', parameters: weather, strict: true } },
      ],
      tool_choice: { type: 'function', function: { name: 'weather' } },
      parallel_tool_calls: false,
      max_completion_tokens: 500,
      temperature: 1.5,
      top_p: 0.9,
      stop: ['END', ' '],
      reasoning_effort: 'high',
      user: 'somebody',
      seed: 7,
      logit_bias: { '50256': -100 },
    },
    {
      model: 'm',
      stream: true,
      stream_options: { include_usage: false },
      messages: [{ role: 'user', content: 'A person, please.' }],
      response_format: { type: 'json_schema', json_schema: { name: 'person', schema: weather, strict: true } },
    },
    {
      model: 'm',
      messages: [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
        { role: 'function', name: 'f', content: 'y' },
      ],
      functions: [{ name: 'f', parameters: { type: 'object', properties: {} } }],
      function_call: { name: 'f' },
      response_format: { type: 'json_object' },
    },
  ],
  messages: [
    {
      model: 'm',
      max_tokens: 5000,
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
            { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
            {
              type: 'document',
              source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' },
              title: 'a.pdf',
            },
            { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'hello' }, context: 'c' },
            { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'hello' }] } },
            { type: 'search_result', title: 't', source: 's', content: [{ type: 'text', text: 'hello' }] },
          ],
        },
        { role: 'system', content: 'The date has changed.' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Hm.', signature: 'sig' },
            { type: 'redacted_thinking', data: 'x' },
            { type: 'text', text: 'I look.' },
            { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Łódź' } },
            { type: 'tool_use', id: `toolu_${'2'.repeat(60)}`, name: 'weather', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'toolu_1',
              content: [{ type: 'image', source: { type: 'url', url: 'https://example.com/b.png' } }],
            },
            { type: 'tool_result', tool_use_id: `toolu_${'2'.repeat(60)}`, content: 'no city', is_error: true },
            { type: 'text', text: 'And now?' },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'server_tool_use', id: 'srv', name: 'web_search', input: {} },
            { type: 'web_search_tool_result', tool_use_id: 'srv', content: [{ title: 'x', encrypted_content: 'y' }] },
            { type: 'text', text: 'Found.' },
          ],
        },
        { role: 'user', content: 'Thanks.' },
      ],
      tools: [{ name: 'weather', description: 'Weather', input_schema: weather, defer_loading: true }],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
      thinking: { type: 'enabled', budget_tokens: 2000 },
      output_config: { effort: 'high' },
      stop_sequences: ['END'],
      metadata: { user_id: 'somebody' },
      context_management: { edits: [] },
    },
    {
      model: 'm',
      max_tokens: 100,
      stream: true,
      temperature: 1,
      thinking: { type: 'disabled' },
      tools: [],
      messages: [{ role: 'user', content: 'A person, please.' }],
      output_config: { format: { type: 'json_schema', schema: weather } },
    },
  ],
};

/** Answers with everything in them that the readers know. */
export const answers: { readonly [style in Style]: readonly JsonObject[] } = {
  completions: [
    {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model: 'up',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'I look.',
            refusal: null,
            reasoning_content: 'Hm.',
            tool_calls: [
              { id: 'call_1', type: 'function', function: { name: 'json_output', arguments: '{"city":"Łódź"}' } },
            ],
          },
          logprobs: null,
          finish_reason: 'tool_calls',
        },
      ],
      usage: {
        prompt_tokens: 30,
        completion_tokens: 9,
        total_tokens: 39,
        prompt_tokens_details: { cached_tokens: 10 },
        completion_tokens_details: { reasoning_tokens: 4 },
      },
    },
  ],
  messages: [
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'up',
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: 'sig' },
        { type: 'redacted_thinking', data: 'x' },
        { type: 'text', text: 'I look.' },
        { type: 'tool_use', id: 'toolu_1', name: 'json_output', input: { city: 'Łódź' } },
      ],
      stop_reason: 'tool_use',
      stop_sequence: null,
      usage: {
        input_tokens: 20,
        cache_read_input_tokens: 10,
        cache_creation: { ephemeral_5m_input_tokens: 5, ephemeral_1h_input_tokens: 0 },
        output_tokens: 9,
        iterations: [],
      },
    },
  ],
};

/** Bodies of the responses style with everything that is read of them. */
export const responses_requests: readonly JsonObject[] = [
  { model: 'm', input: 'Hi', instructions: 'Be kind.', stream: true, max_output_tokens: 50 },
  {
    model: 'm',
    input: [
      { role: 'developer', content: 'Be short.' },
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'Look.' },
          { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'low' },
          { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' },
        ],
      },
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [{ type: 'summary_text', text: 'Hm.' }],
        encrypted_content: 'signature:s',
      },
      { type: 'function_call', id: 'fc_1', call_id: 'a', name: 'f', arguments: '{"x":1}' },
      { type: 'function_call_output', call_id: 'a', output: [{ type: 'input_text', text: '7' }] },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'So.', annotations: [] }] },
      { role: 'user', content: 'And?' },
    ],
    tools: [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} }, strict: true }],
    tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'f' }] },
    text: { format: { type: 'json_schema', name: 'answer', schema: { type: 'object' }, strict: true } },
    reasoning: { effort: 'low', summary: 'auto' },
    parallel_tool_calls: false,
    temperature: 0.5,
    top_p: 0.9,
    user: 'me',
    store: false,
    include: ['reasoning.encrypted_content'],
  },
];

/** The same of Gemini's style. */
export const gemini_answers: readonly JsonObject[] = [
  {
    candidates: [
      {
        content: {
          parts: [
            { text: 'Hm.', thought: true },
            { text: 'I look.', thoughtSignature: 'c2VhbA==' },
            { functionCall: { id: 'a', name: 'json_output', args: { city: 'Łódź' } }, thoughtSignature: 'c2VhbA==' },
            { functionCall: { name: 'weather' } },
          ],
          role: 'model',
        },
        finishReason: 'STOP',
        finishMessage: 'x',
        index: 0,
      },
    ],
    promptFeedback: { blockReason: 'SAFETY' },
    usageMetadata: {
      promptTokenCount: 30,
      cachedContentTokenCount: 10,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 4,
      toolUsePromptTokenCount: 1,
      totalTokenCount: 40,
    },
    modelVersion: 'up',
    responseId: 'resp-1',
  },
];

/** Answers of the responses style with everything that is read of them. */
export const responses_answers: readonly JsonObject[] = [
  {
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    error: null,
    incomplete_details: null,
    model: 'upstream',
    output: [
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'gAAA' },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'So.', annotations: [] }] },
      { type: 'function_call', id: 'fc_1', call_id: 'a', name: 'f', arguments: '{"x":1}' },
    ],
    usage: {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 4, cache_write_tokens: 1 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 15,
    },
  },
  {
    id: 'resp_2',
    object: 'response',
    status: 'incomplete',
    incomplete_details: { reason: 'max_output_tokens' },
    model: 'upstream',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }],
  },
];
