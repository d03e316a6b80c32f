import type { Json, JsonObject } from '../catalog/model.ts';
import { checkShape } from '../lib/json-shape.ts';
import { parseExactly } from '../lib/long-integers.ts';
import type { AnswerOptions, ChatRequest, Codec } from './codec.ts';
import type { ChatAnswer, Part, Usage } from './conversation.ts';
import { isObject } from './fields.ts';
import { withMembers } from './model-name.ts';
import { addText, chargedUsage, tellsCost, withCost, type TextSize } from './usage.ts';

export type RenderedAnswer = {
  bytes: Buffer;
  /** By the upstream's own count; undefined if it told nothing that can be believed. */
  usage: Partial<Usage> | undefined;
  /** The finish reason, in the words of the caller's style. */
  finish: string | undefined;
  /** Bytes of text, thinking and arguments, for counting where the upstream counts nothing. */
  delivered: TextSize;
  has_content: boolean;
  /** The upstream's id of the response; for the record of the call. */
  upstream_id: string | undefined;
};

type Written = Pick<RenderedAnswer, 'bytes' | 'finish'>;

/**
 * Takes a whole answer of an upstream to the caller. Of the same style, its bytes stay as they are but for the model's
 * name and the answer's id. Throws Error if `bytes` are no answer of `upstream_style`, and ApiError 400 for an answer
 * that says that the request was found unfit.
 */
export function renderAnswer(
  request: ChatRequest,
  upstream_style: Codec,
  bytes: Buffer,
  options: AnswerOptions,
): RenderedAnswer {
  const body = parse(bytes);
  const parsed = upstream_style.upstream.parseResponse(body, options.request_id);
  const answers = parsed.map((answer) => forCaller(answer, options));
  const [answer] = answers;
  if (!answer) throw new Error('The answer is empty.');
  const delivered = deliveredIn(answers);
  const { input_tokens_estimated: input_tokens_counted, writes_for_an_hour } = options;
  const charged = chargedUsage(answer.usage, delivered, { input_tokens_counted, writes_for_an_hour }).usage;
  const has_content = answers.some(({ parts }) => parts.length > 0) || hasBlocks(body);
  const { bytes: written, finish } =
    request.style === upstream_style
      ? sameAnswer(request, body, bytes, charged, options)
      : translated(request, answers, charged, options);
  return { bytes: written, usage: answer.usage, finish, delivered, has_content, upstream_id: answer.id };
}

const usual_members = { id: 'id', model: 'model', usage: 'usage' };

function isNested(value: Json | undefined): boolean {
  return typeof value === 'object' && value !== null;
}

function sameAnswer(
  request: ChatRequest,
  body: JsonObject,
  bytes: Buffer,
  charged: Usage,
  { model, request_id, echo, cost }: AnswerOptions,
): Written {
  const { caller } = request.style;
  const names = caller.answer_members ?? usual_members;
  if (isNested(body[names.model])) throw new Error('The name of the model is none.');
  if (isNested(body[names.id])) throw new Error('The id of the answer is none.');
  const finish = caller.finishOf(body);
  const own = { [names.id]: caller.answerId(request_id), [names.model]: model };
  const reported = body[names.usage];
  const written = { finish: typeof finish === 'string' ? finish : undefined };
  const changed = caller.passthrough.changeAnswer?.(body, request);
  const is_right = caller.usage.reports(reported, charged) && !tellsCost(reported) && !cost;
  const is_added = Object.values(echo ?? {}).some(isNested); // only words take the place of words
  if (is_right && !changed && !is_added) return { ...written, bytes: withMembers(bytes, own, echo) };
  const usage = is_right ? (reported ?? null) : withCost(caller.usage.correct(reported, charged), charged, cost);
  return {
    ...written,
    bytes: Buffer.from(JSON.stringify({ ...(changed ?? body), ...own, ...echo, [names.usage]: usage })),
  };
}

function translated(
  request: ChatRequest,
  answers: readonly ChatAnswer[],
  usage: Usage,
  options: AnswerOptions,
): Written {
  const { caller } = request.style;
  const body = caller.renderResponse(answers, usage, request, options);
  return { bytes: Buffer.from(JSON.stringify(body)), finish: String(caller.finishOf(body)) };
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

/** With the caller's names of tools, and text instead of the call that stands for a JSON schema. */
function forCaller(answer: ChatAnswer, { json_tool, tool_names }: AnswerOptions): ChatAnswer {
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
