import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { checkModels, lastModelCheck, modelCheckLines, runModelCheck } from '../../src/monitoring/model-check.ts';
import { adapters } from '../../src/providers/index.ts';
import { render } from '../../src/metrics/registry.ts';
import { openServiceGauges } from '../../src/monitoring/service-gauges.ts';
import type { AdminConfiguration } from '../../src/dashboard/views/admin.ts';
import { ownerOfNew, okBody } from '../dashboard/people.ts';
import { commandsOf, medleySoon } from '../cli/medley.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { testClock } from '../helpers/clock.ts';

/** Answers of the price list and of the provider's own list. */
type Answer = (response: ServerResponse) => void;
const json =
  (value: unknown): Answer =>
  (response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));

const talker = { litellm_provider: 'maker', mode: 'chat', input_cost_per_token: 1e-6, output_cost_per_token: 3e-6 };
const good_prices = json({ 'maker/talker': talker, 'maker/other': talker });
const good_models = json({ data: [{ id: 'talker-2026-01-01' }, { id: 'embedder' }] });

let prices: Answer = good_prices;
let own: Answer = good_models;
let requests: string[] = [];
const server = createServer((request, response) => {
  requests.push(`${request.url} ${request.headers.authorization ?? 'no key'}`);
  if (request.url === '/prices.json?x=1') prices(response);
  else own(response);
});
const clock = testClock();
const never = new AbortController().signal;
let service: TestApp;
let url = '';

const yaml = (catalog: object = {}) => `
version: 1
currencies: { USD: "1" }
catalog: ${JSON.stringify({ price_list: `${url}/prices.json?x=1`, ...catalog })}
providers:
  maker: { adapter: openai, base_url: "${url}/v1", api_key: env:MAKER_KEY, allow_private: true }
  own: { adapter: sandbox }
models:
  - id: maker/talker
    kind: chat
    price: &price [{ unit: input_token, per: 1000000, amount: "1" }, { unit: output_token, per: 1000000, amount: "3" }]
    routes: [{ provider: maker, upstream_model: talker, cost: *price }]
`;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  process.env['MAKER_KEY'] = 'sk-secret';
  service = await startTestApp({ yaml: yaml(), clock, worker: false });
});
afterAll(async () => {
  await service.stop();
  server.closeAllConnections();
  server.close();
  delete process.env['MAKER_KEY'];
});
beforeEach(async () => {
  [prices, own, requests] = [good_prices, good_models, []];
  await service.app.db.query('delete from model_checks');
  await service.configure(yaml());
});

const check = (signal: AbortSignal = never) => checkModels(service.app, `${url}/prices.json?x=1`, signal);
const hour_ms = 3_600_000;

describe('the check of models', () => {
  it('finds nothing where nothing differs, and shows the key to the provider alone', async () => {
    expect(await check()).toEqual({ compared: 1, differences: [], unread: [] });
    expect(requests).toEqual(['/prices.json?x=1 no key', '/v1/models Bearer sk-secret']);
  });

  it('says which price differs, which end, and which model the provider lists no longer', async () => {
    prices = json({ 'maker/talker': { ...talker, output_cost_per_token: 4e-6, deprecation_date: '2027-03-01' } });
    own = json({ data: [{ id: 'walker' }] });
    expect(await check()).toEqual({
      compared: 1,
      differences: [
        'maker/talker (maker) output_token: 3 here, 4 in the price list',
        'maker/talker (maker) retires: nothing here, 2027-03-01 in the price list',
        "maker/talker (maker): talker is not in the provider's own list",
      ],
      unread: [],
    });
  });

  it.each<[string, Answer, RegExp]>([
    ['HTML', (response) => response.writeHead(200).end('<html>hello</html>'), /is no JSON/],
    ['an empty list', json({}), /has no models/],
    ['numbers where texts belong', json({ data: [{ id: 7 }], x: 1 }), /has no models/],
    ['429', (response) => response.writeHead(429, { 'retry-after': '1' }).end('{}'), /no more requests/],
    [
      '500 with the key in it',
      (response) => response.writeHead(500).end(JSON.stringify({ error: response.req.headers.authorization ?? 'no' })),
      /answered 500/,
    ],
    ['a redirect', (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(), /leads elsewhere/],
    ['17 MB', (response) => response.writeHead(200).end(Buffer.alloc(17_000_000, 32)), /could not be read/],
    [
      'half an answer',
      (response) => response.writeHead(200, { 'content-length': '99' }).write('{', () => response.destroy()),
      /could not be read/,
    ],
  ])('is not hurt by a list that is %s', async (_what, answer, reason) => {
    prices = answer;
    own = answer;
    const { compared, differences, unread } = await check();
    expect({ compared, differences }).toEqual({ compared: 0, differences: [] });
    expect(unread).toHaveLength(2);
    for (const line of unread) {
      expect(line).toMatch(/^The (price list|list of maker) could not be read: /);
      expect(line).toMatch(reason);
      expect(line).not.toContain('sk-secret');
    }
  });

  it('is not held up by a list that never comes, and reads the others', async () => {
    prices = () => undefined;
    const { unread } = await check(AbortSignal.timeout(500));
    expect(unread).toEqual([expect.stringMatching(/^The price list could not be read: .*did not send its list/)]);
  });

  it('takes a price that is none, or is absurd, for no price', async () => {
    prices = json({
      'maker/talker': { ...talker, output_cost_per_token: '9'.repeat(100_000), input_cost_per_token: -1 },
    });
    const { differences } = await check();
    expect(differences).toHaveLength(2);
    for (const line of differences) expect(line.length).toBeLessThanOrEqual(300);
  });
});

describe('the prices of fal', () => {
  const drawing = (id: string, upstream_model: string, cost: string) => `  - id: ${id}
    kind: image
    input_schema: { type: object, properties: { n: { type: integer, minimum: 1, maximum: 4, default: 1 } } }
    price: [{ unit: image, amount: "1" }]
    estimate: { image: $input.n }
    routes: [{ provider: queue, upstream_model: ${upstream_model}, input: { num_images: $input.n }, cost: ${cost} }]`;
  const fal = () => `
version: 1
currencies: { USD: "1" }
catalog: { price_list: "${url}/prices.json?x=1" }
providers: { queue: { adapter: fal, base_url: "${url}", api_key: env:MAKER_KEY, allow_private: true } }
models:
${drawing('acme/same', 'acme/a', '[{ unit: image, per: 100, amount: "3" }]')}
${drawing('acme/dearer', 'acme/b', '[{ unit: image, amount: "0.03" }]')}
${drawing('acme/pixels', 'acme/c', '[{ unit: image, amount: "0.03" }]')}
${drawing('acme/counted', 'acme/d', '[{ unit: image, amount: "0.03", when: { n: 1 } }, { unit: image, amount: "0.02" }]')}
${drawing('acme/unknown', 'acme/e', '[{ unit: image, amount: "0.03" }]')}
`;
  const price = (endpoint_id: string, unit_price: number, unit = 'images') => ({
    endpoint_id,
    unit_price,
    unit,
    currency: 'USD',
  });
  const listed = {
    prices: [price('acme/a', 0.03), price('acme/b', 0.04), price('acme/c', 0.01, 'megapixels'), price('acme/d', 0.5)],
    next_cursor: null,
    has_more: false,
  };

  it('name the costs of one row that they contradict', async () => {
    await service.configure(fal());
    own = json(listed);
    expect(await check()).toEqual({
      compared: 0,
      differences: ["acme/dearer (queue) image: 0.03 here, 0.04 in the provider's own prices"],
      unread: [],
    });
    expect(requests.at(-1)).toBe(
      '/v1/models/pricing?endpoint_id=acme%2Fa%2Cacme%2Fb%2Cacme%2Fc%2Cacme%2Fe Key sk-secret',
    );
  });

  it.each<[string, Answer, RegExp]>([
    ['a refusal', (response) => response.writeHead(401).end('{}'), /does not take this key/],
    ['HTML', (response) => response.writeHead(200).end('<html>'), /is no JSON object/],
    ['another answer', json({ data: [] }), /has no prices/],
  ])('are named where %s comes in their place', async (_what, answer, reason) => {
    await service.configure(fal());
    own = answer;
    const { differences, unread } = await check();
    expect(differences).toEqual([]);
    expect(unread).toEqual([expect.stringMatching(/^The prices of queue could not be read: /)]);
    expect(unread[0]).toMatch(reason);
    expect(unread[0]).not.toContain('sk-secret');
  });

  it('are nothing where there are none', async () => {
    await service.configure(fal());
    own = (response) => response.writeHead(404).end('{}');
    expect(await check()).toEqual({ compared: 0, differences: [], unread: [] });
  });
});

describe('the list of Google', () => {
  const videoModel = (id: string, upstream_model: string) => `  - id: ${id}
    kind: video
    input_schema: { type: object, properties: { prompt: { type: string } } }
    price: [{ unit: request, amount: "1" }]
    routes: [{ provider: google, upstream_model: ${upstream_model}, timeout: { start: 10m, total: 30m }, input: { prompt: $input.prompt } }]`;
  const google = (path: string) => `
version: 1
currencies: { USD: "1" }
catalog: { price_list: "${url}/prices.json?x=1" }
providers: { google: { adapter: gemini-interactions, base_url: "${url}${path}", api_key: env:MAKER_KEY, allow_private: true } }
models:
${videoModel('google/film', 'gemini-omni-2')}
${videoModel('google/old', 'veo-3')}
`;
  const named = (name: string) => ({ name: `models/${name}`, supportedGenerationMethods: ['generateContent'] });
  const list = json({ models: ['gemini-omni-2', 'gemini-9-flash', 'lyria-4'].map(named) });

  it('names a model for media that is not in it any more', async () => {
    await service.configure(google(''));
    own = list;
    expect((await check()).differences).toEqual(["google/old (google): veo-3 is not in the provider's own list"]);
    expect(requests).toContain('/v1beta/models?pageSize=1000 no key'); // which goes in a header of Google's
  });

  it('is not asked for at an address of Vertex AI, which has another', async () => {
    await service.configure(google('/v1beta1/projects/p/locations/global'));
    expect(await check()).toMatchObject({ differences: [], unread: [] });
    expect(requests).toEqual(['/prices.json?x=1 no key']);
  });

  it('offers models that write text for chat, and those for media for nothing', async () => {
    own = list;
    const config = service.app.catalog.current.providers.get('maker');
    if (!config) throw new Error('maker is configured');
    const google_config = { ...config, adapter: 'gemini', base_url: url };
    const offered = await adapters['gemini']?.listModels?.(google_config, service.app, {
      form: undefined,
      key_path: undefined,
      signal: never,
    });
    expect(offered?.map(({ upstream_model, kind }) => [upstream_model, kind])).toEqual([
      ['gemini-omni-2', undefined],
      ['gemini-9-flash', 'chat'],
      ['lyria-4', undefined],
    ]);
  });
});

describe('the command', () => {
  it('compares with all lists at once, exits with 1 for a difference or an unread list, and records nothing', async () => {
    const { config } = service.app;
    const commands = commandsOf(
      {
        DATABASE_URL: config.database_url ?? '',
        MEDLEY_DATA: config.data_dir,
        MEDLEY_CONFIG: config.config_file ?? '',
        MAKER_KEY: 'sk-secret',
      },
      medleySoon,
    );
    expect(await commands.text('models', 'check')).toMatchObject({
      code: 0,
      out: '1 route compared, 0 differences.\n',
      error: '',
    });
    prices = json({ 'maker/talker': { ...talker, output_cost_per_token: 4e-6 } });
    own = (response) => void response.writeHead(500).end();
    const { code, out } = await commands.text('models', 'check', '--json');
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      compared: 1,
      differences: ['maker/talker (maker) output_token: 3 here, 4 in the price list'],
      unread: [expect.stringMatching(/^The list of maker could not be read/)],
    });
    expect(out).not.toContain('sk-secret');
    expect(await commands.fails(2, 'models', 'check', 'litellm')).toBe(
      'Name the file or the URL of the list too, or neither.',
    );
    expect(await lastModelCheck(service.app.db)).toBeUndefined();
  });
});

describe('the daily check', () => {
  const run = () => runModelCheck(service.app, never);
  const lines = () => modelCheckLines(service.app.db, service.app.catalog.current.settings);

  it('begins a while after the first start, then once a day, and its result is shown', async () => {
    prices = json({ 'maker/talker': { ...talker, output_cost_per_token: 4e-6 } });
    await run();
    expect(requests).toEqual([]);
    expect(await lines()).toEqual([]);
    clock.pass(hour_ms);
    const begun_ms = clock.now();
    await run();
    await run();
    expect(requests).toHaveLength(2);
    const [line = '', ...others] = await lines();
    const days = [begun_ms, clock.now()].map((at_ms) => new Date(at_ms).toISOString().slice(0, 10));
    const difference = 'maker/talker (maker) output_token: 3 here, 4 in the price list';
    expect(days.map((day) => `Lists of ${day}: ${difference}`)).toContain(line);
    expect(others).toEqual([]);
    const { config } = service.app;
    const env = {
      DATABASE_URL: config.database_url ?? '',
      MEDLEY_DATA: config.data_dir,
      MEDLEY_CONFIG: config.config_file ?? '',
    };
    expect((await commandsOf(env, medleySoon).text('doctor')).out).toContain(` models; ${line}\n`);
    expect(service.app.catalog.current.models.get('maker/talker')?.price[1]?.amount).toBe('3');
    clock.pass(23 * hour_ms);
    await run();
    expect(requests).toHaveLength(2);
    clock.pass(hour_ms);
    prices = good_prices;
    await run();
    expect(requests).toHaveLength(4);
    expect(await lines()).toEqual([]);
  });

  it('is a line of the configuration page of operators, and a number for Prometheus', async () => {
    const node = await service.beside({ yaml: yaml() }); // by the real time, which sign-ins need
    const operator = await ownerOfNew(node, 'Operating');
    await service.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
    const warnings = async () =>
      okBody<AdminConfiguration>(await operator.get('/dash/admin/configuration')).warnings.filter((line) =>
        line.startsWith('Lists of'),
      );
    const numbers = async () => {
      const gauges = openServiceGauges();
      await gauges.read(service.app);
      return [...render(gauges.metrics).matchAll(/^medley_model_list.*$/gm)].map(String);
    };
    expect(await numbers()).toEqual([]);
    await run();
    clock.pass(hour_ms);
    prices = json({ 'maker/talker': { ...talker, output_cost_per_token: 4e-6 } });
    own = (response) => void response.writeHead(500).end();
    await run();
    expect(await numbers()).toEqual(['medley_model_list_differences 1', 'medley_model_lists_unread 1']);
    expect(await warnings()).toEqual([
      expect.stringMatching(/^Lists of .*: maker\/talker \(maker\) output_token: 3 here, 4 in the price list$/),
      expect.stringMatching(/^Lists of .*: The list of maker could not be read: /),
    ]);
    clock.pass(24 * hour_ms);
    [prices, own] = [good_prices, good_models];
    await run();
    expect(await numbers()).toEqual(['medley_model_list_differences 0', 'medley_model_lists_unread 0']);
    expect(await warnings()).toEqual([]);
    await node.stop();
  });

  it('asks nobody where it is off, where nothing is bought, or twice at once', async () => {
    await run();
    clock.pass(25 * hour_ms);
    await service.configure(yaml({ check: false }));
    await run();
    expect(requests).toEqual([]);
    await service.configure('version: 1\n');
    await run();
    expect(requests).toEqual([]);
    expect(await lastModelCheck(service.app.db)).toMatchObject({ compared: 0, differences: [], unread: [] });
    await service.configure(yaml());
    clock.pass(25 * hour_ms);
    await Promise.all([run(), run(), run()]);
    expect(requests).toHaveLength(2);
  });
});
