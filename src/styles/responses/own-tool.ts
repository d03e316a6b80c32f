import type { Json, JsonObject } from '../../catalog/model.ts';
import { isObject } from '../fields.ts';

/** A function of the model, in the words of the responses style. */
type OwnFunction = { name: string; description: string; parameters: JsonObject };

/**
 * Puts a function in the place of a hosted tool: in the list of tools, and where `tool_choice` names the tool.
 * `functionFor` gets all in which the function's name may be taken.
 */
export function withOwnFunction(
  body: JsonObject,
  isTool: (tool: Json) => boolean,
  functionFor: (others: Json) => OwnFunction,
): { name: string; body: JsonObject } {
  const tools = Array.isArray(body['tools']) ? body['tools'] : [];
  const others = tools.filter((tool) => !isTool(tool));
  const { name, description, parameters } = functionFor([others, body['input'] ?? null]);
  const replaced = (choice: Json): Json => (isTool(choice) ? { type: 'function', name } : choice);
  const { tool_choice: choice = null } = body;
  const list = isObject(choice) ? choice['tools'] : undefined;
  const changed = isObject(choice) && Array.isArray(list) ? { ...choice, tools: list.map(replaced) } : replaced(choice);
  return {
    name,
    body: {
      ...body,
      tools: [...others, { type: 'function', name, description, parameters }],
      ...(choice !== null && { tool_choice: changed }),
    },
  };
}
