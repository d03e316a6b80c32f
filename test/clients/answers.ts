/** Answers of the imitated upstreams in the four styles, whole and as streams. */
export const styles = ['completions', 'messages', 'responses', 'gemini'] as const;
export type Style = (typeof styles)[number];

export type Answer =
  | { text: string }
  | { call: { id: string; name: string; input: object; namespace?: string | undefined } };

/** A stream in parts: pieces of text may stand between `begin` and `end` any number of times. */
export type Frames = { begin: string[]; piece(text: string): string; end: string[] };

const input_tokens = 10;
const output_tokens = 5;

const chat_usage = {
  prompt_tokens: input_tokens,
  completion_tokens: output_tokens,
  total_tokens: input_tokens + output_tokens,
};
const gemini_usage = {
  promptTokenCount: input_tokens,
  candidatesTokenCount: output_tokens,
  totalTokenCount: input_tokens + output_tokens,
};
const responses_usage = {
  input_tokens,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: input_tokens + output_tokens,
};
const created = 1_700_000_000;

export function wholeAnswer(style: Style, answer: Answer): object {
  if (style === 'completions') return completion(answer);
  if (style === 'messages') return { ...message, content: [block(answer)], stop_reason: stopReason(answer) };
  if (style === 'responses') return { ...response, status: 'completed', output: [item(answer)] };
  return generated([part(answer)], true);
}

export function framesOf(style: Style, answer: Answer): Frames {
  if (style === 'completions') return completionFrames(answer);
  if (style === 'messages') return messageFrames(answer);
  if (style === 'responses') return responseFrames(answer);
  const begin = 'call' in answer ? [data(generated([part(answer)], false))] : [];
  return { begin, piece: (text) => data(generated([{ text }], false)), end: [data(generated([], true))] };
}

/** Returns the error of an upstream of this style when a request is longer than its model's context. */
export function overflowOf(style: Style): object {
  const type = 'invalid_request_error';
  const code = 'context_length_exceeded';
  if (style === 'completions') {
    const text =
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.";
    return { error: { message: text, type, param: 'messages', code } };
  }
  if (style === 'messages') {
    return { type: 'error', error: { type, message: 'prompt is too long: 200001 tokens > 200000 maximum' } };
  }
  if (style === 'responses') {
    const text = 'Your input exceeds the context window of this model. Please adjust your input and try again.';
    return { error: { message: text, type, param: 'input', code } };
  }
  const text = 'The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).';
  return { error: { code: 400, message: text, status: 'INVALID_ARGUMENT' } };
}

function data(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function event(value: { type: string; [field: string]: unknown }): string {
  return `event: ${value.type}\n${data(value)}`;
}

function completion(answer: Answer): object {
  const message_ = { role: 'assistant', content: null, refusal: null, ...delta(answer) };
  const choice = { index: 0, message: message_, logprobs: null, finish_reason: finishReason(answer) };
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created,
    model: 'clients',
    system_fingerprint: null,
    choices: [choice],
    usage: chat_usage,
  };
}

function delta(answer: Answer): object {
  if ('text' in answer) return { content: answer.text };
  const { id, name, input } = answer.call;
  return { tool_calls: [{ index: 0, id, type: 'function', function: { name, arguments: JSON.stringify(input) } }] };
}

function finishReason(answer: Answer): string {
  return 'text' in answer ? 'stop' : 'tool_calls';
}

function completionFrames(answer: Answer): Frames {
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created, model: 'clients' };
  const chunk = (change: object, finish_reason: string | null = null) =>
    data({ ...head, choices: [{ index: 0, delta: change, logprobs: null, finish_reason }], usage: null });
  const first = chunk({ role: 'assistant', content: '' });
  return {
    begin: 'call' in answer ? [first, chunk(delta(answer))] : [first],
    piece: (content) => chunk({ content }),
    end: [chunk({}, finishReason(answer)), data({ ...head, choices: [], usage: chat_usage }), 'data: [DONE]\n\n'],
  };
}

const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'clients',
  stop_sequence: null,
  usage: { input_tokens, output_tokens },
};

function block(answer: Answer): object {
  return 'text' in answer ? { type: 'text', text: answer.text } : { type: 'tool_use', ...answer.call };
}

function stopReason(answer: Answer): string {
  return 'text' in answer ? 'end_turn' : 'tool_use';
}

function messageFrames(answer: Answer): Frames {
  const started = { ...message, content: [], stop_reason: null, usage: { input_tokens, output_tokens: 1 } };
  const index = 0;
  const piece = (text: string) => event(blockDelta({ type: 'text_delta', text }));
  const blockDelta = (change: object) => ({ type: 'content_block_delta', index, delta: change });
  const start = (content_block: object) => event({ type: 'content_block_start', index, content_block });
  const head = event({ type: 'message_start', message: started });
  const begin =
    'text' in answer
      ? [start({ type: 'text', text: '' })]
      : [
          start({ type: 'tool_use', ...answer.call, input: {} }),
          event(blockDelta({ type: 'input_json_delta', partial_json: JSON.stringify(answer.call.input) })),
        ];
  const stopped = {
    type: 'message_delta',
    delta: { stop_reason: stopReason(answer), stop_sequence: null },
    usage: { output_tokens },
  };
  const end = [event({ type: 'content_block_stop', index }), event(stopped), event({ type: 'message_stop' })];
  return { begin: [head, ...begin], piece, end };
}

const response = {
  id: 'resp_1',
  object: 'response',
  created_at: created,
  status: 'in_progress',
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: {},
  model: 'clients',
  output: [],
  parallel_tool_calls: true,
  temperature: 1,
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  usage: responses_usage,
};

function item(answer: Answer): object {
  if ('text' in answer) {
    const content = [{ type: 'output_text', text: answer.text, annotations: [] }];
    return { id: 'msg_1', type: 'message', status: 'completed', role: 'assistant', content };
  }
  const { id, name, input, namespace } = answer.call;
  return {
    id: `fc_${id}`,
    type: 'function_call',
    status: 'completed',
    call_id: id,
    name,
    ...(namespace !== undefined && { namespace }),
    arguments: JSON.stringify(input),
  };
}

function responseFrames(answer: Answer): Frames {
  let sequence_number = 0;
  const say = (type: string, more: object) => event({ type, sequence_number: sequence_number++, ...more });
  const output_index = 0;
  const done = item(answer);
  const place = { item_id: 'msg_1', output_index, content_index: 0 };
  const empty = { type: 'output_text', text: '', annotations: [] };
  const text = 'text' in answer ? answer.text : '';
  const opened = 'text' in answer ? { content: [] } : { arguments: '' };
  const head = [
    say('response.created', { response: { ...response, usage: null } }),
    say('response.output_item.added', { output_index, item: { ...done, status: 'in_progress', ...opened } }),
  ];
  const called = { item_id: `fc_${'call' in answer ? answer.call.id : ''}`, output_index };
  const words = 'call' in answer ? JSON.stringify(answer.call.input) : '';
  const begin =
    'text' in answer
      ? [say('response.content_part.added', { ...place, part: empty })]
      : [
          say('response.function_call_arguments.delta', { ...called, delta: words }),
          say('response.function_call_arguments.done', { ...called, arguments: words }),
        ];
  const closing = () =>
    'text' in answer
      ? [
          say('response.output_text.done', { ...place, text, logprobs: [] }),
          say('response.content_part.done', { ...place, part: { ...empty, text } }),
        ]
      : [];
  return {
    begin: [...head, ...begin],
    piece: (words_) => say('response.output_text.delta', { ...place, delta: words_, logprobs: [] }),
    get end() {
      return [
        ...closing(),
        say('response.output_item.done', { output_index, item: done }),
        say('response.completed', { response: { ...response, status: 'completed', output: [done] } }),
      ];
    },
  };
}

function part(answer: Answer): object {
  if ('text' in answer) return { text: answer.text };
  const { name, input } = answer.call;
  return { functionCall: { name, args: input } };
}

function generated(parts: object[], is_last: boolean): object {
  return {
    candidates: [{ content: { parts, role: 'model' }, index: 0, ...(is_last && { finishReason: 'STOP' }) }],
    usageMetadata: gemini_usage,
    modelVersion: 'clients',
    responseId: 'resp-1',
  };
}
