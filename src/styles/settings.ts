import type { Json, JsonObject } from '../catalog/model.ts';
import type { AnswerFormat, Conversation, Tool, ToolChoice } from './conversation.ts';
import { mistake, needName, needObject, readBoolean, readList, readNumber, readObject, readText } from './fields.ts';
import { readEffort } from './thinking.ts';

/** Settings that chat completions and responses read alike, wherever in the body each of them has them. */

type Readers = {
  readFormat: (body: JsonObject) => AnswerFormat | undefined;
  readThinking: (body: JsonObject) => Conversation['thinking'];
};

type Common = Pick<Conversation, 'temperature' | 'top_p' | 'top_k' | 'format' | 'thinking' | 'user'>;

/**
 * Reads the settings with the same name in both styles, around the others: of several mistakes the first in
 * this order is reported.
 */
export function readCommon(body: JsonObject, { readFormat, readThinking }: Readers): Common {
  const temperature = readNumber(body, 'temperature', 'temperature');
  const top_p = readNumber(body, 'top_p', 'top_p');
  const top_k = readNumber(body, 'top_k', 'top_k');
  const format = readFormat(body);
  const thinking = readThinking(body);
  const user = readText(body, 'safety_identifier', 'safety_identifier') ?? readText(body, 'user', 'user');
  return { temperature, top_p, top_k, format, thinking, user };
}

/** A function that the model may call. */
export function readFunction(value: Json | undefined, at: string): Tool {
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

export type ChosenTools = { tools: Tool[]; tool_choice?: ToolChoice };

/** A choice that is one word; undefined if it is none of them. */
export function readChoiceWord(choice: Json, tools: Tool[]): ChosenTools | undefined {
  if (choice === 'none' || choice === 'auto') return { tools, tool_choice: { mode: choice } };
  if (choice !== 'required') return undefined;
  if (tools.length === 0) throw mistake('tool_choice', 'must not be "required" without tools');
  return { tools, tool_choice: { mode: 'any' } };
}

export function namesOf(tools: readonly Tool[]): Set<string> {
  return new Set(tools.map(({ name }) => name));
}

/** The choice of the tool of this name, which must be among those that are `known`. */
export function chooseOne(name: string, names: ReadonlySet<string>, at: string): ToolChoice {
  if (!names.has(name)) throw mistake(at, 'names no tool of this request');
  return { mode: 'one', name };
}

type Allowed = {
  holder: JsonObject;
  /** Path of `holder` in the body. */
  at: string;
  /** The name of one on the list, which is checked. */
  readName: (tool: JsonObject, at: string) => string;
};

/** Keeps only the tools on the list: no style says it otherwise. */
export function readAllowed({ holder, at, readName }: Allowed, tools: Tool[]): ChosenTools {
  const list = (readList(holder, 'tools', `${at}.tools`) ?? []).map((value, index) => {
    const where = `${at}.tools[${index}]`;
    return readName(needObject(value, where), where);
  });
  const names = new Set(list);
  if (names.size === 0) throw mistake(`${at}.tools`, 'must not be empty');
  const mode = readText(holder, 'mode', `${at}.mode`) ?? 'auto';
  if (mode !== 'auto' && mode !== 'required') throw mistake(`${at}.mode`, 'must be "auto" or "required"');
  return {
    tools: tools.filter(({ name }) => names.has(name)),
    tool_choice: { mode: mode === 'auto' ? 'auto' : 'any' },
  };
}

/** A format by a schema; without one it is any JSON. */
export function readSchemaFormat(json_schema: JsonObject, at: string): AnswerFormat {
  const schema = readObject(json_schema, 'schema', `${at}.schema`);
  if (!schema) return { type: 'json' };
  const description = readText(json_schema, 'description', `${at}.description`);
  const strict = readBoolean(json_schema, 'strict', `${at}.strict`);
  return {
    type: 'json_schema',
    name: needName(json_schema, 'name', `${at}.name`),
    schema,
    ...(description !== undefined && { description }),
    ...(strict !== undefined && { strict }),
  };
}

/** Reads the effort of thinking, in the words of these styles. */
export function effortOf(effort: Json, at: string): Conversation['thinking'] {
  const level = readEffort(effort);
  if (level === undefined) throw mistake(at, 'must be one of none, minimal, low, medium, high, xhigh, max');
  return level === 'none' ? { mode: 'off' } : { mode: 'on', effort: level };
}
