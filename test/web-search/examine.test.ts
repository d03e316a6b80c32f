import { createServer } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SearchApi, WebSearchSettings } from '../../src/catalog/model.ts';
import { openGuard } from '../../src/net/guard.ts';
import { examineSearch } from '../../src/web-search/examine.ts';
import { startSearchApi, type SearchServer } from '../helpers/search-api.ts';

const guard = openGuard();
const secret = 'examined-secret-0123456789';
let server: SearchServer;

beforeAll(async () => {
  process.env['TEST_EXAMINED_API_KEY'] = secret;
  server = await startSearchApi();
});
afterAll(() => server.stop());

const settingsOf = (api: SearchApi, more: Partial<WebSearchSettings> = {}): WebSearchSettings => ({
  api,
  base_url: server.url,
  api_key: 'env:TEST_EXAMINED_API_KEY',
  price: '0.01',
  per: 1,
  results_max: 2,
  searches_max: 5,
  timeout_ms: 60_000,
  allow_private: true,
  ...more,
});

const examine = (settings: WebSearchSettings, may_cost = false) =>
  examineSearch(guard, settings, { may_cost, signal: new AbortController().signal });

describe('the search API', () => {
  it.each([
    ['searxng', 'GET', '/search?q=medley&format=json'],
    ['tavily', 'GET', '/usage'],
  ] as const)('%s is asked at no cost', async (api, method, path) => {
    server.requests.length = 0;
    server.play(() => (api === 'tavily' ? { key: { usage: 1, limit: 1_000 } } : { results: [] }));
    expect(await examine(settingsOf(api))).toMatchObject({ ok: true });
    expect(server.requests).toMatchObject([{ method, path, headers: { authorization: `Bearer ${secret}` } }]);
  });

  it.each(['brave', 'exa'] as const)(
    '%s is not asked, since a search costs, but where the operator says so',
    async (api) => {
      server.requests.length = 0;
      server.play(() => (api === 'brave' ? { query: {} } : { results: [] }));
      expect(await examine(settingsOf(api))).toEqual({
        ok: true,
        detail: `${api}: not asked, since a search costs; doctor --search asks once`,
      });
      expect(server.requests).toEqual([]);
      expect(await examine(settingsOf(api), true)).toEqual({ ok: true, detail: `${api} answers searches` });
      expect(server.requests).toHaveLength(1);
    },
  );

  it.each(['searxng', 'tavily', 'brave', 'exa'] as const)('%s without its key is named', async (api) => {
    const result = await examine(settingsOf(api, { api_key: 'env:TEST_NO_SUCH_KEY' }));
    expect(result).toEqual({ ok: false, detail: `${api}: its key (env:TEST_NO_SUCH_KEY) is not set` });
  });

  describe.each(['searxng', 'tavily'] as const)('%s', (api) => {
    const expectFailure = async (settings: WebSearchSettings, detail: RegExp) => {
      const result = await examine(settings);
      expect(result).toEqual({ ok: false, detail: expect.stringMatching(detail) });
      expect(result.detail).not.toContain(secret);
    };

    it('that refuses the key fails with its status', async () => {
      server.play((_, response) => void response.writeHead(401).end(`{"detail":"bad key ${secret}"}`));
      await expectFailure(settingsOf(api), /answered 401; see tools\.web_search/);
    });

    it('that never answers fails in its time', async () => {
      server.play(() => undefined);
      await expectFailure(settingsOf(api, { timeout_ms: 700 }), new RegExp(`^${api}: .*time`, 'i'));
    });

    it('that answers HTML fails', async () => {
      server.play((_, response) => void response.writeHead(200).end('<!doctype html><p>Hello</p>'));
      await expectFailure(settingsOf(api), /cannot be read; see tools\.web_search/);
    });

    it('that speaks no TLS, or is not there, fails', async () => {
      await expectFailure(settingsOf(api, { base_url: server.url.replace('http:', 'https:') }), /; see tools/);
      const gone = createServer().listen(0, '127.0.0.1');
      await once(gone, 'listening');
      const address = gone.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      await new Promise((resolve) => gone.close(resolve));
      await expectFailure(settingsOf(api, { base_url: `http://127.0.0.1:${port}` }), /; see tools/);
    });
  });
});
