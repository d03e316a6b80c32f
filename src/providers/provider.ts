import type { Readable } from 'node:stream';
import type { OptionProblem } from '../catalog/check-settings.ts';
import type { Json, JsonObject, Kind, ProviderConfig, ProviderLimits, Timeouts } from '../catalog/model.ts';
import type { Units } from '../catalog/price.ts';
import type { ProviderEntry } from '../catalog/schema.ts';
import type { Documents } from './offer/document.ts';
import type { ListModels, ReadPrices } from './offer/offer.ts';
import type { Clock } from '../lib/clock.ts';
import type { Guard } from '../net/guard.ts';
import type { RateClock } from '../concurrency/token-bucket.ts';
import type { Codec } from '../styles/codec.ts';
import type { Prober } from '../storage/probe.ts';

/**
 * The contract between a route and the code that speaks an upstream's protocol. An `Adapter` opens a `Provider` (media)
 * or a `ChatProvider` from its configuration. "Failed before it started" is a type (`NotStarted`), so failover never
 * reads status codes at the call site.
 */

export type { Json } from '../catalog/model.ts';

/**
 * Form of the caller's files (fields of the input with `x-media`) in the input of a run: https links, data URLs, either,
 * or `stream`: the name of one of its `files`. A small file, or one of a test call, is a data URL there, too.
 */
export type MediaForm = 'link' | 'data' | 'either' | 'stream';

/** A file of the input that is read while it is sent. `open` throws if it is gone. */
export type InputFile = { content_type: string; size_bytes: number; open(): Promise<Readable> };

export type InputFiles = ReadonlyMap<string, InputFile>;

/** The request for a run. */
export type RunRequest = {
  task_id: string;
  kind: 'image' | 'video' | 'audio';
  /** `upstream_model` of the route. */
  model: string;
  /** The caller's input after defaults and the route's field mapping. */
  input: JsonObject;
  /** Files of the input by the texts that stand for them, for a provider that takes streams. */
  files?: InputFiles;
  /** Adapter-specific settings of the route (its `options`). */
  options: JsonObject;
  /** The route's `output`: positions of the results in the upstream's response. */
  output: JsonObject;
  /** The route's limits from the submit on: an upstream that can be told of one gives the run up then. */
  start_limit_ms: number;
  total_limit_ms: number;
  /** Milliseconds since 1970; the adapter takes the time from here. */
  now_ms: number;
  /**
   * URL for the upstream's event notices; absent if it cannot reach us. Their content is not trusted: a notice
   * only brings the next poll forward.
   */
  events_url?: string;
};

/** Facts about a run that exists: all but its input, which may have megabytes. */
export type RunContext = Omit<RunRequest, 'input' | 'files'> & {
  /** Its task ends whatever the upstream does: a run that costs all the same may be stopped, too. */
  is_given_up?: true;
};

/** One produced file, or where the upstream keeps it. What it is gets measured from the bytes. */
export type RunFile = { bytes: Buffer } | RemoteFile | TextFile;

/**
 * A result that is a text, such as a transcript: for models whose `output_types` is `text`, which have no other
 * results. `content_type`: text/plain, application/json, text/vtt or application/x-subrip.
 */
export type TextFile = { text: string; content_type: string };

/**
 * A result link. It is judged like an address that a user chose, unless the provider's configuration
 * has `allow_private`. Fetched after each poll that names it, until that has worked.
 */
export type RemoteFile = {
  url: string;
  /** Headers for links that need the key: they go to this origin (`https://api.example.com`) and to no other. */
  credentials?: { origin: string; headers: Record<string, string> };
};

export type FailureType =
  | 'upstream_error'
  | 'timeout'
  | 'content_policy_violation'
  | 'invalid_request'
  | 'internal_error';

/**
 * State of a run after a call. Only its adapter reads `ref`. `units`: quantities that only the upstream can
 * count (tokens, seconds of an input); our own measurements win.
 */
export type RunState =
  /** `simulated`: a sandbox directive keeps it so; if that lasts too long, health does not count it. */
  | { phase: 'waiting' | 'running'; ref: Json; poll_after_ms: number; simulated?: boolean }
  | { phase: 'done'; files: RunFile[]; units?: Units; upstream_cost?: UpstreamCost }
  /** Started and failed; what that costs is unknown unless it is told. `simulated`: a sandbox directive asked for it, health does not count it. */
  | {
      phase: 'failed';
      type: FailureType;
      /** The message for the caller. */
      message: string;
      /** The upstream's own words, without our key: for the operator alone. */
      upstream_words?: string;
      simulated?: boolean;
      upstream_cost?: UpstreamCost;
    };

/** The charge reported by the upstream, for margins. */
export type UpstreamCost = { amount: string; currency: string };

export type WaitBasis = 'requested' | 'window' | 'guess';

/** Certainly not started: the next route may be tried. */
export class NotStarted extends Error {
  override name = 'NotStarted';
  readonly reason: 'refused' | 'unreachable' | 'rate_limited' | 'timeout' | 'rejected_credentials' | 'unavailable';
  readonly retry_after_ms: number | undefined;
  /** The source of `retry_after_ms`: the upstream's word for it, the end of its window of requests, or a guess of ours. */
  readonly wait_basis: WaitBasis;
  /** It is this request that the upstream will not have from us: others may fare better, so the route is not to blame. */
  readonly is_not_route_fault: boolean;
  readonly simulated: boolean;

  constructor(
    reason: NotStarted['reason'],
    message: string,
    options: {
      retry_after_ms?: number;
      wait_basis?: WaitBasis;
      is_not_route_fault?: boolean;
      simulated?: boolean;
      cause?: unknown;
    } = {},
  ) {
    super(message, { cause: options.cause });
    this.reason = reason;
    this.retry_after_ms = options.retry_after_ms;
    this.wait_basis = options.wait_basis ?? 'guess';
    this.is_not_route_fault = options.is_not_route_fault ?? false;
    this.simulated = options.simulated ?? false;
  }
}

/** A request that is longer than its model can read; the numbers where the upstream names them. */
export type Overflow = { request_tokens?: number; limit_tokens?: number };

/** The upstream refuses this input on every route: no failover, the task fails with `type`. */
export class InputRefused extends Error {
  override name = 'InputRefused';
  readonly type: 'content_policy_violation' | 'invalid_request';
  /** It is longer than the model can read. */
  readonly overflow: Overflow | undefined;
  readonly simulated: boolean;

  constructor(
    type: InputRefused['type'],
    message: string,
    options: { simulated?: boolean; overflow?: Overflow | undefined } = {},
  ) {
    super(message);
    this.type = type;
    this.overflow = options.overflow;
    this.simulated = options.simulated ?? false;
  }
}

/** Returns the refusal of one field of the input. */
export function refusedField(field: string, message: string): InputRefused {
  return new InputRefused('invalid_request', `${field}: ${message}`);
}

export type Provider = {
  /**
   * A repeated start of the same task is the same run upstream, so a submit whose answer was lost
   * is sent again. Without it such a submit is ambiguous and never repeated.
   */
  readonly idempotent?: boolean;
  /** Accepted form of the caller's files, which may depend on the options of the route. Absent: it takes none. */
  readonly media?: MediaForm | ((options: JsonObject) => MediaForm);
  /**
   * Submits a run. Throws NotStarted or InputRefused; any other error means that nobody knows
   * whether the upstream took it (ambiguous).
   */
  start(run: RunRequest, signal: AbortSignal): Promise<RunState>;
  /**
   * Asks for the state of a run that was accepted. Throws NotStarted when the upstream has dropped it before its
   * start: another route may have it. Any other error says nothing about the run: ask again. `signal` leaves the time
   * that files within an answer need: the adapter ends a request that is not answered, as `Upstream.call` does.
   */
  poll(run: RunContext, ref: Json, signal: AbortSignal): Promise<RunState>;
  /**
   * Stops a run. `stopped`: confirmed and unbilled. `billed`: it goes on or is charged anyway. A run whose task goes on
   * after `billed` is not told to stop unless that is free: its task would fail for a cancel that was refused.
   */
  cancel?(run: RunContext, ref: Json, signal: AbortSignal): Promise<'stopped' | 'billed'>;
  /**
   * Stops a run whose `start` has not answered yet, or does nothing if it is not at work. Only upstreams that bill
   * nobody have it: the task was canceled before.
   */
  stopStart?(run: RunContext, signal: AbortSignal): Promise<void>;
  close?(): Promise<void>;
};

/** Returns the form in which a route takes the caller's files; undefined: it takes none. */
export function mediaForm({ media }: Pick<Provider, 'media'>, options: JsonObject): MediaForm | undefined {
  return typeof media === 'function' ? media(options) : media;
}

/** One request to an upstream that chats. */
export type ChatCall = {
  request_id: string;
  /** The style of `body`, of the answer wanted, and of its stream. */
  style: Codec;
  /** `upstream_model` of the route; `body` names it too, where its style has a place for it. */
  model: string;
  body: JsonObject;
  stream: boolean;
  /** The caller's headers about versions and betas of the same style, in lower case. */
  headers: Record<string, string>;
  /** The adapter keeps to `connect`; the others are kept by who called, who aborts. */
  timeout_ms: Timeouts;
  /** Adapter-specific settings of the route. */
  options: JsonObject;
};

/** One request to an upstream that answers in one piece and is no chat. */
export type WholeCall = Pick<ChatCall, 'request_id' | 'model' | 'body' | 'timeout_ms' | 'options'>;

/**
 * The upstream has answered 2xx: the bytes of its answer or its stream, as they come. `simulated`: a sandbox
 * directive lets it break off, health does not count that. `secrets`: what no message of its may repeat to a caller.
 */
export type ChatReply = { body: AsyncIterable<Buffer>; simulated?: boolean; secrets?: readonly string[] };

export type ChatProvider = {
  /** The styles that it speaks; a caller's own is preferred, else the first. */
  readonly styles: readonly Codec[];
  /** Those that it speaks where its routes say so (their option of that name). */
  readonly styles_by_option?: readonly Codec[];
  /** Its upstream takes no links, whatever its styles have: files are fetched and stand in the body. */
  readonly has_no_links?: true;
  /** Its upstream runs no tools, whatever its styles have: it gets those that models of other styles get. */
  readonly runs_no_tools?: true;
  /**
   * Throws NotStarted (another route may be tried) or InputRefused (the caller's own mistake: no other
   * route would like it better); any other error means that no answer came. `signal` ends it at any
   * time, also while the body is read, and closes its connection.
   */
  send(call: ChatCall, signal: AbortSignal): Promise<ChatReply>;
  /** Counts the input's tokens without running the model; free. Of one of its styles, but for chat completions. */
  countTokens?(call: Omit<ChatCall, 'stream'>, signal: AbortSignal): Promise<number>;
  /** Compacts a conversation of the style by the upstream's own means; throws as `send` does. */
  readonly compaction?: {
    readonly style: Codec;
    /** Its upstream has it without a word in the route's options. */
    readonly is_usual: boolean;
    send(call: Omit<ChatCall, 'stream'>, signal: AbortSignal): Promise<ChatReply>;
  };
  /** Embeds, for models of kind embedding; `body` is that of `/v1/embeddings`. Throws as `send` does. */
  embed?(call: WholeCall, signal: AbortSignal): Promise<ChatReply>;
  /**
   * For models of kind rerank; throws as `send` does. `body` has `query`, `documents` (texts), `top_n` and what else the
   * caller gave. The answer may have any of the forms that `readRanking` knows.
   */
  rerank?(call: WholeCall, signal: AbortSignal): Promise<ChatReply>;
  /** Moderates, for models of kind moderation; `body` is that of `/v1/moderations`. Throws as `send` does. */
  moderate?(call: WholeCall, signal: AbortSignal): Promise<ChatReply>;
  close?(): Promise<void>;
};

/**
 * Parts by which an upstream is asked. `clock`: the time by which requests are signed and tokens end, by default the
 * system's. `rate_clock` is the time in which polls are counted: a test has its own.
 */
export type UpstreamParts = { guard: Guard; clock?: Clock; rate_clock?: RateClock };

/** Parts for an adapter. `prober` measures files. */
export type AdapterParts = UpstreamParts & { prober: Prober };

/** The code for one upstream protocol. */
export type Adapter = {
  /** Tells whether it can run models of this kind here and now. */
  serves(kind: Kind): boolean;
  /** Name and published limits of the upstream, for media; the source stands beside them. */
  readonly limits?: ProviderLimits;
  /** Checks the settings of a provider, for the author of the file. */
  checkProvider?(entry: ProviderEntry): OptionProblem[];
  /** Checks the options of a chat route, for the author of the file. */
  checkChatOptions?(options: JsonObject): OptionProblem[];
  /**
   * Checks the options of a route of another kind, and its `output`. `input_fields`: the names of the fields that its
   * runs may have; undefined where they are not known.
   */
  checkOptions?(options: JsonObject, output: JsonObject, input_fields?: readonly string[]): OptionProblem[];
  /** Options of a media route that may name a JSON file beside `medley.yaml`; the route gets what is in it. */
  readonly file_options?: readonly string[];
  /** Reads its upstream's own list of models, by which the key is checked, too. Throws OfferError. */
  listModels?: ListModels;
  /** Reads what its upstream says that models cost. */
  readPrices?: ReadPrices;
  /** Its list has models for media too, by the names that routes call them. */
  readonly lists_media?: true;
  /** Its list is complete, and says what each model makes: no other can be typed. */
  readonly has_whole_list?: true;
  /** Models that are documents of the operator's. */
  readonly documents?: Documents;
  /** Opens the provider of image, video and audio models. */
  open?(config: ProviderConfig, parts: AdapterParts): Provider;
  /** Opens the provider of models that answer in the call itself. */
  openChat?(config: ProviderConfig, parts: AdapterParts): ChatProvider;
};
