import { makeGate, type Gate } from '../lib/gate.ts';

/** A call beyond the one that probes waits so long for the probe to end. */
const probe_wait_ms = 2_000;

/** Chat calls that test a model all of whose routes are open: one at a time of an account. */
export type ChatProbes = Gate;

export function makeChatProbes(): ChatProbes {
  return makeGate({ at_once: Number.MAX_SAFE_INTEGER, at_once_per_name: 1 });
}

/**
 * Resolves to what ends the probe, which ends by itself after `limit_ms`; to undefined if another call of this name
 * was still probing after two seconds.
 */
export function enterProbe(probes: ChatProbes, name: string, limit_ms: number): Promise<(() => void) | undefined> {
  return new Promise((resolve, reject) => {
    const probing = probes.runWithin(probe_wait_ms, name, async () => {
      await new Promise<void>((end) => resolve(releaseAfter(end, limit_ms)));
      return true;
    });
    probing.then((was_run) => {
      if (!was_run) resolve(undefined);
    }, reject);
  });
}

/** Ends a probe, at the latest after this time. */
function releaseAfter(end: () => void, limit_ms: number): () => void {
  const timer = setTimeout(end, limit_ms);
  return () => {
    clearTimeout(timer);
    end();
  };
}
