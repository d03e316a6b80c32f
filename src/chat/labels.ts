import type { Json, JsonObject } from '../catalog/model.ts';
import { isObject } from '../styles/fields.ts';

/**
 * Names that a caller puts on a call, for its own sums and lists: the end user it is for, and pairs of metadata. Its
 * record has them, and no upstream gets them from here.
 */
export type Labels = { end_user?: string; metadata?: Record<string, string> };

const user_length_max = 256;
const pairs_max = 16;
const name_length_max = 64;
const value_length_max = 512;

/**
 * Reads the labels of a body in any style: `user`, `safety_identifier` or `metadata.user_id`, and the pairs of
 * `metadata`, or of Gemini's `labels`. Numbers and booleans become texts, a list as `tags` a text with commas. What is
 * too long or of another kind is left out: whether the request takes it is not decided here.
 */
export function labelsOf(body: JsonObject): Labels {
  const metadata = isObject(body['metadata']) ? body['metadata'] : undefined;
  const users = [body['user'], body['safety_identifier'], metadata?.['user_id']];
  const user = users.map((value) => (typeof value === 'string' ? plain(value) : '')).find((name) => name !== '');
  const labels = metadata ?? (isObject(body['labels']) ? body['labels'] : {});
  const pairs = Object.entries(labels)
    .filter(([name]) => name !== 'user_id')
    .flatMap(([name, value]) => pairOf(name, value))
    .slice(0, pairs_max);
  return {
    ...(user !== undefined && { end_user: user.slice(0, user_length_max).toWellFormed() }),
    ...(pairs.length > 0 && { metadata: Object.fromEntries(pairs) }),
  };
}

function pairOf(name: string, value: Json): [string, string][] {
  const text = textOf(value);
  if (text === undefined || text.length > value_length_max || name.length > name_length_max) return [];
  return [[plain(name), plain(text)]];
}

function textOf(value: Json): string | undefined {
  if (Array.isArray(value)) return value.every((each) => typeof each === 'string') ? value.join(',') : undefined;
  return typeof value === 'object' ? undefined : String(value);
}

/** As the database can store it: jsonb takes neither NUL nor half a surrogate pair. */
function plain(text: string): string {
  return text.toWellFormed().replaceAll('\0', '');
}

/** Returns the tags of metadata, each once: as `tags_in` in PostgreSQL. */
export function tagsIn({ tags = '' }: Readonly<Record<string, string>>): string[] {
  const names = tags.split(',').map((tag) => tag.trim());
  return [...new Set(names)].filter((tag) => tag !== '');
}
