import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { makeBatcher } from '../db/batcher.ts';
import type { Db } from '../db/database.ts';
import { oneRow } from '../db/one-row.ts';
import { ageOf, isStillLeased, type Liveness, type LeaseTime } from './liveness.ts';

/** A limit that all nodes share, with the use that this node makes of it. */
export type SharedLimit = {
  limit: number;
  /** The time for which the share of a node that died counts as used. */
  lost_ms: number;
  /** Returns the part of the limit that this node uses now. */
  inUse(): number;
  /** Returns the time until a part of it is free again; undefined if that is not known. */
  freesInMs(): number | undefined;
  /** Takes one if less than `bound` is in use. */
  take(bound: number): boolean;
};

/** `others_free_in_ms`: the time until a part that other nodes use is free again; undefined if that is not known. */
export type ShareState = { others_in_use: number; others_free_in_ms: number | undefined };

/** The shares that this node has of limits, by the names of their resources. */
export type Shares = {
  /** Takes one of the limit, from the share of this node if it has one left. Resolves to false if all nodes together use the whole limit. */
  take(resource: string, limited: SharedLimit): Promise<boolean>;
  /** Returns the use of other nodes, as the last answer of the database had it. */
  stateOf(resource: string): ShareState;
  /** Returns the unused part of a share. */
  returnUnused(resource: string): void;
  /** Returns the unused parts of all shares. */
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
  /** The limit when the share was taken: if it is lower now, a new share is asked for. */
  of_limit: number;
  asked_at: LeaseTime;
  /** Other nodes have a share of the limit. */
  is_shared: boolean;
  /** The request under way, and the number of callers that wait for it. */
  asking: Promise<ShareAnswer> | undefined;
  waiting: number;
  /** Number of recalls: an answer to a request from before a recall is not used. */
  recalls: number;
  limited: SharedLimit;
  /** Requests are refused without asking until then, while the limit is the same. */
  full: { limit: number; until_ms: number };
};

/** Time of a share of a living node. The node counts it from before its request, PostgreSQL from its arrival, and 2 s more. */
const share_ms = 300_000;

/** Time for which a node keeps a share: after its end it counts as used for `lost_ms`, and the node can still return it. */
const kept_ms = share_ms + 5_000;

/** Time after which a node that was refused asks again: others may have returned something. */
const refusal_ms = 250;

const longest_wait_ms = 64;

/** Time after a recall in which living nodes return what they do not use: the rest is in use, or of nodes that died. */
const recall_ms = 200;

/** Age at which a share is renewed, a moment after its use, together with all others that are due then. */
const renew_after_ms = 240_000;
const renew_delay_ms = 200;

/** Interval of the renewal of shares in use: a stream of ten minutes is one of its key's calls at once until its end. */
const renew_check_ms = 10_000;

/** Age at which a share is renewed if other nodes have one: callers are told how much is left, which depends on these. */
const others_age_max_ms = 5_000;

/**
 * Opens the shares of a node, in the table `leases`: the sum of the shares of all nodes is never above the limit. Every
 * `check_ms` those are renewed that are old and in use.
 */
export function openShares(db: Db, node_id: string, liveness: Liveness, check_ms = renew_check_ms): Shares {
  const send = makeBatcher<ShareRequest, ShareAnswer>({
    together: (requests) => callTogether(db, node_id, requests),
    names: { nameOf: ({ resource }) => resource, groupOf: ({ resource }) => resource },
    calls_max: 2,
  });
  return new LeasedShares(send, liveness, check_ms);
}

type Purpose = 'take' | 'renew' | 'give back';

class LeasedShares implements Shares {
  readonly #send: (request: ShareRequest) => Promise<ShareAnswer>;
  readonly #liveness: Liveness;
  readonly #shares = new Map<string, LimitShare>(); // oldest request first
  readonly #old = new Set<LimitShare>();
  readonly #check_timer: NodeJS.Timeout;
  #renewing: NodeJS.Timeout | undefined;

  constructor(send: (request: ShareRequest) => Promise<ShareAnswer>, liveness: Liveness, check_ms: number) {
    this.#send = send;
    this.#liveness = liveness;
    this.#check_timer = setInterval(() => this.#renewUsed(), check_ms).unref();
  }

  async take(resource: string, limited: SharedLimit): Promise<boolean> {
    const share = this.#shareOf(resource, limited);
    share.limited = limited;
    if (this.#takeNow(share, limited)) return true;
    let recalled_at_ms: number | undefined;
    for (let wait_ms = 4; ; wait_ms = Math.min(2 * wait_ms, longest_wait_ms)) {
      // The use of this node alone is the limit, or a request was refused just now.
      if (limited.inUse() >= limited.limit || isFull(share)) return false;
      await this.#liveness.ensure();
      const { outcome } = await this.#askTogether(share);
      if (this.#takeNow(share, limited)) return true;
      if (outcome === 'granted') continue;
      const now_ms = performance.now();
      recalled_at_ms ??= now_ms;
      // Limited by this node's clock, too: PostgreSQL may recall again at each request.
      if (outcome === 'leased' && now_ms - recalled_at_ms < recall_ms) await sleep(wait_ms);
      else share.full = { limit: limited.limit, until_ms: now_ms + refusal_ms };
    }
  }

  stateOf(resource: string): ShareState {
    return this.#shares.get(resource) ?? { others_in_use: 0, others_free_in_ms: undefined };
  }

  returnUnused(resource: string): void {
    const share = this.#shares.get(resource);
    if (!share || share.waiting > 0) return; // its own callers need more than it has
    share.recalls += 1;
    share.amount = 0;
    void this.#return(share);
  }

  async close(): Promise<void> {
    clearInterval(this.#check_timer);
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
    if (ageOf(asked_at, now) > (is_reported ? others_age_max_ms : renew_after_ms)) this.#renewSoon(share);
    return true;
  }

  /** Renews shares in use. Those of windows need it not: their use counts for `lost_ms` after their end, and no longer. */
  #renewUsed(): void {
    const now = this.#liveness.now();
    for (const share of this.#shares.values()) {
      const { asked_at, limited } = share;
      if (limited.lost_ms === 0 && limited.inUse() > 0 && ageOf(asked_at, now) > renew_after_ms) this.#renewSoon(share);
    }
  }

  #renewSoon(share: LimitShare): void {
    this.#old.add(share);
    this.#renewing ??= setTimeout(() => {
      this.#renewing = undefined;
      for (const old of this.#old) if (!old.asking) this.#request(old, 'renew').catch(() => undefined); // the next request asks by itself
      this.#old.clear();
    }, renew_delay_ms).unref();
  }

  /** Waits for the request under way, or makes one: callers that wait at the same moment share it. */
  async #askTogether(share: LimitShare): Promise<ShareAnswer> {
    share.waiting += 1;
    try {
      return await (share.asking ?? this.#request(share));
    } finally {
      share.waiting -= 1;
    }
  }

  #request(share: LimitShare, purpose: Purpose = 'take'): Promise<ShareAnswer> {
    const asking = this.#sendRequest(share, purpose).finally(() => {
      if (share.asking === asking) share.asking = undefined;
    });
    share.asking = asking;
    return asking;
  }

  async #sendRequest(share: LimitShare, purpose: Purpose): Promise<ShareAnswer> {
    await nextTurn(); // requests of this turn of the event loop are sent together
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

  #shareOf(resource: string, limited: SharedLimit): LimitShare {
    const existing = this.#shares.get(resource);
    if (existing) return existing;
    this.#dropOld();
    const share: LimitShare = {
      resource,
      limited,
      amount: 0,
      of_limit: 0,
      // As if asked for now, so that it is not dropped while somebody waits.
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

  /** Drops the oldest shares that are over, a few at a time, so that no request pays for all. */
  #dropOld(): void {
    let left = 4;
    for (const [resource, { asked_at, asking, limited }] of this.#shares) {
      if (left-- === 0 || asking || performance.now() - asked_at.elapsed_ms < kept_ms + limited.lost_ms) return;
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
