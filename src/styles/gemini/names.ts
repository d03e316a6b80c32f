import type { Json, JsonObject } from '../../catalog/model.ts';
import { isObject } from '../fields.ts';

/** Members that hold objects with names of the API's own; what is in all others belongs to the caller. */
type Shape = { readonly [member: string]: Shape };

const file_parts: Shape = { inlineData: {}, fileData: {}, videoMetadata: {} };
const content: Shape = {
  parts: { ...file_parts, functionCall: {}, functionResponse: { parts: file_parts } },
};
const request: Shape = {
  contents: content,
  systemInstruction: content,
  tools: { functionDeclarations: {} },
  toolConfig: { functionCallingConfig: {} },
  safetySettings: {},
  generationConfig: { thinkingConfig: {} },
};

/** Members that are lists; one alone may stand without its brackets. */
const lists: ReadonlySet<string> = new Set(['contents', 'parts', 'tools', 'functionDeclarations', 'safetySettings']);

/**
 * A request's body in one form. Its members may come as protocol buffers have them, with underscores, as many examples
 * write them, and one for a list of one. Each tool that Google runs stands alone, as a tool of its own.
 */
export function inOneForm(body: JsonObject): JsonObject {
  const formed = membersInForm(body, request);
  const { tools } = formed;
  return Array.isArray(tools) ? { ...formed, tools: tools.flatMap(eachAlone) } : formed;
}

/** The name of a member in one form. */
export function camelCase(name: string): string {
  return name.includes('_') ? name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()) : name;
}

function membersInForm(object: JsonObject, shape: Shape): JsonObject {
  const members = Object.entries(object).map(([key, value]): [string, Json] => {
    const name = camelCase(key);
    const inner = Object.hasOwn(shape, name) ? shape[name] : undefined;
    const listed = lists.has(name) && isObject(value) ? [value] : (value ?? null);
    const formed = inner ? inForm(listed, inner) : listed;
    return [name, name === 'inlineData' && isObject(formed) ? inStandardBase64(formed) : formed];
  });
  return Object.fromEntries(members);
}

/** The SDK for Python writes bytes with the two characters of addresses, which only Google's servers take. */
function inStandardBase64(inline: JsonObject): JsonObject {
  const { data } = inline;
  if (typeof data !== 'string' || !/[-_]/.test(data)) return inline;
  const standard = data.replaceAll('-', '+').replaceAll('_', '/');
  return { ...inline, data: standard.padEnd(Math.ceil(standard.length / 4) * 4, '=') };
}

function inForm(value: Json, shape: Shape): Json {
  if (Array.isArray(value)) return value.map((each) => inForm(each, shape));
  return isObject(value) ? membersInForm(value, shape) : value;
}

function eachAlone(tool: Json): Json[] {
  if (!isObject(tool)) return [tool];
  return Object.entries(tool).flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [{ [name]: value }],
  );
}
