import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeDataUrl } from '../../src/lib/data-url.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { wav } from '../storage/samples.ts';
import { startElevenlabs } from './imitations/elevenlabs.ts';
import { done, operation, startGemini } from './imitations/gemini.ts';
import { interaction, startGeminiInteractions } from './imitations/gemini-interactions.ts';
import { sampleFile, type Imitation } from './imitations/imitation.ts';
import { refusal, startOpenai, transcript } from './imitations/openai.ts';

/** The adapters whose answer is the result, and the one whose files want the key, in the whole service. */

let upstreams: { openai: Imitation; gemini: Imitation; interactions: Imitation; elevenlabs: Imitation };
let service: TestApp;
let client: Client;

const text = '{ type: string, maxLength: 1000 }';
const file = (kind: string) => `{ type: string, x-media: ${kind} }`;

const fileOf = ({ openai, gemini, interactions, elevenlabs }: typeof upstreams) => `
version: 1
sandbox: false
providers:
  openai: { adapter: openai, base_url: "${openai.url}/v1", api_key: env:TEST_MEDIA_KEY, allow_private: true }
  gemini: { adapter: gemini, base_url: "${gemini.url}", api_key: env:TEST_MEDIA_KEY, allow_private: true }
  interactions:
    { adapter: gemini-interactions, base_url: "${interactions.url}", api_key: env:TEST_MEDIA_KEY, allow_private: true }
  elevenlabs: { adapter: elevenlabs, base_url: "${elevenlabs.url}", api_key: env:TEST_MEDIA_KEY, allow_private: true }
models:
  - id: paint
    kind: image
    input_schema: { type: object, required: [prompt], properties: { prompt: ${text}, image: ${file('image')} } }
    price: [{ unit: input_token, per: 1000000, amount: "10" }, { unit: output_token, per: 1000000, amount: "40" }]
    estimate: { input_token: 1000, output_token: 5000 }
    routes:
      - provider: openai
        upstream_model: gpt-image-1
        timeout: { start: 180s }
        options: { token_prices: { text_input: "5", image_input: "10", image_output: "40" } }
      - { provider: gemini, upstream_model: gemini-2.5-flash-image, timeout: { start: 120s } }
  - id: speak
    kind: audio
    input_schema: { type: object, required: [input], properties: { input: ${text} } }
    price: [{ unit: character, per: 1000, amount: "0.30" }]
    estimate: { character: $input.input }
    routes:
      - provider: elevenlabs
        upstream_model: eleven_v3
        input: { text: $input.input }
        timeout: { start: 120s }
        options: { voice_id: voice-1, credit_price: "0.0002" }
  - id: listen
    kind: audio
    output_types: [text]
    input_schema: { type: object, required: [file], properties: { file: ${file('audio')}, response_format: ${text} } }
    price: [{ unit: second, amount: "0.0001" }]
    estimate: { second: 600 }
    routes: [{ provider: openai, upstream_model: whisper-1, timeout: { start: 240s } }]
  - id: film
    kind: video
    input_schema: { type: object, required: [prompt], properties: { prompt: ${text}, image: ${file('image')} } }
    price: [{ unit: second, amount: "0.40" }]
    estimate: { second: 8 }
    routes:
      - { provider: gemini, upstream_model: veo-3.1-generate-preview, poll: { first: 50ms, max: 100ms } }
  - id: omni
    kind: video
    input_schema: { type: object, required: [prompt], properties: { prompt: ${text}, image: ${file('image')} } }
    price: [{ unit: second, amount: "0.07" }]
    estimate: { second: 8 }
    routes:
      - provider: interactions
        upstream_model: gemini-omni-1.2-flash
        poll: { first: 50ms, max: 100ms }
        options: { token_prices: { text_input: "1.50", text_output: "9.00", video_output: "12.00" } }
`;

beforeAll(async () => {
  process.env['TEST_MEDIA_KEY'] = 'sk-upstream';
  const now = () => 0;
  const [openai, gemini, interactions, elevenlabs] = await Promise.all([
    startOpenai(now),
    startGemini(now),
    startGeminiInteractions(now),
    startElevenlabs(now),
  ]);
  upstreams = { openai, gemini, interactions, elevenlabs };
  service = await startTestApp({ yaml: fileOf(upstreams) });
  client = await service.client();
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
  for (const upstream of Object.values(upstreams)) await upstream.stop();
});

async function generate(model: string, input: object) {
  const created = await client.call('POST', '/v1/generate?wait=60', { model, input });
  expect(created.status, created.text).toBe(202);
  return created.json;
}

/** Returns the recorded costs of the attempts of a task. */
async function costsOf(task: string): Promise<(string | null)[]> {
  const rows = await service.app.db.query<{ upstream_cost: string | null }>(
    'select upstream_cost from attempts where task_id = $1 order by number',
    [task],
  );
  return rows.map(({ upstream_cost }) => upstream_cost);
}

async function download(url: string | undefined): Promise<Buffer> {
  const response = await fetch(url ?? '');
  return Buffer.from(await response.arrayBuffer());
}

describe('an image task', () => {
  it('stores and measures its image and costs the tokens that the upstream counted', async () => {
    const task = await generate('paint', { prompt: 'A bay' });
    expect(task).toMatchObject({ status: 'succeeded', output: [{ type: 'image', width: 64, height: 64 }] });
    expect(await download(task.output[0]?.url)).toEqual(await sampleFile('image'));
    expect(task.cost.exact).toBe('0.010980'); // 10 × 10 + 272 × 40, by the million
    expect(await costsOf(task.id)).toEqual(['0.01093 USD']); // 10 × 5 + 272 × 40
  });

  it('edits the image in its input', async () => {
    const image = writeDataUrl({ content_type: 'image/png', bytes: await sampleFile('image') });
    expect(await generate('paint', { prompt: 'Snow', image })).toMatchObject({ status: 'succeeded' });
    expect(upstreams.openai.requestsFor('submit').at(-1)?.path).toBe('/v1/images/edits');
  });

  it('that is blocked costs nothing and tries no other route', async () => {
    const unfit = { message: 'Rejected by the safety system.', code: 'moderation_blocked' };
    const stages = [{}, { moderation_details: { moderation_stage: 'output' } }];
    for (const stage of stages) {
      upstreams.openai.instead('submit', refusal(400, { ...unfit, ...stage }));
      const task = await generate('paint', { prompt: 'Unfit' });
      const error = { type: 'content_policy_violation', message: 'Rejected by the safety system.' };
      expect(task).toMatchObject({ status: 'failed', error, cost: { exact: '0.000000' } });
    }
    expect(upstreams.gemini.requests).toEqual([]);
  });

  it('whose response is lost is not submitted again and costs nothing', async () => {
    const before = upstreams.openai.requests.length;
    upstreams.openai.instead('submit', 'cut');
    const task = await generate('paint', { prompt: 'Lost' });
    expect(task).toMatchObject({ status: 'failed', error: { type: 'upstream_error' }, cost: { exact: '0.000000' } });
    expect([upstreams.openai.requests.length - before, upstreams.gemini.requests.length]).toEqual([1, 0]);
  });

  it('goes to the next route when the first has no credit', async () => {
    const message = 'You exceeded your current quota';
    upstreams.openai.instead('submit', refusal(429, { message, code: 'insufficient_quota' }));
    const task = await generate('paint', { prompt: 'A hill' });
    expect(task).toMatchObject({ status: 'succeeded', output: [{ type: 'image' }] });
    expect(task.cost.exact).toBe('0.055900'); // 270 × 10 + 1,330 × 40
    expect(await costsOf(task.id)).toEqual([null, null]);
  });
});

describe('a speech task', () => {
  it('costs its characters', async () => {
    const task = await generate('speak', { input: 'Zażółć 🦊' });
    expect(task).toMatchObject({ status: 'succeeded', output: [{ type: 'audio', content_type: 'audio/mpeg' }] });
    expect(task.cost.exact).toBe('0.002400');
    expect(await costsOf(task.id)).toEqual(['0.0024 USD']); // 12 credits
  });
});

describe('a transcript task', () => {
  const audio = writeDataUrl({ content_type: 'audio/wav', bytes: wav(1) });

  it('has a text and costs the seconds that were heard', async () => {
    const task = await generate('listen', { file: audio });
    expect(task).toMatchObject({
      status: 'succeeded',
      output: [{ type: 'text', content_type: 'text/plain; charset=utf-8' }],
    });
    expect((await download(task.output[0]?.url)).toString()).toBe(transcript);
    expect(task.cost.exact).toBe('0.000200');
  });

  it('with subtitles costs the length of its file, because the upstream reports none', async () => {
    const task = await generate('listen', { file: audio, response_format: 'srt' });
    expect(task).toMatchObject({
      status: 'succeeded',
      output: [{ content_type: 'application/x-subrip; charset=utf-8' }],
    });
    expect(task.cost.exact).toBe('0.000100');
  });
});

describe('a video task', () => {
  it('fetches its video with the key of its upstream', async () => {
    const image = writeDataUrl({ content_type: 'image/png', bytes: await sampleFile('image') });
    const task = await generate('film', { prompt: 'A wave', image });
    expect(task).toMatchObject({ status: 'succeeded', output: [{ type: 'video', duration: 1 }] });
    const [request] = upstreams.gemini.requestsFor('file');
    expect(request?.headers['x-goog-api-key']).toBe('sk-upstream');
    expect(task.cost.exact).toBe('0.400000');
  });

  it('that is blocked costs nothing', async () => {
    upstreams.gemini.instead(
      'poll',
      operation('x', done([], { raiMediaFilteredCount: 1, raiMediaFilteredReasons: ['Unfit.'] })),
    );
    const task = await generate('film', { prompt: 'Unfit' });
    expect(task).toMatchObject({ status: 'failed', error: { type: 'content_policy_violation', message: 'Unfit.' } });
    expect(task.cost.exact).toBe('0.000000');
  });
});

describe('a video task of the Interactions API', () => {
  const image = async () => writeDataUrl({ content_type: 'image/png', bytes: await sampleFile('image') });

  it('is polled, fetches its video with the key, and costs the tokens that the upstream counted', async () => {
    const task = await generate('omni', { prompt: 'A wave', image: await image() });
    expect(task).toMatchObject({ status: 'succeeded', output: [{ type: 'video', duration: 1 }] });
    expect(task.cost.exact).toBe('0.070000');
    expect(await costsOf(task.id)).toEqual(['0.069624 USD']); // 20 × 1.5 + 10 × 9 + 5,792 × 12, by the million
    expect(upstreams.interactions.requestsFor('submit')).toHaveLength(1);
  });

  it('that is refused in words costs its caller nothing, and its cost is on record', async () => {
    const content = [{ type: 'text', text: 'This violates our safety policy.' }];
    const usage = { total_input_tokens: 10, total_output_tokens: 0, total_thought_tokens: 5 };
    upstreams.interactions.instead(
      'poll',
      interaction('x', 'completed', { steps: [{ type: 'model_output', content }], usage }),
    );
    const task = await generate('omni', { prompt: 'Unfit' });
    const error = { type: 'content_policy_violation', message: 'This violates our safety policy.' };
    expect(task).toMatchObject({ status: 'failed', error, cost: { exact: '0.000000' } });
    expect(await costsOf(task.id)).toEqual(['0.00006 USD']);
  });

  it('whose submit is lost is not submitted again', async () => {
    const before = upstreams.interactions.requestsFor('submit').length;
    upstreams.interactions.instead('submit', 'cut');
    const task = await generate('omni', { prompt: 'Lost' });
    expect(task).toMatchObject({ status: 'failed', error: { type: 'upstream_error' }, cost: { exact: '0.000000' } });
    expect(upstreams.interactions.requestsFor('submit').length - before).toBe(1);
  });

  it.each([
    ['in_progress', 409, 'succeeded'],
    ['queued', 200, 'failed'],
  ])('is cancelled while it is %s: %i', async (status, expected, end) => {
    const before = upstreams.interactions.requestsFor('cancel').length;
    const polled = upstreams.interactions.nextRequest('poll');
    upstreams.interactions.instead('poll', ...Array.from({ length: 10_000 }, () => interaction('x', status)));
    const created = await client.call('POST', '/v1/generate', { model: 'omni', input: { prompt: 'A wave' } });
    await polled;
    const canceled = await client.call('POST', `/v1/tasks/${created.json.id}/cancel`);
    expect(canceled.status, canceled.text).toBe(expected);
    expect(upstreams.interactions.requestsFor('cancel').length - before).toBe(status === 'queued' ? 1 : 0);
    upstreams.interactions.asAlways('poll');
    await expect.poll(async () => (await client.call('GET', `/v1/tasks/${created.json.id}`)).json.status).toBe(end);
  });

  it('that is full waits as Retry-After says, and succeeds', async () => {
    const full = { status: 429, headers: { 'retry-after': '1' }, json: { error: { code: 'x', message: 'Full.' } } };
    upstreams.interactions.instead('submit', full);
    expect(await generate('omni', { prompt: 'A wave' })).toMatchObject({ status: 'succeeded' });
  });
});
