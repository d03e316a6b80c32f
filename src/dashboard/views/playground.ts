import type { Cost } from './common.ts';

/** The styles in which the playground can talk to a chat model. */
export type ChatStyle = 'completions' | 'messages';

export type FieldProblem = { field: string; message: string };

/** What a run would hold, or what is wrong with its input. */
export type EstimateView =
  | { ok: false; errors: FieldProblem[] }
  | {
      ok: true;
      estimated_cost: Cost;
      available: Cost;
      /** What keeps it from being run now. */
      obstacle: 'account_blocked' | 'insufficient_balance' | 'spend_limit' | 'failures_pause' | null;
      /** When the pause after too many failures ends. */
      paused_until: string | null;
    };

/** A file that was uploaded for an input, which names it by its id. */
export type UploadView = { id: string; filename: string; kind: string; content_type: string };
