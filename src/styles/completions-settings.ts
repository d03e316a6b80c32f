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
  wrongType,
} from './fields.ts';
import { readEffort } from './thinking.ts';

/** Everything in a chat-completions request but its messages. Throws ApiError 400 naming the field. */
export function readCompletionsSettings(body: JsonObject): Omit<Conversation, 'turns'> {
  refuseAudio(body);
  const tools = readTools(body);
  const chosen = readChoice(body, tools);
  const max_tokens =
    readCount(body, 'max_completion_tokens', 'max_completion_tokens', 1) ??
    readCount(body, 'max_tokens', 'max_tokens', 1);
  // An answer to `functions` has place for one call.
  const is_legacy = given(body, 'tools') === undefined && tools.length > 0;
  const parallel = is_legacy ? false : readBoolean(body, 'parallel_tool_calls', 'parallel_tool_calls');
  const temperature = readNumber(body, 'temperature', 'temperature');
  const top_p = readNumber(body, 'top_p', 'top_p');
  const { seed } = body;
  const format = readFormat(body);
  const thinking = readThinkingWish(body);
  const user = readText(body, 'safety_identifier', 'safety_identifier') ?? readText(body, 'user', 'user');
  return {
    tools: chosen.tools,
    stop: readStop(body),
    ...(chosen.tool_choice && { tool_choice: chosen.tool_choice }),
    ...(parallel !== undefined && { parallel_tool_calls: parallel }),
    ...(max_tokens !== undefined && { max_tokens }),
    ...(temperature !== undefined && { temperature }),
    ...(top_p !== undefined && { top_p }),
    ...(typeof seed === 'number' && { seed }),
    ...(format && { format }),
    ...(thinking && { thinking }),
    ...(user !== undefined && { user }),
  };
}

function refuseAudio(body: JsonObject): void {
  const modalities = readList(body, 'modalities', 'modalities') ?? [];
  if (modalities.includes('audio')) throw notCarried('modalities', 'A wish for spoken answers');
}

function readStop(body: JsonObject): string[] {
  const stop = given(body, 'stop');
  if (stop === undefined) return [];
  if (typeof stop === 'string') return [stop];
  if (!Array.isArray(stop)) throw wrongType('stop', 'a string or an array of strings', stop);
  return stop.map((each, index) => {
    if (typeof each === 'string') return each;
    throw wrongType(`stop[${index}]`, 'a string', each);
  });
}

function readTools(body: JsonObject): Tool[] {
  const tools = readList(body, 'tools', 'tools');
  if (tools !== undefined) {
    return tools.map((value, index) => {
      const at = `tools[${index}]`;
      const tool = needObject(value, at);
      if ((given(tool, 'type') ?? 'function') !== 'function') throw notCarried(`${at}.type`, 'A tool of this type');
      const { cache_control } = tool;
      const read = readFunction(tool['function'], `${at}.function`);
      return isObject(cache_control) ? { ...read, cache_control } : read;
    });
  }
  const functions = readList(body, 'functions', 'functions') ?? [];
  return functions.map((value, index) => readFunction(value, `functions[${index}]`));
}

function readFunction(value: Json | undefined, at: string): Tool {
  const tool = needObject(value, at);
  const description = readText(tool, 'description', `${at}.description`);
  const strict = readBoolean(tool, 'strict', `${at}.strict`);
  return {
    name: needName(tool, 'name', `${at}.name`),
    schema: readObject(tool, 'parameters', `${at}.parameters`) ?? {},
    ...(description !== undefined && { description }),
    ...(strict !== undefined && { strict }),
  };
}

type Chosen = { tools: Tool[]; tool_choice?: ToolChoice };

function readChoice(body: JsonObject, tools: Tool[]): Chosen {
  const choice = given(body, 'tool_choice');
  if (choice !== undefined) return readToolChoice(choice, tools);
  const legacy = given(body, 'function_call');
  if (legacy === undefined) return { tools };
  if (legacy === 'none' || legacy === 'auto') return { tools, tool_choice: { mode: legacy } };
  const name = needText(needObject(legacy, 'function_call'), 'name', 'function_call.name');
  return { tools, tool_choice: chooseOne(name, tools, 'function_call.name') };
}

function readToolChoice(choice: Json, tools: Tool[]): Chosen {
  if (choice === 'none' || choice === 'auto') return { tools, tool_choice: { mode: choice } };
  if (choice === 'required') {
    if (tools.length === 0) throw mistake('tool_choice', 'must not be "required" without tools');
    return { tools, tool_choice: { mode: 'any' } };
  }
  if (!isObject(choice)) throw mistake('tool_choice', 'must be "none", "auto", "required" or an object');
  switch (choice['type']) {
    case 'function': {
      const name = functionName(choice, 'tool_choice');
      return { tools, tool_choice: chooseOne(name, tools, 'tool_choice.function.name') };
    }
    case 'allowed_tools':
      return readAllowed(needObject(choice['allowed_tools'], 'tool_choice.allowed_tools'), tools);
    case 'custom':
      throw notCarried('tool_choice.type', 'A choice of a custom tool');
    default:
      throw mistake('tool_choice.type', 'must be "function", "custom" or "allowed_tools"');
  }
}

function functionName(holder: JsonObject, at: string): string {
  return needText(needObject(holder['function'], `${at}.function`), 'name', `${at}.function.name`);
}

function chooseOne(name: string, tools: readonly Tool[], at: string): ToolChoice {
  if (!tools.some((tool) => tool.name === name)) throw mistake(at, 'names no tool of this request');
  return { mode: 'one', name };
}

/** Only the tools on the list are given on: neither style says it otherwise. */
function readAllowed(allowed: JsonObject, tools: Tool[]): Chosen {
  const at = 'tool_choice.allowed_tools';
  const names = (readList(allowed, 'tools', `${at}.tools`) ?? []).map((value, index) => {
    const where = `${at}.tools[${index}]`;
    const name = functionName(needObject(value, where), where);
    chooseOne(name, tools, `${where}.function.name`);
    return name;
  });
  if (names.length === 0) throw mistake(`${at}.tools`, 'must not be empty');
  const mode = readText(allowed, 'mode', `${at}.mode`) ?? 'auto';
  if (mode !== 'auto' && mode !== 'required') throw mistake(`${at}.mode`, 'must be "auto" or "required"');
  return {
    tools: tools.filter(({ name }) => names.includes(name)),
    tool_choice: { mode: mode === 'auto' ? 'auto' : 'any' },
  };
}

function readFormat(body: JsonObject): AnswerFormat | undefined {
  const format = readObject(body, 'response_format', 'response_format');
  if (format === undefined) return undefined;
  switch (format['type']) {
    case 'text':
      return undefined;
    case 'json_object':
      return { type: 'json' };
    case 'json_schema':
      break;
    default:
      throw mistake('response_format.type', 'must be "text", "json_object" or "json_schema"');
  }
  const at = 'response_format.json_schema';
  const wanted = needObject(format['json_schema'], at);
  const schema = readObject(wanted, 'schema', `${at}.schema`);
  if (!schema) return { type: 'json' };
  const description = readText(wanted, 'description', `${at}.description`);
  const strict = readBoolean(wanted, 'strict', `${at}.strict`);
  return {
    type: 'json_schema',
    name: needName(wanted, 'name', `${at}.name`),
    schema,
    ...(description !== undefined && { description }),
    ...(strict !== undefined && { strict }),
  };
}

/** `reasoning_effort`, or what other vendors have in its place: `reasoning`, `thinking`. */
function readThinkingWish(body: JsonObject): Conversation['thinking'] {
  const effort = given(body, 'reasoning_effort');
  if (effort !== undefined) {
    const known = readEffort(effort);
    if (known === undefined) {
      throw mistake('reasoning_effort', 'must be one of none, minimal, low, medium, high, xhigh, max');
    }
    return known === 'none' ? { mode: 'off' } : { mode: 'on', effort: known };
  }
  const { reasoning, thinking } = body;
  if (isObject(reasoning)) {
    const known = readEffort(reasoning['effort']);
    if (known === 'none' || reasoning['enabled'] === false) return { mode: 'off' };
    const budget_tokens = readCount(reasoning, 'max_tokens', 'reasoning.max_tokens', 0);
    return { mode: 'on', ...(known && { effort: known }), ...(budget_tokens !== undefined && { budget_tokens }) };
  }
  if (!isObject(thinking)) return undefined;
  if (thinking['type'] === 'disabled') return { mode: 'off' };
  const budget_tokens = readCount(thinking, 'budget_tokens', 'thinking.budget_tokens', 0);
  return { mode: 'on', ...(budget_tokens !== undefined && { budget_tokens }) };
}
