import type { JsonObject, ProviderConfig } from '../../../catalog/model.ts';
import { openUpstream, type Answer, type Upstream } from '../../http/http.ts';
import type { AdapterParts, Provider, RunRequest, RunState } from '../../provider.ts';
import { objectIn, textIn } from '../../http/reading.ts';
import type { Prober } from '../../../storage/probe.ts';
import { makeImages } from './images.ts';
import { speak } from './speech.ts';
import { transcribe } from './transcription.ts';
import { pollVideo, startVideo, video_calls } from './videos.ts';
import type { Work } from './work.ts';

/** Images, speech and transcripts: the upstream answers a submit with the result, and keeps nothing. Videos are polled. */
export function openMedia(config: ProviderConfig & { base_url: string }, parts: AdapterParts): Provider {
  const headers: Record<string, string> =
    config.api_key === undefined ? {} : { authorization: `Bearer ${config.api_key}` };
  const upstream = openUpstream(config, parts, { headers, rate_limit: video_calls });
  return {
    media: 'data',
    start: async (run, signal) => {
      const answer = await workOf(run, parts.prober)(upstream, run, signal);
      return 'phase' in answer ? answer : refused(upstream, run, answer);
    },
    poll: async (run, ref, signal) => {
      if (run.kind === 'video') return pollVideo(upstream, config, run, ref, signal);
      throw new Error('a run of this upstream is over when its start has answered');
    },
    close: () => upstream.close(),
  };
}

function workOf({ kind, input, options }: RunRequest, prober: Prober): Work {
  if (kind === 'video') return startVideo;
  if (kind === 'image') return makeImages;
  const operation = options['operation'] ?? ('file' in input ? 'transcription' : 'speech');
  return operation === 'transcription' ? transcribe(prober) : speak;
}

/** Content that was found unfit when the image was there is a run that failed; else the run did not start. */
function refused(upstream: Upstream, { kind }: RunRequest, answer: Answer): RunState {
  const error = errorOf(answer);
  if (textIn(objectIn(error, 'moderation_details'), 'moderation_stage') === 'output') {
    return upstream.failure({ code: 'moderation_blocked', message: textIn(error, 'message') ?? '' });
  }
  throw upstream.refusal(answer, { is_synchronous: kind !== 'video' });
}

function errorOf(answer: Answer): JsonObject {
  try {
    return objectIn(answer.object(), 'error');
  } catch {
    return {}; // HTML of a proxy, or nothing
  }
}
