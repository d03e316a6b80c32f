import type { Json, JsonObject } from '../../catalog/model.ts';
import { append } from '../../lib/append.ts';
import { inputOf, safeId, ToolNames } from '../calls.ts';
import type { ChatRequest, Target, UpstreamBody } from '../codec.ts';
import type { AnswerFormat, Conversation, Effort, Part, TextPart, Tool, ToolChoice, Turn } from '../conversation.ts';
import { mistake, notCarried } from '../fields.ts';
import { checkImageType } from '../media.ts';
import type { Quirks } from '../quirks.ts';
import { isForeign } from '../thought-signatures.ts';
import { describedSchema, planJson, type JsonPlan } from '../structured.ts';
import { opening, placeSystem } from '../turns.ts';
import { answer_tokens_min, budget_tokens_min, budgetOf, effortOfBudget } from '../thinking.ts';
import { nativeSchema, withoutUnions } from './schema.ts';

type PartOf<T extends Part['type']> = Extract<Part, { type: T }>;

/** The body of a messages request. Throws ApiError 400 naming the caller's field that has no place there. */
export function writeMessages(conversation: Conversation, request: ChatRequest, target: Target): UpstreamBody {
  if (request.n > 1) throw mistake('n', 'must be 1 for this model', 'unsupported_field');
  const { quirks } = target;
  const names = new ToolNames();
  const plan = planJson(conversation, quirks, nativeFormat);
  const max_tokens = Math.min(request.max_tokens ?? target.max_tokens, target.max_tokens);
  const forced = forcedBy(plan, quirks);
  const thought = planThinking(conversation, quirks, max_tokens, plan);
  const { system, turns } = placeSystem(conversation.turns, quirks);
  for (const text of [plan.instruction, forced.instruction])
    if (text !== undefined) system.push({ type: 'text', text });
  const messages = writeTurns(turns, names);
  const stop_sequences = conversation.stop.filter((each) => each.trim() !== '');
  const format = plan.native?.schema && { format: { type: 'json_schema', schema: plan.native.schema } };
  const body: JsonObject = { model: target.model, max_tokens, messages };
  if (system.length > 0) body['system'] = system.map(writeText);
  if (stop_sequences.length > 0) body['stop_sequences'] = stop_sequences;
  if (thought.thinking) body['thinking'] = thought.thinking;
  if (thought.output_config || format) body['output_config'] = { ...thought.output_config, ...format };
  if (!thought.is_on && quirks.sampling !== false) writeSampling(body, conversation);
  writeTools(body, conversation, { ...plan, tool_choice: forced.tool_choice ?? plan.tool_choice }, { names, quirks });
  if (conversation.user !== undefined) body['metadata'] = { user_id: conversation.user };
  if (request.stream) body['stream'] = true;
  return { body, ...(plan.json_tool !== undefined && { json_tool: plan.json_tool }), ...names.changed };
}

function writeTurns(turns: readonly Turn[], names: ToolNames): JsonObject[] {
  const messages: { role: string; content: JsonObject[] }[] = [];
  for (const { role, parts } of turns) {
    const content: JsonObject[] = [];
    for (const part of parts) append(content, writePart(part, names));
    const last = messages.at(-1);
    if (content.length === 0) continue;
    // A turn between two others may have held nothing.
    if (last?.role === role) append(last.content, content);
    else messages.push({ role, content });
  }
  if (messages.length === 0) throw mistake('messages', 'must hold some text');
  // A greeting of the assistant's may begin a chat there; here a user's turn must.
  if (messages[0]?.role !== 'user') messages.unshift({ role: 'user', content: [{ type: 'text', text: opening }] });
  trimLast(messages);
  return messages;
}

/** A last turn of the assistant's may not end in white space. */
function trimLast(messages: readonly { role: string; content: JsonObject[] }[]): void {
  const last = messages.at(-1);
  const block = last?.content.at(-1);
  if (last?.role !== 'assistant' || block?.['type'] !== 'text' || typeof block['text'] !== 'string') return;
  block['text'] = block['text'].trimEnd();
}

function writePart(part: Part, names: ToolNames): JsonObject[] {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return part.text.trim() === '' ? [] : [writeText(part)];
    case 'image':
      checkImageType(part.source, part.at);
      return [{ type: 'image', source: { ...part.source }, ...cached(part) }];
    case 'document':
      return [writeDocument(part)];
    case 'audio':
      throw notCarried(part.at, 'Audio');
    case 'tool_call':
      return [
        {
          type: 'tool_use',
          id: safeId(part.id),
          name: names.forUpstream(part.name),
          input: inputOf(part.arguments),
          ...cached(part),
        },
      ];
    case 'tool_result':
      return [writeResult(part, names)];
    case 'thinking':
      // Without a signature it is not of this upstream's making, which would refuse it.
      if (part.signature === undefined || isForeign(part.signature)) return [];
      return [{ type: 'thinking', thinking: part.text, signature: part.signature }];
    case 'redacted_thinking':
      return [{ type: 'redacted_thinking', data: part.data }];
    case 'web_search':
    case 'made_image':
      return []; // in answers alone
  }
}

function writeText(part: TextPart | PartOf<'refusal'>): JsonObject {
  return { type: 'text', text: part.text, ...(part.type === 'text' && cached(part)) };
}

function cached(part: { cache_control?: Json }): JsonObject {
  return part.cache_control === undefined ? {} : { cache_control: part.cache_control };
}

function writeDocument(part: PartOf<'document'>): JsonObject {
  const { source, title } = part;
  if (source.type === 'base64' && source.media_type !== 'application/pdf') {
    throw notCarried(part.at, 'A file that is neither PDF nor text');
  }
  const written: JsonObject =
    source.type === 'text' ? { type: 'text', media_type: 'text/plain', data: source.text } : { ...source };
  return { type: 'document', source: written, ...(title !== undefined && { title }), ...cached(part) };
}

function writeResult(part: PartOf<'tool_result'>, names: ToolNames): JsonObject {
  const content = part.parts.flatMap((each) => writePart(each, names));
  return {
    type: 'tool_result',
    tool_use_id: safeId(part.id),
    ...(content.length > 0 && { content }),
    ...(part.is_error && { is_error: true }),
    ...cached(part),
  };
}

/** Newer models refuse temperature and top_p together, and temperatures above 1. */
function writeSampling(body: JsonObject, { temperature, top_p, top_k }: Conversation): void {
  if (temperature !== undefined) body['temperature'] = Math.min(Math.max(temperature, 0), 1);
  else if (top_p !== undefined) body['top_p'] = top_p;
  if (top_k !== undefined) body['top_k'] = top_k;
}

/** Models that cannot be made to call a tool are told to. */
function forcedBy({ tool_choice }: JsonPlan, quirks: Quirks): { tool_choice?: ToolChoice; instruction?: string } {
  if (!tool_choice) return {};
  if (quirks.forced_tools !== false) return { tool_choice };
  if (tool_choice.mode === 'any') return { tool_choice: { mode: 'auto' }, instruction: 'Call one of the tools now.' };
  if (tool_choice.mode !== 'one') return { tool_choice };
  return { tool_choice: { mode: 'auto' }, instruction: `Call the tool ${tool_choice.name} now.` };
}

/** More tools than this may not be strict. */
const strict_tools_max = 20;

function writeTools(
  body: JsonObject,
  conversation: Conversation,
  { tools, tool_choice, json_tool }: JsonPlan,
  { names, quirks }: { names: ToolNames; quirks: Quirks },
): void {
  if (tools.length === 0) return;
  const is_single = conversation.parallel_tool_calls === false || json_tool !== undefined;
  const choice = tool_choice ?? (is_single ? { mode: 'auto' as const } : undefined);
  const can_be_strict = (quirks.structured_output ?? 'native') === 'native';
  let strict_tools = 0;
  body['tools'] = tools.map((tool) => {
    const is_strict = can_be_strict && tool.strict === true && ++strict_tools <= strict_tools_max;
    return { ...writeTool(tool, names), ...(is_strict && { strict: true }) };
  });
  if (choice) body['tool_choice'] = writeChoice(choice, is_single, names);
}

/** The schema whole, with what must be at its top. */
function writeTool({ name, description, schema, cache_control }: Tool, names: ToolNames): JsonObject {
  const is_empty = Object.keys(schema).length === 0;
  return {
    name: names.forUpstream(name),
    ...(description !== undefined && description !== '' && { description }),
    input_schema: is_empty ? { type: 'object', properties: {} } : { ...withoutUnions(schema), type: 'object' },
    ...(cache_control !== undefined && { cache_control }),
  };
}

function writeChoice(choice: ToolChoice, is_single: boolean, names: ToolNames): JsonObject {
  if (choice.mode === 'none') return { type: 'none' };
  const single = is_single ? { disable_parallel_tool_use: true } : {};
  if (choice.mode === 'one') return { type: 'tool', name: names.forUpstream(choice.name), ...single };
  return { type: choice.mode, ...single };
}

/** There is no mode for any JSON without a schema. */
function nativeFormat(format: AnswerFormat): JsonPlan['native'] {
  if (format.type === 'json') return undefined;
  const schema = nativeSchema(describedSchema(format));
  return schema && { format, schema };
}

type ThinkingPlan = { is_on: boolean; thinking?: JsonObject; output_config?: JsonObject };

const nothing: ThinkingPlan = { is_on: false };

/** Writes the thinking for a messages upstream, in the form of its generation of models. */
function planThinking(conversation: Conversation, quirks: Quirks, max_tokens: number, plan: JsonPlan): ThinkingPlan {
  const { thinking } = conversation;
  const kind = quirks.thinking ?? 'adaptive';
  if (!thinking || kind === 'none' || plan.json_tool !== undefined) return nothing;
  if (thinking.mode === 'off') return kind === 'always' ? nothing : { is_on: false, thinking: { type: 'disabled' } };
  const { budget_tokens } = thinking;
  const effort = thinking.effort ?? (budget_tokens === undefined ? undefined : effortOfBudget(budget_tokens));
  if (kind !== 'budget') {
    return {
      is_on: true,
      ...(kind === 'adaptive' && { thinking: { type: 'adaptive' } }),
      ...(effort !== undefined && { output_config: { effort: effortName(effort) } }),
    };
  }
  const is_forced = plan.tool_choice?.mode === 'any' || plan.tool_choice?.mode === 'one';
  if (is_forced || isLoopUnsigned(conversation)) return nothing;
  const budget_wanted = Math.max(budget_tokens ?? budgetOf(effort ?? 'medium'), budget_tokens_min);
  const budget = Math.min(budget_wanted, max_tokens - answer_tokens_min);
  if (budget < budget_tokens_min) return nothing;
  return { is_on: true, thinking: { type: 'enabled', budget_tokens: budget } };
}

function effortName(effort: Effort): string {
  return effort === 'minimal' ? 'low' : effort;
}

/**
 * Amid a loop of tools, models that think by a budget want back the signed thinking with which the loop
 * began. Callers of the other style seldom send it back: such a turn goes on without thinking.
 */
function isLoopUnsigned({ turns }: Conversation): boolean {
  const last = turns.at(-1);
  const before = turns.at(-2);
  if (!last?.parts.some((part) => part.type === 'tool_result') || before?.role !== 'assistant') return false;
  return !before.parts.some(
    (part) => part.type === 'redacted_thinking' || (part.type === 'thinking' && isSigned(part.signature)),
  );
}

function isSigned(signature: string | undefined): boolean {
  return signature !== undefined && !isForeign(signature);
}
