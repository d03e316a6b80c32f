import type { Json, JsonObject } from '../../../catalog/model.ts';
import { isObject } from '../../../styles/fields.ts';
import { no_thought_signature } from '../../../styles/thought-signatures.ts';

/** Which thought signatures Gemini wants is its own affair: it says so in words alone. */
const about_thought_signatures = /thought[ _]?signature/i;

/**
 * The body of a request that Gemini refused for its thought signatures, without them: they are of another model, of another
 * project, or of one before its keys changed. Undefined if the refusal was about something else, or none would go.
 */
export function withoutThoughtSignatures(body: JsonObject, message: string): JsonObject | undefined {
  const { contents } = body;
  if (!about_thought_signatures.test(message) || !Array.isArray(contents)) return undefined;
  const unsigned = contents.map(withoutSignatures);
  return JSON.stringify(unsigned) === JSON.stringify(contents) ? undefined : { ...body, contents: unsigned };
}

function withoutSignatures(content: Json): Json {
  if (!isObject(content) || !Array.isArray(content['parts'])) return content;
  const parts = content['parts'].filter(isObject);
  const first = parts.find((part) => part['functionCall'] !== undefined);
  return {
    ...content,
    parts: parts.map((part) => {
      const { thoughtSignature: _, ...rest } = part;
      return part === first ? { ...rest, thoughtSignature: no_thought_signature } : rest;
    }),
  };
}
