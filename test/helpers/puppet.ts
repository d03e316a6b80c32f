import type { Adapter, Json, Provider, RunContext, RunState } from '../../src/providers/provider.ts';

/** A call that the service has made and that waits for the test to answer it. */
export type PuppetCall = {
  verb: 'start' | 'poll' | 'cancel';
  task_id: string;
  model: string;
  ref?: Json;
  /** Of a cancel: its task ends whatever is answered. */
  is_given_up?: boolean;
  answer(state: RunState | 'stopped' | 'billed'): void;
  fail(error: Error): void;
};

export type Puppet = {
  adapter: Adapter;
  /** All calls so far. */
  calls: PuppetCall[];
  /** The next call that has not been handed out yet, of this verb if given; waits for it. */
  next(verb?: PuppetCall['verb']): Promise<PuppetCall>;
  /** Returns the number of calls for a task. */
  count(verb: PuppetCall['verb'], task_id: string): number;
};

/** An upstream without a will of its own: every call of it is answered by the test. */
export function makePuppet(options: { idempotent?: boolean } = {}): Puppet {
  const calls: PuppetCall[] = [];
  const fresh: PuppetCall[] = [];
  const waiting: (() => void)[] = [];
  const ask = <T>(verb: PuppetCall['verb'], run: RunContext, signal: AbortSignal, ref?: Json) => {
    const { task_id, model, is_given_up = false } = run;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const call: PuppetCall = {
      verb,
      task_id,
      model,
      ...(ref !== undefined && { ref }),
      ...(verb === 'cancel' && { is_given_up }),
      answer: (state) => resolve(state as T), // the test knows what it was asked
      fail: reject,
    };
    signal.addEventListener('abort', () => reject(signal.reason as Error));
    calls.push(call);
    fresh.push(call);
    for (const wake of waiting.splice(0)) wake();
    return promise;
  };
  const provider: Provider = {
    ...(options.idempotent && { idempotent: true }),
    start: (run, signal) => ask<RunState>('start', run, signal),
    poll: (run, ref, signal) => ask<RunState>('poll', run, signal, ref),
    cancel: (run, ref, signal) => ask<'stopped' | 'billed'>('cancel', run, signal, ref),
  };
  return {
    adapter: { serves: (kind) => kind !== 'chat', open: () => provider },
    calls,
    next: async (verb) => {
      for (;;) {
        const at = fresh.findIndex((call) => verb === undefined || call.verb === verb);
        const [call] = at === -1 ? [] : fresh.splice(at, 1);
        if (call) return call;
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    count: (verb, task_id) => calls.filter((call) => call.verb === verb && call.task_id === task_id).length,
  };
}
