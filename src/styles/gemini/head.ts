import type { JsonObject } from '../../catalog/model.ts';
import type { ChatRequest } from '../codec.ts';
import { memberOf, mistake, needObject, readBoolean, readCount, readList, readNumber, readObject } from '../fields.ts';
import { readModel } from '../request.ts';

const candidates_max = 8;

/**
 * Reads what routing and money need. `model` and `stream` are what the path says; whoever has the path puts them into
 * the body. Throws ApiError 400 naming the field.
 */
export function readHead(body: JsonObject): Omit<ChatRequest, 'style' | 'body'> {
  const model = readModel(body);
  checkContents(body);
  const stream = readBoolean(body, 'stream', 'stream') ?? false;
  const config = readObject(body, 'generationConfig', 'generationConfig') ?? {};
  const max_tokens = readCount(config, 'maxOutputTokens', 'generationConfig.maxOutputTokens', 1);
  const at = 'generationConfig.candidateCount';
  const n = readCount(config, 'candidateCount', at, 1) ?? 1;
  if (n > candidates_max) throw mistake(at, `must be at most ${candidates_max}`);
  if (n > 1 && stream) throw mistake(at, 'must be 1 for streams', 'unsupported_field');
  const thinking = readObject(config, 'thinkingConfig', 'generationConfig.thinkingConfig') ?? {};
  const budget = readNumber(thinking, 'thinkingBudget', 'generationConfig.thinkingConfig.thinkingBudget') ?? 0;
  const thinking_budget = Number.isSafeInteger(budget) ? Math.max(0, budget) : 0;
  return { model, stream, wants_usage: true, max_tokens, thinking_budget, n };
}

function checkContents(body: JsonObject): void {
  if (memberOf(body, 'contents') === undefined) throw mistake('contents', 'is required');
  const contents = readList(body, 'contents', 'contents') ?? [];
  if (contents.length === 0) throw mistake('contents', 'must not be empty');
  for (const [index, content] of contents.entries()) {
    const at = `contents[${index}]`;
    readList(needObject(content, at), 'parts', `${at}.parts`);
  }
}

const text = { type: 'string' };

/** The body of `generateContent` as JSON Schema: what the service itself looks at. */
export const generate_content_body = {
  type: 'object',
  required: ['contents'],
  properties: {
    contents: {
      type: 'array',
      items: {
        type: 'object',
        properties: { role: { enum: ['user', 'model'] }, parts: { type: 'array', items: { type: 'object' } } },
      },
      description: 'The conversation.',
    },
    systemInstruction: { type: 'object', properties: { parts: { type: 'array', items: { type: 'object' } } } },
    tools: {
      type: 'array',
      items: { type: 'object' },
      description: '`functionDeclarations`, and tools of Google’s own.',
    },
    toolConfig: { type: 'object' },
    generationConfig: {
      type: 'object',
      properties: {
        maxOutputTokens: { type: 'integer' },
        candidateCount: { type: 'integer' },
        stopSequences: { type: 'array', items: text },
        responseMimeType: text,
        thinkingConfig: { type: 'object' },
      },
    },
  },
};
