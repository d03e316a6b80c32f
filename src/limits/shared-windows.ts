import type { Shares } from '../leases/shares.ts';
import { SlidingLog, window_ms, type WindowAnswer, type WindowName, type Windows } from './window.ts';

/**
 * Windows of all nodes together: each node logs its own requests, and accepts as many in any minute as its share of the
 * limit. `elapsed_ms` is the clock of `take`.
 */
export function sharedWindows(shares: Shares): Windows {
  const logs = new Map<string, SlidingLog>(); // the longest idle first
  return {
    async take(window, name, limit, now_ms) {
      const resource = resourceOf(window, name);
      const log = findLog(logs, resource, now_ms);
      const begun_ms = performance.now();
      const nowMs = () => now_ms + performance.now() - begun_ms; // a share may have to be asked for
      let taken: WindowAnswer | undefined;
      const limited = {
        limit,
        lost_ms: window_ms,
        inUse: () => log.countAt(nowMs()),
        freesInMs: () => log.freesInMs(nowMs()),
        take: (bound: number) => (taken = log.take(limit, nowMs(), bound)).ok,
      };
      await shares.take(resource, limited);
      taken ??= log.take(limit, nowMs(), 0);
      return besideOthers(taken, shares.stateOf(resource));
    },
  };
}

function resourceOf(window: WindowName, name: string): string {
  return `${window} ${name}`;
}

/** Subtracts the requests on other nodes, which may leave the window earlier. */
function besideOthers(
  taken: WindowAnswer,
  { others_in_use, others_free_in_ms }: { others_in_use: number; others_free_in_ms: number | undefined },
): WindowAnswer {
  if (others_in_use === 0) return taken;
  const remaining = Math.max(0, taken.remaining - others_in_use);
  if (taken.ok) return { ...taken, remaining };
  const wait_ms = Math.min(taken.reset_ms, others_free_in_ms ?? taken.reset_ms);
  return { ...taken, remaining: 0, retry_after_ms: Math.max(1, wait_ms) };
}

const evictions_max = 4;

function findLog(logs: Map<string, SlidingLog>, resource: string, now_ms: number): SlidingLog {
  const existing = logs.get(resource);
  if (existing) {
    if (now_ms - existing.moved_at_ms < 1_000) return existing;
    logs.delete(resource); // moves it to the end
  } else {
    let left = evictions_max;
    for (const [name, log] of logs) {
      // Even an empty log may belong to a request that waits for its share.
      if (left-- === 0 || Math.max(log.idle_at_ms, log.moved_at_ms + window_ms) > now_ms) break;
      logs.delete(name);
    }
  }
  const log = existing ?? new SlidingLog();
  log.moved_at_ms = now_ms;
  logs.set(resource, log);
  return log;
}
