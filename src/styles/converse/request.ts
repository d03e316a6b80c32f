import type { JsonObject } from '../../catalog/model.ts';
import { ToolNames } from '../calls.ts';
import type { ChatRequest, Target, UpstreamBody } from '../codec.ts';
import type { AnswerFormat, Conversation, Tool } from '../conversation.ts';
import { mistake } from '../fields.ts';
import { nativeSchema } from '../messages/schema.ts';
import type { Quirks } from '../quirks.ts';
import { describedSchema, planJson, type JsonPlan } from '../structured.ts';
import { placeSystem } from '../turns.ts';
import { familyOf, planThinking, type Family, type ThinkingPlan } from './families.ts';
import { marked, systemBlocks, TurnsWriter } from './turns.ts';

/** The body of a Converse request. Throws ApiError 400 naming the caller's field that has no place there. */
export function renderConverse(conversation: Conversation, request: ChatRequest, target: Target): UpstreamBody {
  if (request.n > 1) throw mistake('n', 'must be 1 for this model', 'unsupported_field');
  const quirks: Quirks = { structured_output: 'tool', ...target.quirks };
  const family = familyOf(target.model, quirks);
  const names = new ToolNames();
  const plan = planJson(conversation, quirks, nativeFormat);
  const max_tokens = Math.min(request.max_tokens ?? target.max_tokens, target.max_tokens);
  const thought = planThinking(conversation, { quirks, family, max_tokens, plan });
  const { system, turns } = placeSystem(conversation.turns, {});
  const writer = new TurnsWriter(names, family === 'claude');
  const messages = writer.write(turns);
  const { toolConfig, instructions } = writeTools(plan, { names, quirks, called: writer.called });
  const is_single = conversation.parallel_tool_calls === false && plan.tools.length > 0;
  const orders = [
    ...instructions,
    ...(plan.instruction === undefined ? [] : [plan.instruction]),
    ...(is_single ? ['Call at most one tool at a time.'] : []),
  ];
  const blocks = [...systemBlocks(system), ...orders.map((text) => ({ text }))];
  const more = { ...thought.fields, ...topK(conversation, family, quirks, thought) };
  const body: JsonObject = {
    messages,
    ...(blocks.length > 0 && { system: blocks }),
    inferenceConfig: writeConfig(conversation, { max_tokens, family, quirks, thought }),
    ...(toolConfig && { toolConfig }),
    ...(Object.keys(more).length > 0 && { additionalModelRequestFields: more }),
    ...(plan.native?.schema && { outputConfig: { textFormat: textFormat(plan.native.format, plan.native.schema) } }),
  };
  return { body, ...(plan.json_tool !== undefined && { json_tool: plan.json_tool }), ...names.changed };
}

type ConfigParts = { max_tokens: number; family: Family; quirks: Quirks; thought: ThinkingPlan };

/** Claude refuses temperature and top_p together, and both while it thinks. */
function writeConfig(conversation: Conversation, { max_tokens, family, quirks, thought }: ConfigParts): JsonObject {
  const stop = conversation.stop.filter((each) => each.trim() !== '');
  const { temperature, top_p } = conversation;
  const is_claude = family === 'claude';
  const is_sampled = quirks.sampling !== false && !(is_claude && thought.is_on);
  const has_both = temperature !== undefined && is_claude;
  return {
    maxTokens: max_tokens,
    ...(stop.length > 0 && { stopSequences: stop }),
    ...(is_sampled && temperature !== undefined && { temperature: Math.min(Math.max(temperature, 0), 1) }),
    ...(is_sampled && top_p !== undefined && !has_both && { topP: top_p }),
  };
}

/** Stands among the fields of each family's own; other models have no common name for it. */
function topK({ top_k }: Conversation, family: Family, quirks: Quirks, thought: ThinkingPlan): JsonObject {
  if (top_k === undefined || quirks.sampling === false) return {};
  if (family === 'claude') return thought.is_on ? {} : { top_k };
  return family === 'nova' ? { inferenceConfig: { topK: top_k } } : {};
}

type ToolParts = { names: ToolNames; quirks: Quirks; called: ReadonlySet<string> };

/** A conversation with calls must have tools, also where no more are to be called: those that it has called then. */
function writeTools(
  { tools, tool_choice }: JsonPlan,
  { names, quirks, called }: ToolParts,
): { toolConfig?: JsonObject; instructions: string[] } {
  if (tools.length === 0) {
    if (called.size === 0) return { instructions: [] };
    const specs = [...called].map((name) => ({ toolSpec: { name, inputSchema: { json: { type: 'object' } } } }));
    return { toolConfig: { tools: specs }, instructions: ['Call no tool any more.'] };
  }
  const specs = tools.flatMap((tool) => marked({ toolSpec: writeTool(tool, names, quirks) }, tool));
  const choice = tool_choice?.mode;
  if (choice === 'none') return { toolConfig: { tools: specs }, instructions: ['Call no tool now.'] };
  if (choice === undefined || choice === 'auto') {
    return { toolConfig: { tools: specs, ...(choice && { toolChoice: { auto: {} } }) }, instructions: [] };
  }
  const one = tool_choice?.mode === 'one' ? names.forUpstream(tool_choice.name) : undefined;
  if (quirks.forced_tools === false) {
    const instruction = one === undefined ? 'Call one of the tools now.' : `Call the tool ${one} now.`;
    return { toolConfig: { tools: specs }, instructions: [instruction] };
  }
  const toolChoice = one === undefined ? { any: {} } : { tool: { name: one } };
  return { toolConfig: { tools: specs, toolChoice }, instructions: [] };
}

function writeTool({ name, description, schema, strict }: Tool, names: ToolNames, quirks: Quirks): JsonObject {
  const is_empty = Object.keys(schema).length === 0;
  return {
    name: names.forUpstream(name),
    ...(description !== undefined && description !== '' && { description }),
    inputSchema: { json: is_empty ? { type: 'object', properties: {} } : { ...schema, type: 'object' } },
    ...(strict === true && quirks.structured_output === 'native' && { strict: true }),
  };
}

/** There is no mode for any JSON without a schema. */
function nativeFormat(format: AnswerFormat): JsonPlan['native'] {
  if (format.type === 'json') return undefined;
  const schema = nativeSchema(describedSchema(format));
  return schema && { format, schema };
}

/** The schema is a text there. */
function textFormat(format: AnswerFormat, schema: JsonObject): JsonObject {
  const name = format.type === 'json_schema' ? { name: format.name } : {};
  return { type: 'json_schema', structure: { jsonSchema: { schema: JSON.stringify(schema), ...name } } };
}
