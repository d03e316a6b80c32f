import type { OptionProblem } from '../../../catalog/check-settings.ts';
import type { JsonObject, ProviderConfig } from '../../../catalog/model.ts';
import type { ProviderEntry } from '../../../catalog/schema.ts';
import { messages } from '../../../styles/messages/codec.ts';
import { openChatClient } from '../../http/chat-http.ts';
import { chatOptionProblems } from '../../http/chat-options.ts';
import { readCount } from '../../http/token-count.ts';
import type { Adapter, ChatProvider, UpstreamParts } from '../../provider.ts';
import { hints } from '../gemini/hints.ts';
import { betasIn } from './betas.ts';

/** The version of bodies on Vertex AI (@anthropic-ai/vertex-sdk 0.19.5, August 2026). */
const version = 'vertex-2023-10-16';

/** Claude on Vertex AI: the messages style with the model in the path and a version in the body. */
export const anthropic_vertex = {
  serves: (kind) => kind === 'chat',
  checkChatOptions: chatOptionProblems,
  checkProvider,
  openChat,
} satisfies Adapter;

const location_path = /\/projects\/[^/]+\/locations\/[^/]+(?:\/publishers\/anthropic)?\/*$/;

function checkProvider({ base_url = '' }: ProviderEntry): OptionProblem[] {
  if (URL.canParse(base_url) && location_path.test(new URL(base_url).pathname)) return [];
  const example = 'https://europe-west1-aiplatform.googleapis.com/v1/projects/my-project/locations/europe-west1';
  return [{ field: 'base_url', message: `must name a project and a location, such as ${example}.` }];
}

function openChat(config: ProviderConfig, parts: UpstreamParts): ChatProvider {
  const base_url = config.base_url ?? 'https://aiplatform.googleapis.com/v1';
  const client = openChatClient({ ...config, base_url }, parts, hints);
  const publisher = /\/publishers\/anthropic\/*$/.test(new URL(base_url).pathname) ? '' : '/publishers/anthropic';
  const key: Record<string, string> = config.api_key === undefined ? {} : { 'x-goog-api-key': config.api_key };
  const headersFor = (headers: Record<string, string>): Record<string, string> => {
    const betas = betasIn(headers);
    return betas.length > 0 ? { ...key, 'anthropic-beta': betas.join(',') } : key;
  };
  return {
    styles: [messages],
    has_no_links: true, // images stand in the body there (platform.claude.com, vision, November 2026)
    send: ({ model, body, headers, stream, timeout_ms }, signal) => {
      const { model: _, ...rest } = body;
      const method = stream ? 'streamRawPredict' : 'rawPredict';
      const accept = stream ? 'text/event-stream' : 'application/json';
      const options = { signal, connect_timeout_ms: timeout_ms.connect };
      const path = `${publisher}/models/${encodedModel(model)}:${method}`;
      return client.post(path, { ...headersFor(headers), accept }, withVersion(rest), options);
    },
    countTokens: async ({ body, headers, timeout_ms }, signal) => {
      const options = { signal, connect_timeout_ms: timeout_ms.connect };
      const path = `${publisher}/models/count-tokens:rawPredict`;
      return readCount(await client.post(path, headersFor(headers), withVersion(body), options), 'input_tokens');
    },
    close: () => client.close(),
  };
}

function withVersion(body: JsonObject): JsonObject {
  return { ...body, anthropic_version: version };
}

/** Ids have their date behind an `@`, which stays as it is. */
function encodedModel(model: string): string {
  return encodeURIComponent(model).replaceAll('%40', '@');
}
