import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { startSearchApi, type SearchServer } from '../helpers/search-api.ts';
import { commandsBeside } from './medley.ts';

let server: SearchServer;
let service: TestApp;

beforeAll(async () => {
  process.env['TEST_DOCTOR_SEARCH_KEY'] = 'doctor-secret-0123456789';
  server = await startSearchApi();
  service = await startTestApp({
    yaml: `version: 1
tools:
  web_search: { api: brave, base_url: "${server.url}", api_key: env:TEST_DOCTOR_SEARCH_KEY, price: "0.01", allow_private: true }
`,
  });
});
afterAll(async () => {
  await service.stop();
  await server.stop();
});

it('doctor asks a search API that costs only with --search, and fails when it refuses the key', async () => {
  const commands = commandsBeside(service);
  const { out } = await commands.text('doctor');
  expect(out).toMatch(/^ok {4}search: brave: not asked, since a search costs; doctor --search asks once$/m);
  expect(server.requests).toEqual([]);
  server.play((_, response) => void response.writeHead(401).end('{}'));
  const refused = await commands.text('doctor', '--search');
  expect([refused.code, refused.out]).toEqual([
    1,
    expect.stringMatching(/^FAIL {2}search: brave: the search API answered 401; /m),
  ]);
  expect(server.requests).toHaveLength(1);
});
