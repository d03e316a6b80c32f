import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SearchApi, WebSearchSettings } from '../../src/catalog/model.ts';
import { openGuard } from '../../src/net/guard.ts';
import { searchWeb } from '../../src/web-search/search.ts';
import { startSearchApi, type SearchServer } from '../helpers/search-api.ts';

/** Each search API, by a real server that answers as its documentation says. */

let server: SearchServer;
const guard = openGuard();
const secret = 'search-secret-0123456789';

beforeAll(async () => {
  process.env['TEST_SEARCH_API_KEY'] = secret;
  server = await startSearchApi();
});
afterAll(() => server.stop());

const settingsOf = (api: SearchApi): WebSearchSettings => ({
  api,
  base_url: server.url,
  api_key: 'env:TEST_SEARCH_API_KEY',
  price: '0.01',
  per: 1,
  results_max: 2,
  searches_max: 5,
  timeout_ms: 60_000,
  allow_private: true,
});
const query = { text: 'cats & dogs', allowed_domains: [], blocked_domains: ['c.example'] };
const never = new AbortController().signal;

const url = 'https://a.example/1';
const result = { url, title: 'A & B', text: 'A text.', age: '2026-01-02' };

type Case = [api: SearchApi, answer: object, asked: object, body: object | undefined];
const cases: Case[] = [
  [
    'brave',
    {
      query: {},
      web: { results: [{ url, title: 'A &amp; B', description: 'A <strong>text</strong>.', page_age: '2026-01-02' }] },
    },
    {
      method: 'GET',
      path: '/res/v1/web/search?q=cats+%26+dogs+-site%3Ac.example&count=2',
      headers: { 'x-subscription-token': secret },
    },
    undefined,
  ],
  [
    'tavily',
    { results: [{ url, title: 'A & B', content: 'A text.', score: 0.9, published_date: '2026-01-02' }] },
    { method: 'POST', path: '/search', headers: { authorization: `Bearer ${secret}` } },
    { query: 'cats & dogs', max_results: 2, exclude_domains: ['c.example'] },
  ],
  [
    'searxng',
    { results: [{ url, title: 'A & B', content: 'A text.', publishedDate: '2026-01-02' }] },
    {
      method: 'GET',
      path: '/search?q=cats+%26+dogs+-site%3Ac.example&format=json',
      headers: { authorization: `Bearer ${secret}` },
    },
    undefined,
  ],
  [
    'exa',
    { results: [{ id: url, url, title: 'A & B', text: 'A text.', publishedDate: '2026-01-02' }] },
    { method: 'POST', path: '/search', headers: { 'x-api-key': secret } },
    {
      query: 'cats & dogs',
      numResults: 2,
      contents: { text: { maxCharacters: 1_000 } },
      excludeDomains: ['c.example'],
    },
  ],
];

describe('a search', () => {
  it.each(cases)('of %s is asked and read as its documentation says', async (api, answer, request, body) => {
    server.play(() => answer);
    expect(await searchWeb(guard, settingsOf(api), query, never)).toEqual({ results: [result] });
    const last = server.requests.at(-1);
    expect(last).toMatchObject(request);
    expect(last?.body === '' ? undefined : JSON.parse(last?.body ?? '')).toEqual(body);
  });

  it('gives no more results than the operator says, each page once, and none of a blocked domain', async () => {
    const pages = [
      'https://c.example/1',
      url,
      url,
      'https://sub.c.example/2',
      'https://b.example/',
      'https://d.example/',
    ];
    server.play(() => ({ results: pages.map((each) => ({ url: each, title: 't', content: 'x' })) }));
    const searched = await searchWeb(guard, settingsOf('tavily'), query, never);
    expect('results' in searched && searched.results.map((each) => each.url)).toEqual([url, 'https://b.example/']);
  });

  it('of brave that finds nothing was answered all the same', async () => {
    server.play(() => ({ query: { original: 'x' }, type: 'search' }));
    expect(await searchWeb(guard, settingsOf('brave'), query, never)).toEqual({ results: [] });
    server.play(() => ({ type: 'ErrorResponse' }));
    expect(await searchWeb(guard, settingsOf('brave'), query, never)).toMatchObject({ failure: 'unavailable' });
  });

  it('that its caller gives up ends at once', async () => {
    server.play(() => undefined);
    const gone = new AbortController();
    const searching = searchWeb(guard, settingsOf('tavily'), query, gone.signal);
    setTimeout(() => gone.abort(new Error('gone')), 50);
    await expect(searching).rejects.toThrow('gone');
  });
});
