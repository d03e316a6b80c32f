import type { ProviderConfig } from '../../../catalog/model.ts';
import type { Guard } from '../../../net/guard.ts';
import { messages } from '../../../styles/messages/codec.ts';
import { openChatClient } from '../../http/chat-http.ts';
import { chatOptionProblems } from '../../http/chat-options.ts';
import type { Adapter, ChatProvider } from '../../provider.ts';
import { readCount } from '../../http/token-count.ts';

const default_base_url = 'https://api.anthropic.com';

/** The version whose bodies we write ourselves; a caller of the same style brings its own. */
const version = '2023-06-01';

/** Any server that speaks the messages style. */
export const anthropic = {
  serves: (kind) => kind === 'chat',
  checkChatOptions: chatOptionProblems,
  openChat,
} satisfies Adapter;

function openChat(config: ProviderConfig, { guard }: { guard: Guard }): ChatProvider {
  const base_url = config.base_url ?? default_base_url;
  const client = openChatClient({ ...config, base_url }, guard);
  const prefix = /\/v1\/*$/.test(new URL(base_url).pathname) ? '' : '/v1';
  const key: Record<string, string> = config.api_key === undefined ? {} : { 'x-api-key': config.api_key };
  const headersFor = (headers: Record<string, string>) => ({ 'anthropic-version': version, ...headers, ...key });
  return {
    styles: [messages],
    send: ({ body, headers, stream, timeout_ms }, signal) => {
      const all = { ...headersFor(headers), accept: stream ? 'text/event-stream' : 'application/json' };
      return client.post(`${prefix}/messages`, all, body, { signal, connect_timeout_ms: timeout_ms.connect });
    },
    countTokens: async ({ body, headers, timeout_ms }, signal) => {
      const options = { signal, connect_timeout_ms: timeout_ms.connect };
      const counted = await client.post(`${prefix}/messages/count_tokens`, headersFor(headers), body, options);
      return readCount(counted, 'input_tokens');
    },
    close: () => client.close(),
  };
}
