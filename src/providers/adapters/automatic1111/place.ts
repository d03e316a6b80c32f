import type { ProviderConfig } from '../../../catalog/model.ts';

/** The address of `webui.sh --api`. */
export const default_base_url = 'http://127.0.0.1:7860';

/** Headers of a key: `user:password` as `--api-auth` wants it, or a bearer token for a proxy. */
export function keyHeaders({ api_key }: ProviderConfig): Record<string, string> {
  if (api_key === undefined) return {};
  const is_pair = api_key.includes(':');
  return { authorization: is_pair ? `Basic ${Buffer.from(api_key).toString('base64')}` : `Bearer ${api_key}` };
}
