import type { Json, JsonObject } from '../../../catalog/model.ts';
import { isObject } from '../../../styles/fields.ts';
import { no_seal } from '../../../styles/seal.ts';

/** Which seals Gemini wants is its own affair: it says so in words alone. */
const about_seals = /thought[ _]?signature/i;

/**
 * The body of a request that Gemini refused for its seals, without them: they are of another model, of another
 * project, or of one before its keys changed. Undefined if the refusal was about something else, or none would go.
 */
export function unsealedBody(body: JsonObject, message: string): JsonObject | undefined {
  const { contents } = body;
  if (!about_seals.test(message) || !Array.isArray(contents)) return undefined;
  const unsealed = contents.map(unsealedContent);
  return JSON.stringify(unsealed) === JSON.stringify(contents) ? undefined : { ...body, contents: unsealed };
}

function unsealedContent(content: Json): Json {
  if (!isObject(content) || !Array.isArray(content['parts'])) return content;
  const parts = content['parts'].filter(isObject);
  const first = parts.find((part) => part['functionCall'] !== undefined);
  return {
    ...content,
    parts: parts.map((part) => {
      const { thoughtSignature: _, ...rest } = part;
      return part === first ? { ...rest, thoughtSignature: no_seal } : rest;
    }),
  };
}
