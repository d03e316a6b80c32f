import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Session = Record<string, unknown> & { id: string };

/** Stripe as far as payment pages go: it takes forms as it documents them, tells what it made, and signs events. */
export type StripeImitation = {
  url: string;
  /** Every page that was asked for, newest last, with the form as it came. */
  sessions: Session[];
  forms: URLSearchParams[];
  /** Answers the next request with this status instead. */
  failNext(status: number): void;
  pay(session: Session): void;
  close(): Promise<void>;
};

export async function startStripe(secret_key: string): Promise<StripeImitation> {
  const sessions: Session[] = [];
  const forms: URLSearchParams[] = [];
  const stripe_sessions = new Map<string, Session>();
  let failing: number | undefined;
  const server = createServer((request, response) => {
    void (async () => {
      const text = await bodyOf(request);
      const answer = (status: number, json: object) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json));
      if (failing !== undefined) {
        const status = failing;
        failing = undefined;
        return answer(status, { error: { type: 'api_error', message: 'sk_test_leak', code: 'some_code' } });
      }
      if (request.headers.authorization !== `Bearer ${secret_key}`) {
        return answer(401, { error: { type: 'invalid_request_error', message: 'Invalid API Key' } });
      }
      if (request.method === 'GET') {
        const paid_session = sessions.find(({ id }) => request.url === `/v1/checkout/sessions/${id}`);
        return paid_session
          ? answer(200, paid_session)
          : answer(404, { error: { type: 'invalid_request_error', code: 'resource_missing' } });
      }
      const key = String(request.headers['idempotency-key'] ?? '');
      const form = new URLSearchParams(text);
      forms.push(form);
      const wrong = problemWith(form, request);
      if (wrong !== undefined) return answer(400, { error: { type: 'invalid_request_error', param: wrong } });
      const session = stripe_sessions.get(key) ?? sessionOf(form, sessions.length);
      if (!stripe_sessions.has(key)) sessions.push(session);
      stripe_sessions.set(key, session);
      return answer(200, session);
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    sessions,
    forms,
    failNext: (status) => (failing = status),
    pay: (session) => Object.assign(session, { payment_status: 'paid', status: 'complete' }),
    close: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

function problemWith(form: URLSearchParams, { url, headers }: IncomingMessage): string | undefined {
  if (url !== '/v1/checkout/sessions') return 'url';
  if (headers['content-type'] !== 'application/x-www-form-urlencoded') return 'content-type';
  if (form.get('mode') !== 'payment') return 'mode';
  if (!/^[a-z]{3}$/.test(form.get('line_items[0][price_data][currency]') ?? '')) return 'currency';
  if (!/^[1-9]\d*$/.test(form.get('line_items[0][price_data][unit_amount]') ?? '')) return 'unit_amount';
  if (form.get('line_items[0][quantity]') !== '1') return 'quantity';
  return URL.canParse(form.get('success_url') ?? '') ? undefined : 'success_url';
}

function sessionOf(form: URLSearchParams, index: number): Session {
  const id = `cs_test_${index}a1b2`;
  return {
    id,
    object: 'checkout.session',
    url: `https://checkout.stripe.example/c/pay/${id}`,
    client_reference_id: form.get('client_reference_id'),
    metadata: { service: form.get('metadata[service]') },
    amount_total: Number(form.get('line_items[0][price_data][unit_amount]')),
    currency: form.get('line_items[0][price_data][currency]'),
    payment_status: 'unpaid',
    status: 'open',
  };
}

/** An event as Stripe posts it: the body, and the header that signs these very bytes. */
export function signedEvent(
  secret: string,
  event: object,
  { at_ms = Date.now(), scheme = 'v1' } = {},
): { body: string; headers: Record<string, string> } {
  const body = JSON.stringify(event, null, 2);
  const at = Math.floor(at_ms / 1000);
  const signature = createHmac('sha256', secret).update(`${at}.${body}`).digest('hex');
  const header = `t=${at},${scheme}=${signature},v0=${'0'.repeat(64)}`;
  return { body, headers: { 'content-type': 'application/json; charset=utf-8', 'stripe-signature': header } };
}
