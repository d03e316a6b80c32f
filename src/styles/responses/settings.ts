import type { Json, JsonObject } from '../../catalog/model.ts';
import { readStop } from '../completions/settings.ts';
import type { AnswerFormat, Conversation, Tool } from '../conversation.ts';
import {
  memberOf,
  isObject,
  mistake,
  needText,
  notCarried,
  readBoolean,
  readCount,
  readObject,
  readText,
} from '../fields.ts';
import {
  chooseOne,
  namesOf,
  readAllowed,
  readChoiceWord,
  readCommon,
  effortOf,
  readSchemaFormat,
  type ChosenTools,
} from '../settings.ts';
import { functionName, readTools } from './tools.ts';

/** Everything in a responses request but its input and instructions. Throws ApiError 400 naming the field. */
export function readResponsesSettings(body: JsonObject): Omit<Conversation, 'turns'> {
  for (const field of uncarried) if (memberOf(body, field) !== undefined) throw notCarried(field, 'This');
  const chosen = readChoice(memberOf(body, 'tool_choice'), readTools(body));
  const parallel = readBoolean(body, 'parallel_tool_calls', 'parallel_tool_calls');
  const max_tokens = readCount(body, 'max_output_tokens', 'max_output_tokens', 1);
  const { seed } = body;
  return {
    ...chosen,
    stop: readStop(body),
    ...(typeof seed === 'number' && { seed }),
    ...(parallel !== undefined && { parallel_tool_calls: parallel }),
    ...(max_tokens !== undefined && { max_tokens }),
    ...readCommon(body, { readFormat, readThinking }),
  };
}

/** Fields that change the response and that no other style has. */
const uncarried = ['top_logprobs', 'context_management', 'moderation'] as const;

function readChoice(choice: Json | undefined, tools: Tool[]): ChosenTools {
  if (choice === undefined) return { tools };
  const word = readChoiceWord(choice, tools);
  if (word) return word;
  if (!isObject(choice)) throw mistake('tool_choice', 'must be "none", "auto", "required" or an object');
  const names = namesOf(tools);
  const readName = (holder: JsonObject, at: string) => nameIn(holder, names, at);
  if (choice['type'] === 'function' || choice['type'] === 'custom')
    return { tools, tool_choice: { mode: 'one', name: readName(choice, 'tool_choice') } };
  if (choice['type'] === 'allowed_tools') return readAllowed({ holder: choice, at: 'tool_choice', readName }, tools);
  throw notCarried('tool_choice.type', 'A choice of this type');
}

function nameIn(holder: JsonObject, names: ReadonlySet<string>, at: string): string {
  const namespace = readText(holder, 'namespace', `${at}.namespace`);
  const name = functionName(needText(holder, 'name', `${at}.name`), namespace);
  chooseOne(name, names, `${at}.name`);
  return name;
}

function readFormat(body: JsonObject): AnswerFormat | undefined {
  const at = 'text.format';
  const format = readObject(readObject(body, 'text', 'text') ?? {}, 'format', at);
  if (format === undefined || format['type'] === 'text') return undefined;
  if (format['type'] === 'json_object') return { type: 'json' };
  if (format['type'] !== 'json_schema') throw mistake(`${at}.type`, 'must be "text", "json_object" or "json_schema"');
  return readSchemaFormat(format, at);
}

/** A wish for a summary alone is no wish to think: models that do not think take it too. */
function readThinking(body: JsonObject): Conversation['thinking'] {
  const reasoning = readObject(body, 'reasoning', 'reasoning');
  const effort = reasoning && memberOf(reasoning, 'effort');
  return effort === undefined ? undefined : effortOf(effort, 'reasoning.effort');
}
