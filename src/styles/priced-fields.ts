import type { Json, JsonObject } from '../catalog/model.ts';
import type { ApiError } from '../errors.ts';
import { showValue } from '../lib/show-value.ts';
import { memberOf, isObject, mistake, readList } from './fields.ts';

/**
 * What a call may not ask an upstream for: what costs money that no price here knows of, and what lies in the
 * upstream's account of ours, which all callers share: nobody may reach what another one has left there.
 */

/** The 400 for what is not sold here. To be thrown. */
export function notOffered(at: string, why: string): ApiError {
  return mistake(at, why, 'unsupported_field');
}

/** Tiers at the usual price, or below it. */
export const usual_tiers: readonly Json[] = ['auto', 'default', 'standard', 'standard_only', 'on_demand', 'flex'];

/** Throws ApiError 400 for a tier with a price of its own. */
export function checkServiceTier(body: JsonObject): void {
  const tier = memberOf(body, 'service_tier');
  if (tier === undefined || usual_tiers.includes(tier)) return;
  throw notOffered('service_tier', `must be auto or default: ${showValue(tier)} has prices of its own at the provider`);
}

/** Tools that the caller runs, so that a call of theirs costs nothing but its tokens. */
const own_tools: ReadonlySet<Json> = new Set([
  'function',
  'custom',
  'namespace',
  'local_shell',
  'apply_patch',
  'computer',
  'computer_use_preview',
  'computer-preview',
  'tool_search',
]);

/** Where a shell runs: with the caller, unless it names a container. */
function isLocal(environment: Json | undefined): boolean {
  return (environment ?? null) === null || (isObject(environment) && environment['type'] === 'local');
}

/** Throws ApiError 400 for tools of the responses style that the provider runs: they are billed beyond their tokens. */
export function checkHostedTools(holder: JsonObject, at: string): void {
  for (const [index, tool] of (readList(holder, 'tools', at) ?? []).entries()) {
    if (!isObject(tool)) continue;
    const { type = null, environment } = tool;
    const where = `${at}[${index}]`;
    if (own_tools.has(type)) {
      if (type === 'namespace') checkHostedTools(tool, `${where}.tools`);
    } else if (type !== 'shell' || !isLocal(environment)) {
      const why = `${showValue(type)} is run by the provider, which bills it beyond its tokens; use tools of type function`;
      throw notOffered(`${where}.type`, why);
    }
  }
}
