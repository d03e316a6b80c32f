import { createHmac, timingSafeEqual } from 'node:crypto';
import type { StripeConfig } from '../config.ts';
import { isRecord } from '../lib/is-record.ts';
import { million, type Money } from '../money/money.ts';

/** A payment page of Stripe's, and what has become of it. */
export type StripeSession = {
  id: string;
  /** Our account id, from the request for the page; Stripe returns it. */
  account_id: string | undefined;
  /** False: another program made it with the same Stripe account. */
  is_ours: boolean;
  is_paid: boolean;
  /** Undefined where a currency has no such amount here. */
  amount: Money | undefined;
  /** Three capital letters. */
  currency: string;
};

const timeout_ms = 20_000;
const answer_bytes_max = 1_000_000;
const marker = 'medley';

/** Stripe says no, or cannot be reached; the message is for the log and the operator, never a secret. */
export class StripeError extends Error {
  override name = 'StripeError';
}

export type Checkout = {
  account_id: string;
  account_name: string;
  amount: Money;
  currency: string;
  email: string | undefined;
  success_url: string;
  cancel_url: string;
  /** The same key, the same page: a repeated request makes no second one. */
  idempotency_key: string;
};

/** Asks Stripe for a payment page and returns its address. Throws StripeError. */
export async function createCheckout(config: StripeConfig, checkout: Checkout): Promise<string> {
  const { account_id, account_name, amount, currency, email, success_url, cancel_url, idempotency_key } = checkout;
  const unit_amount = toMinorUnits(amount, currency);
  if (unit_amount === undefined) throw new StripeError(`an amount of ${amount} millionths is none in ${currency}`);
  const form = new URLSearchParams({
    mode: 'payment',
    client_reference_id: account_id,
    'metadata[service]': marker,
    'payment_intent_data[metadata][account_id]': account_id,
    'line_items[0][quantity]': '1',
    'line_items[0][price_data][currency]': currency.toLowerCase(),
    'line_items[0][price_data][unit_amount]': String(unit_amount),
    'line_items[0][price_data][product_data][name]': `Balance of ${account_name}`,
    success_url,
    cancel_url,
    ...(email !== undefined && { customer_email: email }),
  });
  const json = await call(config, 'POST', '/v1/checkout/sessions', {
    body: form.toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'idempotency-key': idempotency_key },
  });
  const { url } = json;
  if (typeof url === 'string' && URL.canParse(url)) return url;
  throw new StripeError('Stripe answered no address of a payment page');
}

/** Reads a payment page from Stripe: the only source of credits. Throws StripeError. */
export async function findStripeSession(config: StripeConfig, id: string): Promise<StripeSession> {
  const json = await call(config, 'GET', `/v1/checkout/sessions/${encodeURIComponent(id)}`);
  const { amount_total, client_reference_id, metadata } = json;
  const currency = typeof json['currency'] === 'string' ? json['currency'].toUpperCase() : '';
  if (json['id'] !== id) throw new StripeError(`Stripe answered another session than ${id}`);
  return {
    id,
    account_id: typeof client_reference_id === 'string' ? client_reference_id : undefined,
    is_ours: isRecord(metadata) && metadata['service'] === marker,
    is_paid: json['payment_status'] === 'paid',
    amount: Number.isSafeInteger(amount_total) ? fromMinorUnits(BigInt(Number(amount_total)), currency) : undefined,
    currency,
  };
}

type Sending = { body?: string; headers?: Record<string, string> };

async function call(
  { secret_key, api_url }: StripeConfig,
  method: 'GET' | 'POST',
  path: string,
  { body, headers = {} }: Sending = {},
): Promise<Record<string, unknown>> {
  const { Agent, request } = await import('undici'); // 70 ms and 20 MB, which few commands need
  const dispatcher = new Agent({ allowH2: false });
  try {
    const answer = await request(api_url + path, {
      dispatcher,
      method,
      headers: { authorization: `Bearer ${secret_key}`, ...headers },
      signal: AbortSignal.timeout(timeout_ms),
      ...(body !== undefined && { body }),
    });
    const text = await readText(answer.body);
    const json: unknown = JSON.parse(text);
    if (answer.statusCode === 200 && isRecord(json)) return json;
    throw new StripeError(`Stripe answered ${answer.statusCode}${reasonIn(json)}`);
  } catch (error) {
    if (error instanceof StripeError) throw error;
    throw new StripeError(`Stripe cannot be reached: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    void dispatcher.close();
  }
}

async function readText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size_bytes = 0;
  for await (const chunk of body) {
    size_bytes += chunk.length;
    if (size_bytes > answer_bytes_max) throw new StripeError('the answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Type and code only: messages may repeat part of a key. */
function reasonIn(json: unknown): string {
  const error = isRecord(json) ? json['error'] : undefined;
  if (!isRecord(error)) return '';
  const parts = [error['type'], error['code'], error['param']].filter((part) => typeof part === 'string');
  return parts.length === 0 ? '' : `: ${parts.join(', ')}`;
}

/** Maximum age of a signature: a recorded request cannot be sent again later. */
const signature_age_s_max = 300;

/**
 * The event in a webhook's body, if Stripe signed these very bytes with our secret within five minutes; else
 * undefined. `header` is `t=…,v1=…`, with several v1 while secrets are changed.
 */
export function readEvent(
  body: Buffer,
  header: string | undefined,
  secret: string,
  now_ms: number,
): Record<string, unknown> | undefined {
  const parts = (header ?? '').split(',').map((part) => part.trim().split('=', 2));
  const at = parts.find(([name]) => name === 't')?.[1] ?? '';
  if (!/^\d{1,12}$/.test(at) || Math.abs(now_ms / 1000 - Number(at)) > signature_age_s_max) return undefined;
  const expected = createHmac('sha256', secret).update(`${at}.`).update(body).digest();
  const is_signed = parts.some(([name, value = '']) => {
    const signature = Buffer.from(value, 'hex');
    return name === 'v1' && signature.length === expected.length && timingSafeEqual(signature, expected);
  });
  if (!is_signed) return undefined;
  try {
    const event: unknown = JSON.parse(body.toString('utf8'));
    return isRecord(event) ? event : undefined;
  } catch {
    return undefined; // signed, and still nothing that we could act on
  }
}

/** The page's id in an event that tells that one was paid; undefined for all other events. */
export function paidSessionId(event: Record<string, unknown>): string | undefined {
  const { type, data } = event;
  if (type !== 'checkout.session.completed' && type !== 'checkout.session.async_payment_succeeded') return undefined;
  const object = isRecord(data) ? data['object'] : undefined;
  const id = isRecord(object) ? object['id'] : undefined;
  return typeof id === 'string' && /^cs_\w{1,250}$/.test(id) ? id : undefined;
}

/** Stripe counts in the smallest unit of a currency; for all others that is a hundredth. */
const whole = new Set('BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'.split(' '));
const thousandths = new Set('BHD JOD KWD OMR TND'.split(' '));

function millionthsPerUnit(currency: string): bigint {
  if (whole.has(currency)) return million;
  return thousandths.has(currency) ? million / 1_000n : million / 100n;
}

/** Converts an amount into minor units; undefined if it is not a whole number of them. */
export function toMinorUnits(amount: Money, currency: string): bigint | undefined {
  const size = millionthsPerUnit(currency);
  return amount % size === 0n ? amount / size : undefined;
}

function fromMinorUnits(amount: bigint, currency: string): Money | undefined {
  return amount > 0n ? amount * millionthsPerUnit(currency) : undefined;
}
