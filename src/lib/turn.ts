import type { Gate } from './gate.ts';
import type { StopSignal } from './stop.ts';

/**
 * A turn in a gate for work that is no single function; answers how to end it, or undefined if it does not come within
 * this time, or whoever waits for it is gone before.
 */
export async function takeTurn(
  gate: Gate,
  name: string,
  patience_ms: number,
  gone?: StopSignal,
): Promise<(() => void) | undefined> {
  if (gone?.aborted) return undefined;
  const turn = Promise.withResolvers<boolean>();
  const over = Promise.withResolvers<void>();
  const stay = () => {
    turn.resolve(true);
    return over.promise;
  };
  const giveUp = { handleEvent: () => turn.resolve(false) };
  gone?.addEventListener('abort', giveUp);
  void gate.runWithin(patience_ms, name, stay).then(giveUp.handleEvent);
  const has_come = await turn.promise;
  gone?.removeEventListener('abort', giveUp);
  if (has_come) return over.resolve;
  over.resolve(); // one that comes later is over at once
  return undefined;
}
