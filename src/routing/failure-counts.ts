/** One attempt of a route, as its health sees it. */
type RouteTry = { at_ms: number; failed: boolean; account_id: string };

/** An account's use of a route: its last use, and its failures since its last success. */
type Use = { at_ms: number; failures: number };

/** The scopes for which the latest failure opens the circuit; `is_common` if several accounts meet the failures. */
export type Verdict = { for_account: boolean; for_all: boolean; is_common: boolean };

const failures_in_a_row = 5;
const window_ms = 30_000;
const window_tries_min = 20;
const tries_kept_max = 200; // more would only make the count dearer
const uses_kept_max = 1_000;

/** An account that used the route within this time has a say in whether it is closed off for all. */
const use_ms = 60_000;

/**
 * Recent failures of a route on one node. Counts per account, and over all of them: a route fails too often
 * after five failures in a row, or when half of the last twenty attempts of 30 seconds failed.
 */
export class FailureCounts {
  /** Failures of anybody since the last success of anybody. */
  #in_a_row = 0;
  /** Oldest first. */
  readonly #tries: RouteTry[] = [];
  readonly #uses = new Map<string, Use>();

  /** Every chat call comes here: lists are changed in place, since copies of them took 1.2 % of a call. */
  succeeded(account_id: string, now_ms: number): void {
    this.#in_a_row = 0;
    this.#add({ at_ms: now_ms, failed: false, account_id });
    const use = this.#useOf(account_id, now_ms);
    use.at_ms = now_ms;
    use.failures = 0;
  }

  /**
   * Counts a failure. `paused`: accounts for which the route is closed now, also by other nodes. `is_clear`: the
   * upstream itself said that it takes nothing now, so that there is no need to count.
   */
  failed(account_id: string, now_ms: number, paused: readonly string[], is_clear: boolean): Verdict {
    this.#in_a_row += 1;
    this.#add({ at_ms: now_ms, failed: true, account_id });
    const use = this.#useOf(account_id, now_ms);
    use.at_ms = now_ms;
    use.failures += 1;
    const own = this.#tries.filter((each) => each.account_id === account_id);
    const for_account = is_clear || isTooOften(use.failures, own);
    const is_common = this.#isCommon(now_ms, paused);
    return { for_account, for_all: is_common && (is_clear || isTooOften(this.#in_a_row, this.#tries)), is_common };
  }

  /** At least two accounts failed, and most of those that used the route in the last minute. */
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

  #add(made: RouteTry): void {
    const tries = this.#tries;
    tries.push(made);
    const over_at_ms = made.at_ms - window_ms;
    while (tries.length > tries_kept_max || (tries[0] && tries[0].at_ms <= over_at_ms)) tries.shift();
  }

  #useOf(account_id: string, now_ms: number): Use {
    const present = this.#uses.get(account_id);
    if (present) return present;
    if (this.#uses.size >= uses_kept_max) this.#dropUnused(now_ms);
    const use = { at_ms: now_ms, failures: 0 };
    this.#uses.set(account_id, use);
    return use;
  }

  /** Drops whoever has not used the route lately; with a thousand users in a minute, the one that came first. */
  #dropUnused(now_ms: number): void {
    for (const [account_id, { at_ms }] of this.#uses) if (at_ms <= now_ms - use_ms) this.#uses.delete(account_id);
    const [first] = this.#uses.keys();
    if (this.#uses.size >= uses_kept_max && first !== undefined) this.#uses.delete(first);
  }
}

function isTooOften(in_a_row: number, tries: readonly RouteTry[]): boolean {
  if (in_a_row >= failures_in_a_row) return true;
  return tries.length >= window_tries_min && tries.filter(({ failed }) => failed).length * 2 >= tries.length;
}
