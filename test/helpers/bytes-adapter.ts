import type { Adapter } from '../../src/providers/provider.ts';

/** Hands over given files at once: the one whose place in the list, counted from 1, the input's `width` names. */
export function bytesAdapter(files: readonly Buffer[]): Adapter {
  return {
    serves: () => true,
    open: () => ({
      start: async ({ input }) => {
        const bytes = files[Number(input['width']) - 1] ?? files[0];
        return { phase: 'done', files: bytes ? [{ bytes }] : [] };
      },
      poll: async (_run, ref) => ({ phase: 'running', ref, poll_after_ms: 1_000 }),
    }),
  };
}
