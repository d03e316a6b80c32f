import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BillingView, LedgerLine } from '../../src/dashboard/views/billing.ts';
import { credit } from '../../src/money/ledger.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { memberOf, ownerOfNew, type Someone } from './people.ts';
import { signedEvent, startStripe, type Session, type StripeImitation } from './stripe-imitation.ts';

const secret_key = 'sk_test_medley';
const webhook_secret = 'whsec_of_stripe';

let test: TestApp;
let stripe: StripeImitation;
let owner: Someone;
let stranger: Someone;
let biller: Someone;
let viewer: Someone;
let client: Client;

beforeAll(async () => {
  stripe = await startStripe(secret_key);
  test = await startTestApp({
    yaml: 'version: 1\nbilling: { top_up_text: "Transfer to PL61 1090 1014" }\n',
    env: { STRIPE_SECRET_KEY: secret_key, STRIPE_WEBHOOK_SECRET: webhook_secret, STRIPE_API_URL: stripe.url },
  });
  [owner, stranger] = await Promise.all([ownerOfNew(test), ownerOfNew(test, 'Foreign')]);
  [biller, viewer] = await Promise.all([memberOf(test, owner, 'billing'), memberOf(test, owner, 'viewer')]);
  client = await test.client({ account_id: owner.account_id });
  const body = (prompt: string) => ({ model: 'sandbox/image', input: { prompt, width: 64, height: 64 } });
  await client.call('POST', '/v1/generate?wait=60', body('one'));
  await client.call('POST', '/v1/generate?wait=60', body('two [[fail]]'));
  const chat = { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 20 };
  await client.call('POST', '/v1/chat/completions', chat);
  const correction = {
    account_id: owner.account_id,
    type: 'adjustment',
    amount: -1_000n,
    ref: '=ref',
    reason: '=1+1',
  } as const;
  await credit(test.app.db, correction, new Date());
});

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
  await stripe.close();
});

type Lines = { data: LedgerLine[]; has_more: boolean };

async function ledger(query = '', who = owner): Promise<Lines> {
  const { status, json } = await who.get(`${who.base}/ledger${query}`);
  expect(status).toBe(200);
  return json as Lines;
}

const available = async () => (await client.call('GET', '/v1/balance')).json.available.exact;

describe('the ledger', () => {
  it('is that of the API, with causes and the balance after each entry', async () => {
    const { data } = await ledger('?limit=100');
    const { json } = await client.call('GET', '/v1/balance/transactions?limit=100');
    expect(data.length).toBeGreaterThan(6);
    expect(
      data.map(({ key, balance_after: _after, cause: _cause, booked_by: _by, invoice: _invoice, ...line }) => {
        return { ...line, key_id: key?.id ?? null };
      }),
    ).toEqual(json.data.map((line) => ({ ...line })));
    expect(new Set(data.map(({ type, cause }) => `${type} ${cause}`))).toEqual(
      new Set([
        'topup null',
        'hold task',
        'charge task',
        'release task',
        'hold chat',
        'charge chat',
        'adjustment null',
      ]),
    );
    const balance = await owner.get(`${owner.base}/balance`);
    expect(balance.json).toMatchObject({ balance: data[0]?.balance_after, available: data[0]?.available_after });
    expect(data.find(({ type }) => type === 'charge')?.key).toEqual({ id: client.key_id, name: 'Test' });
  });

  it('is paged by cursor, by type and by time', async () => {
    const all = await ledger('?limit=100');
    const first = await ledger('?limit=3');
    const rest = await ledger(`?limit=100&after=${first.data.at(-1)?.id}`);
    expect([...first.data, ...rest.data]).toEqual(all.data);
    expect([first.has_more, rest.has_more]).toEqual([true, false]);
    expect((await ledger('?type=charge')).data.map(({ type }) => type)).toEqual(['charge', 'charge']);
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
    expect((await ledger(`?from=${tomorrow}`)).data).toEqual([]);
    expect((await ledger(`?limit=100&to=${tomorrow}`)).data).toEqual(all.data);
    for (const query of ['?type=x', '?after=1', '?from=x', '?limit=0']) {
      expect((await owner.get(`${owner.base}/ledger${query}`)).status).toBe(400);
    }
  });

  it('is a file that adds up and in which nothing is a formula', async () => {
    const answer = await owner.get(`${owner.base}/ledger.csv`);
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const [header = '', ...lines] = answer.text
      .replace(/^\uFEFF/, '')
      .trimEnd()
      .split('\r\n');
    const at = (name: string) => header.split(',').indexOf(name);
    const rows = lines.map((line) => line.split(','));
    const sum = rows
      .filter((row) => ['topup', 'charge', 'adjustment'].includes(row[at('type')] ?? ''))
      .reduce((total, row) => total + BigInt((row[at('amount')] ?? '').replace('.', '')), 0n);
    expect(`${sum / 1_000_000n}.${String(sum % 1_000_000n).padStart(6, '0')}`).toBe(rows[0]?.[at('balance_after')]);
    const correction = rows.find((row) => row[at('type')] === 'adjustment');
    expect([correction?.[at('reference')], correction?.[at('reason')]]).toEqual(["'=ref", "'=1+1"]);
    expect(correction?.[at('amount')]).toBe('-0.001000');
  });

  it('is visible to nobody else', async () => {
    for (const path of ['ledger', 'ledger.csv', 'billing']) {
      const seen = await Promise.all([
        stranger.get(`${owner.base}/${path}`),
        stranger.get(`/dash/accounts/acct_00000000000000000000000000/${path}`),
      ]);
      expect(seen.map(({ status }) => status)).toEqual([404, 404]);
      expect((await viewer.get(`${viewer.base}/${path}`)).status).toBe(200);
    }
    expect((await ledger('', stranger)).data).toHaveLength(1);
  });
});

const billing = async (who = owner) => (await who.get(`${who.base}/billing`)).json as BillingView;

describe('billing details', () => {
  const details = {
    company: 'Zażółć sp. z o.o.',
    address: 'ul. Długa 5\nlok. 7',
    postal_code: '00-001',
    city: 'Łódź',
    country: 'pl',
    tax_id: 'PL 526-10-40-828',
    email: 'faktury@example.com',
  };

  it('are changed by members with the right to, and recorded', async () => {
    expect((await billing()).details.company).toBe('');
    const answer = await biller.send('PUT', `${biller.base}/billing/details`, details);
    expect(answer.status).toBe(200);
    expect((await billing()).details).toEqual({ ...details, country: 'PL' });
    expect((await billing(stranger)).details.company).toBe('');
    const entries = await test.app.db.query(`select action from audit_entries where user_id = $1`, [biller.user_id]);
    expect(entries).toEqual([{ action: 'billing.details' }]);
  });

  it.each([
    [{ ...details, country: 'Poland' }, 'country'],
    [{ ...details, country: '12' }, 'country'],
    [{ ...details, company: 'x'.repeat(201) }, 'company'],
    [{ ...details, company: 7 }, 'company'],
    [{ ...details, city: 'a\0b' }, 'city'],
    [{ ...details, email: 'nobody' }, 'email'],
  ])('are refused as %j', async (body, param) => {
    const answer = await owner.send('PUT', `${owner.base}/billing/details`, body);
    expect(answer).toMatchObject({ status: 400, json: { error: { param } } });
  });

  it.each(['details', 'alert', 'top-up'])('are protected: a viewer or a developer cannot change %s', async (path) => {
    const developer = await memberOf(test, owner, 'developer');
    const method = path === 'top-up' ? 'POST' : 'PUT';
    for (const who of [viewer, developer]) {
      expect((await who.send(method, `${who.base}/billing/${path}`, { ...details, amount: '5' })).status).toBe(403);
    }
    expect((await stranger.send(method, `${owner.base}/billing/${path}`, details)).status).toBe(404);
  });
});

describe('a balance alert', () => {
  const setAlert = (threshold: unknown) => owner.send('PUT', `${owner.base}/billing/alert`, { threshold });

  it('says whether the balance is below its amount, until there is none', async () => {
    expect((await setAlert('5')).json).toMatchObject({ alert: { threshold: { amount: '5.00' }, is_low: false } });
    expect((await setAlert('5000.00')).json).toMatchObject({ alert: { is_low: true } });
    expect((await setAlert(null)).json).toMatchObject({ alert: { threshold: null, is_low: false } });
  });

  it.each(['0', '-1', 'x', 5, undefined, '1.0000001', '9999999999999'])('is refused at %j', async (threshold) => {
    expect(await setAlert(threshold)).toMatchObject({ status: 400, json: { error: { param: 'threshold' } } });
  });
});

describe('a top-up', () => {
  const event = (session: { id: string }, type = 'checkout.session.completed') => {
    return { id: 'evt_1', object: 'event', type, data: { object: session } };
  };
  const post = ({ body, headers }: ReturnType<typeof signedEvent>) =>
    fetch(`${test.url}/stripe/webhook`, { method: 'POST', body, headers });
  const tell = async (session: Session, type?: string) => {
    const answer = await post(signedEvent(webhook_secret, event(session, type)));
    return { status: answer.status, json: await answer.json() };
  };

  /** A page that this person has asked for. */
  async function page(amount: string, who = biller): Promise<Session> {
    const answer = await who.post(`${who.base}/billing/top-up`, { amount });
    expect(answer.status).toBe(200);
    const session = stripe.sessions.at(-1);
    if (!session) throw new Error('no page was made');
    expect(answer.json).toEqual({ url: session['url'] });
    return session;
  }

  const change = async (work: () => Promise<unknown>) => {
    const before = BigInt((await available()).replace('.', ''));
    await work();
    return BigInt((await available()).replace('.', '')) - before;
  };

  it('leads to a page with the amount and is credited once when it is paid, however often it is reported', async () => {
    expect((await billing()).top_up).toEqual({ by: 'card', smallest: '1.000000', largest: '10000.000000' });
    const session = await page('25.50');
    const form = stripe.forms.at(-1);
    expect(form?.get('line_items[0][price_data][unit_amount]')).toBe('2550');
    expect(form?.get('success_url')).toBe(`${test.url}/billing?paid=yes`);
    expect(form?.get('customer_email')).toBe('faktury@example.com');
    expect(await change(() => tell(session))).toBe(0n); // not paid yet
    stripe.pay(session);
    const answers: unknown[] = [];
    const deliver = () => tell(session).then((answer) => answers.push(answer));
    expect(await change(() => Promise.all([deliver(), deliver(), deliver()]))).toBe(25_500_000n);
    expect(await change(() => tell(session, 'checkout.session.async_payment_succeeded'))).toBe(0n);
    const credited = { status: 200, json: { received: true, credited: true } };
    expect(answers).toEqual([credited, credited, credited]);
    expect((await ledger('?type=topup&limit=1')).data[0]).toMatchObject({
      amount: { exact: '25.500000' },
      reference_id: `stripe ${session.id}`,
      booked_by: { actor: 'Stripe', audit_id: expect.stringMatching(/^audit_/) },
      reason: 'card payment',
    });
  });

  it('is the amount that Stripe reports as paid, whatever an event says', async () => {
    const session = await page('5');
    stripe.pay(session);
    expect(await change(() => tell({ ...session, amount_total: 999_999 }))).toBe(5_000_000n);
    // The same page with another amount later: a contradiction, which is not credited.
    session['amount_total'] = 100_000;
    expect(await change(() => tell(session))).toBe(0n);
    const [refused] = await test.app.db.query(
      `select actor, details from audit_entries where action = 'billing.payment_refused' order by id desc limit 1`,
    );
    expect(refused).toMatchObject({ actor: 'Stripe', details: { reason: 'conflict' } });
  });

  it.each<[string, Record<string, unknown>]>([
    ['another currency', { currency: 'eur' }],
    ['no amount', { amount_total: null }],
    ['nothing', { amount_total: 0 }],
    ['an unknown account', { client_reference_id: 'acct_00000000000000000000000000' }],
    ['no account', { client_reference_id: null }],
    ['another program’s page', { metadata: {} }],
  ])('of %s is not credited', async (_what, wrong) => {
    const session = await page('5');
    stripe.pay(session);
    Object.assign(session, wrong);
    expect(
      await change(async () => expect(await tell(session)).toMatchObject({ status: 200, json: { credited: false } })),
    ).toBe(0n);
  });

  it.each([100_000_000_001, Number.MAX_SAFE_INTEGER])(
    'of more than a balance can hold is a 400 and credits nothing: %s',
    async (amount_total) => {
      const session = await page('5');
      stripe.pay(session);
      Object.assign(session, { amount_total });
      const answer = { status: 400, json: { error: { type: 'invalid_request', param: 'amount_total' } } };
      expect(await change(async () => expect(await tell(session)).toMatchObject(answer))).toBe(0n);
    },
  );

  it('is refused without a recent signature of its exact bytes with our secret', async () => {
    const session = await page('7');
    stripe.pay(session);
    const right = signedEvent(webhook_secret, event(session));
    const forged = [
      signedEvent('whsec_other', event(session)),
      signedEvent(webhook_secret, event(session), { at_ms: Date.now() - 301_000 }),
      signedEvent(webhook_secret, event(session), { at_ms: Date.now() + 400_000 }),
      signedEvent(webhook_secret, event(session), { scheme: 'v0' }),
      { ...right, body: right.body.replace('"evt_1"', '"evt_2"') },
      { ...right, headers: { 'content-type': 'application/json' } },
      { ...right, headers: { ...right.headers, 'stripe-signature': 't=,v1=' } },
    ];
    expect(
      await change(async () => {
        for (const each of forged) expect((await post(each)).status).toBe(400);
      }),
    ).toBe(0n);
    expect(await change(() => post(right))).toBe(7_000_000n);
  });

  it('is reported again later when Stripe cannot be reached', async () => {
    const session = await page('8');
    stripe.pay(session);
    stripe.failNext(500);
    expect(await change(async () => expect(await tell(session)).toMatchObject({ status: 503 }))).toBe(0n);
    expect(await change(() => tell(session))).toBe(8_000_000n);
    expect((await tell({ id: 'cs_test_never' })).status).toBe(503);
    expect(await tell(session, 'charge.refunded')).toEqual({ status: 200, json: { received: true } });
  });

  it.each(['0.99', '10000.01', '5.001', '-5', 'x', 5, undefined])('is refused as %j', async (amount) => {
    const answer = await owner.post(`${owner.base}/billing/top-up`, { amount });
    expect(answer).toMatchObject({ status: 400, json: { error: { param: 'amount' } } });
  });

  it('fails without details when the page cannot be created', async () => {
    stripe.failNext(401);
    const answer = await owner.post(`${owner.base}/billing/top-up`, { amount: '5' });
    expect(answer.status).toBe(503);
    expect(answer.text).not.toContain('sk_test');
  });

  it("follows the operator's words when there is no Stripe", async () => {
    const node = await test.beside({ yaml: 'version: 1\nbilling: { top_up_text: "Transfer to PL61 1090 1014" }\n' });
    try {
      const view = await fetch(`${node.url}/stripe/webhook`, { method: 'POST' });
      expect(view.status).toBe(404);
      const other = await ownerOfNew(node, 'Beside');
      expect((await billing(other)).top_up).toEqual({ by: 'operator', text: 'Transfer to PL61 1090 1014' });
      expect((await other.post(`${other.base}/billing/top-up`, { amount: '5' })).status).toBe(404);
    } finally {
      await node.stop();
    }
  });
});
