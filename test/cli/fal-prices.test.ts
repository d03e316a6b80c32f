import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { commandsOf, medleySoon } from './medley.ts';

/** fal's `GET /v1/models/pricing`, as its OpenAPI document has it in November 2026. */

const key = 'fal-key-of-the-test';
const prices: { [endpoint: string]: object } = {
  'acme/paint': { unit_price: 0.03, unit: 'images', currency: 'USD' },
  'acme/draw': { unit_price: 0.003, unit: 'megapixels', currency: 'USD' },
  'acme/film': { unit_price: 0.1, unit: 'seconds', currency: 'USD' },
  'acme/farm': { unit_price: 0.00007, unit: 'compute_seconds', currency: 'USD' },
};
let queries: string[][] = [];
let folder = '';
let url = '';

const error = (type: string, message: string) => ({ error: { type, message } });

function answerTo(path: string, authorization: string | undefined): [status: number, body: object] {
  const { pathname, searchParams } = new URL(path, 'http://fal');
  if (authorization !== `Key ${key}`) return [401, error('authorization_error', 'Authentication required')];
  if (pathname !== '/v1/models/pricing') return [404, error('not_found', 'Resource not found')];
  const endpoints = searchParams.getAll('endpoint_id').flatMap((ids) => ids.split(','));
  queries.push(endpoints);
  if (endpoints.length === 0 || endpoints.length > 50) return [400, error('validation_error', '1-50 endpoint IDs')];
  if (endpoints.some((endpoint) => endpoint.includes('unknown'))) return [404, error('not_found', 'No such model')];
  const rows = endpoints.map((endpoint_id) => ({ endpoint_id, ...(prices[endpoint_id] ?? prices['acme/paint']) }));
  const has_more = endpoints.length > 1 && searchParams.get('cursor') === null; // a page for each half
  const half = Math.ceil(rows.length / 2);
  const page = has_more ? rows.slice(0, half) : endpoints.length > 1 ? rows.slice(half) : rows;
  return [200, { prices: page, next_cursor: has_more ? 'second' : null, has_more }];
}

const server = createServer((request, response) => {
  const [status, body] = answerTo(request.url ?? '', request.headers.authorization);
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
});
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'medley-fal-'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  queries = [];
});

const image = (id: string, more: string) =>
  `  - id: ${id}\n    kind: image\n    input_schema: { type: object, properties: { n: { type: integer, minimum: 1, maximum: 4, default: 1 } } }\n${more}`;
const routed = (upstream_model: string, cost = '') =>
  `    routes: [{ provider: fal, upstream_model: ${upstream_model}, input: { num_images: $input.n }${cost} }]\n`;

const text = `version: 1
providers: { fal: { adapter: fal, api_key: env:FAL_KEY } }
models:
${image('acme/paint', `    price: [{ unit: image, amount: "0.05" }] # ours\n    estimate: { image: $input.n }\n${routed('acme/paint')}`)}
${image('acme/first', `    estimate: { image: $input.n }\n${routed('acme/paint', ', cost: [{ unit: image, amount: "0.03" }]')}`)}
${image('acme/draw', `    price: [{ unit: image, amount: "0.01" }]\n    estimate: { image: $input.n }\n${routed('acme/draw')}`)}
${image('acme/farm', `    price: [{ unit: image, amount: "0.02" }]\n    estimate: { image: $input.n }\n${routed('acme/farm')}`)}
${image('acme/sizes', `    price: [{ unit: image, amount: "0.02", when: { n: 1 } }, { unit: image, amount: "0.01" }]\n    estimate: { image: $input.n }\n${routed('acme/paint')}`)}
${image('acme/lost', `    price: [{ unit: image, amount: "0.02" }]\n    estimate: { image: $input.n }\n${routed('acme/unknown')}`)}
`;

/** Writes a configuration, and returns what runs the command over it. */
function stage(name: string, content = text) {
  const file = join(folder, name);
  writeFileSync(file, content);
  const words = ['models', 'import', 'fal-prices', '--prices-url', url, '--into', file];
  const run = (more: string[] = [], env: Record<string, string> = { FAL_KEY: key }) =>
    medleySoon([...words, ...more], { MEDLEY_DATA: join(folder, 'data'), ...env });
  return { file, run, read: () => readFileSync(file, 'utf8') };
}

describe('medley models import fal-prices', () => {
  it('shows what would change, and writes prices with the margin and costs without it', async () => {
    const { run, read } = stage('all.yaml');
    const shown = await run(['--markup', '20%']);
    expect(shown).toMatchObject({ code: 0, error: '' });
    expect(shown.out.split('\n')).toEqual([
      '~ acme/paint: price: image 0.05 → image 0.036; cost of fal: none → image 0.03',
      '~ acme/first: price: none → image 0.036',
      "  acme/draw is left alone: its price is by the image; fal's price is 0.003 for megapixels.",
      '  acme/farm is left alone: fal bills it by compute_seconds, which is no unit of image models here.',
      "  acme/sizes is left alone: its price or its cost has several rows; fal's price is 0.03 for images.",
      '  acme/lost is left alone: fal has no price of acme/unknown.',
      '2 models changed, 0 unchanged, 4 left alone.',
      expect.stringMatching(/^Nothing is written\. --write writes .*all\.yaml\.$/),
      '',
    ]);
    expect(read()).toBe(text);
    const today = () => new Date().toISOString().slice(0, 10);
    const day_before = today();
    const written = await run(['--markup', '20%', '--write']);
    expect(written.out).toContain('all.yaml is written.');
    const [, date = ''] = /price_source: \{ url: \S+, date: (\S+) \}/.exec(read()) ?? [];
    expect([day_before, today()]).toContain(date);
    const source = `{ url: ${url}/models/pricing, date: ${date} }`;
    expect(read()).toContain('{ unit: image, amount: "0.036" }');
    expect(read()).toContain(`price_source: ${source}`);
    expect(read()).toContain('{ unit: image, amount: "0.02", when: { n: 1 } }');
    expect(read()).not.toContain(key);
    expect((await run(['--markup', '20%', '--write'])).out).toContain('0 models changed, 2 unchanged, 4 left alone.');
  });

  it('takes the models that a pattern names, and asks for no others', async () => {
    const { run } = stage('some.yaml');
    const { out } = await run(['--only', 'acme/pa*', '--json']);
    expect(JSON.parse(out)).toMatchObject({
      written: false,
      changes: [{ id: 'acme/paint', kind: 'changed' }],
      left: [],
    });
    expect(queries).toEqual([['acme/paint']]);
  });

  it('asks for fifty endpoints at once, and for those beside an unknown one alone', async () => {
    const ids = Array.from({ length: 60 }, (_, index) => `acme/m${index}`);
    const models = ids.map((id) => image(id, `    estimate: { image: $input.n }\n${routed(id)}`));
    const lost = image('acme/lost', `    estimate: { image: $input.n }\n${routed('acme/unknown')}`);
    const { run } = stage('many.yaml', `version: 1\nmodels:\n${models.join('')}${lost}`);
    const { out } = await run();
    expect(out).toContain('60 models changed, 0 unchanged, 1 left alone.');
    expect(Math.max(...queries.map((endpoints) => endpoints.length))).toBe(50);
  });

  it.each([
    ['without a key', [], {}, 'fal asks for a key before it says its prices: set FAL_KEY.'],
    ['with another key', [], { FAL_KEY: 'other' }, 'fal does not take this key: '],
    [
      'for no such models',
      ['--only', 'x*'],
      { FAL_KEY: key },
      'has no model that was asked for with a route over fal.',
    ],
    ['at another address', ['--prices-url', 'http://127.0.0.1:9'], { FAL_KEY: key }, 'could not be read: '],
    ['with a margin that is none', ['--markup', 'much'], { FAL_KEY: key }, '--markup must be a percentage such as 20%'],
  ])('says what is wrong %s, and changes nothing', async (_, words, env, message) => {
    const { run, read } = stage('wrong.yaml');
    const { code, error: error_text } = await run(['--write', ...words], env);
    expect(code).not.toBe(0);
    expect(error_text).toContain(message);
    expect(error_text).not.toContain(key);
    expect(read()).toBe(text);
  });
});

describe('medley models import fal', () => {
  const document = (name: string) => ({
    info: { title: name },
    paths: {
      [`/${name}`]: {
        post: {
          requestBody: {
            content: {
              'application/json': {
                schema: {
                  type: 'object',
                  required: ['prompt'],
                  properties: {
                    prompt: { type: 'string' },
                    num_images: { type: 'integer', minimum: 1, maximum: 4, default: 1 },
                  },
                },
              },
            },
          },
        },
      },
    },
  });
  const described = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://fal');
    response.writeHead(200).end(JSON.stringify(document(searchParams.get('endpoint_id') ?? '')));
  });
  let base_url = '';
  beforeAll(async () => {
    await new Promise<void>((resolve) => described.listen(0, '127.0.0.1', resolve));
    base_url = `http://127.0.0.1:${(described.address() as AddressInfo).port}`;
  });
  afterAll(() => described.close());

  it.each([
    ['acme/paint', '    price:\n      - unit: image\n        amount: "0.045"\n', []],
    [
      'acme/draw',
      '    # To do: an estimate of these units, out of the input.\n    # price:\n    #   - { unit: megapixel, per: 1, amount: "0.0045" }\n',
      [expect.stringContaining('has no price')],
    ],
    [
      'acme/farm',
      '    # No price: fal bills it by compute_seconds, which is no unit of image models here.\n    # price:\n',
      [expect.stringContaining('has no price')],
    ],
  ])('has the price of %s in its draft, where it has the key', async (name, part, warnings) => {
    const words = ['models', 'import', 'fal', name, '--base-url', base_url, '--prices-url', url, '--markup', '50%'];
    const { out } = await commandsOf({ FAL_KEY: key }, medleySoon).text(...words);
    expect(out).toContain(part);
    const file = join(folder, `${name.replace('/', '-')}.yaml`);
    writeFileSync(file, out);
    const check = await medleySoon(['config', 'check', file, '--json'], { FAL_KEY: key });
    expect(JSON.parse(check.out)).toMatchObject({ errors: [], warnings });
  });
});
