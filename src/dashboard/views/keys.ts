import type { Cost } from './common.ts';

/** `ending`: it was rotated, and works until `ends_at`. `expired`: `expires_at` has passed. */
export type KeyState = 'active' | 'ending' | 'expired' | 'deleted';

export type KeyView = {
  id: string;
  name: string;
  /** `playground`: the dashboard calls by it, and nobody was told its text. */
  kind: 'program' | 'playground';
  /** The project that it is in. */
  project: { id: string; name: string };
  /** `mdl_ab12…wxyz`. */
  shown_as: string;
  created_at: string;
  ends_at: string | null;
  state: KeyState;
  /** Time at which it expires; null: never. */
  expires_at: string | null;
  /** Scopes of the key; null: all. */
  scopes: ('chat' | 'media' | 'read')[] | null;
  /** Ranges from which it may be used; null: anywhere. */
  addresses: string[] | null;
  /** Ids, aliases and prefixes of models that it may use; null: all. */
  models: string[] | null;
  /** It calls models, and reads what keys of its project made: nothing else of the account. */
  is_limited: boolean;
  /** Its own limit of requests per minute, of each kind; null: those of the service alone. */
  requests_per_minute: number | null;
  /** The minute in which it was last used; null: not since `use_noted_since`. */
  last_used_at: string | null;
  /** Null: from the beginning. */
  use_noted_since: string | null;
  /** Nobody has used it for 90 days. */
  is_unused: boolean;
  /** Content of its chat calls is stored, for so many days; null: none is. */
  log_content: ContentRulesView | null;
  /** The limit of the month, against which `spent` and `held` count; null for none. */
  limit: Cost | null;
  spent: Cost;
  held: Cost;
  /** The used part of the limit, held money included; null without a limit. */
  used_percent: number | null;
};

export type ContentRulesView = {
  keep_days: number;
  /** Kinds of data that are replaced. */
  redact: ('email' | 'phone' | 'card' | 'iban' | 'secret')[];
  /** Patterns of other texts that are replaced. */
  patterns: string[];
};

/** Keys, newest first. */
export type KeyPageView = { data: KeyView[]; has_more: boolean };

/**
 * `has_any`: there are keys, perhaps others than these. `content_days_max`: the most days for which the operator lets keys
 * store contents; 0: none.
 */
export type KeysView = KeyPageView & { has_any: boolean; resets_at: string; content_days_max: number };

/** Keys to choose from: those that a text fits, working ones first, and beside them those that are chosen. */
export type KeyChoices = { data: KeyChoice[]; chosen: KeyChoice[]; has_more: boolean };

export type KeyChoice = { id: string; name: string };

/** `is_default`: the one of keys in no other. */
export type ProjectView = {
  id: string;
  name: string;
  is_default: boolean;
  state: 'active' | 'archived';
  created_at: string | null;
  /** Keys that work. */
  keys: number;
  /** Charges of this month (UTC). */
  spent: Cost;
};

export type ProjectsView = { data: ProjectView[] };

/** The one answer that has the key itself. */
export type NewKeyView = { key: KeyView; secret: string };
