import type { JsonObject } from '../../catalog/model.ts';
import type { AnswerFormat, Conversation, Tool, ToolChoice, Turn } from '../conversation.ts';
import {
  memberOf,
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
  wrongType,
} from '../fields.ts';
import { readEffort } from '../thinking.ts';

/** Reads the messages and all settings of a messages request. Throws ApiError 400 naming the field. */
export function readMessagesSettings(body: JsonObject, turns: Turn[]): Conversation {
  const servers = readList(body, 'mcp_servers', 'mcp_servers') ?? [];
  if (servers.length > 0) throw notCarried('mcp_servers', 'Tools of MCP servers');
  const tools = readTools(body);
  const choice = readObject(body, 'tool_choice', 'tool_choice');
  const tool_choice = choice && readChoice(choice, tools);
  const is_single = choice && readBoolean(choice, 'disable_parallel_tool_use', 'tool_choice.disable_parallel_tool_use');
  const max_tokens = readCount(body, 'max_tokens', 'max_tokens', 0);
  const temperature = readNumber(body, 'temperature', 'temperature');
  const top_p = readNumber(body, 'top_p', 'top_p');
  const top_k = readNumber(body, 'top_k', 'top_k');
  const format = readFormat(body);
  const thinking = readThinking(body);
  const metadata = readObject(body, 'metadata', 'metadata');
  const user = metadata && readText(metadata, 'user_id', 'metadata.user_id');
  return {
    turns,
    tools,
    stop: readStop(body),
    tool_choice,
    parallel_tool_calls: is_single === true ? false : undefined,
    max_tokens,
    temperature,
    top_p,
    top_k,
    format,
    thinking,
    user,
  };
}

function readStop(body: JsonObject): string[] {
  return (readList(body, 'stop_sequences', 'stop_sequences') ?? []).map((each, index) => {
    if (typeof each === 'string') return each;
    throw wrongType(`stop_sequences[${index}]`, 'a string', each);
  });
}

/** Tells whether a tool can be given to models of other styles: those that are found by a search are sent along with it. */
export function isFunction({ type }: JsonObject): boolean {
  return typeof type !== 'string' || type === 'custom' || type.startsWith('tool_search_tool');
}

/** Each tool has its own bound: they come to the sum. */
export function readToolBound(_body: JsonObject, tools: readonly JsonObject[]): number | undefined {
  const bounds = tools.map((tool) => readCount(tool, 'max_uses', 'tools.max_uses', 1));
  return bounds.includes(undefined) ? undefined : bounds.reduce<number>((sum, bound) => sum + (bound ?? 0), 0);
}

/** Writes the bound into the first of the tools; a further one would have the same again. */
export function writeToolBound(
  body: JsonObject,
  calls_max: number,
  isHosted: (tool: JsonObject) => boolean,
): JsonObject {
  let has_bound = false;
  const tools = (Array.isArray(body['tools']) ? body['tools'] : []).flatMap((tool) => {
    if (!isObject(tool) || !isHosted(tool)) return [tool];
    if (has_bound) return [];
    has_bound = true;
    return [{ ...tool, max_uses: calls_max }];
  });
  return { ...body, tools };
}

function readTools(body: JsonObject): Tool[] {
  return (readList(body, 'tools', 'tools') ?? []).flatMap((value, index): Tool[] => {
    const at = `tools[${index}]`;
    const tool = needObject(value, at);
    const type = readText(tool, 'type', `${at}.type`) ?? 'custom';
    // Tools that are found by a search are all sent along with it: another model is simply given all of them.
    if (type.startsWith('tool_search_tool')) return [];
    if (type !== 'custom') throw notCarried(`${at}.type`, 'A tool that the model’s own provider runs');
    const description = readText(tool, 'description', `${at}.description`);
    const strict = readBoolean(tool, 'strict', `${at}.strict`);
    return [
      {
        name: needName(tool, 'name', `${at}.name`),
        schema: needObject(tool['input_schema'], `${at}.input_schema`),
        ...(description !== undefined && { description }),
        ...(strict !== undefined && { strict }),
        ...(isObject(tool['cache_control']) && { cache_control: tool['cache_control'] }),
      },
    ];
  });
}

function readChoice(choice: JsonObject, tools: readonly Tool[]): ToolChoice {
  switch (choice['type']) {
    case 'auto':
      return { mode: 'auto' };
    case 'none':
      return { mode: 'none' };
    case 'any':
      if (tools.length === 0) throw mistake('tool_choice', 'must not be "any" without tools');
      return { mode: 'any' };
    case 'tool': {
      const name = needText(choice, 'name', 'tool_choice.name');
      if (!tools.some((tool) => tool.name === name)) {
        throw mistake('tool_choice.name', 'names no tool of this request');
      }
      return { mode: 'one', name };
    }
    default:
      throw mistake('tool_choice.type', 'must be one of auto, any, tool, none');
  }
}

/** `output_config.format`, or where it stood before. */
function readFormat(body: JsonObject): AnswerFormat | undefined {
  const config = readObject(body, 'output_config', 'output_config') ?? {};
  const is_new = memberOf(config, 'format') !== undefined;
  const at = is_new ? 'output_config.format' : 'output_format';
  const format = is_new ? readObject(config, 'format', at) : readObject(body, 'output_format', at);
  if (!format) return undefined;
  if (format['type'] !== 'json_schema') throw mistake(`${at}.type`, 'must be "json_schema"');
  return { type: 'json_schema', name: 'output', schema: needObject(format['schema'], `${at}.schema`) };
}

function readThinking(body: JsonObject): Conversation['thinking'] {
  const thinking = readObject(body, 'thinking', 'thinking');
  const config = isObject(body['output_config']) ? body['output_config'] : {};
  const effort = readEffort(config['effort']);
  const effort_member = effort && effort !== 'none' ? { effort } : {};
  switch (thinking?.['type']) {
    case undefined:
      return effort === undefined ? undefined : { mode: 'on', ...effort_member };
    case 'disabled':
      return { mode: 'off' };
    case 'adaptive':
    case 'between_tools':
      return { mode: 'on', ...effort_member };
    case 'enabled': {
      const budget_tokens = readCount(thinking ?? {}, 'budget_tokens', 'thinking.budget_tokens', 0);
      return { mode: 'on', ...(budget_tokens !== undefined && { budget_tokens }), ...effort_member };
    }
    default:
      throw mistake('thinking.type', 'must be one of adaptive, enabled, disabled, between_tools');
  }
}
