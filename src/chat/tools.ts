import { tool_units, type JsonObject, type Model, type Route, type ToolUnit } from '../catalog/model.ts';
import { allowanceOf, isCovered, toolUnit } from '../styles/allowed.ts';
import type { ChatRequest, Codec } from '../styles/codec.ts';
import { isObject } from '../styles/fields.ts';
import { withoutTools, type ReducedRequest } from '../styles/hosted-tools.ts';
import type { HostedTools } from './price.ts';

/** The bound of a call that states none, and the most that any call may have: money is held for each use. */
const calls_usual = 5;
const calls_most = 20;

/**
 * The tools of a request that a provider runs and that the call pays for: those that a route's upstream has and the model
 * has a price for. Undefined if there are none. Throws ApiError 400 naming the field.
 */
export function hostedTools({ style, body }: ChatRequest, { price, routes }: Model): HostedTools | undefined {
  const { tool_bound } = style.caller;
  const tools = Array.isArray(body['tools']) ? body['tools'].filter(isObject) : [];
  if (!tool_bound || tools.length === 0) return undefined;
  const offered = tool_units.filter(
    (unit) =>
      price.some((row) => row.unit === unit) &&
      routes.some(({ options }) => allowanceOf(options).hosted_tools.has(unit)),
  );
  const hosted = tools.filter((tool) => isOneOf(offered, tool));
  if (hosted.length === 0) return undefined;
  const units = offered.filter((unit) => hosted.some((tool) => toolUnit(tool) === unit));
  return { units, calls_max: Math.min(tool_bound.read(body, hosted) ?? calls_usual, calls_most) };
}

function isOneOf(units: readonly ToolUnit[], tool: JsonObject): boolean {
  const unit = toolUnit(tool);
  return unit !== undefined && units.includes(unit);
}

/**
 * The request with the tools that an upstream of this style gets of a route, and the bound of those that the call pays for.
 * Throws ApiError 400 naming the tool that the caller's choice forces and that it does not get.
 */
export function withToolsOf(
  { options }: Pick<Route, 'options'>,
  { style, runs_no_tools = false }: { style: Codec; runs_no_tools?: boolean | undefined },
  request: ChatRequest,
  hosted?: HostedTools,
): ReducedRequest {
  const { caller } = request.style;
  if (style !== request.style || runs_no_tools)
    return withoutTools(request, caller.isFunction ?? isCovered, caller.tool_fields);
  const { pass, hosted_tools } = allowanceOf(options);
  if (pass.has('tools')) return { request, left_out: [] };
  const units = hosted ? hosted.units.filter((unit) => hosted_tools.has(unit)) : [];
  const isPaid = (tool: JsonObject) => isOneOf(units, tool);
  const covers = caller.isCovered ?? isCovered;
  const reduced = withoutTools(request, (tool) => covers(tool) || isPaid(tool));
  if (!hosted || units.length === 0 || !caller.tool_bound) return reduced;
  const body = caller.tool_bound.write(reduced.request.body, hosted.calls_max, isPaid);
  return { ...reduced, request: { ...reduced.request, body } };
}

/** Names the tools that the model was not given. */
export const tools_left_out_header = 'x-tools-left-out';

const names_max = 20;
const plain_name = /^[\w.-]{1,64}$/;

/** The header's value: the tools that the model was not given; undefined if it has all. */
export function toolsLeftOut(left_out: readonly string[]): string | undefined {
  const names = left_out.filter((name) => plain_name.test(name)).slice(0, names_max);
  return names.length === 0 ? undefined : names.join(', ');
}
