import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { NotStarted } from '../../../src/providers/provider.ts';
import { probeMedia } from '../../helpers/prober.ts';
import type { Reply } from '../imitations/imitation.ts';
import { never, secret, untilClosed } from '../upstreams.ts';
import { bytesOf, filesOf, type Bench } from './bench.ts';
import type { Conformance } from './case.ts';
import { endOf, expectOutcome, type Expected } from './outcome.ts';

export const html = '<!doctype html><h1>Something is wrong</h1>';

export function describeRequest(subject: Conformance, bench: () => Bench): void {
  it('the request is the documented one', async () => {
    const { imitation, provider, run } = bench();
    await provider.start(run, never);
    const [request] = imitation.requestsFor('submit');
    const { method, path, query = {}, headers, json = request?.json } = subject.submit;
    expect(request).toMatchObject({ method, path, query, headers });
    expect(request?.json).toEqual(json);
    expect(imitation.requestsFor('other')).toEqual([]);
  });

  it('a run goes its way, and its files are what they should be', async () => {
    const { imitation, provider, run } = bench();
    const files = await filesOf(provider, run);
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) {
      if ('text' in file) continue; // a transcript
      const probed = await probeMedia(await bytesOf(file));
      expect(probed).toMatchObject({ ok: true, probe: { type: run.kind } });
    }
    expect(imitation.requestsFor('other')).toEqual([]);
  });

  it.each([subject.foreign_output ?? []].flat())('the key does not go where only the file is', async (output) => {
    const { imitation, provider, run } = bench();
    const other = 'https://files.elsewhere.example/output';
    const { submit, poll = [], result = [] } = output(other);
    imitation.instead('submit', ...[submit ?? []].flat());
    imitation.instead('poll', ...poll);
    imitation.instead('result', ...result);
    const [file] = await filesOf(provider, run);
    expect(file).toMatchObject({ url: other });
    const { origin } = new URL(other);
    expect(file).not.toMatchObject({ credentials: { origin } });
  });
}

/** Meanings of a failed submit, for all providers; the table of a provider has its exceptions. */
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
  [504, 'unknown'],
  [529, { not_started: 'unavailable' }],
  [400, { refused: 'invalid_request' }],
  [413, { refused: 'invalid_request' }],
  [422, { refused: 'invalid_request' }],
];

export function describeRefusals(subject: Conformance, bench: () => Bench): void {
  const lost: Expected | undefined = subject.synchronous ? undefined : 'unknown'; // there may be a run
  const statuses = usual_statuses.map(
    ([status, usual]) => [status, subject.statuses?.[status] ?? (status === 502 && lost ? lost : usual)] as const,
  );
  it.each(statuses)('a submit that is answered %i without a reason: %j', async (status, expected) => {
    const { imitation, provider, run } = bench();
    imitation.instead('submit', { status, text: html });
    await expectOutcome(provider.start(run, never), expected);
    expect(imitation.requestsFor('submit')).toHaveLength(1);
  });

  it('Retry-After is seconds, or a date', async () => {
    const { imitation, provider, run } = bench();
    imitation.instead('submit', { status: 429, headers: { 'retry-after': '7' }, json: {} });
    await expectOutcome(provider.start(run, never), { not_started: 'rate_limited', retry_after_ms: 7_000 });
    const asked_at_ms = Date.now();
    const date = new Date(asked_at_ms + 60_000).toUTCString();
    imitation.instead('submit', { status: 429, headers: { 'retry-after': date }, json: {} });
    const error = await endOf(provider.start(run, never));
    const wait_ms = error instanceof NotStarted ? (error.retry_after_ms ?? 0) : 0;
    expect(wait_ms).toBeGreaterThanOrEqual(Date.parse(date) - Date.now());
    expect(wait_ms).toBeLessThanOrEqual(Date.parse(date) - asked_at_ms);
  });

  it.each(subject.refusals)('a submit that is refused: %s', async (_why, reply, expected) => {
    const { imitation, provider, run } = bench();
    imitation.instead('submit', reply);
    await expectOutcome(provider.start(run, never), expected);
  });

  it.each([400, 401, 422, 429, 500])('the key is in no error: %i', async (status) => {
    const { imitation, provider, run } = bench();
    const message = `Key ${secret} of org-AbCdEf123456 is not for this.`;
    imitation.instead('submit', { status, json: { error: { message, code: 'x' }, detail: message, message } });
    const error = await endOf(provider.start(run, never));
    expect(error).toBeInstanceOf(Error);
    expect(inspect(error, { depth: 10 })).not.toContain(secret);
    expect(inspect(error, { depth: 10 })).not.toContain('AbCdEf123456');
  });

  it('a redirect is not followed', async () => {
    const { imitation, provider, run } = bench();
    const other = await subject.imitate(() => 0);
    for (const status of [301, 302, 307, 308]) {
      imitation.instead('submit', { status, headers: { location: other.url + subject.submit.path } });
      await expectOutcome(provider.start(run, never), { not_started: 'unavailable' });
    }
    expect(other.requests).toEqual([]);
    await other.stop();
  });
}

const cuts: [string, Reply][] = [
  ['is cut before its answer', 'cut'],
  ['is cut within its answer', { half: true, json: { id: 'x'.repeat(1_000) } }],
];

/** Of an answer that is no file but a word about the run. */
const garbage: [string, Reply][] = [
  ['is answered with a page', { text: html }],
  ['is answered with nothing', {}],
  ['is answered with something else', { json: [1] }],
];

export function describeSockets(subject: Conformance, bench: () => Bench): void {
  it('nobody listens: nothing was started', async () => {
    const { imitation, provider, run } = bench();
    await imitation.stop();
    await expectOutcome(provider.start(run, never), { not_started: 'unreachable' });
  });

  const unclear = subject.synchronous === true ? cuts : [...cuts, ...garbage];
  it.each(unclear)('a submit that %s may have been taken', async (_, reply) => {
    const { imitation, provider, run } = bench();
    imitation.instead('submit', reply);
    await expectOutcome(provider.start(run, never), 'unknown');
    expect(imitation.requestsFor('submit')).toHaveLength(1);
  });

  it('an abort closes the connection of a submit', async () => {
    const { imitation, provider, run } = bench();
    imitation.instead('submit', 'hang');
    const request = imitation.nextRequest('submit');
    const stop = new AbortController();
    const submitted = endOf(provider.start(run, stop.signal));
    const { socket } = await request;
    stop.abort(new Error('too late'));
    await untilClosed(socket);
    expect(await submitted).toBeInstanceOf(Error);
  });
}
