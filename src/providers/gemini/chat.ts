import type { ProviderConfig } from '../../catalog/model.ts';
import type { Guard } from '../../lib/guard.ts';
import { openChatClient } from '../chat-http.ts';
import type { ChatProvider } from '../provider.ts';
import { hints } from './hints.ts';
import { modelPath, pathPrefix } from './paths.ts';

const default_base_url = 'https://generativelanguage.googleapis.com';

/**
 * Gemini's own way to chat: `generateContent`, which names the model in its path. The route's option
 * `safety_settings`, a list as the API takes it, goes along with every request.
 */
export function openGeminiChat(config: ProviderConfig, { guard }: { guard: Guard }): ChatProvider {
  const base_url = config.base_url ?? default_base_url;
  const client = openChatClient({ ...config, base_url }, guard, hints);
  const prefix = pathPrefix(base_url);
  const key: Record<string, string> = config.api_key === undefined ? {} : { 'x-goog-api-key': config.api_key };
  return {
    styles: ['contents'],
    send: ({ model, body, stream, timeout_ms, options: { safety_settings } }, signal) => {
      const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
      const headers = { ...key, accept: stream ? 'text/event-stream' : 'application/json' };
      const options = { signal, connect_timeout_ms: timeout_ms.connect };
      const sent = safety_settings === undefined ? body : { ...body, safetySettings: safety_settings };
      return client.post(`${prefix}/${modelPath(model)}:${method}`, headers, sent, options);
    },
    close: () => client.close(),
  };
}
