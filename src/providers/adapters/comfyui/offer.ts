import { ListError } from '../../../catalog/lists/listed.ts';
import { isObject, type ProviderConfig } from '../../../catalog/model.ts';
import type { ListModels } from '../../offer/offer.ts';
import { readUpstreamList } from '../../offer/read-list.ts';

/** Tries the address and the key: ComfyUI has no list of models, since each workflow is one. */
export function openLister(
  default_base_url: string,
  keyOf: (config: ProviderConfig) => Record<string, string>,
): ListModels {
  return async (config, { guard }, { signal }) => {
    const base_url = config.base_url ?? default_base_url;
    const place = { config: { ...config, base_url }, guard, headers: keyOf(config), path: '/queue', signal };
    await readUpstreamList({ ...place, read: readQueue });
    return [];
  };
}

function readQueue(text: string): [] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (isObject(value) && Array.isArray(value['queue_running'])) return [];
  throw new ListError('is no queue of ComfyUI.');
}
