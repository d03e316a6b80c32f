import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { http_queue } from '../../../src/providers/adapters/http-queue/adapter.ts';
import { InputRefused, NotStarted, type Json, type RunState } from '../../../src/providers/provider.ts';
import { prober } from '../../helpers/prober.ts';
import { readDocument, repository } from '../../docs/document.ts';
import { conformance, runOf, type Conformance } from '../conformance.ts';
import type { Imitation, Reply } from '../imitations/imitation.ts';
import { configOf, never, secret } from '../upstreams.ts';
import { basePathOf, runOfVendor, vendors, type Vendor } from '../vendors.ts';

/** The presets of `http-queue`: what every adapter promises, and what each of them does in each situation. */

const bearer = { authorization: `Bearer ${secret}` };
const a_form = expect.stringMatching(/^multipart\/form-data; boundary=medley-\w{30}$/);

/** The submit of each as its documentation has it. */
const submits: Record<string, Conformance['submit']> = {
  stability: {
    method: 'POST',
    path: '/v2beta/stable-image/generate/core',
    headers: { ...bearer, 'content-type': a_form, accept: 'application/json' },
  },
  ideogram: {
    method: 'POST',
    path: '/v1/ideogram-v3/remix',
    headers: { 'api-key': secret, 'content-type': a_form },
  },
  recraft: {
    method: 'POST',
    path: '/v1/images/generations',
    headers: bearer,
    json: { model: 'recraftv4_1', prompt: 'A quiet bay', size: '16:9', n: 1, response_format: 'url' },
  },
  'xai-video': {
    method: 'POST',
    path: '/v1/videos/generations',
    headers: bearer,
    json: {
      model: 'grok-imagine-video',
      prompt: 'A quiet bay',
      resolution: '720p',
      duration: 5,
      image: { url: 'data:image/png;base64,iVBORw0KGgo=' },
    },
  },
  wan: {
    method: 'POST',
    path: '/api/v1/services/aigc/video-generation/video-synthesis',
    headers: { ...bearer, 'x-dashscope-async': 'enable' },
    json: {
      model: 'wan2.7-t2v',
      input: { prompt: 'A quiet bay' },
      parameters: { resolution: '720P', ratio: '16:9', duration: 5, watermark: false },
    },
  },
  seedance: {
    method: 'POST',
    path: '/api/v3/contents/generations/tasks',
    headers: bearer,
    json: {
      model: 'seedance-1-5-pro-251215',
      content: [{ type: 'text', text: 'A quiet bay' }],
      ratio: '16:9',
      resolution: '720p',
      duration: 5,
      generate_audio: true,
      watermark: false,
    },
  },
  assemblyai: {
    method: 'POST',
    path: '/v2/transcript',
    headers: { authorization: secret },
    json: { audio_url: expect.stringContaining('/cdn/1'), speech_models: ['universal-2'], language_code: 'en' },
  },
};

for (const vendor of vendors) {
  const { name, title, synchronous, moderated, no_credit, fails, moderated_later, queued, unknown } = vendor;
  const submit = submits[name];
  if (!submit) throw new Error(`the submit of ${name} is missing`);
  const poll = (reply: Reply | undefined) => ({ poll: reply === undefined ? [] : [reply] });
  conformance({
    name: `http-queue as ${title}`,
    adapter: http_queue,
    imitate: vendor.imitate,
    base_path: basePathOf(name),
    run: runOfVendor(vendor),
    submit,
    ...(synchronous && { synchronous }),
    refusals: [
      ['moderated', moderated, { refused: 'content_policy_violation' }],
      ['no credit', no_credit, { not_started: 'rejected_credentials' }],
    ],
    polls: [
      ['queued', poll(queued), { phase: 'waiting' }],
      ['failed', poll(fails), { phase: 'failed', type: 'upstream_error', message: /^The model provider/ }],
      ['unknown for a moment', poll(unknown), { phase: 'waiting' }],
      ...(moderated_later
        ? [['moderated', poll(moderated_later), { phase: 'failed', type: 'content_policy_violation' }] satisfies Case]
        : []),
    ],
    ...(vendor.working && name === 'xai-video' && { unknown_word: vendor.working }),
    pace: { per_minute: 600 },
    cancels: cancelsOf(name),
  });
}

type Case = NonNullable<Conformance['polls']>[number];

function cancelsOf(name: string): NonNullable<Conformance['cancels']> {
  if (name === 'wan') {
    const too_late: Reply = {
      status: 400,
      json: { code: 'UnsupportedOperation', message: 'Failed to cancel the task' },
    };
    return [
      ['it is told to stop', { json: { request_id: 'r' } }, 'stopped'],
      ['it is too late', too_late, 'billed'],
    ];
  }
  return [[name === 'seedance' ? 'its state is asked first, and it runs' : 'there is none', {}, 'billed']];
}

const situations = [
  'ok',
  'fails',
  'moderated',
  '429 with Retry-After',
  '429 without',
  '5xx at submit',
  'hangs queued',
  'hangs working',
  'cancel queued',
  'cancel working',
  'unknown run',
  'result link dead',
] as const;

type Situation = (typeof situations)[number];

describe('the presets of http-queue in each situation', () => {
  const rows = new Map<string, Record<Situation, string>>();
  let imitations: Imitation[] = [];
  beforeAll(async () => {
    imitations = await Promise.all(vendors.map(async ({ imitate }) => imitate()));
  });
  afterAll(() => Promise.all(imitations.map((imitation) => imitation.stop())));

  it.each(vendors.map((vendor, at) => [vendor.title, vendor, at] as const))('%s', async (title, vendor, at) => {
    const imitation = imitations[at];
    if (!imitation) throw new Error('it was not started');
    const row = await rowOf(vendor, imitation);
    expect(Object.keys(row)).toEqual([...situations]);
    rows.set(title, row);
  });

  it('are in docs/providers.md (vitest -u writes the table again)', async () => {
    const lines = [...rows].map(([title, row]) => `| ${title} | ${situations.map((name) => row[name]).join(' | ')} |`);
    const head = [`| Preset | ${situations.join(' | ')} |`, `|${'---|'.repeat(situations.length + 1)}`];
    const { text } = readDocument('docs/providers.md');
    const table = /(?<=<!-- situations -->\n).*?(?=\n\n)/s;
    expect(text).toMatch(table);
    await expect(text.replace(table, [...head, ...lines].join('\n'))).toMatchFileSnapshot(
      join(repository, 'docs/providers.md'),
    );
  });
});

async function rowOf(vendor: Vendor, imitation: Imitation): Promise<Record<Situation, string>> {
  const guard = openGuard();
  const config = configOf('http-queue', imitation.url + basePathOf(vendor.name));
  const provider = http_queue.open(config, {
    guard,
    prober,
    rate_clock: { now: () => performance.now(), sleep: async () => undefined },
  });
  const run = runOf(runOfVendor(vendor));
  const start = (...replies: Reply[]) => {
    imitation.instead('submit', ...replies);
    return inWords(provider.start(run, never));
  };
  const begin = async (): Promise<Json> => {
    const state = await provider.start(run, never);
    if ('ref' in state) return state.ref;
    throw new Error(`it is ${state.phase}`);
  };
  const poll = async (reply: Reply | undefined, ref?: Json, now_ms = run.now_ms) => {
    if (vendor.synchronous || reply === undefined) return 'does not occur';
    const known = ref ?? (await begin());
    imitation.instead('poll', reply);
    return inWords(provider.poll({ ...run, now_ms }, known, never));
  };
  const cancel = async (reply: Reply | undefined) => {
    if (vendor.synchronous) return 'does not occur';
    const state = await provider.poll(run, (imitation.instead('poll', reply ?? {}), await begin()), never);
    if (!('ref' in state)) throw new Error('it is over');
    if (reply && vendor.looks_first) imitation.instead('poll', reply);
    const end = await provider.cancel?.(run, state.ref, never);
    return end === 'stopped' ? 'stopped, unbilled' : 'goes on';
  };
  const at_the_end = async () => {
    const first = await provider.start(run, never);
    if (!('ref' in first)) return [first, first];
    await provider.poll(run, first.ref, never);
    return [await provider.poll(run, first.ref, never), await provider.poll(run, first.ref, never)];
  };
  const [end, again] = await at_the_end();
  const files = end?.phase === 'done' ? end.files : [];
  const is_linked = files.some((file) => 'url' in file);
  expect(again).toEqual(end);
  const moderations = new Set([await start(vendor.moderated), await poll(vendor.moderated_later)]);
  moderations.delete('does not occur');
  const lost = await inWordsOfLoss(poll, begin, vendor, run.now_ms);
  const row: Record<Situation, string> = {
    ok: files.length > 0 ? 'succeeds' : 'gives nothing',
    fails: await poll(vendor.fails),
    moderated: [...moderations].join(', '),
    '429 with Retry-After': await start({ status: 429, headers: { 'retry-after': '7' }, json: {} }),
    '429 without': await start({ status: 429, json: {} }),
    '5xx at submit': await start({ status: 500, json: {} }),
    'hangs queued': await poll(vendor.queued),
    'hangs working': await poll(vendor.working),
    'cancel queued': await cancel(vendor.queued),
    'cancel working': await cancel(vendor.working),
    'unknown run': lost,
    'result link dead': is_linked
      ? vendor.synchronous
        ? 'fetched again for a minute'
        : 'fetched again at each poll'
      : 'has no link',
  };
  await provider.close?.();
  return row;
}

async function inWordsOfLoss(
  poll: (reply: Reply | undefined, ref?: Json, now_ms?: number) => Promise<string>,
  begin: () => Promise<Json>,
  { synchronous, unknown }: Vendor,
  now_ms: number,
): Promise<string> {
  if (synchronous || !unknown) return 'does not occur';
  const first = await poll(unknown);
  const ref = await begin();
  const missing = { ...Object(ref), missing_since_ms: now_ms } satisfies JsonObject;
  const last = await poll(unknown, missing, now_ms + 120_000);
  return first === 'stays queued' && last === 'upstream_error' ? 'lost after 2 min' : `${first}, then ${last}`;
}

/** Names the outcome of a call as an operator would. */
async function inWords(work: Promise<RunState>): Promise<string> {
  try {
    const state = await work;
    if (state.phase === 'waiting') return 'stays queued';
    if (state.phase === 'running') return 'stays running';
    return state.phase === 'failed' ? state.type : 'succeeds';
  } catch (error) {
    if (error instanceof InputRefused) return error.type;
    if (!(error instanceof NotStarted)) return 'asked again';
    if (error.reason !== 'rate_limited') return 'next route';
    return error.wait_basis === 'guess' ? 'full' : `full for ${(error.retry_after_ms ?? 0) / 1_000} s`;
  }
}
