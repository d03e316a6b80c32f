import type { Queryable } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { FailureCounts } from './failure-counts.ts';

/** The name of a model's route in health, attempts and logs. */
export function routeName(model_id: string, route_id: string): string {
  return `${model_id}#${route_id}`;
}

/** The id of the model whose route has this name. */
export function modelOfRoute(name: string): string {
  return name.slice(0, name.lastIndexOf('#'));
}

/** The cause of an open circuit: the upstream refuses or fails, or it does not answer in time. */
export type FailureCause = 'upstream_error' | 'timeout';

/** Pause of a route whose credentials are refused: an operator has to change them. */
export const credentials_pause_ms = 60_000;

/** A failed attempt of a route. */
export type RouteTrouble = {
  cause: FailureCause;
  /** The upstream said when to come back, or refuses the credentials: the circuit opens without counting. */
  pause_ms?: number;
};

/** No route is usable now: the cause, and the time after which the first one may be tried again. */
export type Block = { cause: FailureCause; retry_after_ms: number };

/** `probe`: the route that lets this one request through; release it if the request is not made. */
export type Admission = { admitted: true; probe?: string } | ({ admitted: false } & Block);

/** `degraded`: fewer routes than there are, or only a probe. `unavailable`: what `admit` would refuse. */
export type Availability = 'available' | 'degraded' | 'unavailable';

/**
 * A circuit breaker per route and account, and one per route for all accounts. An account's failures open its own; the
 * one for all opens only when at least two accounts failed, and most of those that used the route in the last minute.
 * Failures are counted by the node that meets them; an open circuit is a row that every node reads (at most a second
 * old), so what a worker learned, the API acts on.
 */
export type RouteHealth = {
  /** Returns the block if this account cannot use any of these routes; undefined if it can use one. Takes no probe. */
  findBlock(routes: readonly string[], account_id: string): Promise<Block | undefined>;
  /**
   * Admits a task of this account to a model with these routes, unless there is none or the circuits of all are open. A
   * route whose pause is over admits one request, the probe.
   */
  admit(routes: readonly string[], account_id: string): Promise<Admission>;
  /**
   * Returns a function that tells the availability of models by their routes, for one account or for all. Takes no
   * probe; all calls within a second share one query.
   */
  readAvailability(): Promise<(routes: readonly string[], account_id?: string) => Availability>;
  /** Lets the next request be the probe: this one was not made, or says nothing about the route. */
  releaseProbe(route: string, account_id: string): Promise<void>;
  /**
   * Returns the routes in their order, but those with open circuits last: for a task that exists, a route that will
   * probably refuse is better than none.
   */
  healthyFirst(routes: readonly string[], account_id: string): Promise<string[]>;
  /**
   * These two never throw: what could not be written, the next attempt writes again. A success closes the account's own
   * circuit and the one for all.
   */
  noteSuccess(route: string, account_id: string): Promise<void>;
  noteFailure(route: string, account_id: string, trouble: RouteTrouble): Promise<void>;
  /** Closes all circuits of a route. */
  closeCircuits(route: string): Promise<void>;
};

/** First pause of a circuit; each failed probe doubles it, up to `pause_max_ms`. */
const pause_first_ms = 10_000;
/** Half of that: an account that did not cause the pause probes before one that did. */
const pause_first_of_all_ms = 5_000;
const pause_max_ms = 300_000;
/** Time after which a probe without an outcome lets another one through. */
const probe_ms = 30_000;
const rows_age_max_ms = 1_000;
/** `retry_after_ms` for a model without routes: an operator took them, and may give them back at any time. */
const no_routes_retry_ms = 60_000;
/** Time after its pause at which an account's circuit counts as closed if nobody probed it. */
const unused_circuit_ms = 600_000;

/** The account_id of the circuit for all accounts. */
const all_accounts = '';

type Circuit = {
  route: string;
  account_id: string;
  cause: FailureCause;
  openings: number;
  retry_at: Date;
  probing_until: Date | null;
};

/** An open circuit, for the operator. `account_id` is null for the one of all accounts. */
export type OpenRouteView = {
  route: string;
  account_id: string | null;
  cause: FailureCause;
  openings: number;
  opened_at: Date;
  retry_at: Date;
};

/** Every open circuit, those for all accounts first, then the newest. */
export async function openRoutes(db: Queryable, now: Date): Promise<OpenRouteView[]> {
  return db.query<OpenRouteView>(
    `select route, nullif(account_id, $2) as account_id, cause, openings, opened_at, retry_at from route_health
      where account_id = $2 or retry_at > $1 order by account_id = $2 desc, opened_at desc limit 1000`,
    [new Date(now.getTime() - unused_circuit_ms), all_accounts],
  );
}

/** Removes circuits of accounts that nobody has probed for ten minutes; returns how many. */
export async function dropUnusedCircuits(db: Queryable, now: Date): Promise<number> {
  const rows = await db.query('delete from route_health where account_id <> $2 and retry_at <= $1 returning route', [
    new Date(now.getTime() - unused_circuit_ms),
    all_accounts,
  ]);
  return rows.length;
}

/** Opens the health of all routes; nothing is read before it is needed. */
export function openRouteHealth(db: Queryable, clock: Clock): RouteHealth {
  return new SharedRouteHealth(db, clock);
}

class SharedRouteHealth implements RouteHealth {
  readonly #db: Queryable;
  readonly #clock: Clock;
  readonly #counts = new Map<string, FailureCounts>();
  /** Open circuits by route and account: the rows as they were read, and those that this node opened since. */
  #open = new Map<string, Map<string, Circuit>>();
  #read_at_ms = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(db: Queryable, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  async findBlock(routes: readonly string[], account_id: string): Promise<Block | undefined> {
    if (routes.length === 0) return { cause: 'upstream_error', retry_after_ms: no_routes_retry_ms };
    if (this.#isOld()) await this.#refresh();
    if (this.#open.size === 0) return undefined;
    const open = routes.map((route) => this.#openCircuits(route, account_id)).filter(({ length }) => length > 0);
    if (open.length < routes.length) return undefined;
    const timed_out = open.every((circuits) => circuits.every(({ cause }) => cause === 'timeout'));
    const retry_at_ms = Math.min(...open.map(retryAt));
    return {
      cause: timed_out ? 'timeout' : 'upstream_error',
      retry_after_ms: Math.max(1_000, retry_at_ms - this.#clock.now()),
    };
  }

  async admit(routes: readonly string[], account_id: string): Promise<Admission> {
    const blocked = await this.findBlock(routes, account_id);
    if (!blocked) return { admitted: true };
    for (const route of routes) if (await this.#takeProbe(route, account_id)) return { admitted: true, probe: route };
    return { admitted: false, ...blocked };
  }

  async readAvailability(): Promise<(routes: readonly string[], account_id?: string) => Availability> {
    if (this.#isOld()) await this.#refresh();
    return (routes, account_id = all_accounts) => {
      const open = routes.map((route) => this.#openCircuits(route, account_id)).filter(({ length }) => length > 0);
      if (routes.length === 0) return 'unavailable';
      if (open.length === 0) return 'available';
      const now_ms = this.#clock.now();
      return open.length < routes.length || open.some((circuits) => isProbeDue(circuits, now_ms))
        ? 'degraded'
        : 'unavailable';
    };
  }

  async releaseProbe(route: string, account_id: string): Promise<void> {
    if (this.#openCircuits(route, account_id).length === 0) return;
    await this.#write('update route_health set probing_until = null where route = $1 and account_id in ($2, $3)', [
      route,
      account_id,
      all_accounts,
    ]);
  }

  async healthyFirst(routes: readonly string[], account_id: string): Promise<string[]> {
    if (this.#isOld()) await this.#refresh();
    if (this.#open.size === 0) return [...routes];
    const first: string[] = [];
    const last: string[] = [];
    let has_healthy = false; // a route after a healthy one would not be tried: it is not probed
    for (const route of routes) {
      const is_open = this.#openCircuits(route, account_id).length > 0;
      const is_usable = !is_open || (!has_healthy && (await this.#takeProbe(route, account_id)));
      (is_usable ? first : last).push(route);
      has_healthy ||= !is_open;
    }
    return [...first, ...last];
  }

  async noteSuccess(route: string, account_id: string): Promise<void> {
    this.#countsOf(route).noteSuccess(account_id, this.#clock.now());
    if (this.#openCircuits(route, account_id).length > 0) await this.#close(route, [account_id, all_accounts]);
  }

  async noteFailure(route: string, account_id: string, trouble: RouteTrouble): Promise<void> {
    const { pause_ms } = trouble;
    const requested_ms = pause_ms !== undefined && pause_ms > 0 ? pause_ms : undefined;
    const { cause } = trouble;
    const verdict = this.#countsOf(route).noteFailure(
      account_id,
      this.#clock.now(),
      this.#pausedAccounts(route),
      requested_ms !== undefined,
    );
    await this.#openOrKeep({
      route,
      account_id,
      cause,
      requested_ms,
      first_ms: pause_first_ms,
      opens_circuit: verdict.for_account,
    });
    // A probe that one account alone has failed says nothing of the others.
    if (!verdict.is_common && this.#isHalfOpen(route)) return this.#close(route, [all_accounts]);
    await this.#openOrKeep({
      route,
      account_id: all_accounts,
      cause,
      requested_ms: verdict.for_all ? requested_ms : undefined, // one account's request does not pause the others
      first_ms: pause_first_of_all_ms,
      opens_circuit: verdict.for_all,
    });
  }

  /** Opens a circuit after too many failures, or keeps one open whose probe failed. */
  async #openOrKeep(failure: {
    route: string;
    account_id: string;
    cause: FailureCause;
    requested_ms: number | undefined;
    first_ms: number;
    opens_circuit: boolean;
  }): Promise<void> {
    const { route, account_id, cause, requested_ms, first_ms, opens_circuit } = failure;
    const now_ms = this.#clock.now();
    const open = this.#open.get(route)?.get(account_id);
    if (!opens_circuit && !open) return;
    // A request that began before the circuit opened says nothing new; only a probe makes the pause longer.
    const in_pause = open !== undefined && open.retry_at.getTime() > now_ms;
    if (in_pause && requested_ms === undefined) return;
    const openings = (open?.openings ?? 0) + (in_pause ? 0 : 1);
    const pause_ms = Math.min(pause_max_ms, requested_ms ?? first_ms * 2 ** Math.min(openings - 1, 10));
    const retry_at = new Date(now_ms + pause_ms);
    const is_written = await this.#write(
      `insert into route_health (route, account_id, cause, openings, opened_at, retry_at) values ($1, $2, $3, $4, $5, $6)
       on conflict (route, account_id) do update
         set cause = $3, openings = $4, retry_at = greatest(route_health.retry_at, $6), probing_until = null`,
      [route, account_id, cause, openings, new Date(now_ms), retry_at],
    );
    if (is_written) addCircuit(this.#open, { route, account_id, cause, openings, retry_at, probing_until: null });
  }

  async closeCircuits(route: string): Promise<void> {
    await this.#write('delete from route_health where route = $1', [route]);
    this.#counts.delete(route);
  }

  async #close(route: string, account_ids: readonly string[]): Promise<void> {
    await this.#write('delete from route_health where route = $1 and account_id = any($2)', [route, account_ids]);
  }

  /** Returns the open circuits that close a route to this account: its own, and the one for all. */
  #openCircuits(route: string, account_id: string): Circuit[] {
    const open = this.#open.get(route);
    if (!open) return [];
    const own = account_id === all_accounts ? undefined : open.get(account_id);
    return [own, open.get(all_accounts)].filter((circuit) => circuit !== undefined);
  }

  /** Returns the accounts whose own circuit closes a route to them now. */
  #pausedAccounts(route: string): string[] {
    const now_ms = this.#clock.now();
    const circuits = [...(this.#open.get(route)?.values() ?? [])];
    return circuits
      .filter(({ account_id, retry_at }) => account_id !== all_accounts && retry_at.getTime() > now_ms)
      .map(({ account_id }) => account_id);
  }

  /** Returns true if the circuit for all accounts is open and its pause is over. */
  #isHalfOpen(route: string): boolean {
    const circuit = this.#open.get(route)?.get(all_accounts);
    return circuit !== undefined && circuit.retry_at.getTime() <= this.#clock.now();
  }

  #countsOf(route: string): FailureCounts {
    const present = this.#counts.get(route);
    if (present) return present;
    const counts = new FailureCounts();
    this.#counts.set(route, counts);
    return counts;
  }

  /** Returns false if it could not be written: a task must not fail because of that. */
  async #write(statement: string, values: readonly unknown[]): Promise<boolean> {
    const is_written = await this.#db.query(statement, values).then(
      () => true,
      () => false,
    );
    this.#invalidate();
    return is_written;
  }

  #isOld(): boolean {
    return performance.now() - this.#read_at_ms >= rows_age_max_ms;
  }

  async #refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    await this.#reading;
  }

  async #read(): Promise<void> {
    const rows = await this.#db.query<Circuit>(
      `select route, account_id, cause, openings, retry_at, probing_until from route_health
        where account_id = $2 or retry_at > $1`,
      [new Date(this.#clock.now() - unused_circuit_ms), all_accounts],
    );
    const open = new Map<string, Map<string, Circuit>>();
    for (const row of rows) addCircuit(open, row);
    // Another node closed these circuits: the failures that this node counted before are out of date.
    for (const route of this.#open.keys()) if (!open.has(route)) this.#counts.delete(route);
    this.#open = open;
    this.#read_at_ms = performance.now();
  }

  #invalidate(): void {
    this.#read_at_ms = Number.NEGATIVE_INFINITY;
  }

  /** Takes the probe of a route whose pauses are over: one request at a time for each circuit. Returns false if there is none. */
  async #takeProbe(route: string, account_id: string): Promise<boolean> {
    const now_ms = this.#clock.now();
    const circuits = this.#openCircuits(route, account_id);
    if (circuits.length === 0 || !isProbeDue(circuits, now_ms)) return false;
    const rows = await this.#db.query(
      `with free as (
         select account_id from route_health
          where route = $1 and account_id = any($4) and retry_at <= $2
            and (probing_until is null or probing_until <= $2)
          order by account_id for update)
       update route_health set probing_until = $3
        where route = $1 and account_id = any($4) and (select count(*) from free) = $5 returning route`,
      [
        route,
        new Date(now_ms),
        new Date(now_ms + probe_ms),
        circuits.map((circuit) => circuit.account_id),
        circuits.length,
      ],
    );
    this.#invalidate();
    return rows.length === circuits.length;
  }
}

function addCircuit(open: Map<string, Map<string, Circuit>>, circuit: Circuit): void {
  const of_route = open.get(circuit.route) ?? new Map<string, Circuit>();
  of_route.set(circuit.account_id, circuit);
  open.set(circuit.route, of_route);
}

/** Returns the end of the last pause of a route's circuits. */
function retryAt(circuits: readonly Circuit[]): number {
  return Math.max(...circuits.map(({ retry_at }) => retry_at.getTime()));
}

/** Returns true if all pauses are over and nobody probes. */
function isProbeDue(circuits: readonly Circuit[], now_ms: number): boolean {
  return retryAt(circuits) <= now_ms && circuits.every((each) => (each.probing_until?.getTime() ?? 0) <= now_ms);
}
