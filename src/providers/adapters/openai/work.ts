import { isObject, type JsonObject } from '../../../catalog/model.ts';
import type { Answer, Upstream } from '../../http/http.ts';
import type { RunRequest, RunState } from '../../provider.ts';

/** One call to the upstream: what it made, or the answer that it gave instead. */
export type Work = (upstream: Upstream, run: RunRequest, signal: AbortSignal) => Promise<RunState | Answer>;

/** The input of a run as fields of its request, without those that would change the form of the answer. */
export function bodyOf({ model, input }: RunRequest, without: readonly string[]): JsonObject {
  const members = Object.entries(input).filter(([name, value]) => value !== null && !without.includes(name));
  return { ...Object.fromEntries(members), model };
}

export function usageOf(answer: JsonObject): JsonObject | undefined {
  const { usage } = answer;
  return isObject(usage) ? usage : undefined;
}
