import type { Json } from '../../catalog/model.ts';
import { readDataUrl } from '../../lib/data-url.ts';
import type { Prober } from '../../storage/probe.ts';
import { decimalOf } from './upstream-cost.ts';

/** How many seconds the caller's file has, for upstreams that do not say what they listened to; to the millisecond. */
export async function secondsOf(prober: Prober, file: Json | undefined): Promise<string | undefined> {
  const data = typeof file === 'string' ? readDataUrl(file) : undefined;
  if (!data) return undefined;
  const result = await prober.probe(data.bytes);
  const duration = result.ok ? result.probe.duration : undefined;
  return decimalOf(duration);
}
