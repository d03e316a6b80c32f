import { isObject, type Json, type JsonObject } from '../../catalog/model.ts';
import { isDataUrl, readDataUrl, type DataUrl } from '../../lib/data-url.ts';

/** A file of the caller's that stands in the input as a data URL; undefined for any other value. */
export function inlineMedia(value: Json | undefined): DataUrl | undefined {
  if (typeof value !== 'string' || !isDataUrl(value)) return undefined;
  const file = readDataUrl(value);
  return file && /^(image|video|audio)\//.test(file.content_type) ? file : undefined;
}

/** The input with bare base64 in the place of data URLs, for upstreams that refuse what stands before the comma. */
export function withBareBase64(input: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [name, bareBase64(value)]));
}

function bareBase64(value: Json): Json {
  if (Array.isArray(value)) return value.map(bareBase64);
  if (isObject(value)) return withBareBase64(value);
  return inlineMedia(value)?.bytes.toString('base64') ?? value;
}

/**
 * The input without objects that are hollow: what a route's mapping makes of a file that the caller has not
 * given, such as `{ type: first_frame }` without its `url`. A list that becomes empty goes, too.
 */
export function withoutHollow(input: JsonObject, isHollow: (object: JsonObject) => boolean): JsonObject {
  const members = Object.entries(input).flatMap(([name, value]): [string, Json][] => {
    const member = solid(value, isHollow);
    return member === undefined ? [] : [[name, member]];
  });
  return Object.fromEntries(members);
}

function solid(value: Json, isHollow: (object: JsonObject) => boolean): Json | undefined {
  if (Array.isArray(value)) {
    const items = value.map((item) => solid(item, isHollow)).filter((item) => item !== undefined);
    return items.length === 0 && value.length > 0 ? undefined : items;
  }
  if (!isObject(value)) return value;
  const rest = withoutHollow(value, isHollow);
  return isHollow(rest) ? undefined : rest;
}
