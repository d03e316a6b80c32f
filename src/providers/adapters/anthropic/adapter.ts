import { readList } from '../../../catalog/lists/index.ts';
import type { ProviderConfig } from '../../../catalog/model.ts';
import type { Guard } from '../../../net/guard.ts';
import { messages } from '../../../styles/messages/codec.ts';
import { openChatClient } from '../../http/chat-http.ts';
import { chatOptionProblems } from '../../http/chat-options.ts';
import { offeredOf, type OfferedModel, type OfferRequest } from '../../offer/offer.ts';
import { readUpstreamList } from '../../offer/read-list.ts';
import type { Adapter, ChatProvider, UpstreamParts } from '../../provider.ts';
import { readCount } from '../../http/token-count.ts';

const default_base_url = 'https://api.anthropic.com';

/** The version whose bodies we write ourselves; a caller of the same style brings its own. */
const version = '2023-06-01';

/** Any server that speaks the messages style. */
export const anthropic = {
  serves: (kind) => kind === 'chat',
  checkChatOptions: chatOptionProblems,
  listModels,
  openChat,
} satisfies Adapter;

/** GET /v1/models (docs.claude.com, "List Models", read on 2026-11-27). */
async function listModels(
  config: ProviderConfig,
  { guard }: { guard: Guard },
  { key_path, signal }: OfferRequest,
): Promise<OfferedModel[]> {
  const base_url = config.base_url ?? default_base_url;
  const path = `${prefixOf(base_url)}/models`;
  const headers = {
    'anthropic-version': version,
    ...(config.api_key !== undefined && { 'x-api-key': config.api_key }),
  };
  const place = { config: { ...config, base_url }, guard, headers, path, query: { limit: '1000' }, key_path, signal };
  return offeredOf(await readUpstreamList({ ...place, read: (text) => readList('openai-compatible', text) }));
}

/** The address may have the version at its end. */
function prefixOf(base_url: string): string {
  return /\/v1\/*$/.test(new URL(base_url).pathname) ? '' : '/v1';
}

function openChat(config: ProviderConfig, parts: UpstreamParts): ChatProvider {
  const base_url = config.base_url ?? default_base_url;
  const client = openChatClient({ ...config, base_url }, parts);
  const prefix = prefixOf(base_url);
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
