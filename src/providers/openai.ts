import type { ProviderConfig } from '../catalog/model.ts';
import type { Guard } from '../lib/guard.ts';
import { openChatClient } from './chat-http.ts';
import { chatOptionProblems } from './chat-options.ts';
import type { Adapter, ChatProvider } from './provider.ts';

const default_base_url = 'https://api.openai.com/v1';

/** Any server that speaks chat completions: OpenAI itself, vLLM, Ollama, OpenRouter and many others. */
export const openai = {
  serves: (kind) => kind === 'chat',
  checkChatOptions: chatOptionProblems,
  openChat,
} satisfies Adapter;

function openChat(config: ProviderConfig, { guard }: { guard: Guard }): ChatProvider {
  const client = openChatClient({ ...config, base_url: config.base_url ?? default_base_url }, guard);
  const key: Record<string, string> = config.api_key === undefined ? {} : { authorization: `Bearer ${config.api_key}` };
  return {
    styles: ['completions'],
    send: ({ body, stream, timeout_ms }, signal) => {
      const headers = { ...key, accept: stream ? 'text/event-stream' : 'application/json' };
      return client.post('/chat/completions', headers, body, { signal, connect_timeout_ms: timeout_ms.connect });
    },
    close: () => client.close(),
  };
}
