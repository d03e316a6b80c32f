import type { SignInSettings } from '../accounts/sign-in/settings.ts';
import type { Issuer } from '../billing/invoice.ts';
import type { FieldError } from '../errors.ts';
import { isRecord } from '../lib/is-record.ts';
import type { PersonalData } from '../lib/personal-data.ts';
import type { StorageSettings } from '../storage/settings.ts';

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type JsonObject = { [key: string]: Json };

/** Tells objects from other values that came out of JSON. */
export function isObject(value: unknown): value is JsonObject {
  return isRecord(value);
}

/** Kinds of models that are answered in the call itself, and take the body of their SDKs. */
export const call_kinds = ['chat', 'embedding', 'rerank', 'moderation'] as const;

export type CallKind = (typeof call_kinds)[number];

/** Kinds of models that run as tasks. */
export const media_kinds = ['image', 'video', 'audio'] as const;

export type MediaKind = (typeof media_kinds)[number];

export const kinds = [...call_kinds, ...media_kinds] as const;

export type Kind = (typeof kinds)[number];

export function isMediaKind(kind: Kind): kind is MediaKind {
  return media_kinds.some((each) => each === kind);
}

export const units = [
  'request',
  'image',
  'megapixel',
  'second',
  'minute',
  'character',
  'input_token',
  'cached_input_token',
  'cache_write_token',
  'cache_write_1h_token',
  'output_token',
  'web_search',
  'code_interpreter',
  'search_unit',
] as const;

/** A unit of prices. */
export type Unit = (typeof units)[number];

/** Units of which a call's input is made. */
export const input_token_units = [
  'input_token',
  'cached_input_token',
  'cache_write_token',
  'cache_write_1h_token',
] as const;

/** Units of tools that a provider runs during a call: a search, a container in which code ran. */
export const tool_units = ['web_search', 'code_interpreter'] as const;

export type ToolUnit = (typeof tool_units)[number];

/** Units of which a call may use several beside its tokens: tools, and the searches of a reranker. */
export const use_units = [...tool_units, 'search_unit'] as const;

export type UseUnit = (typeof use_units)[number];

/** Units in which a run of each kind is measured. */
export const units_of_kind: { readonly [kind in Kind]: readonly Unit[] } = {
  chat: [
    'request',
    'input_token',
    'cached_input_token',
    'cache_write_token',
    'cache_write_1h_token',
    'output_token',
    ...tool_units,
  ],
  embedding: ['request', 'input_token'],
  rerank: ['request', 'search_unit', 'input_token'],
  moderation: ['request', 'input_token'],
  image: ['request', 'image', 'megapixel', 'character', 'input_token', 'cached_input_token', 'output_token'],
  video: ['request', 'second', 'minute', 'character', 'input_token', 'output_token'],
  audio: ['request', 'second', 'minute', 'character', 'input_token', 'output_token'],
};

export type Scalar = string | number | boolean | null;

/** Input fields and the values, one or several of each, for which a price row is meant. */
export type Condition = { readonly [field: string]: Scalar | readonly Scalar[] };

/** `amount` (decimal text, in the base currency) for every `per` units, for inputs that fit `when`. */
export type PriceRow = {
  readonly unit: Unit;
  readonly amount: string;
  readonly per: number;
  readonly when?: Condition;
  /** Chat: only for calls whose whole input has more tokens than this. */
  readonly above_input_tokens?: number;
  /** The day on which it begins, in place of an earlier row for the same; absent in a catalogue that is in use. */
  readonly from?: string;
};

/** The page of a price, and the day on which it was read. */
export type PriceSource = { readonly url: string; readonly date: string };

/** A price of the upstream, in `currency`. */
export type CostRow = PriceRow & { readonly currency: string };

/** One factor of an estimate: the value of an input field, how long the files in one are, or a decimal text. */
export type Factor =
  | { readonly field: string }
  | { readonly duration_of: string }
  | { readonly bytes_of: readonly string[] }
  | { readonly constant: string };

/** The units to hold for: each the product of its factors. */
export type Estimate = { readonly [unit in Unit]?: readonly Factor[] };

/** Time limits of the phases of a run. */
export type Timeouts = {
  readonly connect: number;
  readonly first_byte: number;
  readonly idle: number;
  /** From the submit to the start of the run; what has not started by then goes to the next route. */
  readonly start: number;
  /** From the submit to the end of the run. */
  readonly total: number;
};

/** One way to run a model. */
export type Route = {
  /** Unique within the model; health and attempts are kept under it. */
  readonly id: string;
  readonly provider: string;
  readonly upstream_model: string;
  readonly timeout_ms: Timeouts;
  readonly poll: { readonly first_ms: number; readonly max_ms: number };
  /** Upstream field → `$input.x`, a constant, or an object or list of these; absent: the input as it is. */
  readonly input?: JsonObject;
  /** Fields of the caller's input that hold files. */
  readonly media?: readonly MediaField[];
  /** The adapter's description of the results' place in the upstream's response. */
  readonly output: JsonObject;
  /** Adapter-specific. */
  readonly options: JsonObject;
  readonly on_ambiguous_submit: 'fail' | 'failover';
  readonly cost: readonly CostRow[];
  readonly cost_source?: PriceSource;
};

/** A field of the input that takes a file of the caller's, or a list of them. */
export type MediaField = { readonly name: string; readonly kind: MediaKind };

export type InputCheck = { ok: true; input: JsonObject } | { ok: false; errors: FieldError[] };

/** The end of a model: from that day on it is refused. `replaced_by` is the id of its successor. */
export type Retirement = { readonly on: string; readonly replaced_by?: string };

/** A model, by the id that callers put in `model`. */
export type Model = {
  readonly id: string;
  /** Other names of it, by the operator. */
  readonly aliases: readonly string[];
  readonly kind: Kind;
  readonly name: string;
  readonly description: string;
  readonly owned_by: string;
  /** Seconds since 1970. */
  readonly created: number;
  readonly input_schema: JsonObject;
  readonly output_types: readonly string[];
  /** Fields of the input that hold files of the caller's. */
  readonly media: readonly MediaField[];
  readonly price: readonly PriceRow[];
  readonly price_source?: PriceSource;
  readonly estimate: Estimate;
  /** Usable ones in the order in which they are tried; none only if an operator took them away (`changed`). */
  readonly routes: readonly Route[];
  /** Overrides by operators while the service runs; absent: none. */
  readonly changed?: ModelChanges;
  /** Public facts such as `max_output_tokens`. */
  readonly limits: { readonly [name: string]: number };
  readonly capabilities: readonly string[];
  /** Usable, but in no list. */
  readonly hidden: boolean;
  readonly retirement?: Retirement;
  /** Checks an input as it was given, then fills in the schema's defaults. The input stays as it is. */
  validateInput(input: unknown): InputCheck;
};

/** `routes` of a model before an operator took some of them away, in the order that holds now. */
export type ModelChanges = {
  /** It takes no new work; what it has accepted goes on. */
  readonly is_off: boolean;
  readonly is_reordered: boolean;
  readonly routes: readonly Route[];
  /** Those that are not drained. */
  readonly startable: readonly Route[];
};

/** Credentials of a provider that are more than a key, with their secrets. */
export type Credentials =
  | { kind: 'aws'; region: string; service: string; access_key_id?: string; secret_access_key?: string }
  /** The JSON of an account. */
  | { kind: 'google'; service_account: string; scope: string }
  | { kind: 'google'; external_account: string; scope: string }
  | {
      kind: 'tencent';
      secret_id: string;
      secret_key: string;
      service: string;
      region?: string;
      version?: string;
      token?: string;
    }
  | {
      kind: 'volcengine';
      access_key_id: string;
      secret_access_key: string;
      region: string;
      service: string;
      session_token?: string;
    }
  | ({ kind: 'hmac' } & HmacKey)
  | { kind: 'oauth'; token_url: string; client_id: string; client_secret: string; scope?: string };

export const hmac_algorithms = ['sha1', 'sha256', 'sha384', 'sha512'] as const;
export const hmac_encodings = ['hex', 'base64', 'base64url'] as const;
export const hmac_timestamps = ['seconds', 'milliseconds', 'iso'] as const;

/** A signature over a text of the operator's making, in headers and in the query. */
export type HmacKey = {
  secret: string;
  key_id?: string;
  algorithm: (typeof hmac_algorithms)[number];
  /** The encoding of the secret's bytes; undefined: it is a text. */
  secret_encoding?: (typeof hmac_encodings)[number];
  encoding: (typeof hmac_encodings)[number];
  timestamp: (typeof hmac_timestamps)[number];
  /** A template of what is signed. */
  text: string;
  headers: Record<string, string>;
  query: Record<string, string>;
};

/** A provider with its secret resolved. */
export type ProviderConfig = {
  name: string;
  adapter: string;
  base_url?: string;
  api_key?: string;
  /** By lower-case names: sent with every request, in place of the adapter's own. */
  headers?: Record<string, string>;
  /** Added to the address of every request. */
  query?: Record<string, string>;
  credentials?: Credentials;
  /** Address of an HTTP(S) proxy, with its user and password. */
  proxy?: string;
  /** Certificates in PEM. */
  tls?: { cert?: string; key?: string; ca?: string; server_name?: string };
  /** Secrets in headers, query, credentials, proxy and TLS, beside the key: no message may show them. */
  secrets?: string[];
  allow_private: boolean;
  /** Without it links are fetched by us where `allow_private` is set, else passed. */
  links?: LinkPolicy;
  /** By the operator's word: `deny` collects nothing of what callers send. */
  data_collection?: DataCollection;
} & ProviderLimits;

/** Runs of media that an upstream lets one key have. What is absent has no limit, or one that nobody knows. */
export type ProviderLimits = {
  /** Name for people. */
  label?: string;
  /** Runs that it has at once: in its queue or at work. */
  max_active?: number;
  /** Runs that are begun within 60 seconds. */
  per_minute?: number;
};

/** Policy for links in chat: the upstream follows them, we download them, or neither. */
export type LinkPolicy = (typeof link_policies)[number];

export const data_collections = ['allow', 'deny'] as const;

/** The use that a provider may make of what callers send, as callers ask for it in `provider.data_collection`. */
export type DataCollection = (typeof data_collections)[number];

export const hsts_scopes = ['host', 'subdomains', 'off'] as const;

/** The scope of tokens for Google's clouds, unless the file names another. */
export const google_scope = 'https://www.googleapis.com/auth/cloud-platform';

export const link_policies = ['pass', 'fetch', 'refuse'] as const;

/** Search APIs that the service speaks. */
export const search_apis = ['brave', 'tavily', 'searxng', 'exa'] as const;

export type SearchApi = (typeof search_apis)[number];

/** The operator's own search. `api_key`: env:NAME or file:/path. Amounts are in the base currency, for `per` searches. */
export type WebSearchSettings = {
  readonly api: SearchApi;
  readonly base_url: string;
  readonly api_key?: string;
  readonly price: string;
  readonly cost?: string;
  readonly per: number;
  readonly results_max: number;
  readonly searches_max: number;
  readonly timeout_ms: number;
  readonly allow_private: boolean;
  /** Absent: all. */
  readonly models?: readonly string[];
};

/** Images that the service makes for models of chat, with a model of images. */
export type ImageToolSettings = { readonly model: string; readonly images_max: number; readonly timeout_ms: number };

/** Settings of the whole service, with defaults. */
export type Settings = {
  readonly base_url?: string;
  readonly trusted_proxies: readonly string[];
  readonly cors_origins: readonly string[];
  /** Which hosts browsers use over https alone, where the public address is https. */
  readonly hsts: (typeof hsts_scopes)[number];
  readonly limits: {
    readonly generate_per_minute: number;
    readonly chat_per_minute: number;
    readonly chat_at_once: number;
    readonly failed_per_24h: number;
    readonly other_per_minute: number;
    /** Tasks of one account that wait for a provider that is full. */
    readonly waiting_tasks: number;
  };
  /** The place that answers the hold of a chat call: `memory`, where the money leaves no doubt. */
  readonly money: { readonly reservations: 'memory' | 'database' };
  /** True if callers choose among the routes of a chat model, and read which one answered. */
  readonly routing: { readonly by_caller: boolean };
  readonly net_allow: readonly string[];
  readonly webhooks: {
    readonly retry_delays_ms: readonly number[];
    readonly timeout_ms: number;
    readonly disable_after_ms: number;
  };
  readonly outputs: { readonly link_ttl_ms: number; readonly keep_ms: number };
  readonly tasks: { readonly keep_ms: number };
  /** Time for which rows are kept: sessions and invitations after their end; the audit log for ever without one. */
  readonly retention: {
    readonly chat_records_ms: number;
    readonly deliveries_ms: number;
    readonly audit_ms?: number;
    readonly sessions_ms: number;
    readonly invitations_ms: number;
  };
  readonly storage: StorageSettings;
  /** The daily comparison with lists of others; absent: there is none. */
  readonly model_check?: { readonly price_list: string };
  /** Backups by the service itself; `to`: a folder, or s3://BUCKET/PREFIX. */
  readonly backup?: { readonly every_ms: number; readonly keep: number; readonly to: string };
  /** Limits on the files of callers. */
  readonly files: {
    readonly keep_ms: number;
    readonly file_bytes_max: number;
    readonly account_bytes_max: number;
    readonly account_files_max: number;
  };
  /** Answers of the responses style, to be continued by their ids. `keep_ms` 0: none is kept. */
  readonly responses: {
    readonly keep_ms: number;
    readonly response_bytes_max: number;
    readonly account_bytes_max: number;
  };
  /** Contents of chat calls. `keep_ms`: the longest time that a key may say, 0 for none. */
  readonly content: {
    readonly keep_ms: number;
    readonly call_length_max: number;
    readonly account_bytes_max: number;
    readonly redact: readonly PersonalData[];
    readonly patterns: readonly string[];
    /** They go into traces, too. */
    readonly traces: boolean;
  };
  /** Tools that the service runs itself. */
  readonly tools: { readonly web_search?: WebSearchSettings; readonly image_generation?: ImageToolSettings };
  /** The issuer of invoices; without one there are no invoices. */
  readonly issuer?: Issuer;
  /** Instructions for topping up where cards are not accepted. */
  readonly top_up_text?: string;
  /** Outgoing mail; without it none is sent. `url`: env:NAME or file:/path. */
  readonly mail?: { readonly url: string; readonly from: string };
  /** Ways to sign in to the dashboard. */
  readonly sign_in: SignInSettings;
  readonly status_page: { readonly public: boolean };
  /** Alerts to operators. */
  readonly alerts: AlertSettings;
  /** Currency → how much of it one unit of the base currency is, decimal text; the base currency is first. */
  readonly currencies: ReadonlyMap<string, string>;
  readonly base_currency: string;
};

/** Hours in which only critical alerts are sent: minutes of the day in a time zone; over midnight where `to` is first. */
export type QuietHours = { readonly from: number; readonly to: number; readonly time_zone: string };

/** The ways by which operators hear of alerts. `mail` absent: by the proved addresses of all operators. */
export type AlertSettings = {
  readonly mail?: readonly string[];
  /** `secret`: env:NAME or file:/path. */
  readonly webhook?: { readonly url: string; readonly secret: string };
  readonly quiet?: QuietHours;
  readonly per_hour_max: number;
  readonly disk_percent_min: number;
};
