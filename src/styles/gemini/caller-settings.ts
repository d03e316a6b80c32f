import type { JsonObject } from '../../catalog/model.ts';
import type { AnswerFormat, Conversation, Effort, Tool, ToolChoice, Turn } from '../conversation.ts';
import {
  memberOf,
  mistake,
  needName,
  needObject,
  notCarried,
  readBoolean,
  readCount,
  readList,
  readNumber,
  readObject,
  readText,
  wrongType,
} from '../fields.ts';
import { jsonSchemaOf } from './caller-schema.ts';

const config_at = 'generationConfig';

/** Reads all settings of a `generateContent` request. Throws ApiError 400 naming the field. */
export function readSettings(body: JsonObject, turns: Turn[]): Conversation {
  if (memberOf(body, 'cachedContent') !== undefined) throw notCarried('cachedContent', 'A cache of Google’s');
  const config = readObject(body, config_at, config_at) ?? {};
  checkModalities(config);
  const { tools, tool_choice } = choose(readTools(body), body);
  const at = (name: string): string => `${config_at}.${name}`;
  return {
    turns,
    tools,
    tool_choice,
    stop: readTexts(config, 'stopSequences', at('stopSequences')),
    max_tokens: readCount(config, 'maxOutputTokens', at('maxOutputTokens'), 1),
    temperature: readNumber(config, 'temperature', at('temperature')),
    top_p: readNumber(config, 'topP', at('topP')),
    top_k: readNumber(config, 'topK', at('topK')),
    seed: readNumber(config, 'seed', at('seed')),
    format: readFormat(config),
    thinking: readThinking(config),
  };
}

function readTexts(holder: JsonObject, name: string, at: string): string[] {
  return (readList(holder, name, at) ?? []).map((each, index) => {
    if (typeof each === 'string') return each;
    throw wrongType(`${at}[${index}]`, 'a string', each);
  });
}

function checkModalities(config: JsonObject): void {
  const at = `${config_at}.responseModalities`;
  const others = readTexts(config, 'responseModalities', at).filter((each) => each.toUpperCase() !== 'TEXT');
  if (others.length > 0) throw notCarried(at, 'A request for more than text');
}

/** Tells the type of a tool that Google runs or that its models alone know; undefined for functions. */
export function typeOfTool(tool: JsonObject): string | undefined {
  return Object.keys(tool).find((name) => name !== 'functionDeclarations');
}

function readTools(body: JsonObject): Tool[] {
  return (readList(body, 'tools', 'tools') ?? []).flatMap((value, index) => {
    const at = `tools[${index}]`;
    const tool = needObject(value, at);
    const type = typeOfTool(tool);
    if (type !== undefined) throw notCarried(`${at}.${type}`, 'A tool that the model’s own provider runs');
    const declarations = readList(tool, 'functionDeclarations', `${at}.functionDeclarations`) ?? [];
    return declarations.map((each, place) => readDeclaration(each, `${at}.functionDeclarations[${place}]`));
  });
}

function readDeclaration(value: Parameters<typeof needObject>[0], at: string): Tool {
  const declaration = needObject(value, at);
  const description = readText(declaration, 'description', `${at}.description`);
  const schema =
    readObject(declaration, 'parametersJsonSchema', `${at}.parametersJsonSchema`) ??
    jsonSchemaOf(readObject(declaration, 'parameters', `${at}.parameters`) ?? {});
  return {
    name: needName(declaration, 'name', `${at}.name`),
    schema,
    ...(description !== undefined && { description }),
  };
}

/** Reads the choice. A model that has to call one of some functions is given those alone. */
function choose(tools: Tool[], body: JsonObject): { tools: Tool[]; tool_choice?: ToolChoice } {
  const at = 'toolConfig.functionCallingConfig';
  const tool_config = readObject(body, 'toolConfig', 'toolConfig') ?? {};
  const config = readObject(tool_config, 'functionCallingConfig', at);
  if (!config || tools.length === 0) return { tools };
  const allowed = readTexts(config, 'allowedFunctionNames', `${at}.allowedFunctionNames`);
  const unknown = allowed.find((name) => !tools.some((tool) => tool.name === name));
  if (unknown !== undefined) throw mistake(`${at}.allowedFunctionNames`, 'names no function of this request');
  const chosen = allowed.length === 0 ? tools : tools.filter(({ name }) => allowed.includes(name));
  switch ((readText(config, 'mode', `${at}.mode`) ?? 'AUTO').toUpperCase()) {
    case 'ANY': {
      const [only] = allowed;
      if (only !== undefined && allowed.length === 1) return { tools, tool_choice: { mode: 'one', name: only } };
      return { tools: chosen, tool_choice: { mode: 'any' } };
    }
    case 'NONE':
      return { tools, tool_choice: { mode: 'none' } };
    case 'AUTO':
      return { tools, tool_choice: { mode: 'auto' } };
    case 'VALIDATED':
      return { tools: chosen, tool_choice: { mode: 'auto' } };
    case 'MODE_UNSPECIFIED':
      return { tools };
    default:
      throw mistake(`${at}.mode`, 'must be one of AUTO, ANY, NONE, VALIDATED');
  }
}

function readFormat(config: JsonObject): AnswerFormat | undefined {
  const own = readObject(config, 'responseSchema', `${config_at}.responseSchema`);
  const schema =
    readObject(config, 'responseJsonSchema', `${config_at}.responseJsonSchema`) ?? (own && jsonSchemaOf(own));
  const at = `${config_at}.responseMimeType`;
  const type = readText(config, 'responseMimeType', at) ?? '';
  if (type === 'text/x.enum') throw notCarried(at, 'A word of a list as the answer');
  if (type !== '' && type !== 'text/plain' && type !== 'application/json')
    throw notCarried(at, 'An answer of this type');
  if (schema) return { type: 'json_schema', name: 'output', schema };
  return type === 'application/json' ? { type: 'json' } : undefined;
}

const levels: ReadonlyMap<string, Effort> = new Map([
  ['MINIMAL', 'minimal'],
  ['LOW', 'low'],
  ['MEDIUM', 'medium'],
  ['HIGH', 'high'],
]);

/** A budget of -1 leaves it to the model. */
function readThinking(config: JsonObject): Conversation['thinking'] {
  const at = `${config_at}.thinkingConfig`;
  const thinking = readObject(config, 'thinkingConfig', at);
  if (!thinking) return undefined;
  const budget_tokens = readNumber(thinking, 'thinkingBudget', `${at}.thinkingBudget`);
  if (budget_tokens === 0) return { mode: 'off' };
  const level = readText(thinking, 'thinkingLevel', `${at}.thinkingLevel`)?.toUpperCase();
  const effort = level === undefined ? undefined : levels.get(level);
  const shows = readBoolean(thinking, 'includeThoughts', `${at}.includeThoughts`) === true;
  if (effort !== undefined) return { mode: 'on', effort };
  if (budget_tokens !== undefined && budget_tokens > 0) return { mode: 'on', budget_tokens: Math.ceil(budget_tokens) };
  return shows || budget_tokens !== undefined ? { mode: 'on' } : undefined;
}

/** Tells whether the caller wants to see what the model thinks. */
export function showsThoughts({ generationConfig }: JsonObject): boolean {
  const config = needObject(generationConfig ?? {}, config_at);
  return readObject(config, 'thinkingConfig', `${config_at}.thinkingConfig`)?.['includeThoughts'] === true;
}
