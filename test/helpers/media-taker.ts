import type { JsonObject } from '../../src/catalog/model.ts';
import type { Adapter, Provider, RunFile, RunRequest, RunState } from '../../src/providers/provider.ts';

/** An adapter that takes files in one form, notes what it was given, and answers what it was told to. */
export type MediaTaker = {
  adapter: Adapter;
  runs: RunRequest[];
  /** The inputs so far, oldest first. */
  inputs(): JsonObject[];
  /** Result of the next runs. */
  answer: (run: RunRequest) => RunState | Promise<RunState>;
};

export function makeMediaTaker(media: Provider['media'], file: RunFile): MediaTaker {
  const taker: MediaTaker = {
    runs: [],
    inputs: () => taker.runs.map((run) => run.input),
    answer: () => ({ phase: 'done', files: [file] }),
    adapter: {
      serves: (kind) => kind !== 'chat',
      open: () => ({
        ...(media && { media }),
        start: async (run) => {
          taker.runs.push(run);
          return taker.answer(run);
        },
        poll: async () => ({ phase: 'failed', type: 'upstream_error', message: 'never accepted' }),
      }),
    },
  };
  return taker;
}
