import { generateText, streamText } from 'ai';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { calls, says } from '../chat/search-streams.ts';
import type { Stage } from '../chat/setup.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { startSearchApi, type SearchServer } from '../helpers/search-api.ts';
import { chat_models, loadProvider, setChatStage, type Sdk } from './stage.ts';

/** Tools that the service runs itself, with upstreams of each style. */

let provider: ReturnType<Sdk['createMedley']>;
let stage: Stage;
let search: SearchServer;
let remove: () => void;

const toolsOf = (url: string) => `
tools:
  web_search: { api: tavily, base_url: "${url}", api_key: env:TEST_SEARCH_KEY, price: "5.00", per: 1000, allow_private: true }
  image_generation: { model: sandbox/image }
`;

beforeAll(async () => {
  const loaded = await loadProvider();
  ({ remove } = loaded);
  search = await startSearchApi();
  process.env['TEST_SEARCH_KEY'] = 'search-secret-0123456789';
  stage = await setChatStage(toolsOf(search.url));
  provider = loaded.sdk.createMedley({ baseURL: stage.test.url, apiKey: stage.client.key });
});
beforeEach(() =>
  search.play(() => ({ results: [{ url: 'https://a.example/one', title: 'One', content: 'A page.' }] })),
);
afterEach(() => expectExactBooks(stage.test.app));
afterAll(async () => {
  await stage?.stop();
  await search?.stop();
  remove?.();
});

const forms = chat_models.flatMap(([id, style, upstream]) =>
  [false, true].map((stream) => [id, stream ? 'streamed' : 'whole', style, upstream, stream] as const),
);
const lastBody = () => JSON.stringify(stage.upstream.requests.at(-1)?.body);

describe('a search of the web', () => {
  test.each(forms)(
    'by %s has its sources, and the conversation goes on, %s',
    async (id, _, style, upstream, stream) => {
      const cited = 'As [One](https://a.example/one) says.';
      stage.upstream.script(
        upstream,
        calls(style, stream, [{ input: { query: 'pages' } }]),
        says(style, stream, cited),
        says(style, stream, 'And more.'),
      );
      const tools = { web_search: provider.tools.webSearch() };
      const request = { model: provider(id), prompt: 'Find pages.', tools };
      const result = stream ? streamText(request) : await generateText(request);
      expect(await result.text).toBe(cited);
      expect(await result.sources).toMatchObject([{ sourceType: 'url', url: 'https://a.example/one' }]);
      expect((await result.finalStep).content.map(({ type }) => type)).toContain('tool-result');
      const { messages } = await result.response;
      const again = {
        model: provider(id),
        tools,
        messages: [...messages, { role: 'user' as const, content: 'More?' }],
      };
      const second = stream ? await streamText(again).text : (await generateText(again)).text;
      expect(second).toBe('And more.');
      expect(lastBody()).toContain('a.example/one');
    },
  );
});

describe('an image in a chat', () => {
  test.each(forms)('by %s is the result of its tool, %s', async (id, _, style, upstream, stream) => {
    const image_call = { name: 'make_image', input: { prompt: 'a red bicycle' } };
    stage.upstream.script(upstream, calls(style, stream, [image_call]), says(style, stream, 'Here it is.'));
    const tools = { image_generation: provider.tools.imageGeneration({ size: '512x512' }) };
    const request = { model: provider(id), prompt: 'Draw a bicycle.', tools };
    const result = stream ? streamText(request) : await generateText(request);
    expect(await result.text).toBe('Here it is.');
    const [tool_result] = await result.toolResults;
    expect(tool_result).toMatchObject({
      toolName: 'image_generation',
      output: { result: expect.stringMatching(/^iVBOR/) },
    });
  });
});
