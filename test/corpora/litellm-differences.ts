import type { JsonObject } from '../../src/catalog/model.ts';
import type { Disagreement } from './disagreements.ts';

/** A point of a stream in which this service does not do what a test of LiteLLM's asks for. docs/chat-translation.md shows it. */
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

export const streams_unlike_litellm: readonly Difference[] = [
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

/** Points in which our translations of requests differ from LiteLLM's. */
export const requests_unlike_litellm: readonly Disagreement[] = [
  {
    where: /^request system blocks: .*: turns\.0\.parts\./,
    what: 'Blocks of the system prompt are one text, with an empty line between them',
    why: 'many servers take a string only',
  },
  {
    where:
      /^request .*: turns\.1\.parts\.\d\.arguments: "\{\\"city\\":\\"Rome\\"\}", not "\{\\"city\\": \\"Rome\\"\}"$/,
    what: 'Arguments of calls are written without spaces',
    why: 'they are fewer tokens',
  },
  {
    where: /^request a call and its result: messages → responses: turns\.1\.parts\./,
    what: 'What was said before a call stays before it',
    why: 'LiteLLM puts it behind the call',
  },
  {
    where: /^request a result of two texts: messages → completions: turns\.2\.parts\./,
    what: 'Texts of one result are one text',
    why: 'many servers take a string only',
  },
  {
    where: /^request a result that is an error: .*: turns\.2\.parts\.0\.parts\.0\.text:/,
    what: 'A result that is an error says so',
    why: 'the other styles have no mark for it; LiteLLM drops it',
  },
  {
    where: /^request a result with an image: messages → responses: turns\.2\./,
    what: 'An image in a result stays there where the style has a place for it',
    why: 'LiteLLM puts it into the user’s next message',
  },
  {
    where: /^request a result with an image: messages → completions: turns\.2\./,
    what: 'Where results have no place for an image, it stands in the user’s next message',
    why: 'LiteLLM leaves it in the result, which strict servers refuse',
  },
  {
    where: /^request a thought: .*: turns\.1\.parts\./,
    what: 'Thinking that another provider signed is left out of the conversation',
    why: 'the model cannot read it; LiteLLM sends it on',
  },
  {
    where: /^request one call at a time: .*: parallel_tool_calls: false/,
    what: '`disable_parallel_tool_use` is carried',
    why: 'LiteLLM drops it',
  },
  {
    where: /^request a schema: .*: format\.name:/,
    what: 'A schema without a name is called `output`',
    why: 'the style must have a name',
  },
  {
    where: /^request no thinking: messages → completions: thinking\.mode: nothing/,
    what: 'Thinking that is switched off is not asked for, and nothing else is said',
    why: 'only some models take `reasoning_effort: none`',
  },
  {
    where: /^request a budget: .*: thinking\.effort: "medium", not "high"/,
    what: 'A budget of 8000 tokens is a medium effort',
    why: 'the bounds between efforts are each gateway’s own',
  },
  {
    where: /^request top_p and stops: messages → responses: refused, stop_sequences:/,
    what: 'Stop sequences are refused for the responses style',
    why: 'it has none, and the caller relies on them; LiteLLM drops them',
  },
];
