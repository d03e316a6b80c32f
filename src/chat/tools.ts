import type { Route } from '../catalog/model.ts';
import { allowanceOf, isCovered } from '../styles/allowed.ts';
import type { ChatRequest, Codec } from '../styles/codec.ts';
import { withoutTools, type Reduced } from '../styles/hosted-tools.ts';

/**
 * The request with the tools that an upstream of this style gets of a route. Throws ApiError 400 naming the tool that the
 * caller's choice forces and that it does not get.
 */
export function withToolsOf(route: Pick<Route, 'options'>, style: Codec, request: ChatRequest): Reduced {
  const { caller } = request.style;
  if (style !== request.style) return withoutTools(request, caller.isFunction ?? isCovered, caller.tool_fields);
  if (allowanceOf(route.options).pass.has('tools')) return { request, left_out: [] };
  return withoutTools(request, isCovered);
}

const names_max = 20;
const plain_name = /^[\w.-]{1,64}$/;

/** Names the tools that the model was not given. */
export const tools_left_out_header = 'x-tools-left-out';

/** The header's value: the tools that the model was not given; undefined if it has all. */
export function toolsLeftOut(left_out: readonly string[]): string | undefined {
  const names = left_out.filter((name) => plain_name.test(name)).slice(0, names_max);
  return names.length === 0 ? undefined : names.join(', ');
}
