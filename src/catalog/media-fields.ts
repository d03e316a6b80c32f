import { own } from './input-schema.ts';
import { isObject, type Json, type JsonObject, type MediaField, type MediaKind } from './model.ts';
import type { Path } from './problem.ts';

/** Fields of an input that take files of the caller's. */

/** The keyword: on a field that is a text or a list of texts, or on the items of such a list. */
export const media_keyword = 'x-media';

const media_kinds: readonly MediaKind[] = ['image', 'audio', 'video'];

/** The top-level fields of an input schema that take files. */
export function mediaFieldsOf(schema: JsonObject): MediaField[] {
  return Object.entries(own(schema, 'properties') ?? {}).flatMap(([name, field]): MediaField[] => {
    const kind = own(field, media_keyword) ?? own(own(field, 'items'), media_keyword);
    const media_kind = media_kinds.find((each) => each === kind);
    return media_kind ? [{ name, kind: media_kind }] : [];
  });
}

/** Places of the keyword that would have no effect, and values that it cannot have. */
export function mediaMistakes(schema: JsonObject): { path: Path; message: string }[] {
  return find(schema, []).flatMap(({ path, value }) => {
    const [first, , ...rest] = path;
    const in_place = first === 'properties' && (rest.length === 1 || (rest.length === 2 && rest[0] === 'items'));
    if (!in_place) return [{ path, message: 'has an effect only on a field of the input itself, or on its items.' }];
    if (media_kinds.some((kind) => kind === value)) return [];
    return [{ path, message: `must be ${media_kinds.join(', ')}.` }];
  });
}

const naming_keywords = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'];
const value_keywords = ['default', 'const', 'enum', 'examples'];

/** `named`: the keys are names of the operator's choice, and may be anything. */
function find(node: Json, path: Path, named = false): { path: Path; value: Json }[] {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([key, below]) => {
    const here = [...path, Array.isArray(node) ? Number(key) : key];
    if (!named && key === media_keyword) return [{ path: here, value: below }];
    if (!named && value_keywords.includes(key)) return [];
    return find(below, here, !named && isObject(below) && naming_keywords.includes(key));
  });
}

/** Returns the texts of a field that takes files, in their order. */
export function mediaTexts(input: JsonObject, { name }: MediaField): string[] {
  const value = own(input, name);
  return [value ?? []].flat().filter((each) => typeof each === 'string');
}

/** The input with each text of its media fields replaced by what `replace` makes of it. */
export async function replaceMedia(
  input: JsonObject,
  fields: readonly MediaField[],
  replace: (text: string, field: MediaField, place: string) => Promise<string>,
): Promise<JsonObject> {
  const replaced: [string, Json][] = [];
  for (const field of fields) {
    const value = own(input, field.name);
    if (typeof value === 'string') {
      replaced.push([field.name, await replace(value, field, `input.${field.name}`)]);
    } else if (Array.isArray(value)) {
      const items: Json[] = [];
      for (const [index, item] of value.entries()) {
        const place = `input.${field.name}[${index}]`;
        items.push(typeof item === 'string' ? await replace(item, field, place) : item);
      }
      replaced.push([field.name, items]);
    }
  }
  return Object.fromEntries([...Object.entries(input), ...replaced]);
}
