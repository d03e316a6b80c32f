import type { Json } from '../../catalog/model.ts';
import { readDataUrl } from '../../lib/data-url.ts';
import type { Prober } from '../../storage/probe.ts';
import { decimalOf } from './upstream-cost.ts';

/** Returns the length of the caller's file in seconds, to the millisecond, for upstreams that do not report it. */
export async function secondsOf(prober: Prober, file: Json | undefined): Promise<string | undefined> {
  const data = typeof file === 'string' ? readDataUrl(file) : undefined;
  if (!data) return undefined;
  const result = await prober.probe(data.bytes);
  const duration = result.ok ? result.probe.duration : undefined;
  return decimalOf(duration);
}
