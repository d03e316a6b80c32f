import type { ProviderConfig } from '../../../catalog/model.ts';
import { openUpstream } from '../../http/http.ts';
import type { Adapter, AdapterParts, Provider } from '../../provider.ts';
import { listGeminiModels } from '../gemini/list.ts';
import { interactionOptionProblems } from './options.ts';
import { cancelInteraction, pollInteraction, startInteraction } from './runs.ts';
import type { InteractionsUpstream } from './upstream.ts';

/**
 * Google's Interactions API, the successor of Veo's operations: video, speech and music. Requests and answers are those
 * of `@google/genai` 3.3.0 (npm, 2026-11-28).
 *
 * Videos run in the background and are asked for until they end. Speech and music come in the answer to the submit, so
 * `timeout.start` of their routes has to be as long as the work takes (3 min of speech, 10 min of music). A submit whose
 * answer was lost is never repeated: the API has no key for that.
 *
 * A route's input is made of:
 * - `prompt` or `text`; `style`: the manner in which it is spoken. Or `turns`: a list of `{ text, speaker, style }`.
 * - `image`, `video`, `audio`: files of the caller's or lists of them, such as a first frame or references.
 * - video: `aspect_ratio`, `resolution` (360p, 720p, 1080p, 4k), `duration` (seconds), `task` (text_to_video,
 *   image_to_video, reference_to_video, edit, extend).
 * - audio: `voice`, `language`, or `voices`: a list of `{ speaker, voice, language }`; `mime_type`, `sample_rate`,
 *   `bit_rate`.
 * - Other fields go into `generation_config` (`seed`, `max_output_tokens`).
 *
 * Options: `background` (true for video, false for audio), `delivery` (`uri` or `inline`; a video comes as a link, on
 * Vertex AI inline), `webhooks: true` has the API tell of ends. Units: `input_token`, `cached_input_token`,
 * `output_token`. Option `token_prices` makes them an upstream cost, in `cost_currency` (USD).
 */
export const gemini_interactions = {
  serves: (kind) => kind === 'video' || kind === 'audio',
  limits: { label: 'Google' },
  checkOptions: interactionOptionProblems,
  listModels: listGeminiModels,
  lists_media: true,
  open,
} satisfies Adapter;

const default_base_url = 'https://generativelanguage.googleapis.com';

/** Links to results lead there, also those that come through another `base_url`. */
const hosts = ['generativelanguage.googleapis.com'];

/** No quota of reads is documented (ai.google.dev, "Rate limits", 2026-11-28). */
const rate_limit = { per_minute: 300, burst: 30 };

function open(config: ProviderConfig, parts: AdapterParts): Provider {
  const base_url = config.base_url ?? default_base_url;
  const key: Record<string, string> = config.api_key === undefined ? {} : { 'x-goog-api-key': config.api_key };
  const { pathname } = new URL(base_url);
  const is_vertex = /\/locations\/[^/]+\/*$/.test(pathname);
  const upstream: InteractionsUpstream = {
    ...openUpstream({ ...config, base_url }, parts, { headers: key, hosts, rate_limit }),
    path: `${is_vertex || /\/v\d+[a-z]*\d*\/*$/.test(pathname) ? '' : '/v1beta'}/interactions`,
    video_delivery: is_vertex ? 'inline' : 'uri',
    key,
  };
  return {
    media: 'data',
    start: (run, signal) => startInteraction(upstream, run, signal),
    poll: (run, ref, signal) => pollInteraction(upstream, run, ref, signal),
    cancel: (_, ref, signal) => cancelInteraction(upstream, ref, signal),
    close: () => upstream.close(),
  };
}
