import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { makeBatcher } from '../db/batcher.ts';
import type { Db } from '../db/database.ts';
import { oneRow } from '../db/one-row.ts';
import { ageOf, isStillLeased, type Liveness, type LeaseTime } from './liveness.ts';

/** A limit that all nodes share, as far as this node uses it. */
export type SharedLimit = {
  limit: number;
  /** The time for which the share of a node that died counts as used. */
  lost_ms: number;
  /** Returns the part of the limit that this node uses now. */
  inUse(): number;
  /** Returns the time after which the first of it is free again, if that is known. */
  freesInMs(): number | undefined;
  /** Takes one if less than `bound` is in use. */
  take(bound: number): boolean;
};

/** `others_free_in_ms`: the time after which something that other nodes use is free again, if that is known. */
export type ShareState = { others_in_use: number; others_free_in_ms: number | undefined };

/** Shares of limits, each by the name of its resource. */
export type Shares = {
  /** Takes one of the limit, out of the share of this node if it can; resolves to false if all nodes together use it up. */
  take(resource: string, limited: SharedLimit): Promise<boolean>;
  /** Returns what this node heard last of the others. */
  stateOf(resource: string): ShareState;
  /** Gives back what is not in use. */
  giveUp(resource: string): void;
  /** Gives back what is not in use of all. */
  close(): Promise<void>;
};

type ShareRequest = {
  resource: string;
  limit: number;
  in_use: number;
  least: number;
  need: number;
  gives_back: boolean;
  frees_in_ms: number | null;
  lost_ms: number;
};
type ShareAnswer = { outcome: 'granted' | 'leased' | 'full'; amount: number; others: number } & ShareState;

type LimitShare = ShareState & {
  resource: string;
  amount: number;
  /** The limit of which it is a share: of a lower one all nodes ask anew. */
  of_limit: number;
  asked_at: LeaseTime;
  /** Other nodes have a share, too. */
  is_shared: boolean;
  /** A request under way; those who wait for it. */
  asking: Promise<ShareAnswer> | undefined;
  waiting: number;
  /** One more at each recall: an answer to what was asked before it is not used. */
  recalls: number;
  limited: SharedLimit;
  /** Refused until then without asking, while the limit is the same. */
  full: { limit: number; until_ms: number };
};

/** A live node uses a share for so long from before it asked for it; PostgreSQL counts from when it heard, and 2 s more. */
const share_ms = 300_000;

/** After its end a share counts as used for `lost_ms`; a node that remembers it until then gives it back when asked. */
const remembered_ms = share_ms + 5_000;

/** A node that was refused asks again after this at the latest: others may have given something back. */
const full_ms = 250;

const longest_wait_ms = 64;

/** Whoever has heard of a recall has answered by then: what others still have is in use, or theirs who died. */
const recall_ms = 200;

/** A share that is older is renewed after an answer, together with all others that are so at the same time. */
const renewed_after_ms = 240_000;
const renewed_together_ms = 200;

/** The interval of a look at shares that are in use: a stream of ten minutes is one of its key's calls at once to its end. */
const usual_look_ms = 10_000;

/** The same where other nodes have a share, too: callers are told what is left beside what those use. */
const heard_of_others_ms = 5_000;

/**
 * Shares of limits, kept in the table `leases`: the sum of the shares of all nodes is never above the limit. Every
 * `look_ms` those are renewed that are old and in use.
 */
export function openShares(db: Db, node_id: string, liveness: Liveness, look_ms = usual_look_ms): Shares {
  const send = makeBatcher<ShareRequest, ShareAnswer>({
    together: (requests) => callTogether(db, node_id, requests),
    names: { nameOf: ({ resource }) => resource, groupOf: ({ resource }) => resource },
    calls_max: 2,
  });
  return new LeasedShares(send, liveness, look_ms);
}

type Purpose = 'take' | 'renew' | 'give back';

class LeasedShares implements Shares {
  readonly #send: (request: ShareRequest) => Promise<ShareAnswer>;
  readonly #liveness: Liveness;
  readonly #shares = new Map<string, LimitShare>(); // oldest request first
  readonly #old = new Set<LimitShare>();
  readonly #looking: NodeJS.Timeout;
  #renewing: NodeJS.Timeout | undefined;

  constructor(send: (request: ShareRequest) => Promise<ShareAnswer>, liveness: Liveness, look_ms: number) {
    this.#send = send;
    this.#liveness = liveness;
    this.#looking = setInterval(() => this.#renewUsed(), look_ms).unref();
  }

  async take(resource: string, limited: SharedLimit): Promise<boolean> {
    const share = this.#find(resource, limited);
    share.limited = limited;
    if (this.#takeNow(share, limited)) return true;
    let recalled_at_ms: number | undefined;
    for (let wait_ms = 4; ; wait_ms = Math.min(2 * wait_ms, longest_wait_ms)) {
      // Its own use alone is the limit, or somebody was told just now that there is no more.
      if (limited.inUse() >= limited.limit || isFull(share)) return false;
      await this.#liveness.ensure();
      const { outcome } = await this.#ask(share);
      if (this.#takeNow(share, limited)) return true;
      if (outcome === 'granted') continue;
      const now_ms = performance.now();
      recalled_at_ms ??= now_ms;
      // By its own clock, too: PostgreSQL sees only when it is asked, and may recall anew each time.
      if (outcome === 'leased' && now_ms - recalled_at_ms < recall_ms) await sleep(wait_ms);
      else share.full = { limit: limited.limit, until_ms: now_ms + full_ms };
    }
  }

  stateOf(resource: string): ShareState {
    return this.#shares.get(resource) ?? { others_in_use: 0, others_free_in_ms: undefined };
  }

  giveUp(resource: string): void {
    const share = this.#shares.get(resource);
    if (!share || share.waiting > 0) return; // it has less than it needs itself
    share.recalls += 1;
    share.amount = 0;
    void this.#return(share);
  }

  async close(): Promise<void> {
    clearInterval(this.#looking);
    clearTimeout(this.#renewing);
    const returning = [...this.#shares.values()].map((share) => {
      share.amount = 0;
      return this.#return(share);
    });
    await Promise.all(returning);
  }

  async #return(share: LimitShare): Promise<void> {
    while (share.asking) await share.asking.catch(() => undefined);
    await this.#request(share, 'give back').catch(() => undefined); // it ends by itself
  }

  #takeNow(share: LimitShare, limited: SharedLimit): boolean {
    const { asked_at, amount, is_shared } = share;
    const now = this.#liveness.now();
    if (!isUsable(share, limited, now) || !limited.take(Math.min(limited.limit, amount))) return false;
    const is_reported = is_shared && limited.lost_ms > 0;
    if (ageOf(asked_at, now) > (is_reported ? heard_of_others_ms : renewed_after_ms)) this.#renewSoon(share);
    return true;
  }

  /** Those of windows need it not: what was used in them counts for `lost_ms` after their end, and no longer. */
  #renewUsed(): void {
    const now = this.#liveness.now();
    for (const share of this.#shares.values()) {
      const { asked_at, limited } = share;
      if (limited.lost_ms === 0 && limited.inUse() > 0 && ageOf(asked_at, now) > renewed_after_ms)
        this.#renewSoon(share);
    }
  }

  #renewSoon(share: LimitShare): void {
    this.#old.add(share);
    this.#renewing ??= setTimeout(() => {
      this.#renewing = undefined;
      for (const old of this.#old) if (!old.asking) this.#request(old, 'renew').catch(() => undefined); // the next one asks itself
      this.#old.clear();
    }, renewed_together_ms).unref();
  }

  /** Those who wait at the same moment ask together. */
  async #ask(share: LimitShare): Promise<ShareAnswer> {
    share.waiting += 1;
    try {
      return await (share.asking ?? this.#request(share));
    } finally {
      share.waiting -= 1;
    }
  }

  #request(share: LimitShare, purpose: Purpose = 'take'): Promise<ShareAnswer> {
    const asking = this.#exchange(share, purpose).finally(() => {
      if (share.asking === asking) share.asking = undefined;
    });
    share.asking = asking;
    return asking;
  }

  async #exchange(share: LimitShare, purpose: Purpose): Promise<ShareAnswer> {
    await nextTurn(); // requests of the same turn share it
    const { limited, recalls } = share;
    const asked_at = this.#liveness.now();
    const in_use = limited.inUse();
    const is_live = isUsable(share, limited, asked_at);
    const { limit } = limited;
    const answer = await this.#send({
      resource: share.resource,
      limit,
      in_use,
      least: is_live ? Math.max(share.amount, in_use) : in_use,
      need: purpose === 'take' ? share.waiting : 0,
      gives_back: purpose === 'give back',
      frees_in_ms: limited.freesInMs() ?? null,
      lost_ms: limited.lost_ms,
    });
    share.is_shared = answer.others > 0;
    share.others_in_use = answer.others_in_use;
    share.others_free_in_ms = answer.others_free_in_ms;
    if (share.recalls === recalls) {
      share.amount = answer.amount;
      share.of_limit = limit;
      share.asked_at = asked_at;
    }
    this.#shares.delete(share.resource); // moves it to the end
    this.#shares.set(share.resource, share);
    return answer;
  }

  #find(resource: string, limited: SharedLimit): LimitShare {
    const existing = this.#shares.get(resource);
    if (existing) return existing;
    this.#forgetOld();
    const share: LimitShare = {
      resource,
      limited,
      amount: 0,
      of_limit: 0,
      // Not forgotten while somebody waits.
      asked_at: { elapsed_ms: performance.now(), wall_ms: Date.now(), session: undefined },
      is_shared: false,
      asking: undefined,
      waiting: 0,
      recalls: 0,
      full: { limit: 0, until_ms: Number.NEGATIVE_INFINITY },
      others_in_use: 0,
      others_free_in_ms: undefined,
    };
    this.#shares.set(resource, share);
    return share;
  }

  /** A few at a time, so that no request pays for all. */
  #forgetOld(): void {
    let left = 4;
    for (const [resource, { asked_at, asking, limited }] of this.#shares) {
      if (left-- === 0 || asking || performance.now() - asked_at.elapsed_ms < remembered_ms + limited.lost_ms) return;
      this.#shares.delete(resource);
    }
  }
}

function isUsable({ asked_at, of_limit }: LimitShare, { limit }: SharedLimit, now: LeaseTime): boolean {
  return of_limit <= limit && isStillLeased(asked_at, now, share_ms);
}

function isFull({ full, limited }: LimitShare): boolean {
  return full.limit === limited.limit && performance.now() < full.until_ms;
}

type Row = {
  outcome: ShareAnswer['outcome'][];
  amount: number[];
  others: number[];
  others_in_use: number[];
  others_free_in_ms: (number | null)[];
};

async function callTogether(db: Db, node_id: string, requests: readonly ShareRequest[]): Promise<ShareAnswer[]> {
  const rows = await db.query<Row>(
    `select outcome, amount::float8[], others::float8[], others_in_use::float8[], others_free_in_ms from take_shares(now(), $1, $2)`,
    [node_id, JSON.stringify(requests)],
    'brief',
  );
  const answer = oneRow(rows);
  return answer.outcome.map((outcome, i) => ({
    outcome,
    amount: answer.amount[i] ?? 0,
    others: answer.others[i] ?? 0,
    others_in_use: answer.others_in_use[i] ?? 0,
    others_free_in_ms: answer.others_free_in_ms[i] ?? undefined,
  }));
}
