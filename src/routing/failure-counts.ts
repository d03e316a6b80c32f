/** One attempt of a route. */
type RouteAttempt = { at_ms: number; failed: boolean; account_id: string };

/** An account's use of a route: the time of its last attempt, and its failures since its last success. */
type AccountUse = { at_ms: number; failures: number };

/** The circuits that the latest failure opens. `is_common`: most of the accounts that use the route have failures. */
export type Verdict = { for_account: boolean; for_all: boolean; is_common: boolean };

const failures_in_a_row = 5;
const window_ms = 30_000;
const window_attempts_min = 20;
const attempts_max = 200; // more would only make the count slower
const uses_max = 1_000;

/** Time after its last attempt for which an account counts in the decision for all accounts. */
const use_ms = 60_000;

/**
 * Recent failures of a route on one node, counted for each account and for all of them together. A route fails too
 * often after five failures in a row, or when half of at least twenty attempts within 30 seconds failed.
 */
export class FailureCounts {
  /** Failures of all accounts since the last success of any of them. */
  #in_a_row = 0;
  /** Oldest first. */
  readonly #attempts: RouteAttempt[] = [];
  readonly #uses = new Map<string, AccountUse>();

  /** Counts a success. Every chat call does so: lists are changed in place, since copies took 1.2 % of a call. */
  noteSuccess(account_id: string, now_ms: number): void {
    this.#in_a_row = 0;
    this.#add({ at_ms: now_ms, failed: false, account_id });
    const use = this.#useOf(account_id, now_ms);
    use.at_ms = now_ms;
    use.failures = 0;
  }

  /**
   * Counts a failure. `paused`: accounts whose circuit is open now, also by failures on other nodes. `is_explicit`: the
   * upstream itself said that it takes nothing now, so the circuit opens without counting.
   */
  noteFailure(account_id: string, now_ms: number, paused: readonly string[], is_explicit: boolean): Verdict {
    this.#in_a_row += 1;
    this.#add({ at_ms: now_ms, failed: true, account_id });
    const use = this.#useOf(account_id, now_ms);
    use.at_ms = now_ms;
    use.failures += 1;
    const own = this.#attempts.filter((each) => each.account_id === account_id);
    const for_account = is_explicit || isTooOften(use.failures, own);
    const is_common = this.#isCommon(now_ms, paused);
    return {
      for_account,
      for_all: is_common && (is_explicit || isTooOften(this.#in_a_row, this.#attempts)),
      is_common,
    };
  }

  /** Returns true if at least two accounts failed, and most of those that used the route in the last minute. */
  #isCommon(now_ms: number, paused: readonly string[]): boolean {
    const failing = new Set(paused);
    const users = new Set(paused);
    for (const [account_id, { at_ms, failures }] of this.#uses) {
      if (at_ms <= now_ms - use_ms) continue;
      users.add(account_id);
      if (failures > 0) failing.add(account_id);
      else failing.delete(account_id);
    }
    return failing.size >= 2 && failing.size * 2 > users.size;
  }

  #add(attempt: RouteAttempt): void {
    const attempts = this.#attempts;
    attempts.push(attempt);
    const over_at_ms = attempt.at_ms - window_ms;
    while (attempts.length > attempts_max || (attempts[0] && attempts[0].at_ms <= over_at_ms)) attempts.shift();
  }

  #useOf(account_id: string, now_ms: number): AccountUse {
    const present = this.#uses.get(account_id);
    if (present) return present;
    if (this.#uses.size >= uses_max) this.#dropUnused(now_ms);
    const use = { at_ms: now_ms, failures: 0 };
    this.#uses.set(account_id, use);
    return use;
  }

  /** Drops accounts that have not used the route within a minute; if there is none, the one that came first. */
  #dropUnused(now_ms: number): void {
    for (const [account_id, { at_ms }] of this.#uses) if (at_ms <= now_ms - use_ms) this.#uses.delete(account_id);
    const [first] = this.#uses.keys();
    if (this.#uses.size >= uses_max && first !== undefined) this.#uses.delete(first);
  }
}

function isTooOften(in_a_row: number, attempts: readonly RouteAttempt[]): boolean {
  if (in_a_row >= failures_in_a_row) return true;
  return (
    attempts.length >= window_attempts_min && attempts.filter(({ failed }) => failed).length * 2 >= attempts.length
  );
}
