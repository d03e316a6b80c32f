import type { JsonObject } from '../catalog/model.ts';
import { checkShape } from '../lib/json-shape.ts';
import { parseExactly } from '../lib/long-integers.ts';
import { answerId } from './answer-id.ts';
import type { Ask } from './ask.ts';
import { readCompletionsAnswers, writeCompletionsAnswer } from './completions/response.ts';
import type { CallerStyle, ChatAnswer, Part, UpstreamStyle, Usage } from './conversation.ts';
import { isObject } from './fields.ts';
import { readContentsAnswers } from './gemini/response.ts';
import { readMessagesAnswer, writeMessagesAnswer } from './messages/response.ts';
import { withMembers } from './model-name.ts';
import { echoOf, readResponsesAnswer, writeResponsesAnswer } from './responses/response.ts';
import { finishOf } from './responses/passthrough.ts';
import { addText, type TextSize } from './text-size.ts';
import { chargedUsage, correctUsage, tellsUsage } from './usage.ts';

export type RenderOptions = {
  /** The public id, which stands in the caller's answer instead of the upstream's name. */
  model: string;
  /** Names the answer. */
  request_id: string;
  /** Seconds since 1970, for translated answers. */
  created: number;
  /** A tool the upstream was made to call in place of a JSON schema: its arguments are the text. */
  json_tool?: string;
  /** Tool names that were changed for the upstream: what the caller knows them by. */
  tool_names?: ReadonlyMap<string, string>;
  /** Told to the caller when the upstream counts nothing. */
  input_tokens_estimated: number;
  /** Of the request that the upstream was sent: input that it writes to its cache is to stay there for an hour. */
  writes_for_an_hour?: boolean;
};

export type RenderedAnswer = {
  bytes: Buffer;
  /** By the upstream's own count; undefined if it told nothing that can be believed. */
  usage: Partial<Usage> | undefined;
  /** Why it ended, in the words of the caller's style. */
  finish: string | undefined;
  /** Bytes of text, thinking and arguments, for counting where the upstream counts nothing. */
  delivered: TextSize;
  has_content: boolean;
  /** What the upstream calls the answer; for the record of the call. */
  upstream_id: string | undefined;
};

type Written = Pick<RenderedAnswer, 'bytes' | 'finish'>;

/**
 * Takes a whole answer of an upstream to the caller. Of the same style, its bytes stay as they are but for
 * the model's name and the answer's id. Throws Error if `bytes` are no answer of `upstream_style`, and ApiError 400 for an answer that
 * says that the request was found unfit.
 */
export function renderAnswer(
  ask: Ask,
  upstream_style: UpstreamStyle,
  bytes: Buffer,
  options: RenderOptions,
): RenderedAnswer {
  const body = parse(bytes);
  const answers = readAnswers(upstream_style, body, options.request_id).map((answer) => forCaller(answer, options));
  const [answer] = answers;
  if (!answer) throw new Error('The answer is empty.');
  const delivered = deliveredIn(answers);
  const { input_tokens_estimated: input_tokens_counted, writes_for_an_hour } = options;
  const charged = chargedUsage(answer.usage, delivered, { input_tokens_counted, writes_for_an_hour }).usage;
  const has_content = answers.some(({ parts }) => parts.length > 0) || hasBlocks(body);
  const { bytes: written, finish } =
    ask.style === upstream_style
      ? sameAnswer(ask.style, body, bytes, charged, options)
      : translated(ask, answers, charged, options);
  return { bytes: written, usage: answer.usage, finish, delivered, has_content, upstream_id: answer.id };
}

function sameAnswer(
  style: CallerStyle,
  body: JsonObject,
  bytes: Buffer,
  charged: Usage,
  { model, request_id }: RenderOptions,
): Written {
  const name = body['model'];
  if (typeof name === 'object' && name !== null) throw new Error('The name of the model is none.');
  if (typeof body['id'] === 'object' && body['id'] !== null) throw new Error('The id of the answer is none.');
  const finish = finishIn[style](body);
  const own = { id: answerId(style, request_id), model };
  const corrected = tellsUsage(style, body['usage'], charged)
    ? withMembers(bytes, own)
    : Buffer.from(JSON.stringify({ ...body, ...own, usage: correctUsage(style, body['usage'], charged) }));
  return { bytes: corrected, finish: typeof finish === 'string' ? finish : undefined };
}

/** Why an answer ended, in the words of its style. */
const finishIn: { readonly [style in CallerStyle]: (body: JsonObject) => unknown } = {
  completions: firstFinish,
  messages: (body) => body['stop_reason'],
  responses: finishOf,
};

function readAnswers(style: UpstreamStyle, body: JsonObject, request_id: string): ChatAnswer[] {
  switch (style) {
    case 'completions':
      return readCompletionsAnswers(body, request_id);
    case 'messages':
      return [readMessagesAnswer(body)];
    case 'responses':
      return [readResponsesAnswer(body)];
    case 'contents':
      return readContentsAnswers(body, request_id);
  }
}

function parse(bytes: Buffer): JsonObject {
  const text = bytes.toString('utf8');
  checkShape(text);
  const body = parseExactly(text.startsWith('\ufeff') ? text.slice(1) : text);
  if (!isObject(body)) throw new Error('The answer is no JSON object.');
  return body;
}

/** Blocks that we know nothing of are content too. */
function hasBlocks({ content, output }: JsonObject): boolean {
  return [content, output].some((blocks) => Array.isArray(blocks) && blocks.length > 0);
}

function firstFinish(body: JsonObject): unknown {
  const { choices } = body;
  const choice = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(choice) ? choice['finish_reason'] : undefined;
}

/** With the caller's names of tools, and text instead of the call that stands for a JSON schema. */
function forCaller(answer: ChatAnswer, { json_tool, tool_names }: RenderOptions): ChatAnswer {
  if (json_tool === undefined && tool_names === undefined) return answer;
  const parts = answer.parts.map((part): Part => {
    if (part.type !== 'tool_call') return part;
    if (part.name === json_tool) return { type: 'text', text: part.arguments };
    return { ...part, name: tool_names?.get(part.name) ?? part.name };
  });
  return { ...answer, parts };
}

function deliveredIn(answers: readonly ChatAnswer[]): TextSize {
  const size: TextSize = { ascii_bytes: 0, other_bytes: 0 };
  for (const { parts } of answers) {
    for (const part of parts) {
      if (part.type === 'text' || part.type === 'thinking' || part.type === 'refusal') addText(size, part.text);
      else if (part.type === 'tool_call') addText(size, part.name + part.arguments);
    }
  }
  return size;
}

function translated(ask: Ask, answers: readonly ChatAnswer[], usage: Usage, options: RenderOptions): Written {
  const [answer] = answers;
  if (!answer) throw new Error('The answer is empty.');
  if (ask.style === 'messages') {
    const body = writeMessagesAnswer(answer, usage, options.model, options.request_id);
    return { bytes: Buffer.from(JSON.stringify(body)), finish: String(body['stop_reason']) };
  }
  if (ask.style === 'responses') {
    const body = writeResponsesAnswer(answer, usage, { ...options, echo: echoOf(ask.body) });
    return { bytes: Buffer.from(JSON.stringify(body)), finish: finishOf(body) };
  }
  const legacy_functions = isLegacy(ask);
  const bodies = answers.map((each) => writeCompletionsAnswer(each, usage, { ...options, legacy_functions }));
  const [first, ...others] = bodies;
  const body = first && others.length === 0 ? first : { ...first, choices: numbered(bodies.flatMap(choicesOf)) };
  return { bytes: Buffer.from(JSON.stringify(body)), finish: String(firstFinish(body)) };
}

function numbered(choices: readonly JsonObject[]): JsonObject[] {
  return choices.map((choice, index) => ({ ...choice, index }));
}

function choicesOf({ choices }: JsonObject): JsonObject[] {
  return Array.isArray(choices) ? choices.filter(isObject) : [];
}

/** The caller speaks of `functions`, as all did before there were tools. */
export function isLegacy(ask: Ask): boolean {
  const { functions, tools } = ask.body;
  return Array.isArray(functions) && !(Array.isArray(tools) && tools.length > 0);
}
