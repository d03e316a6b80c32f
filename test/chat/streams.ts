/** Streams as upstreams of both styles send them. */

export function chunk(delta: object, more: object = {}, finish_reason: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason }];
  return `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'gpt-x', choices, ...more })}\n\n`;
}

export const done = 'data: [DONE]\n\n';

export function usageChunk(prompt_tokens: number, completion_tokens: number): string {
  const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
  return `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'gpt-x', choices: [], usage })}\n\n`;
}

/** A whole stream of completions style: these texts, then usage if given. */
export function completionsStream(texts: string[], usage?: [number, number]): string[] {
  return [
    chunk({ role: 'assistant', content: '' }),
    ...texts.map((content) => chunk({ content })),
    chunk({}, {}, 'stop'),
    ...(usage ? [usageChunk(...usage)] : []),
    done,
  ];
}

export function event(data: { type: string } & Record<string, unknown>): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

export function messageStart(usage: object = { input_tokens: 10, output_tokens: 1 }): string {
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-x',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage,
  };
  return event({ type: 'message_start', message });
}

/** A whole stream of messages style. */
export function messagesStream(texts: string[], output_tokens = 5): string[] {
  return [
    messageStart(),
    event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    event({ type: 'ping' }),
    ...texts.map((text) => event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
    event({ type: 'content_block_stop', index: 0 }),
    event({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens } }),
    event({ type: 'message_stop' }),
  ];
}
