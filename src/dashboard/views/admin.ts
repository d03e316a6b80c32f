import type { DeliveryView, Page, TaskStatus } from './activity.ts';
import type { Cost } from './common.ts';
import type { PriceView } from './models.ts';

export type AdminAccount = {
  id: string;
  name: string;
  currency: string;
  status: 'active' | 'blocked';
  balance: Cost;
  held: Cost;
  available: Cost;
  /** The spend of the last 30 days. */
  spend: Cost;
  created_at: string;
};

export type AdminAccounts = Page<AdminAccount> & {
  /** That a new account may have. */
  currencies: string[];
};

export type AdminAccountPage = AdminAccount & {
  members: { name: string; email: string; role: string; two_factor: boolean }[];
  /** Those that work, newest first. */
  failures: { counted: number; limit: number };
};

/** The state of one part of the service, and its meaning. */
export type Light = { name: string; state: 'good' | 'warning' | 'bad'; detail: string };

export type AdminOverview = {
  lights: Light[];
  tasks: { queued: number; running: number; oldest_queued_s: number | null; succeeded_24h: number; failed_24h: number };
  chats: {
    calls_24h: number;
    failed_24h: number;
    first_words_p50_ms: number | null;
    first_words_p95_ms: number | null;
  };
  /** Jobs that wait. */
  jobs: number;
  /** The margins of this month, by model. */
  margins: AdminMargin[];
};

export type AdminRoute = {
  id: string;
  /** The name that health, attempts and logs use. */
  name: string;
  provider: string;
  upstream_model: string;
  state: 'open' | 'closed';
  /** The number of accounts for which it is open; null if for all, or for none. */
  accounts_paused: number | null;
  cause: string | null;
  retry_at: string | null;
  /** It takes nothing new. */
  is_drained: boolean;
  /** Generations that run on it now. */
  running: number;
};

export type AdminModel = {
  id: string;
  kind: string;
  name: string;
  standing: 'available' | 'degraded' | 'unavailable';
  hidden: boolean;
  /** Switched off by an operator. */
  is_off: boolean;
  /** Its routes are in an order of their own, not in that of the configuration. */
  is_reordered: boolean;
  /** In the order in which they are tried. */
  routes: AdminRoute[];
};

export type AdminFailure = {
  of: 'generation' | 'chat';
  route: string;
  state: string;
  reason: string | null;
  count: number;
  last_at: string;
  example: string | null;
};

export type AdminFailures = { data: AdminFailure[]; since: string };

export type AdminMargin = {
  name: string | null;
  currency: string;
  runs: number;
  revenue: Cost;
  upstream_cost: Cost;
  margin: Cost;
  unknown: number;
};

export type AdminMargins = {
  month: string;
  by: string;
  data: AdminMargin[];
  /** The names of accounts, by id, where the rows are accounts. */
  names: Record<string, string>;
};

/** A model's price, and what each of its routes costs. */
export type AdminPrice = {
  model: string;
  kind: string;
  name: string;
  price: PriceView[];
  /** The page of the price, and the day on which it was read. */
  price_source: { url: string; date: string } | null;
  routes: {
    id: string;
    provider: string;
    cost: PriceView[];
    /** Of the unit with the lowest; null where a cost is not configured. */
    margin_percent: number | null;
  }[];
};

export type AdminPrices = { data: AdminPrice[] };

/** Accounts for a list to choose from. */
export type AdminAccountNames = { data: { id: string; name: string }[] };

export type AdminDelivery = DeliveryView & {
  account_id: string;
  account_name: string;
  last_status: number | null;
  last_error: string | null;
};

/** A chat call or a task in the list of all accounts: numbers, no words. */
export type AdminCall = {
  account_id: string;
  account_name: string;
  id: string;
  kind: 'chat' | 'task';
  /** Of a task. */
  modality: 'image' | 'video' | 'audio' | null;
  model: string;
  /** The last one that was tried. */
  route: string | null;
  status: TaskStatus;
  /** Of a chat call. */
  http_status: number | null;
  error_type: string | null;
  first_content_ms: number | null;
  total_ms: number | null;
  /** Tokens of a chat call. */
  usage: { input_tokens: number; cached_input_tokens: number; output_tokens: number } | null;
  cost: Cost;
  created_at: string;
};

/** `from`: where the list ends, if it goes on so far. */
export type AdminCalls = Page<AdminCall> & { from: string };

export type AdminConfiguration = {
  file: string | null;
  version: string;
  node: string;
  database: string;
  migrations: { applied: number; pending: string[] };
  providers: { name: string; adapter: string; base_url: string | null; key: 'present' | 'missing' | 'not_needed' }[];
  warnings: string[];
  settings: { name: string; value: string }[];
};

export type AdminQueue = {
  queues: { name: string; waiting: number; deferred: number; active: number; oldest_s: number | null }[];
  /** The newest first; those that stopped in good order are not there. */
  nodes: AdminNode[];
  troubled: AdminJob[];
  /** The limits of the process that answers. */
  limits: AdminLimit[];
};

/** Something that a process does only so much of at once, in numbers or in bytes. */
export type AdminLimit = {
  name: string;
  unit: 'bytes' | null;
  in_use: number;
  /** Requests. */
  waiting: number;
  bound: number | null;
  /** The bound for one account, or one key; `fair`: as much as is left free. */
  key_bound: number | 'fair' | null;
};

/** A process of the service. */
export type AdminNode = {
  id: string;
  name: string;
  role: string;
  version: string;
  started_at: string;
  /** Seconds since the last sign of life. */
  silent_s: number;
  is_alive: boolean;
  /** It takes no new jobs. */
  is_paused: boolean;
  /** Jobs in hand. */
  running: number;
};

/** A job that was begun in vain, runs for long, or is due for long and nobody takes it. */
export type AdminJob = {
  id: string;
  queue: string;
  key: string | null;
  state: 'running' | 'waiting' | 'later';
  attempts: number;
  started_at: string | null;
  due_at: string;
  reason: string | null;
};

/** Problems of the file that a reload would read, with their places. */
/** `file` is null where there is none: then what comes with the service is looked at. */
export type AdminCheck = { file: string | null; ok: boolean; errors: string[]; warnings: string[] };

/** The result of a reload of the configuration. */
export type AdminReload = { ok: boolean; message: string };

/** The request to a route. */
export type AdminTestCallPlan = {
  /** As JSON, to be changed; of models that answer at once a message. Null where files belong into it. */
  input: string | null;
  /** As JSON in the upstream's words, with long texts shortened. */
  sent: string;
  /** The estimate for a customer. */
  estimated_cost: string | null;
  /** The provider's approximate charge, if its cost rows give one. */
  upstream_estimate: string | null;
  currency: string;
};

/** One call of a route by an operator. */
export type AdminTestCall = {
  id: string;
  is_running: boolean;
  outcome: 'done' | 'failed' | 'refused' | 'not started' | 'unknown' | null;
  took_ms: number;
  steps: { at_ms: number; phase: string }[];
  message: string | null;
  text: string | null;
  /** `text`: of a short one that is text. */
  files: { url: string; content_type: string; size_bytes: number; text?: string }[];
  /** The price that a customer would have paid. */
  cost: string | null;
  currency: string;
  upstream_cost: { amount: string; currency: string } | null;
};
