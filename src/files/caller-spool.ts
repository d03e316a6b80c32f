import { ApiError } from '../errors.ts';
import { makeGate, type Gate } from '../lib/gate.ts';
import type { StopSignal } from '../lib/stop.ts';
import { takeTurn } from '../lib/turn.ts';
import { withSpool, type Spool } from './spool.ts';

/** What this needs of the service; its places are counted by it. */
export type SpoolParts = { config: { data_dir: string } };

/** What this needs of a call: whether its caller is still there. */
export type Leaving = { readonly gone: StopSignal };

/** For the files that one request needs beside its body. */
export type CallerSpool = Leaving & {
  /**
   * To be called before a turn anywhere else is taken: it waits for a place, and those who have one may wait for
   * such turns. Throws ApiError 429 if there is none for a minute, or the caller leaves.
   */
  open(): Promise<Spool>;
};

/** As long as a caller may have to wait for one file. */
const patience_ms = 60_000;

/** Does `work` with a spool for files of a caller's, which takes a place when it is opened. */
export async function withCallerSpool<T>(
  parts: SpoolParts,
  account_id: string,
  call: Leaving,
  work: (spool: CallerSpool) => Promise<T>,
): Promise<T> {
  let entering: Promise<() => void> | undefined;
  const open = async (spool: Spool) => {
    entering ??= enter(parts, account_id, patience_ms, call.gone);
    await entering;
    return spool;
  };
  try {
    return await withSpool(parts.config.data_dir, (spool) =>
      work({
        open: () => open(spool),
        get gone() {
          return call.gone;
        },
      }),
    );
  } finally {
    const leave = await entering?.catch(() => undefined); // it was told already
    leave?.();
  }
}

/** A place for a request that is nothing but files: at once, or not. Answers how to leave it; throws ApiError 429. */
export function takePlace(parts: SpoolParts, account_id: string): Promise<() => void> {
  return enter(parts, account_id, 0);
}

/** Files lie on the disk before anything counts them: so many requests with files at once, and no more. */
const limits = { at_once: 64, at_once_per_name: 8 };

const gates = new WeakMap<SpoolParts, Gate>();

async function enter(parts: SpoolParts, account_id: string, wait_ms: number, gone?: StopSignal): Promise<() => void> {
  const gate = gates.get(parts) ?? makeGate(limits);
  gates.set(parts, gate);
  const leave = await takeTurn(gate, account_id, wait_ms, gone);
  if (leave) return leave;
  const message = 'Too many requests with files are under way. Try again when one of them has ended.';
  throw new ApiError('rate_limit', message, { headers: { 'retry-after': '1' } });
}
