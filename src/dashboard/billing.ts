import { randomUUID } from 'node:crypto';
import type { Config } from '../config.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Db } from '../db/database.ts';
import { findThreshold, setThreshold } from '../billing/alerts.ts';
import { findDetails, no_details, setDetails, type BillingDetails } from '../billing/details.ts';
import { createCheckout, StripeError, toMinorUnits } from '../billing/stripe.ts';
import type { Account } from '../accounts/accounts.ts';
import { ApiError, invalidField } from '../errors.ts';
import { balanceOf } from '../money/ledger.ts';
import { balanceView, exact, million, money_max, parseMoney, type Money } from '../money/money.ts';
import { auditAction } from './audit-action.ts';
import { account_endpoint } from './page.ts';
import type { BillingView } from './views/billing.ts';

/** Bounds of one payment by card, in any currency: enough for most, too little to be of use to a thief. */
const smallest: Money = 1n * million;
const largest: Money = 10_000n * million;

/** The account's billing: its details, its ways to top up, its balance alert. */
export const get_billing = account_endpoint('GET', '/billing', 'read', async (app, { account }) => {
  return { status: 200, body: await billingView(app, account) };
});

async function billingView(
  { db, catalog, config }: { db: Db; catalog: CatalogHolder; config: Config },
  { id, currency }: Account,
): Promise<BillingView> {
  const [details, alert] = await Promise.all([findDetails(db, id), alertOf(db, id, currency)]);
  const { top_up_text } = catalog.current.settings;
  return {
    details: details ?? no_details,
    alert,
    top_up: config.stripe
      ? { by: 'card', smallest: exact(smallest), largest: exact(largest) }
      : { by: 'operator', text: top_up_text ?? null },
  };
}

/** Returns the account's balance alert, and whether the balance is below it. */
export async function alertOf(db: Db, account_id: string, currency: string): Promise<BillingView['alert']> {
  const [threshold, balance] = await Promise.all([findThreshold(db, account_id), balanceOf(db, account_id)]);
  if (threshold === undefined || !balance) return { threshold: null, is_low: false };
  return { threshold: balanceView(threshold, currency), is_low: balance.amount - balance.held < threshold };
}

const lengths_max = { company: 200, address: 400, postal_code: 20, city: 100, country: 2, tax_id: 40, email: 254 };

/** Sets the details for invoices from now on. */
export const set_details = account_endpoint('PUT', '/billing/details', 'billing', async (app, call) => {
  const { account, body } = call;
  const details = readDetails(body);
  await setDetails(app.db, account.id, details, new Date(app.clock.now()));
  await auditAction(app, call, 'billing.details', account.id, details);
  return { status: 200, body: await billingView(app, account) };
});

function readDetails(body: Record<string, unknown> | undefined): BillingDetails {
  const read = (name: keyof typeof lengths_max): string => {
    const value = body?.[name] ?? '';
    const text = typeof value === 'string' ? value.trim().replaceAll('\r\n', '\n') : undefined;
    if (text !== undefined && text.length <= lengths_max[name] && !text.includes('\0') && text.isWellFormed())
      return text;
    throw invalidField(name, `${name} must be a text of at most ${lengths_max[name]} characters.`);
  };
  const details = {
    company: read('company'),
    address: read('address'),
    postal_code: read('postal_code'),
    city: read('city'),
    country: read('country').toUpperCase(),
    tax_id: read('tax_id'),
    email: read('email'),
  };
  if (!/^([A-Z]{2})?$/.test(details.country)) throw invalidField('country', 'country must be two letters, such as PL.');
  if (!/^([^\s@<>]+@[^\s@<>]+)?$/.test(details.email))
    throw invalidField('email', 'email must be an address, or empty.');
  return details;
}

/** Below how much available the account wants to be told; null for never. */
export const set_alert = account_endpoint('PUT', '/billing/alert', 'billing', async (app, call) => {
  const { account, body } = call;
  const value = body?.['threshold'];
  const threshold = typeof value === 'string' ? parseMoney(value.trim()) : value === null ? null : undefined;
  if (threshold === undefined || (threshold !== null && (threshold <= 0n || threshold > money_max))) {
    throw invalidField('threshold', 'threshold must be an amount above zero such as "5.00"; null for no alert.');
  }
  await setThreshold(app.db, account.id, threshold, new Date(app.clock.now()));
  await auditAction(app, call, 'billing.alert', account.id, {
    threshold: threshold === null ? null : exact(threshold),
  });
  return { status: 200, body: await billingView(app, account) };
});

/** Answers the address of a payment page; the money is credited when Stripe tells that it was paid. */
export const top_up = account_endpoint('POST', '/billing/top-up', 'billing', async (app, call) => {
  const { account, body, person } = call;
  const { stripe } = app.config;
  if (!stripe) throw new ApiError('not_found', 'Cards are not accepted here. Ask the operator of this service.');
  const value = body?.['amount'];
  const amount = typeof value === 'string' ? parseMoney(value.trim()) : undefined;
  const { id, name, currency } = account;
  if (amount === undefined || amount < smallest || amount > largest || toMinorUnits(amount, currency) === undefined) {
    const range = `from ${smallest / million} to ${largest / million} ${currency}`;
    throw invalidField('amount', `amount must be ${range}, in whole units of its coins.`);
  }
  const details = await findDetails(app.db, id);
  const email = details?.email || (person.user.email.endsWith('.invalid') ? '' : person.user.email);
  const back = `${app.base_url()}/billing`;
  try {
    const url = await createCheckout(stripe, {
      account_id: id,
      account_name: name,
      amount,
      currency,
      email: email || undefined,
      success_url: `${back}?paid=yes`,
      cancel_url: `${back}?paid=no`,
      idempotency_key: randomUUID(),
    });
    await auditAction(app, call, 'billing.top_up', id, { amount: exact(amount), currency });
    return { status: 200, body: { url } };
  } catch (error) {
    if (!(error instanceof StripeError)) throw error;
    app.log.error({ account_id: id, reason: error.message }, 'a payment page could not be made');
    throw new ApiError('unavailable', 'The payment page cannot be opened now. Nothing was charged; try again later.');
  }
});
