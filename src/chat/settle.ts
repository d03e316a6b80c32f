import type { Logger } from 'pino';
import { use_units } from '../catalog/model.ts';
import type { Units } from '../catalog/price.ts';
import { isUnavailable } from '../db/database.ts';
import { retryWhileUnavailable } from '../db/retry-while-unavailable.ts';
import type { Clock } from '../lib/clock.ts';
import type { CloseAnswer, CloseRequest, HoldRequest, Holds } from '../money/holds.ts';
import { exact, type Money } from '../money/money.ts';
import type { UpstreamUse } from '../money/upstream.ts';
import type { Journal } from '../storage/journal.ts';
import type { Usage } from '../styles/conversation.ts';
import type { PricedRequest } from './priced-request.ts';
import type { ChatOutcome } from './outcome.ts';
import { chargedUsage } from '../styles/usage.ts';
import { costOf, paidToolCalls, unitsOf } from './price.ts';
import { unsettledEntry } from './unsettled.ts';

/** The charge of a call. `counted_here`: the upstream did not report all of it. */
export type Charge = { usage: Usage; units: Units; counted_here: boolean; cost: Money };

/**
 * Returns the charge by the way the call ended (docs/chat-billing.md). Without content: nothing, unless we
 * left an upstream that had the request. Complete: the upstream's reported usage. Cut, failed or left: the
 * input, and the larger of the reported and the received output. Unreported usage is counted from the relayed
 * bytes.
 */
export function chargeOf(priced: PricedRequest, outcome: ChatOutcome): Charge | undefined {
  const { usage: reported, delivered, has_content, is_complete, is_abandoned, writes_for_an_hour } = outcome;
  if (!has_content && !is_complete && !is_abandoned) return undefined;
  const { input_tokens_counted } = priced;
  const counting = { input_tokens_counted, is_complete, writes_for_an_hour };
  const { usage: whole, is_counted } = chargedUsage(reported, delivered, counting);
  const unreported = priced.hosted?.unreported;
  const usage = unreported && !whole.tool_calls ? { ...whole, tool_calls: unreported } : whole;
  return { usage, counted_here: is_counted || outcome.is_counted === true, ...chargeFor(priced, usage) };
}

/** Returns what this usage costs. */
export function chargeFor({ pricing, hosted }: PricedRequest, usage: Usage): Pick<Charge, 'units' | 'cost'> {
  const { tool_calls: counted, ...tokens } = usage;
  const tool_calls = paidToolCalls(counted, hosted);
  const units = withoutUnused(unitsOf(pricing, { ...tokens, ...(tool_calls && { tool_calls }) }));
  return { units, cost: costOf(pricing, units) };
}

/** Most calls use none of the tools that their model has prices for. */
function withoutUnused(units: Units): Units {
  const used = { ...units };
  for (const unit of use_units) if (used[unit] === '0') delete used[unit];
  return used;
}

/** The caller's charge and the upstream's; null if the latter is unknown or no upstream was called. */
export type CallSettlement = {
  charged: Money;
  upstream_cost: Money | null;
  /** The database is away: both will be so when it is back. */
  is_journaled?: boolean;
};

/** The parts of the app that settling a call takes. */
export type SettleParts = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly holds: Holds;
  readonly journal: Journal;
  readonly stopping: AbortSignal;
};

/** A call, as far as its settlement has to know it. */
export type SettledCall = {
  caller: { account: Pick<PricedRequest['caller']['account'], 'id' | 'currency'> };
  request_id: string;
  model: Pick<PricedRequest['model'], 'id'>;
};

/** The end of a call. `hold`: the request of its hold, if that is known. Without a charge the hold is released. */
export type Ending = { hold?: HoldRequest; charge?: Charge | undefined; upstream?: UpstreamUse | undefined };

/**
 * Ends the hold of a call, once: with its charge, first from the hold, the rest from what is available;
 * or without one; and books what the upstream charges for it along with that.
 */
export async function settle(parts: SettleParts, priced: SettledCall, ending: Ending): Promise<CallSettlement> {
  const { hold, charge, upstream } = ending;
  const { caller, request_id } = priced;
  const ref = { account_id: caller.account.id, ref: request_id };
  // A fallback's end names it, and the route that it came from.
  const model = upstream && hold?.model !== priced.model.id ? priced.model.id : undefined;
  const end: CloseRequest = charge
    ? { ...ref, cost: charge.cost, beyond_hold: true, units: charge.units, upstream, model }
    : { ...ref, cost: null, upstream, model };
  const given_up = new AbortController();
  const closing = retryWhileUnavailable(() => parts.holds.settle(end, hold), given_up.signal);
  const settling = closing.then((closed) => booked(parts.log, priced, charge, closed));
  try {
    return await inTime(settling, parts.stopping);
  } catch (error) {
    if (isUnavailable(error)) return await settleLater(parts, priced, { charge, end, hold, settling, given_up });
    tellUnsettled(parts.log, priced, charge, error);
    throw error;
  }
}

/** Nobody waits longer for the end of an answer because the database is away. */
const settle_wait_ms = 3_000;
const settle_wait_stopping_ms = 1_500;

class Late extends Error {
  override name = 'Late';
  readonly code = 'ETIMEDOUT'; // the database is unavailable, as far as anybody knows
}

/** Rejects with Late when that takes too long. */
async function inTime<T>(settling: Promise<T>, stopping: AbortSignal): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const wait_ms = stopping.aborted ? settle_wait_stopping_ms : settle_wait_ms;
  const timer = setTimeout(() => reject(new Late('the database does not settle in time')), wait_ms);
  try {
    return await Promise.race([settling, late]);
  } finally {
    clearTimeout(timer);
  }
}

type Unsettled = {
  charge: Charge | undefined;
  end: CloseRequest;
  hold: HoldRequest | undefined;
  settling: Promise<CallSettlement>;
  given_up: AbortController;
};

/**
 * The end goes to the journal, from which it is settled when the database is back, whatever becomes of this process:
 * so the caller has the answer as if it were settled. A release goes there too: else its money stays held for an hour.
 */
async function settleLater(parts: SettleParts, priced: SettledCall, unsettled: Unsettled): Promise<CallSettlement> {
  const { charge, end, hold, settling, given_up } = unsettled;
  const reported = settling.catch((error: unknown) => {
    if (!given_up.signal.aborted) tellUnsettled(parts.log, priced, charge, error);
    throw error;
  });
  reported.catch(() => undefined); // it may end while the journal is written, when nobody waits for it
  const upstream_cost = end.upstream && end.upstream.basis !== 'unknown' ? end.upstream.cost : null;
  try {
    await parts.journal.write([unsettledEntry(parts.clock, end, hold)]);
  } catch (error) {
    const ref = { account_id: end.account_id, ref: end.ref, cost: exact(charge?.cost ?? 0n) };
    parts.log.error({ ...ref, err: error }, 'the end of a chat call could not be written to the journal');
    return reported;
  }
  given_up.abort();
  return { charged: charge?.cost ?? 0n, upstream_cost, is_journaled: true };
}

/** Logs a lost charge, so that an operator can book it manually. */
function tellUnsettled(
  log: Logger,
  { caller, request_id, model }: SettledCall,
  charge: Charge | undefined,
  err: unknown,
) {
  const { id, currency } = caller.account;
  const facts = { account_id: id, ref: request_id, model: model.id, cost: exact(charge?.cost ?? 0n), currency, err };
  log.error(facts, 'a chat call could not be settled: its hold is released later, and its cost is lost');
}

function booked(
  log: Logger,
  { caller, request_id, model }: SettledCall,
  charge: Charge | undefined,
  closed: CloseAnswer,
): CallSettlement {
  const lost = (charge?.cost ?? 0n) - closed.charged;
  if (lost > 0n) {
    const ref = { account_id: caller.account.id, ref: request_id };
    const facts = { ...ref, model: model.id, loss: exact(lost), currency: caller.account.currency };
    const why =
      closed.state === 'settled'
        ? 'cost more than its account has, or its key may spend'
        : 'was settled after its hold was released or lost';
    log.error(facts, `a chat call ${why}: the difference is lost`);
  }
  return { charged: closed.charged, upstream_cost: closed.upstream_cost };
}
