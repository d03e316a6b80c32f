import { readList } from '../../../catalog/lists/index.ts';
import type { ProviderConfig } from '../../../catalog/model.ts';
import type { Guard } from '../../../net/guard.ts';
import { completions } from '../../../styles/completions/codec.ts';
import { responses } from '../../../styles/responses/codec.ts';
import { texts } from '../../../styles/texts/codec.ts';
import type { Codec } from '../../../styles/codec.ts';
import { openChatClient } from '../../http/chat-http.ts';
import { chatOptionProblems } from '../../http/chat-options.ts';
import { serverRerankBody } from '../../http/reranker.ts';
import { offeredOf, type OfferedModel, type OfferRequest } from '../../offer/offer.ts';
import { readUpstreamList } from '../../offer/read-list.ts';
import { openMedia } from './media.ts';
import { mediaOptionProblems } from './options.ts';
import type { Adapter, ChatProvider, Provider, UpstreamParts } from '../../provider.ts';

/** Beside chat completions. */
const paths = new Map<Codec, string>([
  [responses, '/responses'],
  [texts, '/completions'],
]);

const default_base_url = 'https://api.openai.com/v1';

/**
 * Any server that speaks chat completions: OpenAI itself, vLLM, Ollama, OpenRouter and many others. Beside chat it is
 * asked for embeddings, rankings (`/rerank` below its base URL) and moderation by those names. Images,
 * speech and transcripts come in the answer to the submit: the route's `timeout.start` has to be as long as the
 * work takes (images 180 s, speech and transcripts 120 s), and an answer that was lost is never asked for again. Videos
 * (`/videos`, as vLLM-Omni, SGLang and gateways have it) are jobs that are polled; none can be cancelled.
 *
 * What a route's input is made of; fields that are not named here go through as they are.
 * - image: `prompt`, `n`, `size`, `quality`, `background`, `output_format`, `output_compression`, `moderation`,
 *   `style`; with `image` (a file of the caller's or a list of them) it is an edit, which may have `mask` and
 *   `input_fidelity`. Option `response_format` (b64_json, url, none): by itself b64_json for dall-e, else none.
 * - audio, speech: `input`, `voice`, `instructions`, `speed`, `response_format` (mp3, opus, aac, flac, wav; pcm
 *   is given out as WAV). Option `stream_format: sse` has the upstream count the tokens (not tts-1).
 * - audio, transcription: `file` (of the caller's), `language`, `prompt`, `temperature`, `response_format` (text,
 *   json, verbose_json, diarized_json, srt, vtt; absent: text). Which of both it is, says the option `operation`
 *   (speech, transcription), or the presence of `file`.
 * - video: `prompt`, `seconds`, `size`, `input_reference` (a file of the caller's). Option `body_as: json` for servers
 *   that take no form (`multipart` by itself).
 *
 * Units: `input_token`, `cached_input_token`, `output_token` of images, transcripts and streamed speech,
 * `character` of speech, `second` of what was listened to. Option `token_prices` makes tokens an upstream
 * cost, in `cost_currency` (USD).
 */
export const openai = {
  serves: () => true,
  limits: { label: 'OpenAI' },
  checkChatOptions: chatOptionProblems,
  checkOptions: mediaOptionProblems,
  listModels,
  open: (config, parts): Provider => openMedia({ ...config, base_url: config.base_url ?? default_base_url }, parts),
  openChat,
} satisfies Adapter;

async function listModels(
  config: ProviderConfig,
  { guard }: { guard: Guard },
  { form = 'openai-compatible', key_path, signal }: OfferRequest,
): Promise<OfferedModel[]> {
  const headers: Record<string, string> =
    config.api_key === undefined ? {} : { authorization: `Bearer ${config.api_key}` };
  const base_url = config.base_url ?? default_base_url;
  const place = { config: { ...config, base_url }, guard, headers, path: '/models', key_path, signal };
  return offeredOf(await readUpstreamList({ ...place, read: (text) => readList(form, text) }));
}

function openChat(config: ProviderConfig, parts: UpstreamParts): ChatProvider {
  const client = openChatClient({ ...config, base_url: config.base_url ?? default_base_url }, parts);
  const key: Record<string, string> = config.api_key === undefined ? {} : { authorization: `Bearer ${config.api_key}` };
  const takes_json = { ...key, accept: 'application/json' };
  const takes_events = { ...key, accept: 'text/event-stream' };
  return {
    styles: config.base_url === undefined ? [completions, responses] : [completions],
    styles_by_option: [responses, texts],
    send: ({ style, body, stream, timeout_ms }, signal) => {
      const headers = stream ? takes_events : takes_json;
      const path = paths.get(style) ?? '/chat/completions';
      return client.post(path, headers, body, { signal, connect_timeout_ms: timeout_ms.connect });
    },
    compaction: {
      style: responses,
      is_usual: config.base_url === undefined,
      send: ({ body, timeout_ms }, signal) =>
        client.post('/responses/compact', takes_json, body, { signal, connect_timeout_ms: timeout_ms.connect }),
    },
    embed: ({ body, timeout_ms }, signal) =>
      client.post('/embeddings', takes_json, body, { signal, connect_timeout_ms: timeout_ms.connect }),
    rerank: ({ body, options, timeout_ms }, signal) => {
      const connect = { signal, connect_timeout_ms: timeout_ms.connect };
      return client.post('/rerank', takes_json, serverRerankBody(body, options), connect);
    },
    moderate: ({ body, timeout_ms }, signal) =>
      client.post('/moderations', takes_json, body, { signal, connect_timeout_ms: timeout_ms.connect }),
    close: () => client.close(),
  };
}
