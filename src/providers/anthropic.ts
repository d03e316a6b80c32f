import type { ProviderConfig } from '../catalog/model.ts';
import type { Guard } from '../lib/guard.ts';
import { readBytes } from '../lib/read-bytes.ts';
import { openChatClient } from './chat-http.ts';
import { chatOptionProblems } from './chat-options.ts';
import type { Adapter, ChatProvider, ChatReply } from './provider.ts';

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
  const headersFor = (given: Record<string, string>) => ({ 'anthropic-version': version, ...given, ...key });
  return {
    styles: ['messages'],
    send: ({ body, headers, stream, timeout_ms }, signal) => {
      const all = { ...headersFor(headers), accept: stream ? 'text/event-stream' : 'application/json' };
      return client.post(`${prefix}/messages`, all, body, { signal, connect_timeout_ms: timeout_ms.connect });
    },
    countTokens: async ({ body, headers, timeout_ms }, signal) => {
      const options = { signal, connect_timeout_ms: timeout_ms.connect };
      return readCount(await client.post(`${prefix}/messages/count_tokens`, headersFor(headers), body, options));
    },
    close: () => client.close(),
  };
}

const count_bytes_max = 65_536;

async function readCount({ body }: ChatReply): Promise<number> {
  const counted: unknown = JSON.parse((await readBytes(body, count_bytes_max)).toString('utf8'));
  const tokens =
    typeof counted === 'object' && counted !== null && 'input_tokens' in counted ? counted.input_tokens : undefined;
  if (typeof tokens !== 'number' || !Number.isSafeInteger(tokens) || tokens < 0)
    throw new Error('the count is no number');
  return tokens;
}
