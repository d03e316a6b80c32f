import type { JsonObject } from '../catalog/model.ts';
import type { AnswerFormat, Conversation, Tool, ToolChoice } from './conversation.ts';
import { contentsSchema } from './gemini/schema.ts';
import { nativeSchema } from './native-schema.ts';
import type { Target } from './quirks.ts';

/** How an upstream is made to answer JSON, with the tools and the choice that result. */
export type JsonPlan = {
  tools: Tool[];
  tool_choice?: ToolChoice | undefined;
  /** The upstream's own way: the schema as this upstream takes it, or none for any JSON. */
  native?: { format: AnswerFormat; schema?: JsonObject };
  /** To be added to the system prompt. */
  instruction?: string;
  json_tool?: string;
};

const json_tool = 'json_output';

/**
 * The best way that is left: the upstream's own; a tool that it is made to call, whose arguments are the
 * answer; an instruction. A forced tool would hide the caller's own tools.
 */
export function planJson(conversation: Conversation, target: Target): JsonPlan {
  const { format, tools, tool_choice } = conversation;
  const plan = { tools, tool_choice };
  if (!format) return plan;
  const way = target.quirks.structured_output ?? 'native';
  if (way === 'native' && (tools.length === 0 || target.quirks.format_with_tools !== false)) {
    const native = nativeFormat(format, target);
    if (native) return { ...plan, native };
  }
  if (format.type === 'json') {
    return { ...plan, instruction: 'Answer with one JSON object only: no other text, no code fence.' };
  }
  const is_object = format.schema['type'] === 'object';
  if (way !== 'prompt' && tools.length === 0 && target.quirks.forced_tools !== false && is_object) {
    const description = format.description ?? 'Gives the answer.';
    const tool = { name: json_tool, description, schema: format.schema };
    return { tools: [tool], tool_choice: { mode: 'one', name: json_tool }, json_tool };
  }
  const schema = JSON.stringify(describedSchema(format));
  const instruction = `Answer with JSON only: no other text, no code fence. It must be valid by this JSON Schema:\n${schema}`;
  return { ...plan, instruction };
}

/** Chat completions, responses and Gemini have a mode for any JSON; messages have none without a schema. */
function nativeFormat(format: AnswerFormat, target: Target): JsonPlan['native'] {
  if (target.style === 'completions' || target.style === 'responses') return { format };
  if (target.style === 'contents') {
    return format.type === 'json' ? { format } : { format, schema: contentsSchema(describedSchema(format)) };
  }
  if (format.type === 'json') return undefined;
  const schema = nativeSchema(describedSchema(format));
  return schema && { format, schema };
}

/** The schema with the description of the format, which has a place of its own in chat completions and responses alone. */
function describedSchema({ description, schema }: Extract<AnswerFormat, { type: 'json_schema' }>): JsonObject {
  if (description === undefined || description === '') return schema;
  const own = typeof schema['description'] === 'string' ? `\n${schema['description']}` : '';
  return { ...schema, description: description + own };
}
