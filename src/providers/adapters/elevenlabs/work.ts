import type { JsonObject } from '../../../catalog/model.ts';
import type { Answer, Upstream } from '../../http/http.ts';
import type { RunContext, RunRequest, RunState } from '../../provider.ts';

/** One call to the upstream: what it made, or the answer that it gave instead. */
export type Work = (upstream: Upstream, run: RunRequest, signal: AbortSignal) => Promise<RunState | Answer>;

export const operations = ['text-to-speech', 'sound-generation', 'music', 'speech-to-text'] as const;

export type Operation = (typeof operations)[number];

/** Returns the operation of a run: the route's option, else by the model's name. */
export function operationOf({ model, options }: RunContext): Operation {
  const chosen = operations.find((operation) => operation === options['operation']);
  if (chosen !== undefined) return chosen;
  if (model.startsWith('scribe')) return 'speech-to-text';
  if (model.startsWith('music')) return 'music';
  return model.startsWith('eleven_text_to_sound') ? 'sound-generation' : 'text-to-speech';
}

/** The input with the model, without the fields that are `taken` or null. */
export function bodyOf({ model, input }: RunRequest, taken: readonly string[]): JsonObject {
  const members = Object.entries(input).filter(([name, value]) => value !== null && !taken.includes(name));
  return { ...Object.fromEntries(members), model_id: model };
}

export function loggingOf({ options }: RunContext): Record<string, string> {
  return options['enable_logging'] === false ? { enable_logging: 'false' } : {};
}
