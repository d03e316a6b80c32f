import type { Json, JsonObject } from '../../catalog/model.ts';
import { inputOf } from '../calls.ts';
import type { Tool } from '../conversation.ts';
import { customInput, customTool } from '../custom-tools.ts';
import { isObject, memberOf, mistake, needName, needObject, notCarried, readText } from '../fields.ts';
import { readFunction } from '../settings.ts';

/**
 * Tools of the responses style as functions, for upstreams that have nothing else: those of namespaces, those that take a
 * free text, and the search for further tools that the caller runs. All of it is a function of the request, so that the
 * calls in an answer come back as calls of what the caller has defined.
 */

/** A tool as the caller calls it. */
export type CallerTool = { kind: 'function' | 'custom' | 'search'; name: string; namespace?: string };

/** The tools of a request by the names of their functions. */
export type CallerTools = ReadonlyMap<string, CallerTool>;

/** Items of the input that define tools. */
const defining_items: ReadonlySet<Json> = new Set(['additional_tools', 'tool_search_output']);

/** The search has no name of its own. */
export const search_name = 'tool_search';

/** The namespace of tools whose names stand alone. */
const plain_namespace = 'functions';

/** The name of the function for a tool, which is the same in every turn. */
export function functionName(name: string, namespace: string | undefined): string {
  if (namespace === undefined || namespace === '' || namespace === plain_namespace) return name;
  return namespace.endsWith('__') ? namespace + name : `${namespace}__${name}`;
}

/** Reads all tools of a request as functions; of several with one name the last. Throws ApiError 400 naming the field. */
export function readTools(body: JsonObject): Tool[] {
  const by_name = new Map<string, Tool>();
  for (const { entry, type, at, namespace } of toolsIn(body)) {
    const tool = readTool(entry, type, at);
    const name = functionName(tool.name, namespace?.name);
    const about = namespace?.description;
    const description = about === undefined ? tool.description : `${about}\n\n${tool.description ?? ''}`.trimEnd();
    by_name.set(name, { ...tool, name, ...(description !== undefined && { description }) });
  }
  return [...by_name.values()];
}

/** The tools of a request that was read before. */
export function callerTools(body: JsonObject): CallerTools {
  const tools = new Map<string, CallerTool>();
  for (const { entry, type, namespace } of toolsIn(body)) {
    const name = type === 'tool_search' ? search_name : entry['name'];
    const kind = kinds.get(type);
    if (!kind || typeof name !== 'string') continue; // not given to this model
    tools.set(functionName(name, namespace?.name), { kind, name, ...(namespace && { namespace: namespace.name }) });
  }
  return tools;
}

const kinds: ReadonlyMap<Json, CallerTool['kind']> = new Map([
  ['function', 'function'],
  ['custom', 'custom'],
  ['tool_search', 'search'],
]);

/** Tells whether a tool of a list can be given to models that know functions only; its namespace is looked at by itself. */
export function isFunctionLike(tool: JsonObject): boolean {
  const { type = null } = tool;
  return type === 'namespace' || (type === 'tool_search' ? tool['execution'] === 'client' : kinds.has(type));
}

/** `description`: of the namespace, with the first of its tools. */
type Entry = {
  entry: JsonObject;
  type: Json;
  at: string;
  namespace?: { name: string; description?: string };
};

/** Every definition of a tool in a body, with its place. Throws ApiError 400 for what is none. */
function* toolsIn(body: JsonObject): Generator<Entry> {
  yield* entriesOf(body, 'tools');
  const { input } = body;
  if (!Array.isArray(input)) return;
  for (const [index, item] of input.entries())
    if (isObject(item) && defining_items.has(item['type'] ?? null)) yield* entriesOf(item, `input[${index}].tools`);
}

function* entriesOf(holder: JsonObject, at: string): Generator<Entry> {
  for (const [index, value] of listIn(holder, at).entries()) {
    const where = `${at}[${index}]`;
    const entry = needObject(value, where);
    const { type = null } = entry;
    if (type !== 'namespace') yield { entry, type, at: where };
    else yield* namespacedIn(entry, where);
  }
}

function* namespacedIn(holder: JsonObject, at: string): Generator<Entry> {
  const name = needName(holder, 'name', `${at}.name`);
  const description = readText(holder, 'description', `${at}.description`) ?? '';
  for (const [index, value] of listIn(holder, `${at}.tools`).entries()) {
    const where = `${at}.tools[${index}]`;
    const entry = needObject(value, where);
    const namespace = { name, ...(index === 0 && description !== '' && { description }) };
    yield { entry, type: entry['type'] ?? null, at: where, namespace };
  }
}

function listIn(holder: JsonObject, at: string): Json[] {
  const list = memberOf(holder, 'tools');
  if (list === undefined) return [];
  if (!Array.isArray(list)) throw mistake(at, 'must be an array');
  return list;
}

function readTool(entry: JsonObject, type: Json, at: string): Tool {
  switch (type) {
    case 'function':
      return readFunction(entry, at);
    case 'custom':
      return customTool(entry, at);
    case 'tool_search':
      if (entry['execution'] === 'client') return readFunction({ ...entry, name: search_name }, at);
      throw notCarried(`${at}.type`, 'A search for tools that the provider runs');
    default:
      throw notCarried(`${at}.type`, 'A tool of this type');
  }
}

/** A call of a function as an item: of what the caller has defined under its name. */
export function writeToolCall(
  { call_id, name, arguments: text }: { call_id: string; name: string; arguments: string },
  tools: CallerTools | undefined,
): JsonObject {
  const own = tools?.get(name);
  const named = { call_id, name: own?.name ?? name, ...(own?.namespace !== undefined && { namespace: own.namespace }) };
  switch (own?.kind) {
    case 'custom':
      return { type: 'custom_tool_call', ...named, input: customInput(text) };
    case 'search':
      return { type: 'tool_search_call', call_id, execution: 'client', arguments: inputOf(text) };
    default:
      return { type: 'function_call', ...named, arguments: text || '{}' };
  }
}
