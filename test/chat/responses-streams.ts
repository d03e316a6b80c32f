import { event } from './streams.ts';

/** Answers and streams as upstreams of the responses style send them. */

export const usage = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 15,
};

export function response(output: object[], more: object = {}) {
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1_700_000_000,
    status: 'completed',
    error: null,
    incomplete_details: null,
    model: 'gpt-x',
    output,
    tools: [{ type: 'function', name: 'look', parameters: { properties: { model: { type: 'string' } } } }],
    store: false,
    usage,
    ...more,
  };
}

export function messageItem(text: string, status = 'completed') {
  return {
    id: 'msg_1',
    type: 'message',
    status,
    role: 'assistant',
    content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
  };
}

const place = { item_id: 'msg_1', output_index: 0, content_index: 0 };

export function begun(): string[] {
  const started = response([], { status: 'in_progress', usage: null });
  return [
    event({ type: 'response.created', sequence_number: 0, response: started }),
    event({ type: 'response.in_progress', sequence_number: 1, response: started }),
    event({
      type: 'response.output_item.added',
      sequence_number: 2,
      output_index: 0,
      item: { id: 'msg_1', type: 'message', status: 'in_progress', role: 'assistant', content: [] },
    }),
    event({
      type: 'response.content_part.added',
      sequence_number: 2,
      ...place,
      part: { type: 'output_text', text: '', annotations: [], logprobs: [] },
    }),
  ];
}

export function delta(text: string): string {
  return event({ type: 'response.output_text.delta', sequence_number: 3, ...place, delta: text, obfuscation: 'xyz' });
}

function ended(texts: string[], more: object = {}): string {
  const whole = response([messageItem(texts.join(''))], more);
  return event({ type: `response.${whole.status}`, sequence_number: 9, response: whole });
}

export function responsesStream(texts: string[], more: object = {}): string[] {
  const item = messageItem(texts.join(''));
  return [
    ...begun(),
    ...texts.map(delta),
    event({ type: 'response.output_item.done', sequence_number: 8, output_index: 0, item }),
    ended(texts, more),
  ];
}
