import type { Queryable } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';

/** The name of a model's route in health, attempts and logs. */
export function routeName(model_id: string, route_id: string): string {
  return `${model_id}#${route_id}`;
}

/** Why a route is not used: its upstream refuses or fails, or it does not answer in time. */
export type Cause = 'upstream_error' | 'timeout';

/** How a try of a route went, as far as its health is concerned. */
export type Trouble = {
  cause: Cause;
  /** The upstream said when to come back, or its credentials are refused: no need to count. */
  pause_ms?: number;
};

export type Admission = { admitted: true } | { admitted: false; cause: Cause; retry_after_ms: number };

/**
 * A circuit breaker per route. Failures are counted by the node that meets them; an open route is a
 * row that every node reads (at most a second old), so what a worker learned, the API acts on.
 */
export type RouteHealth = {
  /**
   * May a task for a model with these routes be created? No if every route is open; but a route
   * whose pause is over lets one request through, the probe.
   */
  admit(routes: readonly string[]): Promise<Admission>;
  /** The routes to try, in their order: open ones are left out, unless no other is there. */
  order(routes: readonly string[]): Promise<string[]>;
  succeeded(route: string): Promise<void>;
  failed(route: string, trouble: Trouble): Promise<void>;
};

const failures_in_a_row = 5;
const window_ms = 30_000;
const window_tries_min = 20;
const tries_kept_max = 200; // more would only make the count dearer
const pause_first_ms = 10_000;
const pause_max_ms = 300_000;
const probe_ms = 30_000; // a probe that tells nothing in this time lets another one through
const rows_age_max_ms = 1_000;

type OpenRoute = { route: string; cause: Cause; openings: number; retry_at: Date; probing_until: Date | null };
type Counter = { failures_in_a_row: number; tries: { at_ms: number; failed: boolean }[] };

/** Opens the health of all routes; nothing is read before it is asked for. */
export function openRouteHealth(db: Queryable, clock: Clock): RouteHealth {
  return new SharedRouteHealth(db, clock);
}

class SharedRouteHealth implements RouteHealth {
  readonly #db: Queryable;
  readonly #clock: Clock;
  readonly #counters = new Map<string, Counter>();
  #open = new Map<string, OpenRoute>();
  #read_at_ms = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(db: Queryable, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  async admit(routes: readonly string[]): Promise<Admission> {
    await this.#refresh();
    const blocked = routes.map((route) => this.#open.get(route)).filter((row) => row !== undefined);
    if (blocked.length < routes.length) return { admitted: true };
    for (const route of routes) if (await this.#takeProbe(route)) return { admitted: true };
    const timed_out = blocked.every((row) => row.cause === 'timeout');
    const retry_at_ms = Math.min(...blocked.map((row) => row.retry_at.getTime()));
    return {
      admitted: false,
      cause: timed_out ? 'timeout' : 'upstream_error',
      retry_after_ms: Math.max(1_000, retry_at_ms - this.#clock.now()),
    };
  }

  async order(routes: readonly string[]): Promise<string[]> {
    await this.#refresh();
    const usable: string[] = [];
    for (const route of routes) if (!this.#open.has(route) || (await this.#takeProbe(route))) usable.push(route);
    return usable.length > 0 ? usable : [...routes];
  }

  async succeeded(route: string): Promise<void> {
    count(this.#counters, route, this.#clock.now(), false);
    if (!this.#open.has(route)) return;
    await this.#db.query('delete from route_health where route = $1', [route]);
    this.#counters.delete(route);
    this.#forget();
  }

  async failed(route: string, trouble: Trouble): Promise<void> {
    const now_ms = this.#clock.now();
    const broken = count(this.#counters, route, now_ms, true);
    if (!broken && !this.#open.has(route) && trouble.pause_ms === undefined) return;
    const openings = (this.#open.get(route)?.openings ?? 0) + 1;
    const pause_ms = Math.min(pause_max_ms, trouble.pause_ms ?? pause_first_ms * 2 ** Math.min(openings - 1, 10));
    await this.#db.query(
      `insert into route_health (route, cause, openings, opened_at, retry_at) values ($1, $2, $3, $4, $5)
       on conflict (route) do update
         set cause = $2, openings = $3, retry_at = greatest(route_health.retry_at, $5), probing_until = null`,
      [route, trouble.cause, openings, new Date(now_ms), new Date(now_ms + pause_ms)],
    );
    this.#forget();
  }

  async #refresh(): Promise<void> {
    if (performance.now() - this.#read_at_ms < rows_age_max_ms) return;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    await this.#reading;
  }

  async #read(): Promise<void> {
    const rows = await this.#db.query<OpenRoute>(
      'select route, cause, openings, retry_at, probing_until from route_health',
    );
    this.#open = new Map(rows.map((row) => [row.route, row]));
    this.#read_at_ms = performance.now();
  }

  #forget(): void {
    this.#read_at_ms = Number.NEGATIVE_INFINITY;
  }

  /** One caller at a time gets through to a route whose pause is over. */
  async #takeProbe(route: string): Promise<boolean> {
    const now_ms = this.#clock.now();
    const known = this.#open.get(route);
    if (!known || known.retry_at.getTime() > now_ms || (known.probing_until?.getTime() ?? 0) > now_ms) return false;
    const rows = await this.#db.query(
      `update route_health set probing_until = $3 where route = $1 and retry_at <= $2
          and (probing_until is null or probing_until <= $2) returning route`,
      [route, new Date(now_ms), new Date(now_ms + probe_ms)],
    );
    this.#forget();
    return rows.length === 1;
  }
}

/** Counts a try; true if the route has failed too often: five times in a row, or half of twenty. */
function count(counters: Map<string, Counter>, route: string, now_ms: number, failed: boolean): boolean {
  const counter = counters.get(route) ?? { failures_in_a_row: 0, tries: [] };
  counters.set(route, counter);
  counter.failures_in_a_row = failed ? counter.failures_in_a_row + 1 : 0;
  counter.tries = counter.tries.filter((known) => known.at_ms > now_ms - window_ms).slice(-tries_kept_max);
  counter.tries.push({ at_ms: now_ms, failed });
  const failures = counter.tries.filter((known) => known.failed).length;
  return (
    counter.failures_in_a_row >= failures_in_a_row ||
    (counter.tries.length >= window_tries_min && failures * 2 >= counter.tries.length)
  );
}
