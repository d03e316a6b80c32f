import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { assert } from '../lib/assert.ts';

export type BatcherOptions<Member, Answer> = {
  /** One call for several members; answer i is member i's. */
  together(members: readonly Member[]): Promise<readonly Answer[]>;
  /** The call for a member without company; if there is none, that is a batch of one. */
  alone?(member: Member): Promise<Answer>;
  /** Members of the same name never share a call: the later one waits a turn, and with it all later ones of its group. */
  names?: { nameOf(member: Member): string; groupOf(member: Member): string };
  /** 256 unless told: larger ones were hardly cheaper (bench/results/money.md) and hold their locks longer. */
  batch_max?: number;
  /** For writes that nobody waits for: each call waits this long for company, unless it is full already. */
  linger_ms?: number;
};

/** Resolves or rejects with what became of this member. */
export type Batcher<Member, Answer> = (member: Member) => Promise<Answer>;

/**
 * Collects what arrives while a call is under way and sends it as the next one: many callers cost one
 * round trip, one commit and one lock per row. A member that breaks a rule of the database fails alone;
 * a database that cannot be reached fails all who wait. A call whose answer was lost is repeated,
 * although it may have happened: both calls must be safe to repeat.
 */
export function makeBatcher<Member, Answer>(options: BatcherOptions<Member, Answer>): Batcher<Member, Answer> {
  const { batch_max = 256, linger_ms, names } = options;
  let waiting: Waiter<Member, Answer>[] = [];
  let under_way = false;

  const pump = async () => {
    while (waiting.length > 0) {
      if (linger_ms !== undefined && waiting.length < batch_max) await sleep(linger_ms);
      const { batch, rest } = takeBatch(waiting, batch_max, names);
      waiting = rest;
      const unreachable = await send(options, batch);
      // Whoever waits behind would learn the same, each batch a timeout later.
      if (unreachable) for (const waiter of waiting.splice(0)) waiter.reject(unreachable.error);
    }
    under_way = false;
  };
  return (member) =>
    new Promise((resolve, reject) => {
      waiting.push({ member, resolve, reject });
      if (under_way) return;
      under_way = true;
      // Not at once: requests read in the same turn of the event loop share a call.
      setImmediate(() => void pump());
    });
}

type Waiter<Member, Answer> = {
  member: Member;
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
};

/** The first ones in order, but of one name only the first: the rest wait a turn, and keep the order of their group. */
function takeBatch<W extends { member: M }, M>(
  waiting: W[],
  batch_max: number,
  names: BatcherOptions<M, unknown>['names'],
): { batch: W[]; rest: W[] } {
  if (!names) return { batch: waiting.slice(0, batch_max), rest: waiting.slice(batch_max) };
  const seen = new Set<string>();
  const waits = new Set<string>();
  const batch: W[] = [];
  const rest: W[] = [];
  for (const waiter of waiting) {
    if (batch.length === batch_max) break;
    const name = names.nameOf(waiter.member);
    const is_late = seen.has(name) || (waits.size > 0 && waits.has(names.groupOf(waiter.member)));
    seen.add(name);
    if (!is_late) batch.push(waiter);
    else {
      rest.push(waiter);
      waits.add(names.groupOf(waiter.member));
    }
  }
  return { batch, rest: rest.concat(waiting.slice(batch.length + rest.length)) };
}

/** Why the database could not be reached; undefined when every member got its own answer. */
type Unreachable = { error: unknown } | undefined;

/** Answers every waiter, one way or the other; never rejects. */
async function send<M, A>(options: BatcherOptions<M, A>, batch: readonly Waiter<M, A>[]): Promise<Unreachable> {
  try {
    const answers = await repeated(() => call(options, batch));
    for (const [i, answer] of answers.entries()) batch[i]?.resolve(answer);
    return undefined;
  } catch (error) {
    const is_refusal = isRefusal(error);
    if (!is_refusal || batch.length === 1) {
      for (const waiter of batch) waiter.reject(error);
      return is_refusal ? undefined : { error };
    }
  }
  // One member breaks a rule, and with it all: each is tried alone, in their order, so that only that one fails.
  for (const [i, waiter] of batch.entries()) {
    const unreachable = await send(options, [waiter]);
    if (!unreachable) continue;
    for (const later of batch.slice(i + 1)) later.reject(unreachable.error);
    return unreachable;
  }
  return undefined;
}

async function call<M, A>(options: BatcherOptions<M, A>, batch: readonly Waiter<M, A>[]): Promise<readonly A[]> {
  const [first] = batch;
  if (options.alone && first && batch.length === 1) return [await options.alone(first.member)];
  const answers = await options.together(batch.map((waiter) => waiter.member));
  assert(answers.length === batch.length, 'a call answers each of its members');
  return answers;
}

const tries_max = 3;

/** Calls again what may have failed on the way: a lost connection, a deadlock with other statements. */
export async function repeated<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (tries === tries_max || isRefusal(error)) throw error;
    }
  }
}

/** True if the database refused the values themselves: classes 22 (data), 23 (constraints), 54 (too large). */
function isRefusal(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(22|23|54)/.test(error.code ?? '');
}
