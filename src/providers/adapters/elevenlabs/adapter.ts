import type { OptionProblem } from '../../../catalog/check-settings.ts';
import type { JsonObject, ProviderConfig } from '../../../catalog/model.ts';
import { makeAudio, voiceOf } from './audio.ts';
import { transcribe } from './transcription.ts';
import { operationOf, operations } from './work.ts';
import { openUpstream, type Answer, type Upstream } from '../../http/http.ts';
import { optionProblems } from '../../http/options.ts';
import {
  InputRefused,
  NotStarted,
  type Adapter,
  type AdapterParts,
  type Provider,
  type RunRequest,
} from '../../provider.ts';
import { waitOf, upstreamErrorOf, type Hints } from '../../http/refusal.ts';
import { scrub } from '../../http/scrub.ts';
import { costProblems } from '../../http/upstream-cost.ts';

const default_base_url = 'https://api.elevenlabs.io';

/**
 * ElevenLabs: speech, effects, music and transcripts. The answer to a submit is the result: a route's `timeout.start`
 * has to be as long as the work takes (speech 120 s, music and transcripts 240 s), and an answer that was lost is
 * never asked for again.
 *
 * What it does says the option `operation`, or the model's name: `scribe…` speech-to-text, `music…` music,
 * `eleven_text_to_sound…` sound-generation, all others text-to-speech. What a route's input is made of; fields that
 * are not named here go through as they are:
 * - text-to-speech: `text`, `voice_id` (or the option of that name), `language_code`, `stability`, `similarity_boost`,
 *   `style`, `speed`, `use_speaker_boost` (or `voice_settings` with them), `seed`, `apply_text_normalization`.
 * - sound-generation: `text`, `duration` (seconds, 0.5 to 30), `prompt_influence`, `loop`.
 * - music: `prompt` or `composition_plan`, `duration` (seconds, 3 to 600), `force_instrumental`, `seed`.
 * - these three: `output_format` (or the option of that name): `mp3_44100_128` and the like; samples without a
 *   container (`pcm_…`, `ulaw_8000`, `alaw_8000`) are given out as WAV, which `wav_…` always is.
 * - speech-to-text: `file` (of the caller's), `language_code`, `diarize`, `num_speakers`, `tag_audio_events`,
 *   `timestamps_granularity`, `keyterms`, and `format`: text (if absent), json, srt, vtt.
 *
 * Units: `character` of speech, `second` of what was listened to. Option `credit_price` makes the
 * credits that the upstream tells an upstream cost, in `cost_currency` (USD).
 */
export const elevenlabs = {
  serves: (kind) => kind === 'audio',
  // How many at once depends on the plan: https://help.elevenlabs.io/hc/en-us/articles/19571824571921, read 2026-11-25
  limits: { label: 'ElevenLabs' },
  checkOptions,
  open,
} satisfies Adapter;

function open(config: ProviderConfig, parts: AdapterParts): Provider {
  const headers: Record<string, string> = config.api_key === undefined ? {} : { 'xi-api-key': config.api_key };
  const upstream = openUpstream({ ...config, base_url: config.base_url ?? default_base_url }, parts, { headers });
  return {
    media: 'data',
    start: async (run, signal) => {
      const work = operationOf(run) === 'speech-to-text' ? transcribe(parts.prober) : makeAudio;
      const state = await work(upstream, run, signal);
      if ('phase' in state) return state;
      throw refusalOf(upstream, state, run);
    },
    poll: async () => {
      throw new Error('a run of this upstream is over when its start has answered');
    },
    close: () => upstream.close(),
  };
}

/** A used up quota is a 401 like an unknown key; what a plan does not have, too, is ours. */
const hints: Hints = {
  is_synchronous: true,
  moderation: /against_policy|terms_of_service|bad_prompt|bad_composition_plan|prohibited|blocked/i,
  about_us: /quota_exceeded|missing_permissions|payment_required|insufficient_|only_for_|subscription_|free_users_/i,
};

/** Until one of our own requests has ended. */
const crowded_ms = 2_000;

function refusalOf(upstream: Upstream, answer: Answer, run: RunRequest): Error {
  const body = answer.text();
  const { code, type, message } = upstreamErrorOf(body);
  const words = scrub(message, upstream.secrets);
  const is = (form: RegExp) => [code, type].some((word) => form.test(word));
  if (is(/voice_(?:not_found|does_not_exist)/)) {
    // A voice that the route names is gone for all of its callers.
    const is_callers = voiceOf(run) !== run.options['voice_id'];
    return is_callers ? new InputRefused('invalid_request', words) : new NotStarted('unavailable', words);
  }
  if (answer.status === 429 && is(/system_busy/)) {
    const wait = waitOf({ status: 429, retry_after: answer.headers['retry-after'], body });
    return new NotStarted('unavailable', `answered 429: ${words}`, wait);
  }
  if (answer.status === 429 && answer.headers['retry-after'] === undefined && is(/concurrent/)) {
    return new NotStarted('rate_limited', `answered 429: ${words}`, { retry_after_ms: crowded_ms });
  }
  return upstream.refusal(answer, hints);
}

const option_names = {
  operation: operations,
  voice_id: undefined,
  output_format: undefined,
  enable_logging: undefined,
  credit_price: undefined,
  cost_currency: undefined,
};

function checkOptions(options: JsonObject): OptionProblem[] {
  const { enable_logging = true } = options;
  const no_texts = ['voice_id', 'output_format'].filter((field) => typeof (options[field] ?? '') !== 'string');
  return [
    ...optionProblems(options, option_names),
    ...no_texts.map((field) => ({ field, message: 'must be a text' })),
    ...(typeof enable_logging === 'boolean' ? [] : [{ field: 'enable_logging', message: 'must be true or false' }]),
    ...costProblems(options),
  ];
}
