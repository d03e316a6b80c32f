import type { ChatStyle } from '../../../../../src/dashboard/views/playground.ts';
import { isRecord } from '../../../api.ts';

type Fields = Record<string, unknown>;

/** Fields in a style of the playground, and the names of those that have no place there. */
type ReadFields = { fields: Fields; left_out: string[] };

/** The settings of a stored request as the playground sends them. `labels`: names of those that say for whom it was. */
export type ReadSettings = ReadFields & { style: ChatStyle; labels: string[] };

/** They count a call for an end user or a purpose: a call of the playground is for neither. */
const label_names = ['user', 'metadata', 'safety_identifier', 'labels'];

/** Reads the settings of a request in any style of chat. */
export function readSettings(style: string, stored: Fields): ReadSettings {
  const [labels, rest] = parted(stored, (name) => label_names.includes(name));
  return {
    ...(readers[style] ?? readTexts)(rest),
    style: style === 'messages' ? 'messages' : 'completions',
    labels: Object.keys(labels),
  };
}

const readers: Record<string, (stored: Fields) => ReadFields> = {
  completions: readCompletions,
  messages: readMessagesStyle,
  responses: readResponses,
  gemini: readGemini,
};

/** Fields that ask for more than one answer, or for one that the playground cannot show. */
const unshown = new Set(['n', 'store', 'modalities', 'audio']);

function readCompletions(stored: Fields): ReadFields {
  const [left_out, { max_completion_tokens, ...fields }] = parted(stored, (name) => unshown.has(name));
  const max_tokens = max_completion_tokens ?? fields['max_tokens'];
  return {
    fields: { ...fields, ...(max_tokens !== undefined && { max_tokens }) },
    left_out: Object.keys(left_out).filter((name) => name !== 'n' || stored[name] !== 1),
  };
}

/** The style is the same: tools that have a form in chat completions get it, as the box of tools says. */
function readMessagesStyle({ tools, ...fields }: Fields): ReadFields {
  return { fields: { ...fields, ...(Array.isArray(tools) && { tools: tools.map(functionOfMessages) }) }, left_out: [] };
}

const plain_tool_members = new Set(['type', 'name', 'description', 'input_schema']);

function functionOfMessages(tool: unknown): unknown {
  if (!isRecord(tool) || !isRecord(tool['input_schema'])) return tool;
  if (!Object.keys(tool).every((name) => plain_tool_members.has(name))) return tool;
  return functionTool(tool['name'], tool['description'], tool['input_schema']);
}

function functionTool(name: unknown, description: unknown, parameters: unknown, strict?: unknown): Fields {
  const members: Fields = { name, description, parameters, strict };
  return { type: 'function', function: parted(members, (member) => members[member] === undefined)[1] };
}

/** Fields that have the same name and meaning in chat completions. */
const common = new Set([
  'max_tokens',
  'temperature',
  'top_p',
  'top_k',
  'stop',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'parallel_tool_calls',
  'service_tier',
]);

/** The style of texts, and any that comes later. */
function readTexts(stored: Fields): ReadFields {
  const [fields, rest] = parted(stored, (name) => common.has(name));
  return { fields, left_out: Object.keys(rest) };
}

function readResponses(stored: Fields): ReadFields {
  const { max_output_tokens, reasoning, text, tools, tool_choice, ...others } = stored;
  const { fields, left_out } = readTexts(others);
  const [{ effort }, more_reasoning] = parted(objectIn(reasoning), (name) => name === 'effort');
  const { format, verbosity, ...more_text } = objectIn(text);
  const response_format = formatOf(format);
  const own = readTools(Array.isArray(tools) ? tools.map(functionOfResponses) : [], tools);
  const choice = choiceOf(tool_choice);
  return withTools(own, {
    fields: {
      ...fields,
      ...present({ max_tokens: max_output_tokens, reasoning_effort: effort, verbosity, response_format }),
      ...present({ tool_choice: choice }),
    },
    left_out: [
      ...left_out,
      ...Object.keys(more_reasoning).map((name) => `reasoning.${name}`),
      ...Object.keys(more_text).map((name) => `text.${name}`),
      ...(format !== undefined && !response_format && objectIn(format)['type'] !== 'text' ? ['text.format'] : []),
      ...(tool_choice !== undefined && choice === undefined ? ['tool_choice'] : []),
    ],
  });
}

function functionOfResponses(tool: unknown): Fields | undefined {
  const { type, name, description, parameters, strict } = objectIn(tool);
  return type === 'function'
    ? functionTool(name, description, parameters ?? undefined, strict ?? undefined)
    : undefined;
}

function choiceOf(choice: unknown): unknown {
  if (typeof choice === 'string') return choice;
  const { type, name } = objectIn(choice);
  return type === 'function' ? { type, function: { name } } : undefined;
}

function formatOf(format: unknown): Fields | undefined {
  const { type, ...json_schema } = objectIn(format);
  if (type === 'json_schema') return { type, json_schema };
  return type === 'json_object' ? { type } : undefined;
}

/** Names of Gemini's settings in chat completions. */
const gemini_names: Record<string, string> = {
  maxOutputTokens: 'max_tokens',
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  stopSequences: 'stop',
  seed: 'seed',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
};

function readGemini(stored: Fields): ReadFields {
  const { generationConfig, generation_config, tools, ...others } = stored;
  const config = objectIn(generationConfig ?? generation_config);
  const { thinkingConfig, responseMimeType, responseJsonSchema, ...rest } = config;
  const [settings, more] = parted(rest, (name) => Object.hasOwn(gemini_names, name));
  const { thinkingLevel, ...more_thinking } = objectIn(thinkingConfig);
  const schema = isRecord(responseJsonSchema) && { name: 'output', schema: responseJsonSchema };
  const is_json = responseMimeType === 'application/json' && { type: 'json_object' };
  const response_format = schema ? { type: 'json_schema', json_schema: schema } : is_json || undefined;
  return withTools(readTools(geminiFunctions(tools), tools), {
    fields: {
      ...Object.fromEntries(Object.entries(settings).map(([name, value]) => [gemini_names[name], value])),
      ...(typeof thinkingLevel === 'string' && { reasoning_effort: thinkingLevel.toLowerCase() }),
      ...present({ response_format }),
    },
    left_out: [
      ...Object.keys(others),
      ...Object.keys(more),
      ...Object.keys(more_thinking).map((name) => `thinkingConfig.${name}`),
    ],
  });
}

function geminiFunctions(tools: unknown): (Fields | undefined)[] {
  const list = Array.isArray(tools) ? tools.filter(isRecord) : [];
  return list.flatMap((tool) => {
    const declared = tool['functionDeclarations'] ?? tool['function_declarations'];
    if (!Array.isArray(declared)) return [undefined];
    return declared.filter(isRecord).map(({ name, description, parameters, parametersJsonSchema }) => {
      return functionTool(name, description, parametersJsonSchema ?? inLowerCase(parameters));
    });
  });
}

/** A schema of Gemini's has the types of JSON Schema in capitals. */
function inLowerCase(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(inLowerCase);
  if (!isRecord(schema)) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [
      name,
      name === 'type' && typeof value === 'string' ? value.toLowerCase() : inLowerCase(value),
    ]),
  );
}

type ReadTools = { tools: Fields[]; left_out: string[] };

/** Functions among the tools; `undefined` stands for a tool that a provider runs, which `stored` names. */
function readTools(functions: readonly (Fields | undefined)[], stored: unknown): ReadTools {
  const tools = functions.filter((tool) => tool !== undefined);
  if (tools.length === functions.length) return { tools, left_out: [] };
  const names = (Array.isArray(stored) ? stored : []).filter(isRecord).map((tool) => {
    return typeof tool['type'] === 'string' ? tool['type'] : Object.keys(tool).join(', ');
  });
  const others = [...new Set(names)].filter((name) => !/^function(?:Declarations|_declarations)?$/.test(name));
  return { tools, left_out: others.map((name) => `the tool ${name}`) };
}

/** Without tools nothing may be said about their choice. */
function withTools({ tools, left_out }: ReadTools, read: ReadFields): ReadFields {
  const { tool_choice, parallel_tool_calls, ...fields } = read.fields;
  const about_tools = present({ tool_choice, parallel_tool_calls });
  return {
    fields: { ...fields, ...(tools.length > 0 && { tools, ...about_tools }) },
    left_out: [...read.left_out, ...left_out],
  };
}

function objectIn(value: unknown): Fields {
  return isRecord(value) ? value : {};
}

function present(fields: Fields): Fields {
  return parted(fields, (name) => fields[name] === undefined || fields[name] === null)[1];
}

/** The members that pass, and the others. */
function parted(fields: Fields, passes: (name: string) => boolean): [Fields, Fields] {
  const entries = Object.entries(fields);
  return [
    Object.fromEntries(entries.filter(([name]) => passes(name))),
    Object.fromEntries(entries.filter(([name]) => !passes(name))),
  ];
}
