import type { Codec } from '../codec.ts';
import { renderGemini } from './request.ts';
import { readGeminiAnswers } from './response.ts';
import { GeminiReader } from './stream.ts';

/** The style of Gemini's `generateContent`, which only upstreams speak. */
export const gemini: Codec = {
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
};
