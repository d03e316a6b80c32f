import type { JsonObject } from '../../catalog/model.ts';
import { inputOf } from '../calls.ts';
import type { AnswerOptions, ChatRequest } from '../codec.ts';
import type { ChatAnswer, FinishReason, Part, Usage } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { showsThoughts } from './caller-settings.ts';
import { sealed } from './caller-signatures.ts';
import { groundingOf } from './searches.ts';
import { usage_format } from './usage.ts';

/** An id of ours is as good as one of Google's: nobody looks into them. */
export function answerId(request_id: string): string {
  return request_id;
}

export function writeGenerated(
  answers: readonly ChatAnswer[],
  usage: Usage,
  { body }: ChatRequest,
  { model, request_id }: AnswerOptions,
): JsonObject {
  const shows = showsThoughts(body);
  return {
    candidates: answers.map(({ parts, finish }, index) => ({
      content: { parts: parts.flatMap((part) => writePart(part, shows)), role: 'model' },
      finishReason: writeFinish(finish.reason),
      index,
      ...writeGrounding(parts),
    })),
    usageMetadata: usage_format.write(usage),
    modelVersion: model,
    responseId: answerId(request_id),
  };
}

function writeGrounding(parts: readonly Part[]): JsonObject {
  const searches = parts.filter((part) => part.type === 'web_search');
  if (searches.length === 0) return {};
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  return { groundingMetadata: groundingOf(text, searches) };
}

/** `shows`: the caller wants to see thoughts; others would take them for the answer. */
export function writePart(part: Part, shows: boolean): JsonObject[] {
  switch (part.type) {
    case 'text':
      return [{ text: part.text, ...signed(part.thought_signature) }];
    case 'refusal':
      return [{ text: part.text }];
    case 'thinking':
      if (!shows) return [];
      return [
        {
          text: part.text,
          thought: true,
          ...(part.signature !== undefined && signed(sealed({ kind: 'thinking', text: part.signature }))),
        },
      ];
    case 'redacted_thinking':
      return shows ? [{ text: '', thought: true, ...signed(sealed({ kind: 'redacted', text: part.data })) }] : [];
    case 'tool_call':
      return [
        {
          functionCall: { id: part.id, name: part.name, args: inputOf(part.arguments) },
          ...signed(part.thought_signature),
        },
      ];
    default:
      return [];
  }
}

function signed(thoughtSignature: string | undefined): JsonObject {
  return thoughtSignature === undefined ? {} : { thoughtSignature };
}

export function writeFinish(reason: FinishReason): string {
  if (reason === 'length') return 'MAX_TOKENS';
  return reason === 'refusal' ? 'SAFETY' : 'STOP';
}

/** Reads the reason for the end of the first answer. */
export function finishOf({ candidates }: JsonObject): unknown {
  const [first] = Array.isArray(candidates) ? candidates : [];
  return isObject(first) ? first['finishReason'] : undefined;
}
