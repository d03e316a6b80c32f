// Written from openapi.json by test/typescript-client/types.unit.test.ts: run it with --update after a change.

/** A generation task. */
export type Task = {
  /** Task identifier, `task_` + 26 characters. */
  id: string;
  status: 'queued' | 'running' | 'succeeded' | 'failed';
  model: string;
  output: OutputItem[];
  cost: Cost;
  estimated_cost: Cost;
  error: TaskError | null;
  /** Creation time. */
  created_at: string;
  /** When the run started. */
  started_at: string | null;
  /** When the task became final. */
  completed_at: string | null;
  metadata: Record<string, string>;
};

/** A produced file, measured from its bytes. */
export type OutputItem = {
  type: 'image' | 'video' | 'audio' | 'text';
  /** Temporary download link. */
  url: string;
  content_type: string;
  size_bytes: number;
  /** Pixels (image, video). */
  width?: number;
  /** Pixels (image, video). */
  height?: number;
  /** Seconds (video, audio). */
  duration?: number;
  /** The text itself, up to 64 KiB (text). */
  text?: string;
  /** When the link stops working. */
  expires_at: string;
};

/** An amount of money. */
export type Cost = {
  /** Decimal amount with two fraction digits. */
  amount: string;
  /** Code of the account's billing currency. */
  currency: string;
  /** The same amount to the millionth, as the ledger books it. */
  exact: string;
};

export type TaskError = {
  type: 'upstream_error' | 'timeout' | 'content_policy_violation' | 'invalid_request' | 'canceled' | 'internal_error';
  /** For people; may change. */
  message: string;
};

export type Estimate = {
  estimated_cost: Cost;
  available: Cost | null;
  /** False if POST /v1/generate would answer 402, 403 or 429 now. */
  allowed: boolean;
};

export type Links = {
  object: 'list';
  data: OutputItem[];
};

/** A model. */
export type Model = {
  /** The id for `model` in requests. */
  id: string;
  /** Other names for `model` in requests. */
  aliases: string[];
  object: 'model';
  type: 'model';
  /** Seconds since 1970. */
  created: number;
  created_at: string;
  owned_by: string;
  display_name: string;
  modality: 'chat' | 'embedding' | 'rerank' | 'moderation' | 'image' | 'video' | 'audio';
  description: string;
  /** JSON Schema 2020-12 of `input`. */
  input_schema: Record<string, unknown>;
  output_types: string[];
  /** For each unit, the first row whose `when` fits the input applies. */
  pricing: Array<{
    unit: 'request' | 'image' | 'megapixel' | 'second' | 'minute' | 'character' | 'input_token' | 'cached_input_token' | 'cache_write_token' | 'cache_write_1h_token' | 'output_token' | 'web_search' | 'code_interpreter' | 'search_unit';
    /** Decimal text, for `per` units. */
    amount: string;
    per: number;
    currency: string;
    /** Inputs to which this price applies. */
    when?: Record<string, unknown>;
    /** Chat: for calls whose whole input, cached or not, has more tokens than this. */
    above_input_tokens?: number;
  }>;
  limits: Record<string, number>;
  capabilities: string[];
  /** `available`: every route of the model takes tasks. `degraded`: some are paused because they kept failing, or were taken out by the operator, or the next task tests whether they work again. `unavailable`: all are paused; creating a task answers 502 `upstream_error` or 504 `timeout` until a pause is over, after 5 minutes at most. Or the operator has switched the model off: 502 until it is on again. At most a second old. */
  status: 'available' | 'degraded' | 'unavailable';
  /** The first day, UTC, on which the model is no longer offered. */
  retires?: string;
  /** The model to use instead. */
  replaced_by?: string;
  /** Of an alias: the models behind it; each conversation stays with one. Prices are those of the most expensive one, limits and capabilities those that all have. */
  models?: string[];
};

export type Balance = {
  object: 'balance';
  balance: Cost;
  held: Cost;
  available: Cost;
  currency: string;
  key: KeyUse;
  /** When this was read. */
  updated_at: string;
};

export type KeyUse = {
  spend_limit: Cost | null;
  spent: Cost;
  remaining: Cost | null;
  /** When the month ends, UTC. */
  resets_at: string;
};

export type Transaction = {
  id: string;
  object: 'transaction';
  type: 'topup' | 'hold' | 'release' | 'charge' | 'adjustment';
  /** Effect on the balance: a hold and its release only reserve money. */
  direction: 'in' | 'out' | 'none';
  amount: Cost;
  available_after: Cost;
  held_after: Cost;
  /** The task or the external reference it belongs to. */
  reference_id: string | null;
  key_id: string | null;
  model: string | null;
  reason: string | null;
  /** When it was booked. */
  created_at: string;
};

export type Usage = {
  object: 'usage';
  /** Inclusive. */
  from: string;
  /** Exclusive. */
  to: string;
  group_by: string[];
  data: Array<{
    /** When it begins, UTC. */
    hour?: string;
    day?: string;
    model?: string | null;
    key?: string | null;
    project?: string | null;
    modality?: string | null;
    /** The end user that the caller named. */
    user?: string | null;
    /** One of the tags in `metadata.tags`. */
    tag?: string | null;
    /** Each name of metadata in group_by. */
    metadata?: Record<string, string | null>;
    /** Number of tasks or calls charged. */
    count: number;
    cost: Cost;
    /** Usage, unit → decimal text. */
    units: Record<string, string>;
  }>;
  /** True if more than 10,000 groups have labels: these cost the most. */
  has_more: boolean;
  total: Cost;
};

export type Refusals = {
  object: 'refusals';
  /** Inclusive. */
  from: string;
  /** Exclusive. */
  to: string;
  group_by: string[];
  data: Array<{
    /** When it begins, UTC. */
    hour?: string;
    day?: string;
    reason?: 'insufficient_balance' | 'monthly_limit' | 'budget_reached' | 'model_not_allowed' | 'scope_missing' | 'address_not_allowed' | 'limited_to_projects' | 'account_blocked' | 'rate_limit' | 'concurrency_limit' | 'failures_pause';
    key?: string | null;
    model?: string | null;
    project?: string | null;
    /** Id of the budget that refused it. */
    budget?: string | null;
    /** Number of requests that were refused. */
    count: number;
  }>;
  /** True if there are more than 1,000 groups: these have the most. */
  has_more: boolean;
  /** Number of requests that were refused in the range. */
  total: number;
};

export type Key = {
  object: 'api_key';
  id: string;
  name: string;
  account_id: string;
  currency: string;
  spend_limit: Cost | null;
  spent: Cost;
  remaining: Cost | null;
  /** When the month ends, UTC. */
  resets_at: string;
  held: Cost;
  limits: {
    generate_per_minute: number;
    chat_per_minute: number;
    failed_per_24h: number;
  };
  /** Expiry of the key; null: never. */
  expires_at: string | null;
  /** Scopes of the key; null: all. */
  scopes: Array<'chat' | 'media' | 'read'> | null;
  /** Ranges from which the key may be used; null: anywhere. */
  addresses: string[] | null;
  /** Models that the key may use: ids, aliases of the operator, and beginnings such as `acme/*`; null: all. */
  models: string[] | null;
  /** A limit of the key itself, of each kind of requests; `limits` has what counts. Null: none. */
  requests_per_minute: number | null;
};

/** A file that a caller uploaded. */
export type UploadedFile = {
  /** File identifier, `file_` + 26 characters. */
  id: string;
  object: 'file';
  bytes: number;
  /** Seconds since 1970. */
  created_at: number;
  /** Expiry, seconds since 1970. */
  expires_at: number;
  filename: string;
  purpose: string;
  status: 'processed';
  /** Kind of the file, determined from its bytes. */
  kind: 'image' | 'video' | 'audio' | 'document';
  /** Determined from its bytes. */
  content_type: string;
  /** Pixels (image, video). */
  width?: number;
  /** Pixels (image, video). */
  height?: number;
  /** Seconds (video, audio). */
  duration?: number;
};

/** A chat call or a task, without its content. */
export type Call = {
  object: 'call';
  /** The `x-request-id` of a chat call, or the id of a task. */
  id: string;
  kind: 'chat' | 'task';
  model: string;
  /** The last route that was tried, where the operator names routes. */
  route: string | null;
  /** Wire format of a chat call; null: a task. */
  style: string | null;
  /** Of a task; null: a chat call. */
  modality: 'image' | 'video' | 'audio' | null;
  /** A chat call is in the list when it has ended. */
  status: 'queued' | 'running' | 'succeeded' | 'failed';
  /** Status of the answer to a chat call; 499: its caller left. */
  http_status: number | null;
  error_type: string | null;
  /** Time to the first token of a chat answer. */
  first_content_ms: number | null;
  /** Time to the end; null: it has not ended. */
  total_ms: number | null;
  /** Of a chat call. */
  usage: {
    input_tokens: number;
    cached_input_tokens: number;
    output_tokens: number;
  } | null;
  cost: Cost;
  /** Id of the key that made it. */
  key: string;
  /** The end user that the caller named. */
  user: string | null;
  metadata: Record<string, string>;
  /** The tags in `metadata.tags`. */
  tags: string[];
  /** Creation time. */
  created_at: string;
  /** Path of its details, `/v1/chat/…` or `/v1/tasks/…`. */
  path: string;
};

/** A score of one chat call or task. */
export type Feedback = {
  /** Identifier, `feedback_` + 26 characters. */
  id: string;
  object: 'feedback';
  /** The chat call (`x-request-id`) or the task that was scored. */
  reference_id: string;
  /** The metric. */
  name: string;
  /** The end user, as the caller named them. */
  user: string | null;
  /** From -1 to 1. */
  score: number;
  comment: string | null;
  tags: string[];
  metadata: Record<string, string>;
  /** First time that it was given. */
  created_at: string;
  /** Last time that it was given. */
  updated_at: string;
};

export type SubscribedEvent = '*' | 'task.*' | 'balance.*' | 'budget.*' | 'invoice.*' | 'model.*' | 'task.succeeded' | 'task.failed' | 'task.canceled' | 'balance.low' | 'balance.topped_up' | 'budget.threshold' | 'budget.exceeded' | 'invoice.created' | 'model.retiring';

export type WebhookEventType = 'task.succeeded' | 'task.failed' | 'task.canceled' | 'balance.low' | 'balance.topped_up' | 'budget.threshold' | 'budget.exceeded' | 'invoice.created' | 'model.retiring';

/** Narrow events of tasks: each that is there must fit. Other events pass. */
export type WebhookFilters = {
  /** Ids of models. */
  models?: string[];
  /** Ids of keys. */
  keys?: string[];
  /** Ids of projects that the key of the task is in when the event comes. */
  projects?: string[];
  /** Pairs that the metadata of the task has. */
  metadata?: Record<string, string>;
};

export type WebhookEndpoint = {
  id: string;
  object: 'webhook_endpoint';
  /** Receives a POST for each event. */
  url: string;
  /** For people. */
  description: string;
  /** Types of events, all of a kind as `task.*`, or `*` for all. */
  events: SubscribedEvent[];
  filters: WebhookFilters;
  /** A disabled endpoint gets nothing. */
  enabled: boolean;
  /** `failing`: its deliveries failed for days. `gone`: its receiver answered 410. */
  disabled_reason: 'manual' | 'failing' | 'gone' | null;
  /** When it was disabled. */
  disabled_at: string | null;
  /** The first failed attempt since one arrived. */
  failing_since: string | null;
  /** When an attempt arrived last, to the minute. */
  last_delivered_at: string | null;
  /** Until when the previous secret signs, too. */
  previous_secret_until: string | null;
  /** When it was registered. */
  created_at: string;
};

export type NewWebhookEndpoint = {
  id: string;
  object: 'webhook_endpoint';
  /** Receives a POST for each event. */
  url: string;
  /** For people. */
  description: string;
  /** Types of events, all of a kind as `task.*`, or `*` for all. */
  events: SubscribedEvent[];
  filters: WebhookFilters;
  /** A disabled endpoint gets nothing. */
  enabled: boolean;
  /** `failing`: its deliveries failed for days. `gone`: its receiver answered 410. */
  disabled_reason: 'manual' | 'failing' | 'gone' | null;
  /** When it was disabled. */
  disabled_at: string | null;
  /** The first failed attempt since one arrived. */
  failing_since: string | null;
  /** When an attempt arrived last, to the minute. */
  last_delivered_at: string | null;
  /** Until when the previous secret signs, too. */
  previous_secret_until: string | null;
  /** When it was registered. */
  created_at: string;
  /** Signs what it receives. Shown only once. */
  secret: string;
};

export type WebhookTest = {
  object: 'webhook_test';
  delivery_id: string;
  /** The status was from 200 to 299. */
  delivered: boolean;
  status: number | null;
  /** Why there was no answer. */
  error: string | null;
  duration_ms: number;
  /** Of the answer. */
  headers: Record<string, string>;
  /** Its first 2 kB. */
  answer: string | null;
};

export type WebhookReplay = {
  object: 'webhook_replay';
  /** Number of events. */
  events: number;
  /** There are more from this moment on: ask again. Null: these are all. */
  next_from: string | null;
  dry_run: boolean;
};

export type TaskEvent = {
  /** Of the event: deduplicate by it. */
  id: string;
  type: 'task.succeeded' | 'task.failed' | 'task.canceled';
  /** When it happened. */
  created_at: string;
  account_id: string;
  data: Task;
};

export type BalanceLowEvent = {
  /** Of the event: deduplicate by it. */
  id: string;
  type: 'balance.low';
  /** When it happened. */
  created_at: string;
  account_id: string;
  data: {
    available: Cost;
    threshold: Cost;
  };
};

export type BalanceToppedUpEvent = {
  /** Of the event: deduplicate by it. */
  id: string;
  type: 'balance.topped_up';
  /** When it happened. */
  created_at: string;
  account_id: string;
  data: {
    amount: Cost;
    available: Cost;
    reference: string;
  };
};

export type BudgetEvent = {
  /** Of the event: deduplicate by it. */
  id: string;
  type: 'budget.threshold' | 'budget.exceeded';
  /** When it happened. */
  created_at: string;
  account_id: string;
  data: {
    /** The key whose limit it is; null: it is of a budget. */
    key_id: string | null;
    key_name: string | null;
    /** The budget; null: it is of the limit of a key. */
    budget_id: string | null;
    budget_name: string | null;
    limit: Cost;
    used: Cost;
    used_percent: number;
    /** When it resets; null for a budget of all time. */
    resets_at: string | null;
  };
};

export type InvoiceCreatedEvent = {
  /** Of the event: deduplicate by it. */
  id: string;
  type: 'invoice.created';
  /** When it happened. */
  created_at: string;
  account_id: string;
  data: {
    number: string;
    /** Such as `2026-01`. */
    month: string;
    total: Cost;
    /** Number of the invoice that it supplements. */
    supplement_to: string | null;
  };
};

export type ModelRetiringEvent = {
  /** Of the event: deduplicate by it. */
  id: string;
  type: 'model.retiring';
  /** When it happened. */
  created_at: string;
  account_id: string;
  data: {
    /** The day, such as `2026-01-31`. */
    ends_on: string;
    models: Array<{
      id: string;
      replacement: string | null;
    }>;
  };
};

/** The body of a webhook to an endpoint; `type` decides about its `data`. */
export type EventEnvelope = TaskEvent | BalanceLowEvent | BalanceToppedUpEvent | BudgetEvent | InvoiceCreatedEvent | ModelRetiringEvent;

export type WebhookEndpointFields = {
  /** Receives a POST for each event. */
  url: string;
  /** For people. */
  description?: string;
  /** Types of events, all of a kind as `task.*`, or `*` for all. */
  events: SubscribedEvent[];
  /** Narrow events of tasks: each that is there must fit. Other events pass. */
  filters?: {
    /** Ids of models. */
    models?: string[];
    /** Ids of keys. */
    keys?: string[];
    /** Ids of projects that the key of the task is in when the event comes. */
    projects?: string[];
    /** Pairs that the metadata of the task has. */
    metadata?: Record<string, string>;
  };
  /** A disabled endpoint gets nothing. */
  enabled?: boolean;
};

export type WebhookEndpointChange = {
  /** Receives a POST for each event. */
  url?: string;
  /** For people. */
  description?: string;
  /** Types of events, all of a kind as `task.*`, or `*` for all. */
  events?: SubscribedEvent[];
  /** Narrow events of tasks: each that is there must fit. Other events pass. */
  filters?: {
    /** Ids of models. */
    models?: string[];
    /** Ids of keys. */
    keys?: string[];
    /** Ids of projects that the key of the task is in when the event comes. */
    projects?: string[];
    /** Pairs that the metadata of the task has. */
    metadata?: Record<string, string>;
  };
  /** A disabled endpoint gets nothing. */
  enabled?: boolean;
};

export type WebhookReplayRequest = {
  /** The first moment. */
  from: string;
  /** The moment after the last. Default: now. */
  to?: string;
  which?: 'failed' | 'all';
  /** Count only. */
  dry_run?: boolean;
};

export type GenerateRequest = {
  model: string;
  /** Fields of the model: its `input_schema`. */
  input: Record<string, unknown>;
  /** Receives a POST when the task is final. */
  webhook_url?: string;
  /** At most 16 pairs, echoed in the task. */
  metadata?: Record<string, string>;
};

export type ChatCompletionsRequest = {
  /** Model id. */
  model: string;
  /** Models to be asked in this order if the one in `model` does not answer. The one that answers is charged. Without `model` the first one is the model. */
  models?: string[];
  /** The routes of a model that are tried, and their order. Providers have the names of the operator. */
  provider?: {
    /** These providers first. */
    order?: string[];
    /** No other providers. */
    only?: string[];
    /** Not these providers. */
    ignore?: string[];
    /** false: only the providers of `order`, or without it the first route alone. */
    allow_fallbacks?: boolean;
    /** The fastest routes first, as measured lately. */
    sort?: 'price' | 'latency' | 'throughput';
    /** The most that a million tokens, or a call, may cost, in the currency of the account. */
    max_price?: {
      prompt?: number | string;
      completion?: number | string;
      request?: number | string;
    };
    /** deny: only providers that keep nothing. */
    data_collection?: 'allow' | 'deny';
  };
};

export type ListTasksQuery = {
  /** Number of tasks. */
  limit?: number | undefined;
  /** Tasks older than this one. */
  after?: string | undefined;
  /** Tasks newer than this one. */
  before?: string | undefined;
  /** The same as `after`. */
  after_id?: string | undefined;
  /** The same as `before`. */
  before_id?: string | undefined;
  /** Only this status. */
  status?: 'queued' | 'running' | 'succeeded' | 'failed' | undefined;
  /** Only this model. */
  model?: string | undefined;
  /** Only tasks created after this time. */
  created_after?: string | Date | undefined;
  /** Only tasks created before this time. */
  created_before?: string | Date | undefined;
  /** `metadata[key]=value`: only tasks that carry these pairs. */
  metadata?: Record<string, string> | undefined;
};

export type ListModelsQuery = {
  /** Number of models. */
  limit?: number | undefined;
  /** Models after this one. */
  after_id?: string | undefined;
  /** Models before this one. */
  before_id?: string | undefined;
  /** Only this kind. */
  modality?: 'chat' | 'embedding' | 'rerank' | 'moderation' | 'image' | 'video' | 'audio' | undefined;
};

export type ListTransactionsQuery = {
  /** Number of movements. */
  limit?: number | undefined;
  /** Movements older than this one. */
  after?: string | undefined;
  /** Movements newer than this one. */
  before?: string | undefined;
  /** Only this type. */
  type?: 'topup' | 'hold' | 'release' | 'charge' | 'adjustment' | undefined;
};

export type UsageQuery = {
  /** Inclusive, ISO 8601. */
  from?: string | Date | undefined;
  /** Exclusive, ISO 8601. */
  to?: string | Date | undefined;
  /** One or several of day, hour, model, key, project, modality, user, tag, metadata.NAME, joined by commas. */
  group_by?: string | undefined;
};

export type RefusalsQuery = {
  /** Inclusive, ISO 8601. */
  from?: string | Date | undefined;
  /** Exclusive, ISO 8601. */
  to?: string | Date | undefined;
  /** One or several of hour, day, reason, key, model, project, budget, joined by commas. */
  group_by?: string | undefined;
  /** Only this reason. */
  reason?: 'insufficient_balance' | 'monthly_limit' | 'budget_reached' | 'model_not_allowed' | 'scope_missing' | 'address_not_allowed' | 'limited_to_projects' | 'account_blocked' | 'rate_limit' | 'concurrency_limit' | 'failures_pause' | undefined;
  /** Only requests of this key, by its id. */
  key?: string | undefined;
};

export type ListFilesQuery = {
  /** Number of files. */
  limit?: number | undefined;
  /** Order by creation time. */
  order?: 'asc' | 'desc' | undefined;
  /** Files after this one in the list; also after_id and page. */
  after?: string | undefined;
  /** Files before this one in the list. */
  before_id?: string | undefined;
  /** Only files of this purpose. */
  purpose?: string | undefined;
};

export type ListCallsQuery = {
  /** Number of calls. */
  limit?: number | undefined;
  /** Calls older than this one. */
  after?: string | undefined;
  /** Calls newer than this one. */
  before?: string | undefined;
  /** The same as `after`. */
  after_id?: string | undefined;
  /** The same as `before`. */
  before_id?: string | undefined;
  /** Only chat calls, or only tasks. */
  kind?: 'chat' | 'task' | undefined;
  /** Only this model. */
  model?: string | undefined;
  /** Only of this key, by its id. */
  key?: string | undefined;
  /** Only this status. */
  status?: 'queued' | 'running' | 'succeeded' | 'failed' | undefined;
  /** Only calls that failed with this `error_type`. */
  error?: string | undefined;
  /** Only chat calls that were answered with this status, such as 429; 499 if their caller did not wait. */
  http_status?: number | undefined;
  /** Only of this end user. */
  user?: string | undefined;
  /** Only calls with this tag in `metadata.tags`. */
  tag?: string | undefined;
  /** Only calls created at this time or later. */
  created_after?: string | Date | undefined;
  /** Only calls created before this time. */
  created_before?: string | Date | undefined;
  /** `metadata[key]=value`: only calls that carry these pairs. */
  metadata?: Record<string, string> | undefined;
};

export type ListFeedbackQuery = {
  /** Only on this call or task. */
  reference_id?: string | undefined;
  /** Only of this metric. */
  name?: string | undefined;
  /** Only of this end user. */
  user?: string | undefined;
  /** Number of scores. */
  limit?: number | undefined;
  /** Older than this one. */
  after?: string | undefined;
  /** Newer than this one. */
  before?: string | undefined;
};

export type ListWebhookEndpointsQuery = {
  /** Number of endpoints. */
  limit?: number | undefined;
  /** Endpoints after this one in the list. */
  after?: string | undefined;
};
