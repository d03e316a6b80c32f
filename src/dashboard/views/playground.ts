import type { Cost } from './common.ts';

/** The styles in which the playground can talk to a chat model. */
export type ChatStyle = 'completions' | 'messages';

export type FieldProblem = { field: string; message: string };

/** The hold of a run, or the problems of its input. */
export type EstimateView =
  | { ok: false; errors: FieldProblem[] }
  | {
      ok: true;
      estimated_cost: Cost;
      /** Null: not for whoever is limited to projects. */
      available: Cost | null;
      /** Money that is left of the monthly limit of the playground; null: it has none. */
      key_left: Cost | null;
      /** The reason why it cannot run now. */
      obstacle: 'account_blocked' | 'insufficient_balance' | 'spend_limit' | 'failures_pause' | null;
      /** End of the pause after too many failures. */
      paused_until: string | null;
    };

/** A file that was uploaded for an input, which names it by its id. */
export type UploadView = { id: string; filename: string; kind: string; content_type: string };

/** The content of a prompt; `{{name}}` in its texts is a place for a variable. */
export type PromptBody = {
  model: string;
  system: string;
  text: string;
  /** The other fields of the call, in the chat-completions style. */
  fields: Record<string, unknown>;
};

export type PromptLineView = { id: string; name: string; version: number; updated_at: string };

export type PromptList = { data: PromptLineView[] };

/** A prompt in one version: `latest` is the number of its last one. */
export type PromptView = PromptLineView & {
  latest: number;
  body: PromptBody;
  /** Latest first; the last 100. */
  versions: { version: number; created_at: string; author: string | null }[];
};

/**
 * Conversations that the person keeps on the server, from a version on. `days`: how long one stays after its last change;
 * 0: the operator does not allow any. `epoch` is another one after everything was removed.
 */
export type ConversationChanges = {
  days: number;
  /** The operator has set a secret for it. */
  is_encrypted: boolean;
  is_on: boolean;
  epoch: string | null;
  data: ConversationChange[];
  has_more: boolean;
};

/** A conversation at its version. `line` is JSON of the browser's, null where nothing can be read. */
export type ConversationChange = { id: string; version: number; is_deleted: boolean; line: string | null };

/** `turns` is JSON of the browser's. */
export type StoredConversation = { version: number; turns: string };

/** A file of a conversation, in base64. */
export type ConversationFile = { data: string };
