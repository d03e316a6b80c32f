import type { ChatCompletionsRequest, Cost } from './types.ts';

/** Chat in the chat-completions style. Members that have no type here pass through, in both directions. */

/** `type` is `text`, `image_url`, `file` and others. */
export type ChatPart = { type: string; text?: string; [member: string]: unknown };

/** The arguments are a text of JSON. A call of a custom tool has `custom` instead of `function`. */
export type ChatToolCall = {
  id: string;
  type: string;
  function: { name: string; arguments: string };
  [member: string]: unknown;
};

/** A turn of a conversation. */
export type ChatMessage = {
  role: 'system' | 'developer' | 'user' | 'assistant' | 'tool' | (string & {});
  content?: string | readonly ChatPart[] | null;
  /** Of the assistant. */
  tool_calls?: readonly ChatToolCall[];
  /** Of a tool: the call that it answers. */
  tool_call_id?: string;
  [member: string]: unknown;
};

export type ChatTool = {
  type: string;
  function?: { name: string; description?: string; parameters?: Record<string, unknown>; strict?: boolean };
  [member: string]: unknown;
};

/** A call: its usual parameters; all others of the style may be there, too. */
export type ChatRequest = ChatCompletionsRequest & {
  messages: readonly ChatMessage[];
  /** The most tokens of the answer. */
  max_tokens?: number | undefined;
  temperature?: number | undefined;
  top_p?: number | undefined;
  stop?: string | readonly string[] | undefined;
  seed?: number | undefined;
  tools?: readonly ChatTool[] | undefined;
  tool_choice?: string | Record<string, unknown> | undefined;
  response_format?: Record<string, unknown> | undefined;
  reasoning_effort?: string | undefined;
  /** The end user that the call is for. */
  user?: string | undefined;
  metadata?: Record<string, string> | undefined;
  [parameter: string]: unknown;
};

export type ChatUsage = {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  [member: string]: unknown;
};

/** An answer as the service sends it; of a stream, all its parts together. */
export type ChatBody = {
  id: string;
  object: 'chat.completion';
  /** Seconds since 1970. */
  created: number;
  model: string;
  choices: ChatChoice[];
  usage?: ChatUsage | null;
  [member: string]: unknown;
};

export type ChatChoice = {
  index: number;
  message: ChatMessage;
  finish_reason: string | null;
  [member: string]: unknown;
};

/** A part of a streamed answer. */
export type ChatChunk = {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  choices: ChatChunkChoice[];
  /** In the last part. */
  usage?: ChatUsage | null;
  [member: string]: unknown;
};

export type ChatChunkChoice = {
  index: number;
  delta: ChatDelta;
  finish_reason?: string | null;
  [member: string]: unknown;
};

export type ChatDelta = {
  role?: string;
  content?: string | null;
  refusal?: string | null;
  tool_calls?: ChatToolCallDelta[];
  [member: string]: unknown;
};

export type ChatToolCallDelta = {
  /** The call that this is a part of. */
  index: number;
  id?: string;
  type?: string;
  function?: { name?: string; arguments?: string };
  [member: string]: unknown;
};

/** To the millionth. */
export type ChatCost = Pick<Cost, 'exact' | 'currency'>;

/** A whole answer. `body` has all of it; the other members are the usual ones, of its first choice. */
export type ChatAnswer = {
  text: string;
  /** The turn of the assistant: put it behind the `messages` of the call to go on with the conversation. */
  message: ChatMessage;
  tool_calls: readonly ChatToolCall[];
  finish_reason: string | null;
  usage: ChatUsage | undefined;
  /** Undefined if it is not known yet, or a proxy took it away. */
  cost: ChatCost | undefined;
  /** Names the call for `chat.get` and `feedback.give`. */
  request_id: string;
  body: ChatBody;
};

/** The record of a call that has ended, without its content. It has more members: see GET /v1/chat/{request_id}. */
export type ChatRecord = {
  object: 'chat.call';
  request_id: string;
  model: string;
  /** That of the answer; 499 if the caller left before its end. */
  status: number;
  usage: { input_tokens: number; output_tokens: number; [member: string]: unknown };
  cost: Cost;
  created_at: string;
  [member: string]: unknown;
};
