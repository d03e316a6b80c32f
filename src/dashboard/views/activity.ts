import type { Cost } from './common.ts';

export type TaskStatus = 'queued' | 'running' | 'succeeded' | 'failed';

/** A file of a task, behind an address that the session opens. */
export type FileView = {
  type: 'image' | 'video' | 'audio' | 'text';
  content_type: string;
  size_bytes: number;
  width?: number;
  height?: number;
  duration?: number;
  text?: string;
  /** Absent once the file is removed. */
  url?: string;
  /** Addresses of thumbnails, which answer 404 if one cannot be drawn: 64 and 320 pixels on the shorter side. */
  thumbnails?: { small: string; large: string };
};

export type TaskLineView = {
  id: string;
  status: TaskStatus;
  model: string;
  kind: string;
  prompt: string | null;
  key: KeyName;
  cost: Cost;
  estimated_cost: Cost;
  error: { type: string; message: string } | null;
  created_at: string;
  started_at: string | null;
  completed_at: string | null;
  files: FileView[];
} & LabelsView;

/** Names that a caller put on a call or a task. */
export type LabelsView = {
  /** The end user. */
  user: string | null;
  /** Those of the metadata, each once. */
  tags: string[];
  /** All pairs, the tags included. */
  metadata: Record<string, string>;
};

export type KeyName = { id: string; name: string };

export type Page<T> = { data: T[]; has_more: boolean };

/** One moment of a task's timeline; `at` sorts it. */
export type Moment = {
  at: string;
  kind:
    | 'created'
    | 'held'
    | 'attempt'
    | 'attempt_ended'
    | 'waiting'
    | 'started'
    | 'succeeded'
    | 'failed'
    | 'charged'
    | 'released'
    | 'delivery';
  title: string;
  detail?: string;
  /** The tone of the entry, by its outcome. */
  tone: 'plain' | 'good' | 'bad' | 'waiting';
};

export type DeliveryView = {
  id: string;
  event: string;
  url: string;
  state: 'waiting' | 'retrying' | 'delivered' | 'dropped';
  attempts: number;
  next_at: string | null;
  created_at: string;
  task_id: string | null;
  /** The endpoint of a delivery; null for a `webhook_url`. The endpoint may be gone. */
  endpoint_id: string | null;
  /** Sent by hand, as a test: once. */
  is_test: boolean;
};

export type DeliveryAttemptView = {
  number: number;
  started_at: string;
  duration_ms: number;
  status: number | null;
  error: string | null;
  answer: string | null;
};

/** A charge, or a hold, taken apart. The amounts of the rows, `rounding` and `not_charged` add up to `charged`. */
export type ChargeView = {
  of: 'charge' | 'hold';
  rows: {
    unit: string;
    /** As charged. */
    quantity: string;
    /** The measured quantity, if it is another one. */
    measured: string | null;
    price: { amount: string; per: number; currency: string };
    amount: Digits;
  }[];
  /** Null where the account has the currency of the prices. */
  rate: string | null;
  rounding: Digits | null;
  not_charged: Digits | null;
  charged: Cost;
  /** The time of the prices; null if those are not stored, and the rows have today's. */
  priced_at: string | null;
  adds_up: boolean;
};

/** An amount with all its digits. */
type Digits = { amount: string; currency: string };

export type TaskView = TaskLineView & {
  /** Null for one that failed. */
  charge: ChargeView | null;
  /** As `GET /v1/tasks/{id}` answers it, byte for byte. */
  body: string;
  /** JSON text of the input, with its defaults. */
  input: string;
  released: Cost | null;
  timeline: Moment[];
  delivery: (DeliveryView & { attempt_log: DeliveryAttemptView[] }) | null;
  feedback: FeedbackView[];
  can_cancel: boolean;
};

/** A score of a call or a task. */
export type FeedbackView = {
  id: string;
  /** The metric. */
  name: string;
  /** The end user, where one was named. */
  user: string | null;
  score: number;
  comment: string | null;
  tags: string[];
  created_at: string;
  /** Whoever looks gave it, here in the dashboard. */
  is_own: boolean;
};

export type ChatLineView = {
  id: string;
  model: string;
  style: string;
  stream: boolean;
  status: number;
  error_type: string | null;
  finish: string | null;
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
  first_content_ms: number | null;
  total_ms: number;
  cost: Cost;
  key: KeyName;
  created_at: string;
} & LabelsView;

export type ChatView = ChatLineView & {
  /** Null for one that cost nothing. */
  charge: ChargeView | null;
  error_message: string | null;
  cache_write_tokens: number;
  reasoning_tokens: number;
  counted_here: boolean;
  /** The searches of a reranker; null if it is billed by other units. */
  search_units: number | null;
  /** Its content is stored. */
  has_content: boolean;
  feedback: FeedbackView[];
  attempts: {
    /** Only operators see its name. */
    route: string | null;
    /** Only if it is another model than the call's. */
    model?: string;
    outcome: string;
    reason?: string;
    upstream_id?: string;
    why?: string;
    duration_ms?: number;
  }[];
};

/** The content of a call; each message as chat completions have it. */
export type ChatContentView = {
  model: string;
  style: string;
  messages: Record<string, unknown>[];
  answers: Record<string, unknown>[];
  /** The settings of the request: how the model was to answer. */
  settings: Record<string, unknown>;
  /** Something was too long to be stored whole. */
  is_cut: boolean;
  /** Counts of what was replaced, by its kind. */
  redacted: Record<string, number>;
  expires_at: string;
};

/**
 * Those who read or deleted the content of a call, or exported contents of the account; `reason`: an operator's; `projects`:
 * names of those that an export was of, null for all.
 */
export type ContentAccesses = {
  data: {
    actor: string;
    action: string;
    projects: string[] | null;
    reason: string | null;
    address: string | null;
    at: string;
  }[];
};

/** A task or a chat call, in the list of both. */
export type ActivityLine = ({ what: 'task' } & TaskLineView) | ({ what: 'chat' } & ChatLineView);

/** `compared`: of a list by cost, the time that it is about; with `cut_since`, only what is newer was compared. */
export type ActivityPage = Page<ActivityLine> & { compared?: { from: string; cut_since: string | null } };

/** Columns of the files of a list, by which a reader chooses them. */
export type ExportColumn =
  | 'type'
  | 'id'
  | 'time'
  | 'model'
  | 'style'
  | 'key'
  | 'key_name'
  | 'status'
  | 'http_status'
  | 'finish'
  | 'error_type'
  | 'error_message'
  | 'prompt'
  | 'started_at'
  | 'completed_at'
  | 'took_ms'
  | 'first_content_ms'
  | 'input_tokens'
  | 'cached_input_tokens'
  | 'output_tokens'
  | 'files'
  | 'cost'
  | 'currency'
  | 'user'
  | 'tags'
  | 'metadata';

/** Lists that a person saved: `search` is that of the page's address, without `?`. */
export type SavedViews = { data: { name: string; search: string }[] };
