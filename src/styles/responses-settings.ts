import type { Json, JsonObject } from '../catalog/model.ts';
import type { AnswerFormat, Conversation, Tool, ToolChoice } from './conversation.ts';
import {
  given,
  isObject,
  mistake,
  needName,
  needObject,
  needText,
  notCarried,
  readBoolean,
  readCount,
  readList,
  readNumber,
  readObject,
  readText,
} from './fields.ts';
import { readEffort } from './thinking.ts';

/** Everything in a responses request but its input and instructions. Throws ApiError 400 naming the field. */
export function readResponsesSettings(body: JsonObject): Omit<Conversation, 'turns'> {
  for (const field of uncarried) if (given(body, field) !== undefined) throw notCarried(field, 'This');
  const chosen = readChoice(given(body, 'tool_choice'), readTools(body));
  const parallel = readBoolean(body, 'parallel_tool_calls', 'parallel_tool_calls');
  const max_tokens = readCount(body, 'max_output_tokens', 'max_output_tokens', 1);
  const temperature = readNumber(body, 'temperature', 'temperature');
  const top_p = readNumber(body, 'top_p', 'top_p');
  const format = readFormat(body);
  const thinking = readThinkingWish(body);
  const user = readText(body, 'safety_identifier', 'safety_identifier') ?? readText(body, 'user', 'user');
  return {
    tools: chosen.tools,
    stop: [],
    ...(chosen.tool_choice && { tool_choice: chosen.tool_choice }),
    ...(parallel !== undefined && { parallel_tool_calls: parallel }),
    ...(max_tokens !== undefined && { max_tokens }),
    ...(temperature !== undefined && { temperature }),
    ...(top_p !== undefined && { top_p }),
    ...(format && { format }),
    ...(thinking && { thinking }),
    ...(user !== undefined && { user }),
  };
}

/** What changes the answer, and what no other style has a word for. */
const uncarried = ['top_logprobs', 'context_management', 'moderation'] as const;

function readTools(body: JsonObject): Tool[] {
  return (readList(body, 'tools', 'tools') ?? []).map((value, index) => {
    const at = `tools[${index}]`;
    const tool = needObject(value, at);
    if (tool['type'] !== 'function') throw notCarried(`${at}.type`, 'A tool of this type');
    const description = readText(tool, 'description', `${at}.description`);
    const strict = readBoolean(tool, 'strict', `${at}.strict`);
    return {
      name: needName(tool, 'name', `${at}.name`),
      schema: readObject(tool, 'parameters', `${at}.parameters`) ?? {},
      ...(description !== undefined && { description }),
      ...(strict !== undefined && { strict }),
    };
  });
}

type Chosen = { tools: Tool[]; tool_choice?: ToolChoice };

function readChoice(choice: Json | undefined, tools: Tool[]): Chosen {
  if (choice === undefined) return { tools };
  if (choice === 'none' || choice === 'auto') return { tools, tool_choice: { mode: choice } };
  if (choice === 'required') {
    if (tools.length === 0) throw mistake('tool_choice', 'must not be "required" without tools');
    return { tools, tool_choice: { mode: 'any' } };
  }
  if (!isObject(choice)) throw mistake('tool_choice', 'must be "none", "auto", "required" or an object');
  if (choice['type'] === 'function')
    return { tools, tool_choice: { mode: 'one', name: nameIn(choice, tools, 'tool_choice') } };
  if (choice['type'] === 'allowed_tools') return readAllowed(choice, tools);
  throw notCarried('tool_choice.type', 'A choice of this type');
}

function nameIn(holder: JsonObject, tools: readonly Tool[], at: string): string {
  const name = needText(holder, 'name', `${at}.name`);
  if (!tools.some((tool) => tool.name === name)) throw mistake(`${at}.name`, 'names no tool of this request');
  return name;
}

/** Only the tools on the list are given on. */
function readAllowed(choice: JsonObject, tools: Tool[]): Chosen {
  const at = 'tool_choice.tools';
  const allowed = readList(choice, 'tools', at) ?? [];
  const names = allowed.map((each, index) => nameIn(needObject(each, `${at}[${index}]`), tools, `${at}[${index}]`));
  if (names.length === 0) throw mistake(at, 'must not be empty');
  const mode = readText(choice, 'mode', 'tool_choice.mode') ?? 'auto';
  if (mode !== 'auto' && mode !== 'required') throw mistake('tool_choice.mode', 'must be "auto" or "required"');
  return {
    tools: tools.filter(({ name }) => names.includes(name)),
    tool_choice: { mode: mode === 'auto' ? 'auto' : 'any' },
  };
}

function readFormat(body: JsonObject): AnswerFormat | undefined {
  const at = 'text.format';
  const format = readObject(readObject(body, 'text', 'text') ?? {}, 'format', at);
  if (format === undefined || format['type'] === 'text') return undefined;
  if (format['type'] === 'json_object') return { type: 'json' };
  if (format['type'] !== 'json_schema') throw mistake(`${at}.type`, 'must be "text", "json_object" or "json_schema"');
  const schema = readObject(format, 'schema', `${at}.schema`);
  if (!schema) return { type: 'json' };
  const description = readText(format, 'description', `${at}.description`);
  const strict = readBoolean(format, 'strict', `${at}.strict`);
  return {
    type: 'json_schema',
    name: needName(format, 'name', `${at}.name`),
    schema,
    ...(description !== undefined && { description }),
    ...(strict !== undefined && { strict }),
  };
}

/** A wish for a summary alone is no wish to think: models that do not think take it too. */
function readThinkingWish(body: JsonObject): Conversation['thinking'] {
  const reasoning = readObject(body, 'reasoning', 'reasoning');
  const effort = reasoning && given(reasoning, 'effort');
  if (effort === undefined) return undefined;
  const known = readEffort(effort);
  if (known === undefined) {
    throw mistake('reasoning.effort', 'must be one of none, minimal, low, medium, high, xhigh, max');
  }
  return known === 'none' ? { mode: 'off' } : { mode: 'on', effort: known };
}
