import { afterEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { http_queue } from '../../../src/providers/adapters/http-queue/adapter.ts';
import { prober } from '../../helpers/prober.ts';
import { expectOutcome, runOf } from '../conformance.ts';
import { startImitation, type Imitation, type Reply } from '../imitations/imitation.ts';
import { configOf, never } from '../upstreams.ts';

/** Parts of a body that are there only sometimes, positions that are one of several, and a look before a cancel. */

let imitation: Imitation;
afterEach(() => imitation.stop());

async function imitate(...replies: Reply[]): Promise<void> {
  imitation = await startImitation({
    roleOf: ({ method }) => (method === 'POST' ? 'submit' : 'poll'),
    answer: () => replies.shift() ?? 'cut',
  });
}

const provider = () => http_queue.open(configOf('http-queue', `${imitation.url}/v1`), { guard: openGuard(), prober });
const run = (options: JsonObject, input: JsonObject = {}) =>
  runOf({ kind: 'video', model: 'm', input, options, output: { files: '$.url' } });

describe('a part of a body with $if', () => {
  const body = {
    content: [
      { type: 'text', text: '$input.prompt' },
      { $if: '$input.image', type: 'image', image: { url: '$input.image' }, role: 'first' },
    ],
    frame: { $if: '$input.image', url: '$input.image' },
    sound: { $if: '$input.sound', on: true },
    all: [{ $if: '$input.image', a: 1 }],
    none: [],
  };
  const sent = async (input: JsonObject) => {
    await imitate({ json: { url: 'https://f.example/a' } });
    await provider().start(run({ submit: { path: '/x', body } }, input), never);
    return imitation.requests[0]?.json;
  };

  it('is there with its value, without the condition itself', async () => {
    expect(await sent({ prompt: 'A bay', image: 'https://i.example/1', sound: true })).toEqual({
      content: [
        { type: 'text', text: 'A bay' },
        { type: 'image', image: { url: 'https://i.example/1' }, role: 'first' },
      ],
      frame: { url: 'https://i.example/1' },
      sound: { on: true },
      all: [{ a: 1 }],
      none: [],
    });
  });

  it.each([{}, { sound: false, image: '' }, { sound: null, image: null }])(
    'is left out without it, and so is a list of which nothing is left: %j',
    async (more) => {
      expect(await sent({ prompt: 'A bay', ...more })).toEqual({
        content: [{ type: 'text', text: 'A bay' }],
        none: [],
      });
    },
  );
});

describe('a path that is a list', () => {
  const options: JsonObject = {
    submit: { path: '/x', id: ['$.id', '$.task.id'] },
    status: {
      path: '/x/$id',
      state: ['$.safe', '$.state', '$http_status'],
      waiting: ['new', 202],
      done: ['done'],
      failed: ['failed', false],
      message: ['$.why', '$.error'],
    },
    errors: { moderation: [false] },
  };

  it.each<[string, Reply, Parameters<typeof expectOutcome>[1]]>([
    [
      'the first that is known counts',
      { json: { safe: true, state: 'done', url: 'https://f.example/a' } },
      { phase: 'done' },
    ],
    ['also before a later one', { json: { safe: false, state: 'done' } }, { phase: 'failed', type: 'upstream_error' }],
    ['the status of HTTP, without a body', { status: 202 }, { phase: 'waiting' }],
    ['of unknown ones none is an end', { json: { safe: 'perhaps', state: 'humming' } }, { phase: 'running' }],
    ['an empty body whose status means nothing is no answer', {}, 'unknown'],
  ])('is a state: %s', async (_, reply, expected) => {
    await imitate({ json: { task: { id: 'a' } } }, reply);
    const started = await provider().start(run(options), never);
    if (!('ref' in started)) throw new Error('it is over');
    expect(started.ref).toMatchObject({ id: 'a' });
    await expectOutcome(provider().poll(run(options), started.ref, never), expected);
  });

  it('gives a truth value as a code, which is searched in no message', async () => {
    const coded = { ...options, status: { ...Object(options['status']), code: ['$.error.code', '$.safe'] } };
    await imitate(
      { json: { id: 'a' } },
      { json: { safe: false } },
      { json: { id: 'b' } },
      { json: { state: 'failed', why: 'a false start' } },
    );
    for (const type of ['content_policy_violation', 'upstream_error'] as const) {
      const started = await provider().start(run(coded), never);
      if (!('ref' in started)) throw new Error('it is over');
      await expectOutcome(provider().poll(run(coded), started.ref, never), { phase: 'failed', type });
    }
  });
});

it('a word of an error is found within a longer code', async () => {
  await imitate({ status: 400, json: { code: 'Throttling.RateQuota', message: 'Requests rate limit exceeded' } });
  const errors = { code: '$.code', message: '$.message', rate_limit: ['Throttling'] };
  await expectOutcome(provider().start(run({ submit: { path: '/x' }, errors }), never), {
    not_started: 'rate_limited',
  });
});

describe('a cancel that looks first', () => {
  const options = {
    submit: { path: '/x', id: '$.id' },
    status: { path: '/x/$id', state: '$.state', waiting: ['queued'], done: ['done'], failed: ['failed'] },
    cancel: { method: 'DELETE', path: '/x/$id', look_first: true },
  };

  it.each<[string, Reply[], 'stopped' | 'billed', number]>([
    ['queued', [{ json: { state: 'queued' } }, { json: {} }], 'stopped', 3],
    ['running', [{ json: { state: 'running' } }], 'billed', 2],
    ['done', [{ json: { state: 'done' } }], 'billed', 2],
    ['gone', [{ status: 404, json: {} }], 'billed', 2],
    ['queued, and begun meanwhile', [{ json: { state: 'queued' } }, { status: 409, json: {} }], 'billed', 3],
  ])('of a run that is %s', async (_, replies, expected, calls) => {
    await imitate({ json: { id: 'a' } }, ...replies);
    const started = await provider().start(run(options), never);
    if (!('ref' in started)) throw new Error('it is over');
    expect(await provider().cancel?.(run(options), started.ref, never)).toBe(expected);
    expect(imitation.requests).toHaveLength(calls);
  });
});
