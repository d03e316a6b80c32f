import type { Caller, KeyHeaders } from '../accounts/authenticate.ts';
import type { Person, PersonRequest, SessionUse } from '../accounts/person.ts';
import type { Semaphore } from '../concurrency/semaphore.ts';
import type { WindowName, LocalWindows, Windows } from '../limits/window.ts';
import type { Refusals } from '../money/refusals.ts';
import type { Tracer } from '../tracing/tracer.ts';
import type { Endpoint } from './endpoint.ts';

export type PipelineLog = {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
};

export type PipelineOptions<App> = {
  /** Handed to every endpoint; the pipeline itself does not look into it. */
  app: App;
  endpoints: readonly Endpoint<App>[];
  /** The caller of these headers, or ApiError 401. */
  authenticate(headers: KeyHeaders): Promise<Caller>;
  /**
   * Returns the person of these headers if they may do this with the account; else throws ApiError. Absent:
   * there is no dashboard.
   */
  admitPerson?(request: PersonRequest, use: SessionUse): Promise<Person>;
  windows: Windows;
  /** The limits of requests without a key, by their address: each node counts for itself, or strangers would cost the database. */
  address_windows: LocalWindows;
  /** Requests per minute and key; asked for each request, so that a reload counts at once. */
  limits(): Record<WindowName, number>;
  cors_origins(): readonly string[];
  /** Ranges of addresses whose X-Forwarded-For is believed; asked for each request, too. */
  trusted_proxies(): readonly string[];
  /** Strict-Transport-Security of every answer; asked for each request. Absent: none. */
  transport_security?(): string | undefined;
  log: PipelineLog;
  /** Records traces; absent: none are. */
  tracer?: Tracer | undefined;
  /** Hears of each request that has ended. */
  observe?(ended: EndedRequest): void;
  /** Counts requests of accounts that are refused; absent: nobody does. */
  refusals?: Pick<Refusals, 'note'>;
  /** Monotonic milliseconds; the windows are counted with it. */
  elapsed_ms?: () => number;
  /** The time, which ids of requests begin with; without it, the system's. */
  now_ms?: () => number;
  timeouts?: Partial<Timeouts>;
  /** Memory of all large bodies together. */
  body_memory: Semaphore;
};

/** `route`: the pattern of the path; undefined for a path that no endpoint has. */
export type EndedRequest = { method: string; route: string | undefined; status: number; aborted: boolean; ms: number };

/** Milliseconds. */
export type Timeouts = {
  headers_ms: number;
  /** The whole request, body included. */
  request_ms: number;
  body_idle_ms: number;
  /** Time that a large body waits for memory. */
  body_memory_ms: number;
  keep_alive_ms: number;
  /** Time in which the body of a refused request may still arrive. */
  discard_ms: number;
  check_every_ms: number;
  /** A connection on which nothing moves; longer than the longest `wait`, and than a chat model may take for a whole answer. */
  silence_ms: number;
};

/** Load balancers keep connections for 60 s: ours must live longer, or they send into a closed one. */
export const default_timeouts: Timeouts = {
  headers_ms: 30_000,
  request_ms: 300_000,
  body_idle_ms: 30_000,
  body_memory_ms: 10_000,
  keep_alive_ms: 72_000,
  discard_ms: 15_000,
  check_every_ms: 5_000,
  silence_ms: 660_000,
};
