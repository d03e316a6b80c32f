import type { Logger } from 'pino';
import type { Clock } from '../lib/clock.ts';
import type { Db } from '../db/database.ts';
import { findAccount } from '../accounts/accounts.ts';
import { audit } from '../accounts/audit.ts';
import type { Answer, Endpoint, PublicCall, RequestHead } from '../http/endpoint.ts';
import { findStripeSession, paidSessionId, readEvent, StripeError, type StripeSession } from '../billing/stripe.ts';
import type { StripeConfig, Config } from '../config.ts';
import { ApiError } from '../errors.ts';
import { assert } from '../lib/assert.ts';
import { isId } from '../lib/ids.ts';
import { credit } from '../money/ledger.ts';
import { exact, money_max } from '../money/money.ts';
import { publishTopUp } from '../webhooks/events.ts';

/** The parts of the app that crediting payments takes. */
type Parts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Logger;
  readonly config: Pick<Config, 'stripe'>;
};

/** An event names one payment page, in 3 to 10 kB. */
const body_limit_bytes = 256_000;

/**
 * Stripe calls here when something was paid. The event is believed to come from Stripe by its signature, and only
 * names the payment page: what was paid is asked of Stripe. The page's id is the ref in the ledger, so however often
 * and in how many ways Stripe tells, it is credited once.
 */
export const stripe_webhook: Endpoint<Parts> = {
  method: 'POST',
  path: '/stripe/webhook',
  public: true,
  per_minute_per_address: 300, // what is refused comes again
  body_limit_bytes,
  raw_body: true, // nothing is parsed that Stripe has not signed
  docs: {
    tag: 'Dashboard',
    summary: 'Receive a payment event from Stripe',
    body: { schema: { type: 'object' }, required: false },
    responses: { 200: { description: 'Noticed.' } },
    hidden: true,
  },
  admit: checkHead,
  handle: handleEvent,
};

function checkHead({ config }: Parts, { headers }: RequestHead): void {
  if (!config.stripe) throw new ApiError('not_found', 'There is nothing at POST /stripe/webhook.');
  if (headers['stripe-signature'] === undefined) throw unsigned();
}

function unsigned(): ApiError {
  return new ApiError('invalid_request', 'The signature is not by Stripe, or is too old.');
}

async function handleEvent(app: Parts, { body_bytes, headers }: PublicCall): Promise<Answer> {
  const { stripe } = app.config;
  assert(stripe, 'a call without Stripe was admitted');
  const signature = [headers['stripe-signature']].flat()[0];
  const event = readEvent(body_bytes, signature, stripe.webhook_secret, app.clock.now());
  if (!event) throw unsigned();
  const id = paidSessionId(event);
  if (id === undefined) return { status: 200, body: { received: true } };
  const session = await sessionOf(app, stripe, id);
  if (session.amount !== undefined && session.amount > money_max) throw await tooMuch(app, session);
  return { status: 200, body: { received: true, credited: await creditSession(app, session) } };
}

/** An answer of 503 makes Stripe tell again, for three days. */
async function sessionOf({ log }: Parts, stripe: StripeConfig, id: string): Promise<StripeSession> {
  try {
    return await findStripeSession(stripe, id);
  } catch (error) {
    if (!(error instanceof StripeError)) throw error;
    log.error({ session_id: id, reason: error.message }, 'a payment could not be looked up');
    throw new ApiError('unavailable', 'The payment cannot be looked up now.');
  }
}

/** No balance holds so much. Stripe repeats what is refused for three days: time for an operator to look at it. */
async function tooMuch({ db, clock, log }: Parts, { id, account_id }: StripeSession): Promise<ApiError> {
  const reason = 'the amount is more than a balance can hold';
  const details = { reason, account_id: account_id ?? null };
  const audit_entry = { by: 'Stripe', action: 'billing.payment_refused', subject: id, details };
  log.error({ session_id: id, account_id, reason }, 'a payment was not credited');
  await audit(db, { ...audit_entry, now: new Date(clock.now()) });
  return new ApiError('invalid_request', 'amount_total is more than a balance can hold.', { param: 'amount_total' });
}

/** Returns true if the account has got it, now or before. What cannot be credited is written down for the operator. */
async function creditSession({ db, clock, log }: Parts, session: StripeSession): Promise<boolean> {
  const { id, account_id, amount, currency, is_ours, is_paid } = session;
  if (!is_ours || !is_paid) return false;
  const account = isId('acct', account_id ?? '') ? await findAccount(db, account_id ?? '') : undefined;
  const now = new Date(clock.now());
  const refuse = async (reason: string) => {
    log.error({ session_id: id, account_id, reason }, 'a payment was not credited');
    const details = { reason, account_id: account_id ?? null };
    const audit_entry = { by: 'Stripe', action: 'billing.payment_refused', subject: id, details };
    await audit(db, { ...audit_entry, account_id: account?.id, now });
    return false;
  };
  if (!account) return refuse('there is no such account');
  if (currency !== account.currency) return refuse(`paid in ${currency}, the account has ${account.currency}`);
  if (amount === undefined) return refuse('Stripe tells no amount');
  const { id: payer } = account;
  const movement = { account_id: payer, type: 'topup', amount, ref: `stripe ${id}`, reason: 'card payment' } as const;
  const outcome = await db.tx(async (tx) => {
    const answer = await credit(tx, movement, now);
    const details = { amount: exact(amount), currency, ref: movement.ref };
    const audit_entry = { by: 'Stripe', action: 'billing.payment', subject: id, details };
    if (answer.outcome === 'booked') {
      await audit(tx, { ...audit_entry, account_id: payer, now });
      await publishTopUp(tx, account, { ...movement, available: answer.available }, now);
    }
    return answer.outcome;
  });
  return outcome === 'booked' || outcome === 'exists' || refuse(outcome);
}
