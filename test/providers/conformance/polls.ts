import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import type { RunState } from '../../../src/providers/provider.ts';
import type { Reply } from '../imitations/imitation.ts';
import { tick_ms } from '../rate-clock.ts';
import { never, secret, untilClosed } from '../upstreams.ts';
import { openProvider, pollToEnd, refOf, type Bench } from './bench.ts';
import type { Conformance } from './case.ts';
import { endOf, expectOutcome } from './outcome.ts';
import { html } from './submits.ts';
import { depth } from '../../helpers/depth.ts';

/** Answers that say nothing of a run: the next poll may know more. */
const silent: [string, Reply][] = [
  ['401', { status: 401, text: html }],
  ['429', { status: 429, headers: { 'retry-after': '1' }, json: {} }],
  ['500', { status: 500, text: html }],
  ['503', { status: 503, json: {} }],
  ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1:9/elsewhere' } }],
  ['a page', { text: html }],
  ['half an answer', { half: true, json: { status: 'x'.repeat(1_000) } }],
  ['nothing', 'cut'],
];

export function describePolls({ polls = [], ...subject }: Conformance, bench: () => Bench): void {
  it('a submitted run is accepted, and its reference survives being written down', async () => {
    const { provider, run } = bench();
    const state = await provider.start(run, never);
    if (!('ref' in state)) throw new Error(`the run is ${inspect(state)}`);
    expect(JSON.parse(JSON.stringify(state.ref))).toEqual(state.ref);
    expect(JSON.stringify(state.ref)).not.toContain(secret);
    expect(state.poll_after_ms).toBeGreaterThan(0);
  });

  it.each([subject.unknown_word ?? []].flat())(
    'a status word that nobody knows is a run that goes on',
    async (reply) => {
      const { imitation, provider, run } = bench();
      const ref = await refOf(provider, run);
      imitation.instead('poll', reply);
      await expectOutcome(provider.poll(run, ref, never), { phase: 'running' });
    },
  );

  it.each(silent)('a poll that is answered with %s says nothing of the run', async (_, reply) => {
    const { imitation, provider, run } = bench();
    const ref = await refOf(provider, run);
    imitation.instead('poll', reply);
    await expectOutcome(provider.poll(run, ref, never), 'unknown');
  });

  it('a poll that reaches nobody says nothing of the run', async () => {
    const { imitation, provider, run } = bench();
    const ref = await refOf(provider, run);
    await imitation.stop();
    await expectOutcome(provider.poll(run, ref, never), 'unknown');
  });

  it.each(polls)('a poll: %s', async (_why, replies, expected) => {
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
    const request = imitation.nextRequest('poll');
    const stop = new AbortController();
    const polled = endOf(provider.poll(run, ref, stop.signal));
    const { socket } = await request;
    stop.abort(new Error('too late'));
    await untilClosed(socket);
    expect(await polled).toBeInstanceOf(Error);
  });
}

export function describeLinks(subject: Conformance, bench: () => Bench): void {
  it.each([subject.foreign_links ?? []].flat())('the key follows no link to another host', async (linked) => {
    const { imitation, provider, run } = bench();
    const other = await subject.imitate(() => 0);
    imitation.instead('submit', linked(other.url));
    const first = await provider.start(run, never);
    await endOf(pollToEnd(provider, run, first));
    await endOf('ref' in first ? provider.cancel?.(run, first.ref, never) : undefined);
    expect(other.requests).toEqual([]);
    expect(imitation.requestsFor('poll').length).toBeGreaterThan(0);
    await other.stop();
  });
}

const runs = depth(100, 1_000);
const started_at_once = 20;

export function describePace({ pace = { per_minute: Infinity }, ...subject }: Conformance, bench: () => Bench): void {
  it(`${runs} runs are polled to their ends at the pace that the provider wants`, async () => {
    const { imitation, rate_clock, run } = bench();
    const provider = openProvider(subject, imitation.url, rate_clock);
    const started: RunState[] = [];
    while (started.length < runs) {
      const some = Array.from({ length: started_at_once }, () => provider.start(run, never));
      started.push(...(await Promise.all(some)));
    }
    const ends: string[] = [];
    const watch = async (first: RunState) => {
      let state = first;
      while ('ref' in state) {
        const { ref, poll_after_ms } = state;
        await rate_clock.sleep(poll_after_ms, never);
        const now_ms = run.now_ms + rate_clock.now();
        const next = await provider.poll({ ...run, now_ms }, ref, never).catch(() => undefined);
        if (next) state = next;
        else await rate_clock.sleep(10_000, never); // as the tasks room does
      }
      ends.push(state.phase);
    };
    await rate_clock.together(started.map((state) => () => watch(state)));
    expect(ends).toEqual(started.map(() => 'done'));
    const at_ms = imitation.requests.filter(({ role }) => role === 'poll' || role === 'result').map((one) => one.at_ms);
    expect(at_ms.length).toBeGreaterThanOrEqual(runs);
    // A call that woke late falls into a minute that is this much longer.
    const most = Math.ceil((pace.per_minute * (60_000 + tick_ms)) / 60_000);
    expect(mostWithinAMinute(at_ms)).toBeLessThanOrEqual(most);
    await provider.close?.();
  });
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

const unclear: Reply[] = ['cut', { status: 500, text: html }];

export function describeCancel({ cancel, cancels = [] }: Conformance, bench: () => Bench): void {
  it('a cancel is there, or is not', () => {
    expect(bench().provider.cancel !== undefined).toBe(cancels.length > 0);
  });

  const named = cancels.map(([why, reply, expected]) => ({ why, reply, expected }));
  it.each(named)('a cancel: $why: $expected', async ({ reply, expected }) => {
    const { imitation, provider, run } = bench();
    const ref = await refOf(provider, run);
    imitation.instead('cancel', reply);
    expect(await provider.cancel?.(run, ref, never)).toBe(expected);
    const [request] = imitation.requestsFor('cancel');
    expect(request?.method).toBe(cancel?.method ?? request?.method);
    expect(request?.path ?? 'not asked').toMatch(cancel?.path ?? /./);
    expect(imitation.requestsFor('other')).toEqual([]);
  });

  it.each(cancels.length > 0 ? unclear : [])('a cancel that is answered with %j is not confirmed', async (reply) => {
    const { imitation, provider, run } = bench();
    const ref = await refOf(provider, run);
    imitation.instead('cancel', reply);
    const outcome = await endOf(provider.cancel?.(run, ref, never));
    expect(outcome === 'billed' || outcome instanceof Error).toBe(true);
  });
}
