import { createHash } from 'node:crypto';
import type { Json, JsonObject } from '../../catalog/model.ts';

/** Given images are not looked at, but others give another result: the seed that follows from them, if there are any. */
export function imageSeed(input: JsonObject): { seed?: number } {
  const sources = [input['images'] ?? [], input['mask'] ?? []].flat().filter((each: Json) => typeof each === 'string');
  if (sources.length === 0) return {};
  const hash = createHash('sha256').update(JSON.stringify([sources, input['seed'] ?? 0]));
  return { seed: hash.digest().readUInt32LE(0) };
}
