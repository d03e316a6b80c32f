import type { CallerCodec } from '../codec.ts';
import { words } from '../fields.ts';
import { readGenerateContent, replaceLink } from './caller-request.ts';
import { answerId, finishOf, writeGenerated } from './caller-response.ts';
import { typeOfTool } from './caller-settings.ts';
import { GeminiWriter } from './caller-stream.ts';
import { errorEvent, frame, gemini_errors } from './errors.ts';
import { generate_content_body, readHead } from './head.ts';
import { countedBody, sameGemini, sameGeminiBody } from './passthrough.ts';
import { renderGemini } from './request.ts';
import { readGeminiAnswers } from './response.ts';
import { gemini_search } from './searches.ts';
import { GeminiReader } from './stream.ts';
import { usage_format } from './usage.ts';

/** Tools of Google's that cost nothing but tokens. */
const covered_tools: ReadonlySet<string> = new Set(['codeExecution', 'urlContext', 'computerUse']);

/** The style of Gemini's `generateContent`. */
export const gemini: CallerCodec = {
  name: 'gemini',
  upstream: {
    renderRequest: renderGemini,
    parseResponse: readGeminiAnswers,
    openReader: (request_id) => new GeminiReader(request_id),
    countedBody: (body) => {
      const { generationConfig: _, ...counted } = body;
      return counted;
    },
    has_no_links: true,
  },
  caller: {
    endpoint: {
      path: '/v1beta/models',
      names_model_in_path: true,
      summary: "Chat in Gemini's style",
      body: generate_content_body,
      response: 'The answer, or its stream.',
    },
    errors: gemini_errors,
    members: {
      sdk: words(`
    cachedContent contents generationConfig model safetySettings serviceTier store stream systemInstruction toolConfig
    tools
  `),
      vendor: words(''),
    },
    turns_field: 'contents',
    isFunction: (tool) => typeOfTool(tool) === undefined,
    isCovered: (tool) => covered_tools.has(typeOfTool(tool) ?? 'codeExecution'),
    typeOfTool,
    search: gemini_search,
    stop_field: 'generationConfig.stopSequences',
    usage: usage_format,
    answer_members: { id: 'responseId', model: 'modelVersion', usage: 'usageMetadata' },
    readRequest: readHead,
    parseRequest: readGenerateContent,
    renderResponse: writeGenerated,
    openWriter: (request, options) => new GeminiWriter(request, options),
    finishOf,
    answerId,
    // A comment, as other styles have it, is no JSON to the readers of some SDKs.
    heartbeat: frame({ candidates: [{ content: { parts: [{ text: '' }], role: 'model' }, index: 0 }] }),
    errorEvent,
    replaceLink,
    passthrough: { body: sameGeminiBody, countedBody, openStream: sameGemini },
  },
};
