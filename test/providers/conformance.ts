import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { openGuard } from '../../src/lib/guard.ts';
import {
  InputRefused,
  NotStarted,
  type Adapter,
  type FailureType,
  type Json,
  type Provider,
  type RunFile,
  type RunRequest,
  type RunState,
} from '../../src/providers/provider.ts';
import { probeMedia } from '../../src/storage/probe.ts';
import type { Imitation, Reply } from './imitations/imitation.ts';
import { jumpingPacer, tick_ms, type JumpingPacer } from './pacer.ts';
import { configOf, never, secret, untilClosed } from './upstreams.ts';

/**
 * What every adapter of media has to show, against a faithful imitation of its provider. A test of one says
 *
 *     conformance({
 *       name: 'acme', adapter: acme, imitate: startAcme,           // imitations/acme.ts, made with startImitation
 *       run: { kind: 'image', model: 'acme/painter', input: { prompt: 'A bay' } },
 *       submit: { method: 'POST', path: '/v1/acme/painter', headers: { authorization: `Bearer ${secret}` }, json: {…} },
 *       pace: { per_minute: 600 },
 *       refusals: [{ why: 'flagged', reply: { status: 422, json: … }, expect: { refused: 'content_policy_violation' } }],
 *       polls: [{ why: 'died before its start', replies: { poll: [{ json: … }] }, expect: { not_started: 'unavailable' } }],
 *       …
 *     });
 *
 * and adds the tests that only this provider needs. As it is started, the imitation lets each run be seen
 * running once, and then done with a file that it serves itself (role `file`).
 */
export type Conformance = {
  name: string;
  adapter: Adapter;
  imitate(now: () => number): Promise<Imitation>;
  /** Behind the imitation's origin, as operators write it in `base_url`. */
  base_path?: string;
  run: Pick<RunRequest, 'kind' | 'model' | 'input'> & Partial<RunRequest>;
  /** The submit as the provider documents it; headers and JSON are compared as far as they are given. */
  submit: {
    method: string;
    path: string;
    query?: Record<string, string>;
    headers: Record<string, unknown>;
    json?: JsonObject;
  };
  /** It answers a submit with the files: nothing is polled. */
  synchronous?: boolean;
  /** Statuses that this provider means in another way than most. */
  statuses?: Record<number, Expected>;
  /** Answers to the submit that are no 2xx, or that are errors all the same. */
  refusals: { why: string; reply: Reply; expect: Expected }[];
  /** What polls tell, by the parts of the provider that they ask. */
  polls?: { why: string; replies: { poll?: Reply[]; result?: Reply[] }; expect: Expected }[];
  /** A poll's answer with a status word that nobody has documented. */
  unknown_word?: Reply;
  /** What a cancel is answered with, and what it means. */
  cancels?: { why: string; reply: Reply; expect: 'stopped' | 'billed' }[];
  cancel?: { method: string; path: RegExp };
  /** How often this provider may be asked with one key. */
  pace?: { per_minute: number };
  /** A submit's answer whose links lead elsewhere, to `url`: the key must not follow them. */
  foreign_links?: (url: string) => Reply;
  /** Answers that end a run with a file at `url`, which is another origin: it is fetched without the key. */
  foreign_output?: (url: string) => { submit?: Reply; poll?: Reply[]; result?: Reply[] };
};

export type Expected =
  | { not_started: NotStarted['reason']; retry_after_ms?: number }
  | { refused: InputRefused['type']; message?: RegExp }
  | { phase: RunState['phase']; type?: FailureType; message?: RegExp }
  /** An error that says nothing of the run: of a submit, that nobody knows; of a poll, to ask again. */
  | 'unknown';

type Bench = { imitation: Imitation; provider: Provider; pacer: JumpingPacer; run: RunRequest };

const guard = openGuard();
/** Within a test nobody waits for the pace. */
const wide_awake = { now: () => performance.now(), sleep: async () => undefined };

export function conformance(wanted: Conformance): void {
  describe(`${wanted.name} keeps to what every adapter promises:`, () => {
    let bench: Bench;
    beforeEach(async () => {
      bench = await openBench(wanted);
    });
    afterEach(async () => {
      await bench.imitation.stop();
      await bench.provider.close?.();
    });
    const here = () => bench;
    describeRequest(wanted, here);
    describeRefusals(wanted, here);
    describeSockets(wanted, here);
    describeSecrets(wanted, here);
    if (wanted.synchronous !== true) {
      describePolls(wanted, here);
      describePace(wanted, here);
    }
    if (wanted.cancels) describeCancel(wanted, wanted.cancels, here);
    else it('has no cancel', () => expect(bench.provider.cancel).toBeUndefined());
  });
}

async function openBench(wanted: Conformance): Promise<Bench> {
  const pacer = jumpingPacer();
  const imitation = await wanted.imitate(() => pacer.now());
  const provider = openProvider(wanted, imitation.url);
  return { imitation, provider, pacer, run: runOf(wanted.run) };
}

function openProvider({ name, adapter, base_path = '' }: Conformance, url: string, pacer = wide_awake): Provider {
  const provider = adapter.open?.(configOf(name, url + base_path), { guard, pacer });
  if (!provider) throw new Error(`${name} opens nothing`);
  return provider;
}

/** A run as the tasks room asks for it. */
export function runOf(more: Pick<RunRequest, 'kind' | 'model' | 'input'> & Partial<RunRequest>): RunRequest {
  return {
    task_id: 'task_1',
    options: {},
    output: {},
    start_limit_ms: 60_000,
    total_limit_ms: 900_000,
    now_ms: 1_700_000_000_000,
    ...more,
  };
}

function describeRequest(wanted: Conformance, bench: () => Bench): void {
  it('the request is the documented one', async () => {
    const { imitation, provider, run } = bench();
    await provider.start(run, never);
    const [asked] = imitation.askedFor('submit');
    const { method, path, query = {}, headers, json } = wanted.submit;
    expect(asked).toMatchObject({ method, path: path, query, headers });
    if (json !== undefined) expect(asked?.json).toEqual(json);
    expect(imitation.askedFor('other')).toEqual([]);
  });

  it('a run goes its way, and its files are what they should be', async () => {
    const { imitation, provider, run } = bench();
    const state = await runToEnd(provider, run);
    if (state.phase !== 'done') throw new Error(`the run is ${inspect(state)}`);
    expect(state.files.length).toBeGreaterThan(0);
    for (const file of state.files) {
      const probed = await probeMedia(await bytesOf(file));
      expect(probed).toMatchObject({ ok: true, probe: { type: run.kind } });
    }
    expect(imitation.askedFor('other')).toEqual([]);
  });
}

/** What a failed submit means, whoever says it; from the table of a provider as far as it differs. */
const usual_statuses: [number, Expected][] = [
  [401, { not_started: 'rejected_credentials' }],
  [402, { not_started: 'rejected_credentials' }],
  [403, { not_started: 'rejected_credentials' }],
  [404, { not_started: 'unavailable' }],
  [408, { not_started: 'timeout' }],
  [409, { not_started: 'unavailable' }],
  [429, { not_started: 'rate_limited' }],
  [500, { not_started: 'unavailable' }],
  [502, { not_started: 'unavailable' }],
  [503, { not_started: 'unavailable' }],
  [504, { not_started: 'timeout' }],
  [529, { not_started: 'unavailable' }],
  [400, { refused: 'invalid_request' }],
  [413, { refused: 'invalid_request' }],
  [422, { refused: 'invalid_request' }],
];

const html = '<!doctype html><h1>Something is wrong</h1>';

function describeRefusals(wanted: Conformance, bench: () => Bench): void {
  const statuses = usual_statuses.map(([status, usual]) => [status, wanted.statuses?.[status] ?? usual] as const);
  it.each(statuses)('a submit that is answered %i without a reason: %j', async (status, expected) => {
    const { imitation, provider, run } = bench();
    imitation.instead('submit', { status, text: html });
    await expectOutcome(provider.start(run, never), expected);
    expect(imitation.askedFor('submit')).toHaveLength(1);
  });

  it('Retry-After is seconds, or a date', async () => {
    const { imitation, provider, run } = bench();
    imitation.instead('submit', { status: 429, headers: { 'retry-after': '7' }, json: {} });
    await expectOutcome(provider.start(run, never), { not_started: 'rate_limited', retry_after_ms: 7_000 });
    const date = new Date(Date.now() + 60_000).toUTCString();
    imitation.instead('submit', { status: 429, headers: { 'retry-after': date }, json: {} });
    const error = await outcomeOf(provider.start(run, never));
    const wait_ms = error instanceof NotStarted ? (error.retry_after_ms ?? 0) : 0;
    expect(wait_ms).toBeGreaterThan(50_000);
    expect(wait_ms).toBeLessThanOrEqual(60_000);
  });

  if (wanted.refusals.length > 0)
    it.each(wanted.refusals)('a submit that is refused: $why', async ({ reply, expect: expected }) => {
      const { imitation, provider, run } = bench();
      imitation.instead('submit', reply);
      await expectOutcome(provider.start(run, never), expected);
    });
}

function describeSockets(wanted: Conformance, bench: () => Bench): void {
  it('nobody listens: nothing was started', async () => {
    const { imitation, provider, run } = bench();
    await imitation.stop();
    await expectOutcome(provider.start(run, never), { not_started: 'unreachable' });
  });

  const cuts: [string, Reply][] = [
    ['is cut before its answer', 'cut'],
    ['is cut within its answer', { half: true, json: { id: 'x'.repeat(1_000) } }],
    ...(wanted.synchronous === true
      ? []
      : ([
          ['is answered with a page', { text: html }],
          ['is answered with nothing', {}],
          ['is answered with something else', { json: [1] }],
        ] satisfies [string, Reply][])),
  ];
  it.each(cuts)('a submit that %s may have been taken', async (_, reply) => {
    const { imitation, provider, run } = bench();
    imitation.instead('submit', reply);
    await expectOutcome(provider.start(run, never), 'unknown');
    expect(imitation.askedFor('submit')).toHaveLength(1);
  });

  it('an abort closes the connection of a submit', async () => {
    const { imitation, provider, run } = bench();
    imitation.instead('submit', 'hang');
    const stop = new AbortController();
    const submitted = outcomeOf(provider.start(run, stop.signal));
    const { socket } = await imitation.nextAsked('submit');
    stop.abort(new Error('too late'));
    await untilClosed(socket);
    expect(await submitted).toBeInstanceOf(Error);
  });
}

function describeSecrets({ foreign_links, foreign_output, ...wanted }: Conformance, bench: () => Bench): void {
  it.each([400, 401, 422, 429, 500])('the key is in no error: %i', async (status) => {
    const { imitation, provider, run } = bench();
    const message = `Key ${secret} of org-AbCdEf123456 is not for this.`;
    const json = { error: { message, code: 'x' }, detail: message, message };
    imitation.instead('submit', { status, json });
    const error = await outcomeOf(provider.start(run, never));
    expect(error).toBeInstanceOf(Error);
    expect(inspect(error, { depth: 10 })).not.toContain(secret);
    expect(inspect(error, { depth: 10 })).not.toContain('AbCdEf123456');
  });

  it('redirects are not followed', async () => {
    const { imitation, provider, run } = bench();
    const other = await wanted.imitate(() => 0);
    for (const status of [301, 302, 307, 308]) {
      imitation.instead('submit', { status, headers: { location: other.url + wanted.submit.path } });
      await expectOutcome(provider.start(run, never), { not_started: 'unavailable' });
    }
    if (wanted.synchronous !== true) {
      const ref = await refOf(provider, run);
      imitation.instead('poll', { status: 302, headers: { location: `${other.url}/elsewhere` } });
      await expectOutcome(provider.poll(run, ref, never), 'unknown');
    }
    expect(other.asked).toEqual([]);
    await other.stop();
  });

  if (foreign_links)
    it('the key follows no link to another host', async () => {
      const { imitation, provider, run } = bench();
      const other = await wanted.imitate(() => 0);
      imitation.instead('submit', foreign_links(other.url));
      await pollToEnd(provider, run, await provider.start(run, never)).catch(() => undefined);
      await provider.cancel?.(run, await refOf(provider, run), never);
      expect(other.asked).toEqual([]);
      expect(imitation.askedFor('poll').length).toBeGreaterThan(0);
      await other.stop();
    });

  if (foreign_output)
    it('nor does it go where only the file is', async () => {
      const { imitation, provider, run } = bench();
      const other = 'https://files.elsewhere.example/output';
      const { submit, poll = [], result = [] } = foreign_output(other);
      if (submit) imitation.instead('submit', submit);
      imitation.instead('poll', ...poll);
      imitation.instead('result', ...result);
      const state = await runToEnd(provider, run);
      if (state.phase !== 'done') throw new Error(`the run is ${inspect(state)}`);
      const [file] = state.files;
      expect(file).toMatchObject({ url: other });
      if (file && 'url' in file) expect(file.credentials?.origin).not.toBe(new URL(other).origin);
    });
}

function describePolls({ polls = [], unknown_word }: Conformance, bench: () => Bench): void {
  it('a submitted run is accepted, and its reference survives being written down', async () => {
    const { provider, run } = bench();
    const state = await provider.start(run, never);
    if (!('ref' in state)) throw new Error(`the run is ${inspect(state)}`);
    expect(JSON.parse(JSON.stringify(state.ref))).toEqual(state.ref);
    expect(JSON.stringify(state.ref)).not.toContain(secret);
    expect(state.poll_after_ms).toBeGreaterThan(0);
  });

  if (unknown_word !== undefined)
    it('a status word that nobody knows is a run that goes on', async () => {
      const { imitation, provider, run } = bench();
      const ref = await refOf(provider, run);
      imitation.instead('poll', unknown_word);
      await expectOutcome(provider.poll(run, ref, never), { phase: 'running' });
    });

  const silent: [string, Reply][] = [
    ['401', { status: 401, text: html }],
    ['429', { status: 429, headers: { 'retry-after': '1' }, json: {} }],
    ['500', { status: 500, text: html }],
    ['503', { status: 503, json: {} }],
    ['a page', { text: html }],
    ['half an answer', { half: true, json: { status: 'x'.repeat(1_000) } }],
    ['nothing', 'cut'],
  ];
  it.each(silent)('a poll that is answered with %s says nothing of the run', async (_, reply) => {
    const { imitation, provider, run } = bench();
    const ref = await refOf(provider, run);
    imitation.instead('poll', reply);
    await expectOutcome(provider.poll(run, ref, never), 'unknown');
  });

  if (polls.length > 0)
    it.each(polls)('a poll: $why', async ({ replies, expect: expected }) => {
      const { imitation, provider, run } = bench();
      const ref = await refOf(provider, run);
      imitation.instead('poll', ...(replies.poll ?? []));
      imitation.instead('result', ...(replies.result ?? []));
      await expectOutcome(provider.poll(run, ref, never), expected);
    });

  it('an abort closes the connection of a poll', async () => {
    const { imitation, provider, run } = bench();
    const ref = await refOf(provider, run);
    imitation.instead('poll', 'hang');
    const stop = new AbortController();
    const polled = outcomeOf(provider.poll(run, ref, stop.signal));
    const { socket } = await imitation.nextAsked('poll');
    stop.abort(new Error('too late'));
    await untilClosed(socket);
    expect(await polled).toBeInstanceOf(Error);
  });
}

function describeCancel(
  { cancel }: Conformance,
  cancels: NonNullable<Conformance['cancels']>,
  bench: () => Bench,
): void {
  it.each(cancels)('a cancel: $why: $expect', async ({ reply, expect: expected }) => {
    const { imitation, provider, run } = bench();
    const ref = await refOf(provider, run);
    imitation.instead('cancel', reply);
    expect(await provider.cancel?.(run, ref, never)).toBe(expected);
    const [asked] = imitation.askedFor('cancel');
    if (cancel) expect(asked?.method).toBe(cancel.method);
    if (cancel) expect(asked?.path).toMatch(cancel.path);
    expect(imitation.askedFor('other')).toEqual([]);
  });

  it.each(['cut', { status: 500, text: html }] satisfies Reply[])(
    'a cancel that is answered with %j is not confirmed',
    async (reply) => {
      const { imitation, provider, run } = bench();
      const ref = await refOf(provider, run);
      imitation.instead('cancel', reply);
      const said = await outcomeOf(provider.cancel?.(run, ref, never) ?? Promise.resolve('nothing'));
      expect(said === 'billed' || said instanceof Error).toBe(true);
    },
  );
}

const runs = 1_000;

function describePace({ pace, ...wanted }: Conformance, bench: () => Bench): void {
  it('1,000 runs are polled to their ends at the pace that the provider wants', async () => {
    const { imitation, pacer, run } = bench();
    const provider = openProvider(wanted, imitation.url, pacer);
    const ends: string[] = [];
    const now = () => ({ ...run, now_ms: run.now_ms + pacer.now() });
    const watch = async (first: RunState) => {
      let state = first;
      while ('ref' in state) {
        const { ref, poll_after_ms } = state;
        await pacer.sleep(poll_after_ms, never);
        const next = await provider.poll(now(), ref, never).catch(() => undefined);
        if (next) state = next;
        else await pacer.sleep(10_000, never); // as the tasks room does
      }
      ends.push(state.phase);
    };
    const started: RunState[] = [];
    while (started.length < runs) {
      const some = Array.from({ length: 20 }, () => provider.start(run, never));
      started.push(...(await Promise.all(some)));
    }
    const works = started.map((state) => () => watch(state));
    await pacer.together(works);
    expect(ends).toEqual(Array.from({ length: runs }, () => 'done'));
    const at_ms = imitation.asked.filter(({ role }) => role === 'poll' || role === 'result').map((one) => one.at_ms);
    expect(at_ms.length).toBeGreaterThanOrEqual(runs);
    // A call that woke late falls into a minute that is this much longer.
    const minute_ms = 60_000 + tick_ms;
    if (pace) expect(mostWithinAMinute(at_ms)).toBeLessThanOrEqual(Math.ceil((pace.per_minute * minute_ms) / 60_000));
    await provider.close?.();
  }, 120_000);
}

function mostWithinAMinute(at_ms: readonly number[]): number {
  const sorted = at_ms.toSorted((a, b) => a - b);
  let most = 0;
  for (let first = 0, last = 0; last < sorted.length; last++) {
    while ((sorted[last] ?? 0) - (sorted[first] ?? 0) >= 60_000) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

async function refOf(provider: Provider, run: RunRequest): Promise<Json> {
  const state = await provider.start(run, never);
  if (!('ref' in state)) throw new Error(`the run is ${inspect(state)}`);
  return state.ref;
}

/** Starts a run and polls it until it is over. */
export async function runToEnd(provider: Provider, run: RunRequest): Promise<RunState> {
  return pollToEnd(provider, run, await provider.start(run, never));
}

const polls_max = 20;

async function pollToEnd(provider: Provider, run: RunRequest, first: RunState): Promise<RunState> {
  let state = first;
  for (let polls = 0; 'ref' in state && polls < polls_max; polls++) state = await provider.poll(run, state.ref, never);
  return state;
}

/** The bytes of a result, fetched as the tasks room does. */
export async function bytesOf(file: RunFile): Promise<Buffer> {
  if ('bytes' in file) return file.bytes;
  if (!('url' in file)) throw new Error('the result is no file');
  const may_have_key = file.credentials?.origin === new URL(file.url).origin;
  const { bytes } = await guard.download(file.url, {
    rules: { allow: [], allow_private: true },
    connect_timeout_ms: 5_000,
    idle_timeout_ms: 5_000,
    timeout_ms: 5_000,
    redirects_max: 3,
    size_bytes_max: 100_000_000,
    headers: may_have_key ? (file.credentials?.headers ?? {}) : {},
  });
  return bytes;
}

async function outcomeOf<Value>(work: Promise<Value>): Promise<unknown> {
  return work.catch((error: unknown) => error);
}

/** Holds what became of a start or a poll against what was expected. */
export async function expectOutcome(work: Promise<RunState>, expected: Expected): Promise<void> {
  const outcome = await outcomeOf(work);
  if (expected === 'unknown') {
    expect(outcome).toBeInstanceOf(Error);
    expect(outcome).not.toBeInstanceOf(NotStarted);
    expect(outcome).not.toBeInstanceOf(InputRefused);
  } else if ('not_started' in expected) {
    expect(outcome).toBeInstanceOf(NotStarted);
    const { not_started: reason, retry_after_ms } = expected;
    expect(outcome).toMatchObject({ reason, ...(retry_after_ms !== undefined && { retry_after_ms }) });
  } else if ('refused' in expected) {
    expect(outcome).toBeInstanceOf(InputRefused);
    expect(outcome).toMatchObject({ type: expected.refused });
    if (outcome instanceof Error && expected.message) expect(outcome.message).toMatch(expected.message);
  } else {
    const { phase, type, message } = expected;
    expect(outcome).toMatchObject({
      phase,
      ...(type && { type }),
      ...(message && { message: expect.stringMatching(message) }),
    });
  }
}
