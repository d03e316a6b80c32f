import type { ProviderConfig } from '../../../catalog/model.ts';
import { openUpstream } from '../../http/http.ts';
import type { AdapterParts, Provider } from '../../provider.ts';
import { pollVideos, startVideos } from './videos.ts';
import { media_hints } from './hints.ts';
import { makeImages } from './images.ts';
import { predictImages } from './imagen.ts';
import { isVertex, pathPrefix } from './paths.ts';
import { methodOf, type GeminiUpstream } from './work.ts';

const default_base_url = 'https://generativelanguage.googleapis.com';

/** Links to videos lead there, also those that come through another `base_url`. */
const hosts = ['generativelanguage.googleapis.com'];

/** No quota of operations is documented; the official clients ask for each video every ten seconds. */
const rate_limit = { per_minute: 300, burst: 30 };

/** Images, which come in the answer to the submit, and videos, which are operations. */
export function openMedia(config: ProviderConfig, parts: AdapterParts): Provider {
  const base_url = config.base_url ?? default_base_url;
  const key: Record<string, string> = config.api_key === undefined ? {} : { 'x-goog-api-key': config.api_key };
  const upstream: GeminiUpstream = {
    ...openUpstream({ ...config, base_url }, parts, { headers: key, hosts, rate_limit }),
    prefix: pathPrefix(base_url),
    key,
    is_vertex: isVertex(base_url),
  };
  return {
    media: 'data',
    start: async (run, signal) => {
      const method = methodOf(run);
      const work = method === 'generateContent' ? makeImages : method === 'predict' ? predictImages : startVideos;
      const state = await work(upstream, run, signal);
      if ('phase' in state) return state;
      throw upstream.refusal(state, { ...media_hints, is_synchronous: work !== startVideos });
    },
    poll: (run, ref, signal) => pollVideos(upstream, run, ref, signal),
    close: () => upstream.close(),
  };
}
