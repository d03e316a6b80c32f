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
  /**
   * Whose request it was that an upstream which is there took too long for: it may be the request that is heavy.
   * Such time-outs of one account alone open no route that others use (decision 15).
   */
  slow_for?: string;
};

/** `probe`: the route that lets this one request through; give it back if the request is not made. */
export type Admission = { admitted: true; probe?: string } | { admitted: false; cause: Cause; retry_after_ms: number };

/** `degraded`: fewer routes than there are, or only a probe. `unavailable`: what `admit` would refuse. */
export type Standing = 'available' | 'degraded' | 'unavailable';

/**
 * A circuit breaker per route. Failures are counted by the node that meets them; an open route is a
 * row that every node reads (at most a second old), so what a worker learned, the API acts on.
 */
export type RouteHealth = {
  /** No route is open, as far as that is known and not too old: `admit` and `order` would change nothing. */
  readonly is_calm: boolean;
  /**
   * May a task for a model with these routes be created? No if there is none, or every route is open; but a
   * route whose pause is over lets one request through, the probe.
   */
  admit(routes: readonly string[]): Promise<Admission>;
  /** How models with given routes stand now. Takes no probe; all looks of a second are one query. */
  look(): Promise<(routes: readonly string[]) => Standing>;
  /** A request that may have been the probe was not made, or told nothing: the next one may. */
  giveBack(probe: string): Promise<void>;
  /**
   * The routes to try, in their order but open ones last: once the task is there, a route that will
   * probably refuse is better than none.
   */
  order(routes: readonly string[]): Promise<string[]>;
  /**
   * These two never throw: what could not be noted, the next try tells again. A success gives a promise only if the
   * route was open, which has to be written down.
   */
  succeeded(route: string, account_id?: string): Promise<void> | undefined;
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
/** Nobody knows when an operator gives a model its routes back. */
const taken_away_ms = 60_000;
/** An account that used a route within this time would miss it. */
const use_ms = 600_000;

type OpenRoute = { route: string; cause: Cause; openings: number; retry_at: Date; probing_until: Date | null };

/** `slow_for`: it failed, perhaps because of its own weight. */
type Try = { at_ms: number; failed: boolean; slow_for?: string | undefined };
type Counter = {
  /** Failures since the last success, the newest ones. */
  run: Try[];
  /** Of the window, oldest first. */
  tries: Try[];
  /** The two accounts that used the route last. */
  users: { account_id: string; at_ms: number }[];
};

/** A route that is not used for now, and why. */
export type OpenRouteView = { route: string; cause: Cause; openings: number; opened_at: Date; retry_at: Date };

/** Every route that is not used for now, the newest first; for the operator. */
export async function openRoutes(db: Queryable): Promise<OpenRouteView[]> {
  return db.query<OpenRouteView>(
    'select route, cause, openings, opened_at, retry_at from route_health order by opened_at desc limit 1000',
  );
}

/** Opens the health of all routes; nothing is read before it is asked for. */
export function openRouteHealth(db: Queryable, clock: Clock): RouteHealth {
  return new SharedRouteHealth(db, clock);
}

class SharedRouteHealth implements RouteHealth {
  readonly #db: Queryable;
  readonly #clock: Clock;
  readonly #counters = new Map<string, Counter>();
  /** What this node knows of open routes: the rows, and what it has just added to them. */
  #open = new Map<string, OpenRoute>();
  #read_at_ms = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(db: Queryable, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  get is_calm(): boolean {
    return this.#open.size === 0 && !this.#isOld();
  }

  async admit(routes: readonly string[]): Promise<Admission> {
    if (routes.length === 0) return { admitted: false, cause: 'upstream_error', retry_after_ms: taken_away_ms };
    if (this.#isOld()) await this.#refresh();
    if (this.#open.size === 0) return { admitted: true };
    const blocked = routes.map((route) => this.#open.get(route)).filter((row) => row !== undefined);
    if (blocked.length < routes.length) return { admitted: true };
    for (const route of routes) if (await this.#takeProbe(route)) return { admitted: true, probe: route };
    const timed_out = blocked.every((row) => row.cause === 'timeout');
    const retry_at_ms = Math.min(...blocked.map((row) => row.retry_at.getTime()));
    return {
      admitted: false,
      cause: timed_out ? 'timeout' : 'upstream_error',
      retry_after_ms: Math.max(1_000, retry_at_ms - this.#clock.now()),
    };
  }

  async look(): Promise<(routes: readonly string[]) => Standing> {
    if (this.#isOld()) await this.#refresh();
    return (routes) => {
      const blocked = routes.map((route) => this.#open.get(route)).filter((row) => row !== undefined);
      if (routes.length === 0) return 'unavailable';
      if (blocked.length === 0) return 'available';
      const now_ms = this.#clock.now();
      return blocked.length < routes.length || blocked.some((row) => awaitsProbe(row, now_ms))
        ? 'degraded'
        : 'unavailable';
    };
  }

  async giveBack(probe: string): Promise<void> {
    if (!this.#open.has(probe)) return;
    await this.#note('update route_health set probing_until = null where route = $1', [probe]);
  }

  async order(routes: readonly string[]): Promise<string[]> {
    if (this.#isOld()) await this.#refresh();
    if (this.#open.size === 0) return [...routes];
    const first: string[] = [];
    const last: string[] = [];
    let healthy = false; // behind a healthy route there is nothing to probe: it would not be tried
    for (const route of routes) {
      const usable = !this.#open.has(route) || (!healthy && (await this.#takeProbe(route)));
      (usable ? first : last).push(route);
      healthy ||= !this.#open.has(route);
    }
    return [...first, ...last];
  }

  succeeded(route: string, account_id?: string): Promise<void> | undefined {
    const now_ms = this.#clock.now();
    const counter = this.#counterOf(route);
    noteUse(counter, account_id, now_ms);
    count(counter, { at_ms: now_ms, failed: false });
    return this.#open.has(route) ? this.#heal(route) : undefined;
  }

  async #heal(route: string): Promise<void> {
    await this.#note('delete from route_health where route = $1', [route]);
    this.#counters.delete(route);
  }

  async failed(route: string, trouble: Trouble): Promise<void> {
    const now_ms = this.#clock.now();
    const { slow_for } = trouble;
    const counter = this.#counterOf(route);
    noteUse(counter, slow_for, now_ms);
    const broken = count(counter, { at_ms: now_ms, failed: true, slow_for });
    const asked_ms = trouble.pause_ms !== undefined && trouble.pause_ms > 0 ? trouble.pause_ms : undefined;
    const known = this.#open.get(route);
    if (!broken && !known && asked_ms === undefined) return;
    // What was under way when the route was opened says nothing new; only a probe makes the pause longer.
    const in_pause = known !== undefined && known.retry_at.getTime() > now_ms;
    if (in_pause && asked_ms === undefined) return;
    const openings = (known?.openings ?? 0) + (in_pause ? 0 : 1);
    const pause_ms = Math.min(pause_max_ms, asked_ms ?? pause_first_ms * 2 ** Math.min(openings - 1, 10));
    const retry_at = new Date(now_ms + pause_ms);
    const noted = await this.#note(
      `insert into route_health (route, cause, openings, opened_at, retry_at) values ($1, $2, $3, $4, $5)
       on conflict (route) do update
         set cause = $2, openings = $3, retry_at = greatest(route_health.retry_at, $5), probing_until = null`,
      [route, trouble.cause, openings, new Date(now_ms), retry_at],
    );
    if (noted) this.#open.set(route, { route, cause: trouble.cause, openings, retry_at, probing_until: null });
  }

  #counterOf(route: string): Counter {
    const known = this.#counters.get(route);
    if (known) return known;
    const counter: Counter = { run: [], tries: [], users: [] };
    this.#counters.set(route, counter);
    return counter;
  }

  /** Health is advice: a task whose run goes on must not fail because it could not be given. */
  async #note(statement: string, values: readonly unknown[]): Promise<boolean> {
    const noted = await this.#db.query(statement, values).then(
      () => true,
      () => false,
    );
    this.#forget();
    return noted;
  }

  #isOld(): boolean {
    return performance.now() - this.#read_at_ms >= rows_age_max_ms;
  }

  async #refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    await this.#reading;
  }

  async #read(): Promise<void> {
    const rows = await this.#db.query<OpenRoute>(
      'select route, cause, openings, retry_at, probing_until from route_health',
    );
    const open = new Map(rows.map((row) => [row.route, row]));
    // Healed by another node: what this one counted before is over.
    for (const route of this.#open.keys()) if (!open.has(route)) this.#counters.delete(route);
    this.#open = open;
    this.#read_at_ms = performance.now();
  }

  #forget(): void {
    this.#read_at_ms = Number.NEGATIVE_INFINITY;
  }

  /** One caller at a time gets through to a route whose pause is over. */
  async #takeProbe(route: string): Promise<boolean> {
    const now_ms = this.#clock.now();
    const known = this.#open.get(route);
    if (!known || !awaitsProbe(known, now_ms)) return false;
    const rows = await this.#db.query(
      `update route_health set probing_until = $3 where route = $1 and retry_at <= $2
          and (probing_until is null or probing_until <= $2) returning route`,
      [route, new Date(now_ms), new Date(now_ms + probe_ms)],
    );
    this.#forget();
    return rows.length === 1;
  }
}

/** Its pause is over, and nobody is probing it. */
function awaitsProbe(row: OpenRoute, now_ms: number): boolean {
  return row.retry_at.getTime() <= now_ms && (row.probing_until?.getTime() ?? 0) <= now_ms;
}

/** Whoever it was; the same account twice is one user. */
function noteUse({ users }: Counter, account_id: string | undefined, now_ms: number): void {
  if (account_id === undefined) return;
  const [last] = users;
  if (last?.account_id === account_id) return void (last.at_ms = now_ms);
  users.unshift({ account_id, at_ms: now_ms });
  users.length = Math.min(users.length, 2);
}

/**
 * Counts a try; true if it makes the route fail too often: five times in a row, or half of twenty. Every
 * call comes here, so the lists are changed in place: copies of them took 1.2 % of a chat call.
 */
function count(counter: Counter, made: Try): boolean {
  const { run, tries, users } = counter;
  tries.push(made);
  while (tries.length > tries_kept_max || isOver(tries[0], made.at_ms)) tries.shift();
  if (!made.failed) {
    run.length = 0;
    return false;
  }
  run.push(made);
  if (run.length > tries_kept_max) run.shift();
  const in_a_row = weigh(run, users, made.at_ms);
  const failures = tries.filter((known) => known.failed);
  const heavy = failures.length - weigh(failures, users, made.at_ms);
  const failed = failures.length - heavy;
  const all = tries.length - heavy;
  return in_a_row >= failures_in_a_row || (all >= window_tries_min && failed * 2 >= all);
}

/** As how many failures these count: time-outs of one account as one, while others use the route. */
function weigh(failures: readonly Try[], users: Counter['users'], now_ms: number): number {
  const slow = failures.filter(({ slow_for }) => slow_for !== undefined);
  const [first] = slow;
  if (first === undefined || slow.some(({ slow_for }) => slow_for !== first.slow_for)) return failures.length;
  const is_missed = users.some((user) => user.account_id !== first.slow_for && user.at_ms > now_ms - use_ms);
  return is_missed ? failures.length - slow.length + 1 : failures.length;
}

function isOver(known: Try | undefined, now_ms: number): boolean {
  return known !== undefined && known.at_ms <= now_ms - window_ms;
}
