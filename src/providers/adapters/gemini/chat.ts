import type { JsonObject, ProviderConfig } from '../../../catalog/model.ts';
import { gemini } from '../../../styles/gemini/codec.ts';
import { openChatClient } from '../../http/chat-http.ts';
import { InputRefused, type ChatProvider, type UpstreamParts } from '../../provider.ts';
import { hints } from './hints.ts';
import { isVertex, modelPath, pathPrefix } from './paths.ts';
import { readCount } from '../../http/token-count.ts';
import { withoutThoughtSignatures } from './thought-signatures.ts';

const default_base_url = 'https://generativelanguage.googleapis.com';

/**
 * Gemini's own way to chat: `generateContent`, which names the model in its path. The route's option
 * `safety_settings`, a list as the API takes it, goes along with every request.
 */
export function openGeminiChat(config: ProviderConfig, parts: UpstreamParts): ChatProvider {
  const base_url = config.base_url ?? default_base_url;
  const client = openChatClient({ ...config, base_url }, parts, hints);
  const prefix = pathPrefix(base_url);
  const key: Record<string, string> = config.api_key === undefined ? {} : { 'x-goog-api-key': config.api_key };
  return {
    styles: [gemini],
    send: async ({ model, body, stream, timeout_ms, options: { safety_settings } }, signal) => {
      const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
      const headers = { ...key, accept: stream ? 'text/event-stream' : 'application/json' };
      const options = { signal, connect_timeout_ms: timeout_ms.connect };
      const sent = safety_settings === undefined ? body : { ...body, safetySettings: safety_settings };
      const path = `${prefix}/${modelPath(model)}:${method}`;
      try {
        return await client.post(path, headers, sent, options);
      } catch (error) {
        // A conversation goes on after its route has changed, thinking a little anew.
        const unsigned = error instanceof InputRefused ? withoutThoughtSignatures(sent, error.message) : undefined;
        if (!unsigned) throw error;
        return client.post(path, headers, unsigned, options);
      }
    },
    countTokens: async ({ model, body, timeout_ms }, signal) => {
      const path = modelPath(model);
      const options = { signal, connect_timeout_ms: timeout_ms.connect };
      const request = isVertex(base_url) ? vertexCount(body) : { generateContentRequest: { model: path, ...body } };
      const counted = await client.post(`${prefix}/${path}:countTokens`, key, request, options);
      return readCount(counted, 'totalTokens');
    },
    close: () => client.close(),
  };
}

/** Vertex AI counts these members, and refuses all others (@google/genai, countTokensParametersToVertex, November 2026). */
function vertexCount({ contents, systemInstruction, tools, generationConfig }: JsonObject): JsonObject {
  return {
    contents: contents ?? [],
    ...(systemInstruction !== undefined && { systemInstruction }),
    ...(tools !== undefined && { tools }),
    ...(generationConfig !== undefined && { generationConfig }),
  };
}
