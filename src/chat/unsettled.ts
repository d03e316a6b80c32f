import type { Logger } from 'pino';
import { isLocked, isUnavailable, type Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { closedHold, type ClosedHold } from '../money/closed.ts';
import type { CloseRequest, HoldRequest, Holds } from '../money/holds.ts';
import { exact, type Money } from '../money/money.ts';
import type { Journal, JournalEntry } from '../storage/journal.ts';
import { insertRecord, type StoredRecord } from './record-row.ts';

/** The end of a call, and what was held for it, if that is known; under the name that journals have had for it. */
type Unsettled = { kind: 'end'; end: CloseRequest; pledge: HoldRequest | undefined };

/** The record of a call; `is_unsettled`: it was charged what its end, which is in the journal too, is settled at. */
type Unrecorded = { kind: 'record'; account_id: string; ref: string; is_unsettled: boolean; record: StoredRecord };

/** Interval of attempts to write to the database, and of searches for the journals of dead processes. */
const replay_every_ms = 1_000;
const adopt_every = 10;

const batch_max = 200;

/** An end as the journal keeps it. */
export function unsettledEntry(clock: Clock, end: CloseRequest, held: HoldRequest | undefined): JournalEntry {
  const body: Unsettled = { kind: 'end', end, pledge: held };
  return { id: `end ${end.ref}`, at: nowText(clock), body };
}

/** A record as the journal keeps it. */
export function unrecordedEntry(clock: Clock, unrecorded: Omit<Unrecorded, 'kind'>): JournalEntry {
  return { id: `record ${unrecorded.ref}`, at: nowText(clock), body: { kind: 'record', ...unrecorded } };
}

function nowText(clock: Clock): string {
  return new Date(clock.now()).toISOString();
}

/** The parts of the app that settling out of the journal takes. */
export type ReplayParts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Logger;
  readonly holds: Holds;
  readonly journal: Journal;
};

type Life = { readonly stopping: AbortSignal; onStop(close: () => void): void };

/** Settles what is in the journal as soon as the database is there, from now on until the app stops. */
export function startReplay(parts: ReplayParts & Life): void {
  let is_replaying = false;
  let rounds = 0;
  const round = async () => {
    if (is_replaying) return;
    is_replaying = true;
    try {
      await replayJournal(parts, { adopts: rounds++ % adopt_every === 0 });
    } catch (error) {
      if (!isUnavailable(error) && !parts.stopping.aborted)
        parts.log.error({ err: error }, 'the journal could not be replayed');
    }
    is_replaying = false;
  };
  const timer = setInterval(() => void round(), replay_every_ms);
  void round();
  parts.onStop(() => clearInterval(timer));
}

/**
 * Settles and records what is in the journal; once each, even if another process does so at the same time. Rejects when
 * the database is away. Entries that the database refuses stay in the journal and are logged.
 */
export async function replayJournal(parts: ReplayParts, { adopts = true } = {}): Promise<number> {
  const { journal } = parts;
  const adopted = adopts ? await journal.adopt() : 0;
  if (adopted > 0) parts.log.warn({ entries: adopted }, 'a process left ends of chat calls in its journal');
  await journal.touch();
  let count = 0;
  const kinds = ['end', 'record'] as const;
  for (const kind of kinds) {
    const pending = journal.pending();
    const ids = new Set(pending.map(({ id }) => id));
    // A record says what its end was settled at, so it comes behind it.
    const isReady = ({ id }: JournalEntry) => kind === 'end' || !ids.has(id.replace(/^record /, 'end '));
    const entries = pending.filter(
      (entry) => entry.id.startsWith(`${kind} `) && !refused.has(entry.id) && isReady(entry),
    );
    for (let at = 0; at < entries.length; at += batch_max) {
      const done = await replayAll(parts, entries.slice(at, at + batch_max));
      await journal.done(done);
      count += done.length;
    }
  }
  return count;
}

/** Entries that the database refuses for good: each process tries them once. */
const refused = new Set<string>();

async function replayAll(parts: ReplayParts, entries: readonly JournalEntry[]): Promise<string[]> {
  const outcomes = await Promise.allSettled(entries.map((entry) => replayOne(parts, entry)));
  const done: string[] = [];
  let away: { error: unknown } | undefined;
  for (const [i, outcome] of outcomes.entries()) {
    const id = entries[i]?.id ?? '';
    if (outcome.status === 'fulfilled') done.push(id);
    else if (isLocked(outcome.reason) || outcome.reason instanceof NotSettledYet) continue; // only this account waits
    else if (isUnavailable(outcome.reason)) away ??= { error: outcome.reason };
    else {
      refused.add(id);
      parts.log.error({ id, err: outcome.reason }, 'an entry of the journal could not be booked: it stays there');
    }
  }
  if (!away) return done;
  await parts.journal.done(done);
  throw away.error;
}

async function replayOne(parts: ReplayParts, { at, body }: JournalEntry): Promise<void> {
  const entry = body as Unsettled | Unrecorded;
  if (entry.kind === 'end') return replayEnd(parts, entry);
  const closed = entry.is_unsettled ? await closedOf(parts, entry, at) : undefined;
  await insertRecord(parts, entry.record, closed && { cost: closed.charged, upstream_cost: closed.upstream_cost });
}

/** The end that this record waits for is in the journal of another process, which has not settled it yet. */
class NotSettledYet extends Error {
  override name = 'NotSettledYet';
}

/** An end that has not come after so long is lost: its file could not be read. */
const end_lost_after_ms = 24 * 60 * 60_000;

/** Returns the settlement of the call. Never releases a hold whose end may still come. */
async function closedOf(parts: ReplayParts, { account_id, ref }: Unrecorded, at: string): Promise<ClosedHold> {
  const closed = await closedHold(parts.db, account_id, ref);
  if (closed) return closed;
  if (parts.clock.now() - Date.parse(at) < end_lost_after_ms) throw new NotSettledYet(ref);
  return parts.holds.settle({ account_id, ref, cost: null });
}

async function replayEnd(parts: ReplayParts, { end, pledge: held }: Unsettled): Promise<void> {
  const { charged } = await parts.holds.settle(end, held);
  const facts = { account_id: end.account_id, request_id: end.ref, charged: exact(charged) };
  const lost: Money = (end.cost ?? 0n) - charged;
  if (lost <= 0n) return parts.log.info(facts, 'a chat call was settled out of the journal');
  parts.log.error({ ...facts, loss: exact(lost) }, 'a chat call was settled out of the journal for less than its cost');
}
