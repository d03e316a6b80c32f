import { openGeminiChat } from './chat.ts';
import { listGeminiModels } from './list.ts';
import { openMedia } from './media.ts';
import { geminiChatOptionProblems, mediaOptionProblems } from './options.ts';
import type { Adapter } from '../../provider.ts';

/**
 * Google's Gemini API in its own style. Images come in the answer to the submit: a route's `timeout.start` has to
 * be as long as the work takes (120 s), and an answer that was lost is never asked for again. Videos are operations.
 *
 * What a route's input is made of:
 * - image, models of the Gemini family (`:generateContent`): `prompt`, `image` (a file of the caller's or a list),
 *   `aspectRatio`, `imageSize` (1K, 2K, 4K), `personGeneration`; other fields go into `generationConfig` (`seed`,
 *   `temperature`, `thinkingConfig`). One call makes one image. Options `safety_settings`, `tools`: lists as the
 *   API takes them.
 * - image, models whose names begin with `imagen` (`:predict`): `prompt`; other fields go into `parameters`
 *   (`sampleCount`, `aspectRatio`, `imageSize`, `personGeneration`).
 * - video (`:predictLongRunning`): `prompt`, `image` (the first frame), `lastFrame`, `referenceImages` (a list), all
 *   files of the caller's; other fields go into `parameters` (`aspectRatio`, `resolution`, `durationSeconds`,
 *   `negativePrompt`, `personGeneration`, `sampleCount`). Option `webhooks: true` has the API tell of ends. Vertex AI
 *   (`base_url: …/projects/P/locations/L/publishers/google`) is asked in its own way, and sends the bytes.
 * The option `method` names one of the three for a model that is asked in another way than its kind and name say.
 *
 * Units of Gemini images: `input_token`, `cached_input_token`, `output_token`. Option `token_prices` makes them an
 * upstream cost, in `cost_currency` (USD).
 */
export const gemini = {
  serves: (kind) => kind === 'chat' || kind === 'image' || kind === 'video',
  limits: { label: 'Google' },
  checkChatOptions: geminiChatOptionProblems,
  checkOptions: mediaOptionProblems,
  listModels: listGeminiModels,
  lists_media: true,
  open: openMedia,
  openChat: openGeminiChat,
} satisfies Adapter;
