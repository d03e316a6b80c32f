import type { Json, JsonObject } from '../catalog/model.ts';
import type { ChatRequest } from './codec.ts';
import { isObject, mistake } from './fields.ts';
import { showValue } from '../lib/show-value.ts';

/**
 * Tools that a provider runs, or that only its own models know: a search, code, a computer. An upstream that does not
 * have them, or that nobody pays for them, gets the request without: a model decides by itself whether it uses a tool, so
 * its answer is one all the same. Only where the caller makes it use the tool, the request is refused.
 */

/** Decides which tools of a request an upstream gets. */
export type KeepsTool = (tool: JsonObject) => boolean;

export type ReducedRequest = { request: ChatRequest; left_out: string[] };

type Removed = { type: string; at: string; tool: JsonObject };

/**
 * The request without the tools that the upstream does not get, and their types; the same object if it gets all. Throws
 * ApiError 400 naming the tool that the caller's choice forces.
 */
export function withoutTools(request: ChatRequest, keeps: KeepsTool, fields: readonly string[] = []): ReducedRequest {
  const { body } = request;
  const { tools, input } = body;
  const { typeOfTool } = request.style.caller;
  const removed: Removed[] = [];
  const changed: JsonObject = {};
  if (Array.isArray(tools)) changed['tools'] = reduceList(tools, 'tools', keeps, removed);
  if (Array.isArray(input) && input.some(hasTools)) changed['input'] = reduceItems(input, keeps, removed);
  const left_fields = fields.filter((field) => Array.isArray(body[field]) && body[field].length > 0);
  if (removed.length === 0 && left_fields.length === 0) return { request, left_out: [] };
  const reduced: JsonObject = { ...body, ...changed };
  for (const field of left_fields) delete reduced[field];
  adaptChoice(reduced, removed);
  const types = removed.map(({ type, tool }) => typeOfTool?.(tool) ?? type);
  const left_out = [...new Set([...types, ...left_fields])];
  return { request: { ...request, body: reduced }, left_out };
}

function hasTools(item: Json): boolean {
  return isObject(item) && Array.isArray(item['tools']);
}

/** Items of a conversation that add tools to it. */
function reduceItems(input: readonly Json[], keeps: KeepsTool, removed: Removed[]): Json[] {
  return input.map((item, index) => {
    if (!isObject(item) || !Array.isArray(item['tools']) || item['type'] === 'mcp_list_tools') return item;
    const tools = reduceList(item['tools'], `input[${index}].tools`, keeps, removed);
    return tools === item['tools'] ? item : { ...item, tools };
  });
}

/** Those of a list that go on, and of its namespaces; the same list if all do. */
function reduceList(tools: Json[], at: string, keeps: KeepsTool, removed: Removed[]): Json[] {
  const before = removed.length;
  const list = tools.flatMap((tool, index): Json[] => {
    const where = `${at}[${index}]`;
    if (!isObject(tool)) return [tool];
    if (tool['type'] === 'namespace' && Array.isArray(tool['tools'])) {
      const inner = reduceList(tool['tools'], `${where}.tools`, keeps, removed);
      if (inner === tool['tools']) return [tool];
      return inner.length === 0 ? [] : [{ ...tool, tools: inner }];
    }
    if (keeps(tool)) return [tool];
    removed.push({ type: typeof tool['type'] === 'string' ? tool['type'] : 'tool', at: where, tool });
    return [];
  });
  return removed.length === before ? tools : list;
}

/** The choice among the tools that are left. */
function adaptChoice(body: JsonObject, removed: readonly Removed[]): void {
  const { tool_choice: choice = null } = body;
  for (const each of removed) if (namesTool(choice, each)) throw forced(each);
  const has_any = anyLeft(body);
  const [first] = removed;
  if (first && !has_any && (choice === 'required' || (isObject(choice) && choice['type'] === 'any')))
    throw forced(first);
  if (isObject(choice) && choice['type'] === 'allowed_tools') adaptAllowed(body, choice, removed);
  if (has_any) return;
  for (const field of ['tools', 'tool_choice', 'parallel_tool_calls']) delete body[field];
}

function anyLeft({ tools, functions, input }: JsonObject): boolean {
  const lists = [
    tools,
    functions,
    ...(Array.isArray(input) ? input.filter(isObject).map((item) => item['tools']) : []),
  ];
  return lists.some((list) => Array.isArray(list) && list.length > 0);
}

function namesTool(choice: Json, { type, tool }: Removed): boolean {
  if (!isObject(choice)) return false;
  if (choice['type'] === 'tool') return choice['name'] === tool['name'];
  return choice['type'] === type;
}

/** A list of the tools that may be used names those that are left out too. */
function adaptAllowed(body: JsonObject, choice: JsonObject, removed: readonly Removed[]): void {
  const { tools } = choice;
  if (!Array.isArray(tools)) return;
  const isRemoved = (each: Json) => removed.some((one) => namesTool(each, one));
  const list = tools.filter((each) => !isRemoved(each));
  const [first] = removed;
  if (list.length === tools.length || !first) return;
  if (list.length > 0) body['tool_choice'] = { ...choice, tools: list };
  else if (choice['mode'] === 'required') throw forced(first);
  else body['tool_choice'] = 'none';
}

function forced({ type, at }: Removed): Error {
  const why = `${showValue(type.slice(0, 64))} is run by a provider, this model is offered without it, and tool_choice makes the model use it`;
  return mistake(`${at}.type`, why, 'unsupported_field');
}
