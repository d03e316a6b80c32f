import type { Json, JsonObject } from '../../catalog/model.ts';
import type { AnswerFormat, Conversation, Effort, Tool, Turn } from '../conversation.ts';
import { customTool } from '../custom-tools.ts';
import {
  memberOf,
  isObject,
  mistake,
  needObject,
  needText,
  notCarried,
  readBoolean,
  readCount,
  readList,
  readObject,
  wrongType,
} from '../fields.ts';
import {
  chooseOne,
  namesOf,
  readAllowed,
  readChoiceWord,
  readCommon,
  effortOf,
  readFunction,
  readSchemaFormat,
  type ChosenTools,
} from '../settings.ts';
import type { Quirks } from '../quirks.ts';
import { effortOfBudget } from '../thinking.ts';

/** Reads the messages and all settings of a chat-completions request. Throws ApiError 400 naming the field. */
export function readCompletionsSettings(body: JsonObject, turns: Turn[]): Conversation {
  refuseAudio(body);
  const tools = readTools(body);
  const chosen = readChoice(body, tools);
  const max_tokens =
    readCount(body, 'max_completion_tokens', 'max_completion_tokens', 1) ??
    readCount(body, 'max_tokens', 'max_tokens', 1);
  // An answer to `functions` has place for one call.
  const is_legacy = !hasTools(body) && tools.length > 0;
  const parallel = is_legacy ? false : readBoolean(body, 'parallel_tool_calls', 'parallel_tool_calls');
  const { seed } = body;
  const common = readCommon(body, { readFormat, readThinking });
  return {
    turns,
    tools: chosen.tools,
    tool_choice: chosen.tool_choice,
    stop: readStop(body),
    parallel_tool_calls: parallel,
    max_tokens,
    seed: typeof seed === 'number' ? seed : undefined,
    ...common,
  };
}

function hasTools({ tools }: JsonObject): boolean {
  return Array.isArray(tools) && tools.length > 0;
}

function refuseAudio(body: JsonObject): void {
  const modalities = readList(body, 'modalities', 'modalities') ?? [];
  if (modalities.includes('audio')) throw notCarried('modalities', 'A wish for spoken answers');
}

/** Reads the texts to stop at. Throws ApiError 400. */
export function readStop(body: JsonObject): string[] {
  const stop = memberOf(body, 'stop');
  if (stop === undefined) return [];
  if (typeof stop === 'string') return [stop];
  if (!Array.isArray(stop)) throw wrongType('stop', 'a string or an array of strings', stop);
  return stop.map((each, index) => {
    if (typeof each === 'string') return each;
    throw wrongType(`stop[${index}]`, 'a string', each);
  });
}

function readTools(body: JsonObject): Tool[] {
  const tools = readList(body, 'tools', 'tools') ?? [];
  const functions = readList(body, 'functions', 'functions') ?? [];
  if (tools.length > 0) {
    if (functions.length > 0) throw mistake('functions', 'must not be used beside tools');
    return tools.map((value, index) => {
      const at = `tools[${index}]`;
      const tool = needObject(value, at);
      const type = memberOf(tool, 'type') ?? 'function';
      if (type === 'custom') return customTool(needObject(tool['custom'], `${at}.custom`), `${at}.custom`);
      if (type !== 'function') throw notCarried(`${at}.type`, 'A tool of this type');
      const { cache_control } = tool;
      const read = readFunction(tool['function'], `${at}.function`);
      return isObject(cache_control) ? { ...read, cache_control } : read;
    });
  }
  return functions.map((value, index) => readFunction(value, `functions[${index}]`));
}

function readChoice(body: JsonObject, tools: Tool[]): ChosenTools {
  const choice = memberOf(body, 'tool_choice');
  if (choice !== undefined) return readToolChoice(choice, tools);
  const legacy = memberOf(body, 'function_call');
  if (legacy === undefined) return { tools };
  if (legacy === 'none' || legacy === 'auto') return { tools, tool_choice: { mode: legacy } };
  const name = needText(needObject(legacy, 'function_call'), 'name', 'function_call.name');
  return { tools, tool_choice: chooseOne(name, namesOf(tools), 'function_call.name') };
}

function readToolChoice(choice: Json, tools: Tool[]): ChosenTools {
  const word = readChoiceWord(choice, tools);
  if (word) return word;
  if (!isObject(choice)) throw mistake('tool_choice', 'must be "none", "auto", "required" or an object');
  const names = namesOf(tools);
  const readName = (holder: JsonObject, at: string) => functionIn(holder, names, at);
  switch (choice['type']) {
    case 'function':
    case 'custom':
      return { tools, tool_choice: { mode: 'one', name: readName(choice, 'tool_choice') } };
    case 'allowed_tools': {
      const at = 'tool_choice.allowed_tools';
      return readAllowed({ holder: needObject(choice['allowed_tools'], at), at, readName }, tools);
    }
    default:
      throw mistake('tool_choice.type', 'must be "function", "custom" or "allowed_tools"');
  }
}

function functionIn(holder: JsonObject, names: ReadonlySet<string>, at: string): string {
  const field = holder['type'] === 'custom' ? 'custom' : 'function';
  const name = needText(needObject(holder[field], `${at}.${field}`), 'name', `${at}.${field}.name`);
  chooseOne(name, names, `${at}.${field}.name`);
  return name;
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
  return readSchemaFormat(needObject(format['json_schema'], at), at);
}

/** Reads `reasoning_effort`, or what other vendors have in its place: `reasoning`, `thinking`. */
export function readThinking(body: JsonObject): Conversation['thinking'] {
  const effort = memberOf(body, 'reasoning_effort');
  if (effort !== undefined) return effortOf(effort, 'reasoning_effort');
  const { reasoning, thinking } = body;
  if (isObject(reasoning)) return readReasoning(reasoning);
  if (!isObject(thinking)) return undefined;
  if (thinking['type'] === 'disabled') return { mode: 'off' };
  const budget_tokens = readCount(thinking, 'budget_tokens', 'thinking.budget_tokens', 0);
  return { mode: 'on', ...(budget_tokens !== undefined && { budget_tokens }) };
}

/** OpenRouter's: an effort or a budget; `enabled` alone is a medium effort, and nothing of them leaves it to the model. */
function readReasoning(reasoning: JsonObject): Conversation['thinking'] {
  const effort = memberOf(reasoning, 'effort');
  const chosen = effort === undefined ? undefined : effortOf(effort, 'reasoning.effort');
  const enabled = readBoolean(reasoning, 'enabled', 'reasoning.enabled');
  if (chosen?.mode === 'off' || enabled === false) return { mode: 'off' };
  const budget_tokens = readCount(reasoning, 'max_tokens', 'reasoning.max_tokens', 0);
  if (budget_tokens !== undefined) return { mode: 'on', ...chosen, budget_tokens };
  return chosen ?? (enabled === true ? { mode: 'on', effort: 'medium' } : undefined);
}

/** The effort of thinking as an upstream is told it; undefined where it is told none. */
export function effortOfThinking(thinking: Conversation['thinking'], quirks: Quirks): Effort | undefined {
  if (!thinking || quirks.reasoning_effort === false) return undefined;
  // Most models refuse the word that turns thinking off, and those that do not think need none.
  if (thinking.mode === 'off') return quirks.reasoning_effort === true ? 'none' : undefined;
  const { budget_tokens } = thinking;
  const effort = thinking.effort ?? (budget_tokens === undefined ? undefined : effortOfBudget(budget_tokens));
  return effort === 'max' ? 'xhigh' : effort;
}
