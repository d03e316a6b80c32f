import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { writeDataUrl } from '../../src/lib/data-url.ts';
import type { RunFile, RunState } from '../../src/providers/provider.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel, required_audio } from '../helpers/catalog.ts';
import { makeMediaTaker, type MediaTaker } from '../helpers/media-taker.ts';
import { sampleImage, wav } from '../storage/samples.ts';

const routes = ['{ provider: hears, upstream_model: a }'];
const audio_field = '{ type: string, x-media: audio }';
const audioWith = (more: string) =>
  `{ type: object, required: [audio], properties: { audio: ${audio_field}, ${more} } }`;
const by_the_minute = {
  kind: 'audio' as const,
  price: ['{ unit: minute, amount: "0.60" }'],
  more: ['output_types: [text]', 'estimate: { second: $media.audio.duration }'],
  routes,
};

const yaml = `
version: 1
${limits()}
providers: { hears: { adapter: hears } }
models:${[
  { ...by_the_minute, id: 'test/transcribe', schema: audioWith(`more: { type: array, items: ${audio_field} }`) },
  { ...by_the_minute, id: 'test/sing', schema: audioWith(`like: ${audio_field}`) },
  {
    ...by_the_minute,
    id: 'test/tokens',
    schema: required_audio,
    price: ['{ unit: output_token, amount: "0.01" }'],
    more: ['output_types: [text]', 'estimate: { output_token: 100 }'],
  },
  { id: 'test/speak', kind: 'audio' as const, price: ['{ unit: request, amount: "0.01" }'], routes },
]
  .map(mediaModel)
  .join('')}
`;

let service: TestApp;
let client: Client;
let hears: MediaTaker;
let site: { server: Server; url: string; requests: number };
let minute_and_half: Buffer;

beforeAll(async () => {
  minute_and_half = wav(90);
  hears = makeMediaTaker('data', { text: 'hello', content_type: 'text/plain' });
  service = await startTestApp({ yaml, adapters: { hears: hears.adapter }, env: { MEDLEY_ALLOW_PRIVATE: '1' } });
  site = { server: createServer(), url: '', requests: 0 };
  site.server.on('request', (request, response) => {
    site.requests += 1;
    if (request.url === '/a.wav') response.end(minute_and_half);
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => site.server.listen(0, '127.0.0.1', resolve));
  site.url = `http://127.0.0.1:${(site.server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await service?.stop();
  site.server.close();
});
beforeEach(async () => {
  client = await service.client();
  site.requests = 0;
});
afterEach(() => expectExactBooks(service.app));

function answers(file: RunFile, units?: Record<string, string>): void {
  const state: RunState = { phase: 'done', files: [file], ...(units && { units }) };
  hears.answer = () => state;
}

const audio = () => writeDataUrl({ content_type: 'audio/wav', bytes: minute_and_half });
const run = async (model = 'transcribe', input: object = { audio: audio() }) =>
  (await client.call('POST', '/v1/generate?wait=120', { model: `test/${model}`, input })).json;

describe('a text result', () => {
  it('is in the task and stored as a file', async () => {
    answers({ text: 'Zażółć gęślą jaźń.', content_type: 'text/plain' });
    const task = await run();
    expect(task.output).toEqual([
      {
        type: 'text',
        url: expect.stringContaining(`/files/${client.account_id}/${task.id}/0.txt?exp=`),
        content_type: 'text/plain; charset=utf-8',
        size_bytes: Buffer.byteLength('Zażółć gęślą jaźń.'),
        text: 'Zażółć gęślą jaźń.',
        expires_at: expect.stringMatching(/Z$/),
      },
    ]);
    const file = await fetch(task.output[0]?.url ?? '');
    expect(file.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(file.headers.get('content-security-policy')).toContain('sandbox');
    expect(await file.text()).toBe('Zażółć gęślą jaźń.');
    const links = await client.call('POST', `/v1/tasks/${task.id}/links`);
    expect(links.json.data[0]).toMatchObject({ type: 'text', text: 'Zażółć gęślą jaźń.' });
  });

  it.each([
    ['application/json', 'json', 'application/json'],
    ['text/vtt', 'vtt', 'text/vtt; charset=utf-8'],
    ['application/x-subrip', 'srt', 'application/x-subrip; charset=utf-8'],
    ['text/html', 'txt', 'text/plain; charset=utf-8'],
    ['image/svg+xml', 'txt', 'text/plain; charset=utf-8'],
  ])('of type %s is a .%s', async (content_type, extension, served) => {
    answers({ text: '<script>alert(1)</script>', content_type });
    const [item] = (await run()).output;
    expect(item).toMatchObject({ type: 'text', content_type: served });
    expect(item?.url).toContain(`/0.${extension}?`);
    expect((await fetch(item?.url ?? '')).headers.get('content-type')).toBe(served);
  });

  it('is only a link when it is long', async () => {
    for (const [length, reported] of [
      [65_536, true],
      [65_537, false],
    ] as const) {
      answers({ text: 'a'.repeat(length), content_type: 'text/plain' });
      const [item] = (await run()).output;
      expect(item?.size_bytes).toBe(length);
      expect(item?.text !== undefined).toBe(reported);
      expect((await (await fetch(item?.url ?? '')).text()).length).toBe(length);
    }
  });

  it('may be empty and may have characters that no database stores', async () => {
    answers({ text: '', content_type: 'text/plain' });
    expect((await run()).output).toMatchObject([{ type: 'text', text: '', size_bytes: 0 }]);
    answers({ text: 'a\0b\ud800c', content_type: 'text/plain' });
    expect((await run()).output).toMatchObject([{ type: 'text', text: 'ab\ufffdc' }]);
  });

  it('is no output of an audio model, and audio is no output of a text model', async () => {
    answers({ text: 'hello', content_type: 'text/plain' });
    expect(await run('speak', {})).toMatchObject({
      status: 'failed',
      error: { type: 'upstream_error' },
      cost: { exact: '0.000000' },
    });
    answers({ bytes: wav(1) });
    expect(await run()).toMatchObject({ status: 'failed', error: { type: 'upstream_error' } });
    answers({ bytes: await sampleImage('png', 8, 8) });
    expect(await run()).toMatchObject({ status: 'failed', error: { type: 'upstream_error' } });
    answers({ bytes: wav(1) });
    expect(await run('speak', {})).toMatchObject({ status: 'succeeded', output: [{ type: 'audio' }] });
  });
});

describe('a transcription is charged by the length of its audio', () => {
  beforeEach(() =>
    answers({ text: 'hello', content_type: 'text/plain' }, { second: '1', minute: '999999', output_token: '-5' }),
  );

  it.each([
    ['a data URL', async () => audio()],
    [
      'an upload',
      async () => {
        const form = new FormData();
        form.set('file', new Blob([new Uint8Array(minute_and_half)]), 'a.wav');
        const headers = { authorization: `Bearer ${client.key}` };
        const response = await fetch(`${service.url}/v1/files`, { method: 'POST', headers, body: form });
        return ((await response.json()) as { id: string }).id;
      },
    ],
    ['a link', async () => `${site.url}/a.wav`],
  ])('from %s, held and charged to the millionth, whatever the upstream reports', async (_name, make) => {
    const input = { audio: await make() };
    const estimate = await client.call('POST', '/v1/estimate', { model: 'test/transcribe', input });
    expect(estimate.json.estimated_cost.exact).toBe('0.900000');
    const task = await run('transcribe', input);
    expect(task).toMatchObject({
      status: 'succeeded',
      estimated_cost: { exact: '0.900000' },
      cost: { exact: '0.900000' },
    });
    const usage = await client.call('GET', '/v1/usage?group_by=model');
    expect(usage.json.data[0]?.units).toMatchObject({ second: '90' });
  });

  it('from a link, and the upstream gets what was measured', async () => {
    await run('transcribe', { audio: `${site.url}/a.wav` });
    expect(site.requests).toBe(1);
    expect(hears.runs.at(-1)?.input['audio']).toBe(audio());
  });

  it('from a link, and also fetches one in a field that is not measured', async () => {
    const url = `${site.url}/a.wav`;
    const estimate = await client.call('POST', '/v1/estimate', {
      model: 'test/sing',
      input: { like: url, audio: url },
    });
    expect(estimate.json.estimated_cost.exact).toBe('0.900000');
    const task = await run('sing', { like: url, audio: url });
    expect(task).toMatchObject({ status: 'succeeded', cost: { exact: '0.900000' } });
    expect(hears.runs.at(-1)?.input).toEqual({ like: audio(), audio: audio() });
  });

  it.each(['/none', '/'])('from a link, and gets 422 when it cannot be fetched (%s)', async (path) => {
    const body = { model: 'test/transcribe', input: { audio: site.url + path } };
    const { status, json } = await client.call('POST', '/v1/generate', body);
    expect([status, json.error.param]).toEqual([422, 'input.audio']);
    expect(json.error.message).toBe('input.audio cannot be fetched: The address answered 404.');
  });

  it('within its hold', async () => {
    const poor = await service.client({ credit: '0.89' });
    const body = { model: 'test/transcribe', input: { audio: audio() } };
    expect((await poor.call('POST', '/v1/generate', body)).status).toBe(402);
  });
});

describe('a unit that only the upstream can count', () => {
  it.each([
    [{ output_token: '42' }, '0.420000'],
    [{ output_token: '1000' }, '1.000000'], // never above the hold
    [{ output_token: '-1' }, '1.000000'], // no count: as held
    [{ output_token: '1e2' }, '1.000000'],
    [{ output_token: '99999999999999999999' }, '1.000000'],
    [undefined, '1.000000'],
  ])('costs, reported as %j, %s', async (units, cost) => {
    answers({ text: 'hello', content_type: 'text/plain' }, units);
    expect((await run('tokens')).cost.exact).toBe(cost);
  });
});
