import type { Json, JsonObject, Kind, ProviderConfig } from '../catalog/model.ts';

/**
 * The contract between a route and the code that speaks an upstream's protocol. An adapter is one
 * file that makes a Provider from its configuration. "Failed before it started" is a type
 * (`NotStarted`), so failover never reads status codes at the call site.
 */

export type { Json } from '../catalog/model.ts';

/** What a route asks of the upstream. */
export type RunRequest = {
  task_id: string;
  kind: 'image' | 'video' | 'audio';
  /** `upstream_model` of the route. */
  model: string;
  /** The caller's input after defaults and the route's field mapping. */
  input: JsonObject;
  /** Adapter-specific settings of the route (its `options`). */
  options: JsonObject;
  /** Milliseconds since 1970; the adapter takes the time from here. */
  now_ms: number;
};

/** What is told of a run that exists: all but its input, which may have megabytes. */
export type RunContext = Omit<RunRequest, 'input'>;

/** One produced file. What it is gets measured from the bytes. */
export type RunFile = { bytes: Buffer };

export type FailureType =
  | 'upstream_error'
  | 'timeout'
  | 'content_policy_violation'
  | 'invalid_request'
  | 'internal_error';

/** What is known of a run after a call. `ref` is opaque to everybody but its adapter. */
export type RunState =
  /** `simulated`: a sandbox directive keeps it so; if that lasts too long, health does not count it. */
  | { phase: 'waiting' | 'running'; ref: Json; poll_after_ms: number; simulated?: boolean }
  | { phase: 'done'; files: RunFile[]; upstream_cost?: UpstreamCost }
  /** Started and failed. `simulated`: a sandbox directive asked for it, health does not count it. */
  | { phase: 'failed'; type: FailureType; message: string; simulated?: boolean };

/** What the upstream says that it charged us, for margins. */
export type UpstreamCost = { amount: string; currency: string };

/** Certainly not started: the next route may be tried. */
export class NotStarted extends Error {
  override name = 'NotStarted';
  readonly reason: 'refused' | 'unreachable' | 'rate_limited' | 'timeout' | 'rejected_credentials' | 'unavailable';
  readonly retry_after_ms: number | undefined;
  readonly simulated: boolean;

  constructor(
    reason: NotStarted['reason'],
    message: string,
    options: { retry_after_ms?: number; simulated?: boolean; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.reason = reason;
    this.retry_after_ms = options.retry_after_ms;
    this.simulated = options.simulated ?? false;
  }
}

/** The upstream refuses this input on every route: no failover, the task fails with `type`. */
export class InputRefused extends Error {
  override name = 'InputRefused';
  readonly type: 'content_policy_violation' | 'invalid_request';
  readonly simulated: boolean;

  constructor(type: InputRefused['type'], message: string, options: { simulated?: boolean } = {}) {
    super(message);
    this.type = type;
    this.simulated = options.simulated ?? false;
  }
}

export type Provider = {
  /**
   * A repeated start of the same task is the same run upstream, so a submit whose answer was lost
   * is sent again. Without it such a submit is ambiguous and never repeated.
   */
  readonly idempotent?: boolean;
  /**
   * Submits a run. Throws NotStarted or InputRefused; any other error means that nobody knows
   * whether the upstream took it (ambiguous).
   */
  start(run: RunRequest, signal: AbortSignal): Promise<RunState>;
  /** Asks for the state of a started run. A thrown error says nothing about the run: ask again. */
  poll(run: RunContext, ref: Json, signal: AbortSignal): Promise<RunState>;
  /** `stopped`: confirmed and unbilled. `billed`: it goes on or is charged anyway. */
  cancel?(run: RunContext, ref: Json, signal: AbortSignal): Promise<'stopped' | 'billed'>;
  close?(): Promise<void>;
};

/** The code for one upstream protocol. */
export type Adapter = {
  /** Whether models of this kind can be run by it, here and now. */
  serves(kind: Kind): boolean;
  open(config: ProviderConfig): Provider;
};
