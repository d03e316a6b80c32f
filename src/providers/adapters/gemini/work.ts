import type { Json, JsonObject } from '../../../catalog/model.ts';
import type { Answer, Upstream } from '../../http/http.ts';
import { fileOf } from '../../http/multipart.ts';
import type { RunContext, RunRequest, RunState } from '../../provider.ts';
import { textIn } from '../../http/reading.ts';
import { modelPath } from './paths.ts';

/** `prefix`: the version that paths begin with. `key`: the headers that links to videos want. */
export type GeminiUpstream = Upstream & {
  readonly prefix: string;
  readonly key: Record<string, string>;
  readonly is_vertex: boolean;
};

/** One call to the upstream: what became of the run, or the answer that it gave instead. */
export type Work = (upstream: GeminiUpstream, run: RunRequest, signal: AbortSignal) => Promise<RunState | Answer>;

export const methods = ['generateContent', 'predict', 'predictLongRunning'] as const;

/** Returns the API method of a model: the route's option `method`, else by its kind and name. */
export function methodOf({ kind, model, options }: RunContext): (typeof methods)[number] {
  const chosen = methods.find((method) => method === options['method']);
  if (chosen !== undefined) return chosen;
  if (kind === 'video') return 'predictLongRunning';
  return /(?:^|\/)imagen/.test(model) ? 'predict' : 'generateContent';
}

export function pathOf({ prefix }: GeminiUpstream, run: RunContext): string {
  return `${prefix}/${modelPath(run.model)}:${methodOf(run)}`;
}

/** A file of the caller's in the form that predictions take. */
export function inlineImage(field: string, value: Json): JsonObject {
  const { content_type, bytes } = fileOf(field, value);
  return { bytesBase64Encoded: bytes.toString('base64'), mimeType: content_type };
}

/** The fields of the input that are not `taken` and not null. */
export function otherFields(input: JsonObject, taken: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(input).filter(([name, value]) => value !== null && !taken.includes(name)));
}

/** The bytes of a member with base64 in it. */
export function bytesIn(object: JsonObject, name: string): Buffer | undefined {
  const base64 = textIn(object, name);
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64');
}
