import type { JsonObject } from '../../src/catalog/model.ts';

/** A point in which this service does not do what a test of LiteLLM's asks for. docs/chat-translation.md shows it. */
export type Difference = {
  what: string;
  why: string;
  /** A stream of chat completions for a caller of messages style, and what that caller gets. */
  sent: readonly JsonObject[];
  gets: RegExp;
};

const text = { choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: null }] };
const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
const usage = { choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } };

export const differences_from_litellm: readonly Difference[] = [
  {
    what: 'A stream that breaks off after its first content has no end, but an error event',
    why: 'LiteLLM ends it as if it were whole; the caller must be able to tell',
    sent: [text],
    gets: /"text":"Hi"(?![^]*message_(delta|stop))/,
  },
  {
    what: 'Usage stands in `message_delta`, not in `message_stop`',
    why: 'that is its place in the style',
    sent: [text, end, usage],
    gets: /"type":"message_delta"[^\n]*"output_tokens":5[^]*data: \{"type":"message_stop"\}/,
  },
];
