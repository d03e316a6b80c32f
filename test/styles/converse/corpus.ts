import type { JsonObject } from '../../../src/catalog/model.ts';

/**
 * Answers of Converse, one for each kind of block and each reason for the end that the types of
 * @aws-sdk/client-bedrock-runtime have (ContentBlock, StopReason, TokenUsage; November 2026), with the stream that carries
 * the same: the events of ConverseStreamOutput, cut into pieces, with the padding `p` that AWS adds.
 */
export type Example = {
  name: string;
  answer: JsonObject;
  content: { text: string; thinking: string; calls: { id: string; name: string; input: JsonObject }[] };
  /** In the words of chat completions and of messages; none if the model went wrong. */
  finish?: [completions: string, messages: string];
};

const usage = { inputTokens: 30, outputTokens: 20, totalTokens: 62, cacheReadInputTokens: 8, cacheWriteInputTokens: 4 };
const cache_details = [
  { ttl: '1h', inputTokens: 3 },
  { ttl: '5m', inputTokens: 1 },
];

function answer(content: JsonObject[], stopReason: string, more: JsonObject = {}): JsonObject {
  return {
    output: { message: { role: 'assistant', content } },
    stopReason,
    usage: { ...usage, cacheDetails: cache_details },
    metrics: { latencyMs: 1175 },
    ...more,
  };
}

const nothing = { text: '', thinking: '', calls: [] };
const text = 'Good day. ☀';
const call = { toolUse: { toolUseId: 'tooluse_kZJMlvQmRJ6eAyJE5GIl7Q', name: 'top_song', input: { sign: 'WZPZ' } } };
const called = { id: 'tooluse_kZJMlvQmRJ6eAyJE5GIl7Q', name: 'top_song', input: { sign: 'WZPZ' } };
const bare_call = { toolUse: { toolUseId: 'tooluse_2', name: 'now', input: {} } };
const bare_called = { id: 'tooluse_2', name: 'now', input: {} };
const reasoning = { reasoningContent: { reasoningText: { text: 'Let me see.', signature: 'c2lnbmF0dXJl' } } };
const redacted = { reasoningContent: { redactedContent: 'ZW5jcnlwdGVk' } };
const trace = { guardrail: { modelOutput: ['No.'], actionReason: 'Guardrail blocked.' } };

export const examples: readonly Example[] = [
  {
    name: 'a text',
    answer: answer([{ text }], 'end_turn'),
    content: { ...nothing, text },
    finish: ['stop', 'end_turn'],
  },
  {
    name: 'a text at a stop sequence',
    answer: answer([{ text }], 'stop_sequence'),
    content: { ...nothing, text },
    finish: ['stop', 'stop_sequence'],
  },
  {
    name: 'a text that is cut',
    answer: answer([{ text }], 'max_tokens'),
    content: { ...nothing, text },
    finish: ['length', 'max_tokens'],
  },
  {
    name: 'a text at the end of the context',
    answer: answer([{ text }], 'model_context_window_exceeded'),
    content: { ...nothing, text },
    finish: ['length', 'max_tokens'],
  },
  {
    name: 'a call of a tool behind a text',
    answer: answer([{ text }, call], 'tool_use'),
    content: { ...nothing, text, calls: [called] },
    finish: ['tool_calls', 'tool_use'],
  },
  {
    name: 'two calls, one without arguments',
    answer: answer([call, bare_call], 'tool_use'),
    content: { ...nothing, calls: [called, bare_called] },
    finish: ['tool_calls', 'tool_use'],
  },
  {
    name: 'signed and encrypted thinking before a text',
    answer: answer([reasoning, redacted, { text }], 'end_turn', { additionalModelResponseFields: { x: 1 } }),
    content: { ...nothing, thinking: 'Let me see.', text },
    finish: ['stop', 'end_turn'],
  },
  {
    name: 'the words of a guardrail',
    answer: answer([{ text: 'Sorry.' }], 'guardrail_intervened', { trace }),
    content: { ...nothing, text: 'Sorry.' },
    finish: ['content_filter', 'refusal'],
  },
  {
    name: 'a text that was filtered',
    answer: answer([{ text }], 'content_filtered'),
    content: { ...nothing, text },
    finish: ['content_filter', 'refusal'],
  },
  { name: 'output that cannot be read', answer: answer([{ text }], 'malformed_model_output'), content: nothing },
  { name: 'a call that cannot be read', answer: answer([], 'malformed_tool_use'), content: nothing },
];

/** The events of a stream that says the same. */
export function eventsOf({
  output,
  stopReason,
  usage: counts,
  metrics,
  trace: traced,
}: JsonObject): [string, JsonObject][] {
  const message = (output as { message: { content: JsonObject[] } }).message;
  const p = 'abcdefghijk';
  const events: [string, JsonObject][] = [['messageStart', { role: 'assistant', p }]];
  for (const [contentBlockIndex, block] of message.content.entries()) {
    const { toolUse } = block as { toolUse?: JsonObject };
    if (toolUse) {
      const { input: _, ...start } = toolUse;
      events.push(['contentBlockStart', { contentBlockIndex, start: { toolUse: start }, p }]);
    }
    for (const delta of deltasOf(block)) events.push(['contentBlockDelta', { contentBlockIndex, delta, p }]);
    events.push(['contentBlockStop', { contentBlockIndex, p }]);
  }
  events.push(['messageStop', { stopReason: stopReason ?? null, p }]);
  const trace_member = traced === undefined ? {} : { trace: traced };
  events.push(['metadata', { usage: counts ?? null, metrics: metrics ?? null, ...trace_member, p }]);
  return events;
}

function deltasOf(block: JsonObject): JsonObject[] {
  const {
    text: spoken_text,
    toolUse,
    reasoningContent,
  } = block as {
    text?: string;
    toolUse?: { input: JsonObject };
    reasoningContent?: { reasoningText?: { text: string; signature: string }; redactedContent?: string };
  };
  if (spoken_text !== undefined) return [{ text: spoken_text.slice(0, 4) }, { text: spoken_text.slice(4) }];
  if (toolUse) {
    const json = JSON.stringify(toolUse.input);
    return json === '{}' ? [] : [{ toolUse: { input: json.slice(0, 5) } }, { toolUse: { input: json.slice(5) } }];
  }
  const { reasoningText, redactedContent = '' } = reasoningContent ?? {};
  if (!reasoningText) return [{ reasoningContent: { redactedContent } }];
  return [
    { reasoningContent: { text: reasoningText.text } },
    { reasoningContent: { signature: reasoningText.signature } },
  ];
}

/** A stream as the adapter hands it on. */
export function streamOf(events: readonly [string, JsonObject][]): Buffer {
  return Buffer.from(events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join(''));
}
