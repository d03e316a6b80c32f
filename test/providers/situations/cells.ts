import { inspect } from 'node:util';
import { InputRefused, NotStarted, type Json, type Provider, type RunState } from '../../../src/providers/provider.ts';
import type { RunRequest } from '../../../src/providers/provider.ts';
import { bytesOf, openProvider, runOf } from '../conformance/bench.ts';
import type { Imitation, Reply } from '../imitations/imitation.ts';
import { never } from '../upstreams.ts';
import type { Answers, Situation, Subject } from './subject.ts';

/** One provider in one situation: what Medley does there, in words for an operator. */

type Scene = { imitation: Imitation; provider: Provider; run: RunRequest; subject: Subject };

const absent = '–';

/** Returns a cell of the table. Each has an imitation of its own, so that all of them may be made at once. */
export async function cellOf(subject: Subject, situation: Situation): Promise<string> {
  const cell = cells[situation];
  return cell(subject);
}

const cells: Record<Situation, (subject: Subject) => Promise<string>> = {
  ok: (subject) => within(subject, subject.imitate, async (scene) => inWords(async () => lastOf(scene), scene)),
  fails: (subject) => polled(subject, subject.fails),
  moderated,
  '429 with Retry-After': (subject) => submitted(subject, { status: 429, headers: { 'retry-after': '7' }, json: {} }),
  '429 without': (subject) => submitted(subject, subject.full ?? { status: 429, json: {} }),
  '5xx at submit': brokenSubmit,
  'hangs queued': (subject) => polled(subject, subject.queued),
  'hangs working': (subject) => (subject.synchronous ? unanswered(subject) : polled(subject, subject.working)),
  'cancel queued': (subject) => canceled(subject, subject.queued, subject.removed),
  'cancel working': (subject) => (subject.synchronous ? stopped(subject) : canceled(subject, subject.working)),
  'unknown run': lost,
  'result link dead': deadLink,
};

async function within(
  subject: Subject,
  imitate: Subject['imitate'],
  act: (scene: Scene) => Promise<string>,
): Promise<string> {
  let now = 0;
  const rate_clock = { now: () => now, sleep: async (ms: number) => void (now += ms) };
  const imitation = await imitate(rate_clock.now);
  const provider = openProvider({ name: subject.title, ...subject }, imitation.url, rate_clock);
  try {
    return await act({ imitation, provider, run: runOf(subject.run), subject });
  } finally {
    await provider.close?.();
    await imitation.stop();
  }
}

function submitted(subject: Subject, reply: Reply): Promise<string> {
  return within(subject, subject.imitate, async (scene) => {
    scene.imitation.instead('submit', reply);
    return inWords(() => scene.provider.start(scene.run, never), scene);
  });
}

/** A poll that is answered so. */
async function polled(subject: Subject, answers: Answers | undefined): Promise<string> {
  if (!answers) return absent;
  return within(subject, answers.imitate ?? subject.imitate, async (scene) => {
    const first = await startedRef(scene);
    return inWords(() => shown(scene, first, answers), scene, 'poll');
  });
}

const shows_max = 4;

/** Returns what a poll shows; of a machine that goes on by itself what it comes to. */
async function shown(scene: Scene, first: Json, answers: Answers): Promise<RunState> {
  let state = await pollWith(scene, first, answers);
  for (let polls = 1; answers.imitate && 'ref' in state && polls < shows_max; polls++)
    state = await pollWith(scene, state.ref, answers);
  return state;
}

async function moderated(subject: Subject): Promise<string> {
  const words = new Set<string>();
  if (subject.moderated) words.add(await submitted(subject, subject.moderated));
  if (subject.moderated_later) words.add(await polled(subject, subject.moderated_later));
  return words.size === 0 ? absent : [...words].join(', then ');
}

const broken = [500, 502, 503, 504];

async function brokenSubmit(subject: Subject): Promise<string> {
  const by_words = new Map<string, number[]>();
  for (const status of broken) {
    const words = await submitted(subject, { status, json: {} });
    by_words.set(words, [...(by_words.get(words) ?? []), status]);
  }
  const [only] = [...by_words.keys()];
  if (by_words.size === 1 && only !== undefined) return only;
  return [...by_words].map(([words, statuses]) => `${statuses.join(', ')}: ${words}`).join('; ');
}

/** A submit without an answer, until the limit of the route. */
function unanswered(subject: Subject): Promise<string> {
  return within(subject, subject.imitate, async (scene) => {
    const limit = new AbortController();
    scene.imitation.instead('submit', 'hang');
    void scene.imitation.nextRequest('submit').then(() => limit.abort(new Error('too late')));
    return inWords(() => scene.provider.start(scene.run, limit.signal), scene, 'limit');
  });
}

/** Cancels while the submit has no answer yet. */
function stopped(subject: Subject): Promise<string> {
  return within(subject, subject.endless ?? subject.imitate, async ({ imitation, provider, run }) => {
    if (!provider.stopStart) return 'no cancel: 409';
    const request = imitation.nextRequest('submit');
    const end = provider.start(run, never);
    await request;
    await until(async () => {
      await provider.stopStart?.(run, never);
      return imitation.requestsFor('cancel').length > 0;
    });
    return (await end).phase === 'done' ? 'stopped, refunded' : 'goes on';
  });
}

async function canceled(subject: Subject, answers: Answers | undefined, removed?: Reply): Promise<string> {
  if (subject.synchronous || !answers) return absent;
  return within(subject, answers.imitate ?? subject.imitate, async (scene) => {
    const { imitation, provider, run } = scene;
    const first = await startedRef(scene);
    const state = await shown(scene, first, answers);
    if (!('ref' in state)) return `is over: ${state.phase}`;
    if (!provider.cancel) return 'no cancel: 409';
    imitation.instead('poll', ...(answers.poll ?? []));
    if (removed) imitation.instead('cancel', removed);
    const end = await provider.cancel(run, state.ref, never);
    if (end === 'stopped') return 'stopped, refunded';
    return imitation.requestsFor('cancel').length > 0 ? 'told to stop, yet 409' : 'goes on: 409';
  });
}

const step_ms = 5_000;
const steps_max = 70;

/** The upstream knows no such run any more: how long Medley asks for it, and what comes then. */
async function lost(subject: Subject): Promise<string> {
  const { unknown } = subject;
  if (!unknown) return absent;
  return within(subject, unknown.imitate ?? subject.imitate, async (scene) => {
    let ref = await startedRef(scene);
    for (let age_ms = 0; age_ms <= steps_max * step_ms; age_ms += step_ms) {
      const polled_at = pollWith(scene, ref, unknown, age_ms);
      const state = await polled_at.catch(() => undefined);
      if (!state || !('ref' in state))
        return `${await inWords(() => polled_at, scene, 'poll')} after ${inTime(age_ms)}`;
      ref = state.ref;
    }
    return 'asked again';
  });
}

const inTime = (ms: number) => (ms < 60_000 ? `${ms / 1_000} s` : `${ms / 60_000} min`);

async function deadLink(subject: Subject): Promise<string> {
  return within(subject, subject.imitate, async (scene) => {
    const { imitation, provider, run } = scene;
    const refs: Json[] = [];
    const end = await lastOf(scene, refs);
    const link = end.phase === 'done' ? end.files.find((file) => 'url' in file) : undefined;
    if (!link) return 'no link';
    imitation.instead('file', { status: 404 });
    const missing = await bytesOf(link).then(
      () => 'is fetched',
      () => 'is dead',
    );
    if (missing !== 'is dead') return missing;
    const ref = refs.at(-1);
    const again = ref === undefined ? end : await provider.poll(run, ref, never);
    const other = again.phase === 'done' ? again.files.find((file) => 'url' in file) : undefined;
    if (!other || (await bytesOf(other)).length === 0) return 'lost';
    return ref === undefined ? 'fetched again for 1 min' : 'fetched again after each poll';
  });
}

async function startedRef({ provider, run }: Scene): Promise<Json> {
  const state = await provider.start(run, never);
  if (!('ref' in state)) throw new Error(`it is ${inspect(state)}`);
  return state.ref;
}

function pollWith({ imitation, provider, run }: Scene, ref: Json, answers: Answers, age_ms = 0): Promise<RunState> {
  imitation.instead('poll', ...(answers.poll ?? []));
  imitation.instead('result', ...(answers.result ?? []));
  return provider.poll({ ...run, now_ms: run.now_ms + age_ms }, ref, never);
}

const polls_max = 20;

/** Returns the end of a run; `refs` gets the references by which it was asked for. */
async function lastOf({ provider, run }: Scene, refs: Json[] = []): Promise<RunState> {
  let state = await provider.start(run, never);
  for (let polls = 0; 'ref' in state && polls < polls_max; polls++) {
    refs.push(state.ref);
    state = await provider.poll(run, state.ref, never);
  }
  return state;
}

/** Names the outcome of a call as an operator would. */
async function inWords(
  work: () => Promise<RunState>,
  { provider, imitation }: Scene,
  call: 'submit' | 'poll' | 'limit' = 'submit',
): Promise<string> {
  try {
    const state = await work();
    if ('ref' in state) return state.phase === 'waiting' ? 'stays queued' : 'stays running';
    if (state.phase === 'done') return state.files.length > 0 ? 'succeeds' : 'has no files';
    return state.type === 'upstream_error' ? 'refunded' : refundedFor(state.type);
  } catch (error) {
    if (error instanceof InputRefused) return refundedFor(error.type);
    if (!(error instanceof NotStarted)) {
      if (call === 'poll') return 'asked again';
      if (provider.idempotent) return 'submitted again, runs once';
      const is_searched = call === 'submit' && imitation.requestsFor('poll').length > 0;
      return is_searched ? 'searched for, else refunded' : 'refunded, not repeated';
    }
    if (error.reason !== 'rate_limited') return 'next route';
    return error.wait_basis === 'guess' ? 'waits' : `waits ${(error.retry_after_ms ?? 0) / 1_000} s`;
  }
}

const reasons: Record<string, string> = { content_policy_violation: 'moderated' };

const refundedFor = (type: string) => `refunded: ${reasons[type] ?? type}`;

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 10));
}
