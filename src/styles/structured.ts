import type { Json, JsonObject } from '../catalog/model.ts';
import type { AnswerFormat, Conversation, Tool, ToolChoice } from './conversation.ts';
import { isObject } from './fields.ts';
import type { Quirks } from './quirks.ts';

/** The way to make an upstream answer JSON, with the resulting tools and tool choice. */
export type JsonPlan = {
  tools: Tool[];
  tool_choice?: ToolChoice | undefined;
  /** The upstream's own way: the schema as this upstream takes it, or none for any JSON. */
  native?: { format: AnswerFormat; schema?: JsonObject };
  /** To be added to the system prompt. */
  instruction?: string;
  json_tool?: string;
};

/** The way of a style: undefined for a format that it has no words for. */
export type NativeFormat = (format: AnswerFormat) => JsonPlan['native'];

const json_tool = 'json_output';

/**
 * The best way that is left: the upstream's own; a tool that it is made to call, whose arguments are the
 * answer; an instruction. A forced tool would hide the caller's own tools.
 */
export function planJson(conversation: Conversation, quirks: Quirks, nativeFormat: NativeFormat): JsonPlan {
  const { format, tools, tool_choice } = conversation;
  const plan = { tools, tool_choice };
  if (!format) return plan;
  const way = quirks.structured_output ?? 'native';
  if (way === 'native' && (tools.length === 0 || quirks.format_with_tools !== false)) {
    const native = nativeFormat(format);
    if (native) return { ...plan, native };
  }
  if (format.type === 'json') {
    return { ...plan, instruction: 'Answer with one JSON object only: no other text, no code fence.' };
  }
  const is_object = format.schema['type'] === 'object';
  if (way !== 'prompt' && tools.length === 0 && quirks.forced_tools !== false && is_object) {
    const description = format.description ?? 'Gives the answer.';
    const tool = { name: json_tool, description, schema: format.schema };
    return { tools: [tool], tool_choice: { mode: 'one', name: json_tool }, json_tool };
  }
  const schema = JSON.stringify(describedSchema(format));
  const instruction = `Answer with JSON only: no other text, no code fence. It must be valid by this JSON Schema:\n${schema}`;
  return { ...plan, instruction };
}

/** The schema with the description of the format, for styles that have no place of its own for that. */
export function describedSchema({ description, schema }: Extract<AnswerFormat, { type: 'json_schema' }>): JsonObject {
  if (description === undefined || description === '') return schema;
  const own = typeof schema['description'] === 'string' ? `\n${schema['description']}` : '';
  return { ...schema, description: description + own };
}

/**
 * Returns true if `schema` keeps the rules of strict mode in chat completions: objects closed, every property required.
 */
export function isStrict(schema: Json): boolean {
  if (Array.isArray(schema)) return schema.every(isStrict);
  if (!isObject(schema)) return true;
  const { properties, required, additionalProperties } = schema;
  if (schema['type'] === 'object' || isObject(properties)) {
    const names = isObject(properties) ? Object.keys(properties) : [];
    if (additionalProperties !== false) return false;
    const all_required = new Set(Array.isArray(required) ? required : []);
    if (!names.every((name) => all_required.has(name))) return false;
  }
  return Object.values(schema).every(isStrict);
}
