import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';
import { points, startJournalUpstream, type JournalUpstream, type Plan, type Point } from './journal-upstream.ts';

/**
 * Callers that leave, at every point of an answer, are charged what the upstream bills (docs/chat-billing.md). A token
 * costs a millionth, so amounts are tokens.
 */

const styles = ['completions', 'messages', 'responses', 'gemini'] as const;
type Style = (typeof styles)[number];

let upstream: JournalUpstream;
let app: TestApp;

const providers: Record<Style, string> = { completions: 'oai', messages: 'ant', responses: 'oai', gemini: 'gem' };

/** Each row has a model of its own, so that all may run at once. */
const nameOf = (style: Style, stream: boolean, reasons: boolean, point: Point) =>
  `${style}-${stream ? 'stream' : 'whole'}-${reasons ? 'thinking' : 'plain'}-${point.replace(' ', '-')}`;

/** Beside them, those whose input is written to a cache for an hour, at twice the price. */
const cachedNameOf = (caller: Caller, stream: boolean, point: Point) =>
  `cached-${caller}-${nameOf('messages', stream, false, point)}`;

function modelOf(name: string, style: Style, reasons: boolean): string {
  const options = style === 'responses' ? ', options: { responses: always }' : '';
  return `
  - id: left/${name}
    kind: chat
    max_output_tokens: 100000
    price: &${name}
      - { unit: input_token, per: 1000000, amount: "1.00" }
      - { unit: cache_write_1h_token, per: 1000000, amount: "2.00" }
      - { unit: output_token, per: 1000000, amount: "1.00" }
    ${reasons ? 'capabilities: [thinking]' : ''}
    routes: [{ provider: ${providers[style]}, upstream_model: ${name}${options} }]`;
}

const rows = styles.flatMap((style) =>
  [true, false].flatMap((stream) => [true, false].map((reasons) => ({ style, stream, reasons }))),
);

const callers = ['completions', 'messages'] as const;
type Caller = (typeof callers)[number];
const cached_rows = callers.flatMap((caller) => [true, false].map((stream) => ({ caller, stream })));

beforeAll(async () => {
  process.env['TEST_UPSTREAM_KEY'] = 'sk-upstream-secret-0123456789';
  upstream = await startJournalUpstream();
  const provider = (adapter: string, path = '') =>
    `{ adapter: ${adapter}, base_url: "${upstream.url}${path}", api_key: env:TEST_UPSTREAM_KEY, allow_private: true }`;
  const cached = cached_rows.flatMap(({ caller, stream }) =>
    points.map((point) => modelOf(cachedNameOf(caller, stream, point), 'messages', false)),
  );
  const models = rows.flatMap(({ style, stream, reasons }) =>
    points.map((point) => modelOf(nameOf(style, stream, reasons, point), style, reasons)),
  );
  const yaml = `
version: 1
${limits({ chat_per_minute: 1_000_000 })}
providers:
  oai: ${provider('openai', '/v1')}
  ant: ${provider('anthropic')}
  gem: ${provider('gemini')}
models:${models.join('')}${cached.join('')}${modelOf('other', 'completions', false)}
`;
  app = await startTestApp({ yaml });
});
afterEach(() => expectExactBooks(app.app));
afterAll(async () => {
  await app.stop();
  await upstream.stop();
});

const paths: Record<Style, string> = {
  completions: 'chat/completions',
  messages: 'messages',
  responses: 'responses',
  gemini: 'chat/completions',
};

/** As many tokens as the page about billing counts for it: 4 bytes each, with 14 for the message and its role. */
const input_tokens = 1_000;
const content = 'x'.repeat(4 * input_tokens - 14);

function bodyOf(style: Style, model: string, stream: boolean, is_cached: boolean): object {
  const cache_control = { type: 'ephemeral', ttl: '1h' };
  const turns = [{ role: 'user', content: is_cached ? [{ type: 'text', text: content, cache_control }] : content }];
  if (style === 'responses') return { model, stream, input: turns };
  return { model, stream, messages: turns, max_tokens: 60_000 };
}

const words = ['One ', 'two ', 'and ', 'then', 'five'];

type Recorded = { status: number; cost: bigint; output_tokens: number; reasoning_tokens: number; upstream: string };

async function recordOf(client: Client, model: string): Promise<Recorded> {
  const find = () =>
    app.app.db.query<Recorded>(
      `select status, cost, output_tokens, reasoning_tokens, attempts->-1->>'outcome' as upstream
         from chat_calls where account_id = $1 and model = $2`,
      [client.account_id, model],
    );
  await expect.poll(async () => (await find()).length).toBe(1);
  const [row] = await find();
  if (!row) throw new Error('the record is there');
  return row;
}

/**
 * Waits until the service has read what has come, in the same process as the upstream: a request that is begun later and
 * answered shows that this process has read since, however slow it is.
 */
async function untilRead(): Promise<void> {
  await sleep(60);
  for (let count = 0; count < 5; count++) await (await fetch(upstream.url, { method: 'POST', body: '{}' })).text();
}

/** Asks, leaves at this point, and answers what the caller paid and the upstream bills. */
async function leaveAt(client: Client, style: Style, stream: boolean, name: string, plan: Plan) {
  const journal = upstream.expect(name, plan);
  const leave = new AbortController();
  const model = `left/${name}`;
  const call = fetch(`${app.url}/v1/${paths[style]}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(bodyOf(style, model, stream, plan.written_for_an_hour !== undefined)),
    signal: leave.signal,
  });
  call.catch(() => undefined);
  await journal.reached.promise;
  await untilRead();
  leave.abort();
  await untilRead();
  journal.goOn.resolve();
  const [bill, record] = await Promise.all([journal.billed.promise, recordOf(client, model)]);
  return { bill, record };
}

/** Returns true if the upstream is read on: its usage is worth it, or the answer is whole. */
function isReadOn(stream: boolean, reasons: boolean, point: Point): boolean {
  return !stream || reasons || point === 'finish reason' || point === 'usage';
}

describe.each(rows)('a $style upstream with stream $stream and reasoning $reasons', ({ style, stream, reasons }) => {
  test.each(points)('bills exactly what a caller pays who disconnects at: %s', async (point) => {
    const client = await app.client();
    const is_read_on = isReadOn(stream, reasons, point);
    const thoughts = reasons ? 50_000 : 0;
    const plan = { input_tokens, thoughts, words, pause_at: point, waits_for_abort: !is_read_on };
    const { bill, record } = await leaveAt(client, style, stream, nameOf(style, stream, reasons, point), plan);
    expect(bill.ended).toBe(is_read_on ? 'done' : 'aborted');
    expect(bill.input).toBe(input_tokens);
    expect(Number(record.cost)).toBe(bill.input + bill.output);
    // The last event of the responses style tells of the end and of the usage.
    const ends_in_stream = stream && style === 'responses' && (point === 'finish reason' || point === 'usage');
    expect(record).toMatchObject({
      status: ends_in_stream ? 200 : 499,
      output_tokens: bill.output,
      upstream: 'answered',
    });
    const { balance, held } = (await client.call('GET', '/v1/balance')).json;
    expect(held.exact).toBe('0.000000');
    expect(Number(balance.exact)).toBeCloseTo(100 - (bill.input + bill.output) / 1_000_000, 6);
  });
});

describe.each(cached_rows)('input written to a cache for an hour, caller of $caller, stream $stream', (row) => {
  const { caller, stream } = row;
  test.each(points)('left at: %s, charged exactly what the upstream bills', async (point) => {
    const client = await app.client();
    const is_read_on = isReadOn(stream, false, point);
    const written_for_an_hour = 800;
    const waiting = { pause_at: point, waits_for_abort: !is_read_on };
    const plan = { input_tokens, written_for_an_hour, thoughts: 0, words, ...waiting };
    const { bill, record } = await leaveAt(client, caller, stream, cachedNameOf(caller, stream, point), plan);
    expect(bill.ended).toBe(is_read_on ? 'done' : 'aborted');
    expect(Number(record.cost)).toBe(input_tokens + written_for_an_hour + bill.output);
  });
});
