import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkCatalogFile, openCatalog } from '../../src/catalog/catalog.ts';
import type { Kind, Settings } from '../../src/catalog/model.ts';
import { estimateUnits, freezePricing, holdAmount } from '../../src/catalog/price.ts';
import { modelRecord } from '../../src/catalog/view.ts';

let folder: string;
let config_file: string;
const secrets = new Map<string, string>();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'medley-catalog-'));
  config_file = join(folder, 'medley.yaml');
  secrets.clear();
});
afterEach(() => rm(folder, { recursive: true }));

const options = { adapters: ['sandbox', 'mock', 'talker'], secret: (reference: string) => secrets.get(reference) };
const canServe = (adapter: string, kind: Kind) => adapter === 'sandbox' || (adapter === 'talker') === (kind === 'chat');

const builtin = [
  'sandbox/image',
  'sandbox/edit',
  'sandbox/video',
  'sandbox/audio',
  'sandbox/transcript',
  'sandbox/chat',
  'sandbox/embedding',
  'sandbox/rerank',
  'sandbox/moderation',
  'sandbox/failover',
  'sandbox/down',
];
const image = (id: string, more = '') =>
  `  - { id: ${id}, kind: image, input_schema: { type: object }, price: [{ unit: image, amount: "2" }], routes: [{ provider: p }]${more} }\n`;
const withProvider = (models: string, top = '') =>
  `version: 1\n${top}providers: { p: { adapter: mock } }\nmodels:\n${models}`;

async function open(text: string) {
  await writeFile(config_file, text);
  return openCatalog({ ...options, config_file, canServe });
}

describe('the catalogue without a file', () => {
  it('has the sandbox, priced in dollars and zlotys', async () => {
    const { current } = await openCatalog(options);
    expect([...current.models.keys()]).toEqual(builtin);
    expect([...current.providers.values()]).toEqual([{ name: 'sandbox', adapter: 'sandbox', allow_private: false }]);
    expect([...current.settings.currencies]).toEqual([
      ['USD', '1'],
      ['PLN', '3.65'],
    ]);
    expect(current.settings).toMatchObject({
      base_currency: 'USD',
      limits: {
        generate_per_minute: 60,
        chat_per_minute: 600,
        chat_at_once: 200,
        failed_per_24h: 25,
        other_per_minute: 600,
        waiting_tasks: 1_000,
      },
      money: { reservations: 'memory' },
      routing: { by_caller: true },
      webhooks: { retry_delays_ms: [10_000, 60_000, 300_000, 1_800_000, 7_200_000], timeout_ms: 10_000 },
      outputs: { link_ttl_ms: 86_400_000, keep_ms: 7 * 86_400_000 },
      tasks: { keep_ms: 90 * 86_400_000 },
      retention: {
        chat_records_ms: 90 * 86_400_000,
        deliveries_ms: 91 * 86_400_000,
        sessions_ms: 86_400_000,
        invitations_ms: 30 * 86_400_000,
      },
      storage: { type: 'disk', shared: false },
    });
    expect(current.settings).not.toHaveProperty('base_url');
    expect(current.warnings).toEqual([]);
  });

  it.each([
    ['sandbox/image', { prompt: 'x', n: 3 }, 30_000n],
    ['sandbox/video', { prompt: 'x', duration: 2.5 }, 50_000n],
    ['sandbox/audio', { prompt: 'x' }, 50_000n],
    ['sandbox/failover', { prompt: 'x' }, 10_000n],
    ['sandbox/down', { prompt: 'x' }, 10_000n],
  ])('holds the expected amount for %s', async (id, input, expected) => {
    const { current } = await openCatalog(options);
    const model = current.models.get(id);
    const checked = model?.validateInput(input);
    if (!model || !checked?.ok) throw new Error('the input is fine');
    const pricing = freezePricing(model, checked.input, 'USD', current.settings);
    expect(holdAmount(pricing, estimateUnits(model, checked.input))).toBe(expected);
  });

  it('fails over in the sandbox model made for it', async () => {
    const { current } = await openCatalog(options);
    const refuses = { behaviour: { fail: 'before_start' } };
    const routesOf = (id: string) => current.models.get(id)?.routes.map(({ id: route, options: how }) => [route, how]);
    expect(routesOf('sandbox/failover')).toEqual([
      ['broken', refuses],
      ['good', {}],
    ]);
    expect(routesOf('sandbox/down')).toEqual([
      ['first', refuses],
      ['second', refuses],
    ]);
  });
});

/** Settings without those that have tests of their own. */
function mostOf({
  alerts: _alerts,
  sign_in: _sign_in,
  status_page: _status,
  content: _content,
  currencies,
  ...others
}: Settings) {
  return { ...others, currencies: [...currencies] };
}

describe('the catalogue with a file', () => {
  it("lists the file's models first, which may replace built-in ones", async () => {
    const { current } = await open(withProvider(image('a') + image('sandbox/down')));
    expect([...current.models.keys()]).toEqual(['a', 'sandbox/down', ...builtin.filter((id) => id !== 'sandbox/down')]);
    expect(current.models.get('sandbox/down')?.routes[0]?.provider).toBe('p');
  });

  it('has nothing of the sandbox after sandbox: false', async () => {
    const { current } = await open(withProvider(image('a'), 'sandbox: false\n'));
    expect([...current.models.keys()]).toEqual(['a']);
    expect([...current.providers.keys()]).toEqual(['p']);
  });

  it('reads what of contents of chats may be stored', async () => {
    const text =
      'version: 1\ncontent_log: { keep_max: 14d, call_kb_max: 4, account_mb_max: 5, redact: [email], patterns: ["EMP-####"], traces: true }\n';
    const content = {
      keep_ms: 1_209_600_000,
      call_length_max: 4_000,
      account_bytes_max: 5_000_000,
      redact: ['email'],
      patterns: ['EMP-####'],
      traces: true,
    };
    expect((await open(text)).current.settings.content).toEqual(content);
    const forbidden = await open('version: 1\ncontent_log: { allowed: false }\n');
    expect(forbidden.current.settings.content.keep_ms).toBe(0);
    await expect(open('version: 1\ncontent_log: { patterns: ["a*"] }\n')).rejects.toThrow(
      'content_log.patterns[0]: must be a pattern such as',
    );
  });

  it('reads every setting but those of alerts, sign-in, status and contents', async () => {
    const { current } = await open(`version: 1
currencies: { PLN: "1", USD: "0.27" }
server: { base_url: "https://x.example/", trusted_proxies: [10.0.0.0/8], cors_origins: ["https://a.example"], hsts: off }
limits: { generate_per_minute: 1, chat_per_minute: 2, chat_at_once: 5, failed_per_24h: 3, other_per_minute: 4, waiting_tasks: 9 }
money: { reservations: database }
routing: { by_caller: false }
catalog: { price_list: "https://mirror.example/prices.json" }
net: { allow: [127.0.0.0/8] }
webhooks: { retry_delays: [1s], timeout: 2s, disable_after: 5d }
outputs: { link_ttl: 3s, keep: 4s }
tasks: { keep: 5s }
retention: { chat_records: 10s, deliveries: 2d, audit: 11s, sessions: 12s, invitations: 13s }
storage: { shared: true }
files: { keep: 6s, file_mb_max: 7, account_mb_max: 8, account_files_max: 9 }
responses: { keep: 10d, response_mb_max: 2, account_mb_max: 3 }
tools: { web_search: { api: searxng, base_url: "https://s.example/", price: "0.5", per: 7, cost: "0.4", results_max: 8, searches_max: 9, timeout: 11s, allow_private: true, models: [a/b] }, image_generation: { model: a/c, images_max: 2, timeout: 12s } }
`);
    expect(mostOf(current.settings)).toEqual({
      base_url: 'https://x.example',
      trusted_proxies: ['10.0.0.0/8'],
      hsts: 'off',
      cors_origins: ['https://a.example'],
      limits: {
        generate_per_minute: 1,
        chat_per_minute: 2,
        chat_at_once: 5,
        failed_per_24h: 3,
        other_per_minute: 4,
        waiting_tasks: 9,
      },
      money: { reservations: 'database' },
      routing: { by_caller: false },
      model_check: { price_list: 'https://mirror.example/prices.json' },
      net_allow: ['127.0.0.0/8'],
      webhooks: { retry_delays_ms: [1_000], timeout_ms: 2_000, disable_after_ms: 5 * 86_400_000 },
      outputs: { link_ttl_ms: 3_000, keep_ms: 4_000 },
      tasks: { keep_ms: 5_000 },
      retention: {
        chat_records_ms: 10_000,
        deliveries_ms: 2 * 86_400_000,
        audit_ms: 11_000,
        sessions_ms: 12_000,
        invitations_ms: 13_000,
      },
      storage: { type: 'disk', shared: true },
      files: { keep_ms: 6_000, file_bytes_max: 7_000_000, account_bytes_max: 8_000_000, account_files_max: 9 },
      responses: { keep_ms: 864_000_000, response_bytes_max: 2_000_000, account_bytes_max: 3_000_000 },
      tools: {
        web_search: {
          api: 'searxng',
          base_url: 'https://s.example',
          price: '0.5',
          cost: '0.4',
          per: 7,
          results_max: 8,
          searches_max: 9,
          timeout_ms: 11_000,
          allow_private: true,
          models: ['a/b'],
        },
        image_generation: { model: 'a/c', images_max: 2, timeout_ms: 12_000 },
      },
      currencies: [
        ['PLN', '1'],
        ['USD', '0.27'],
      ],
      base_currency: 'PLN',
    });
  });

  it('reads who hears of alerts, how and when', async () => {
    const { current } = await open(`version: 1
alerts: { mail: [ops@x.example], webhook_url: "https://x.example/alerts", webhook_secret: env:ALERTS, quiet_hours: { from: "22:30", to: "07:05", time_zone: Europe/Warsaw }, per_hour_max: 3, disk_percent_min: 15 }
`);
    expect(current.settings.alerts).toEqual({
      mail: ['ops@x.example'],
      webhook: { url: 'https://x.example/alerts', secret: 'env:ALERTS' },
      quiet: { from: 1350, to: 425, time_zone: 'Europe/Warsaw' },
      per_hour_max: 3,
      disk_percent_min: 15,
    });
  });

  it('has defaults for most of a search, and warns of a key that is not set and of unknown models', async () => {
    secrets.set('env:A', 'a secret');
    const read = (search: string) => open(`version: 1\ntools: { web_search: ${search} }`);
    const { current } = await read('{ api: brave, api_key: env:A, price: "0.01" }');
    expect(current.settings.tools.web_search).toEqual({
      api: 'brave',
      base_url: 'https://api.search.brave.com',
      api_key: 'env:A',
      price: '0.01',
      per: 1,
      results_max: 5,
      searches_max: 5,
      timeout_ms: 10_000,
      allow_private: false,
    });
    const { current: other } = await read('{ api: exa, api_key: env:UNSET_KEY, price: "0.01", models: [no/such] }');
    expect(other.warnings.map(({ path }) => path)).toEqual(['tools.web_search.api_key', 'tools.web_search.models[0]']);
  });

  it('reads every setting of a bucket, and has defaults for most of them', async () => {
    for (const name of ['env:A', 'env:B']) secrets.set(name, 'a secret');
    const read = async (s3: string) => {
      const { current } = await open(`version: 1\nstorage: { s3: ${s3} }`);
      return current.settings.storage;
    };
    expect(await read('{ bucket: files }')).toEqual({
      type: 's3',
      bucket: 'files',
      prefix: '',
      force_path_style: false,
      links: 'through',
    });
    const all = `{ bucket: files, region: eu-1, endpoint: "https://s3.example:9000", prefix: a/b, force_path_style: true,
      access_key_id: env:A, secret_access_key: env:B, encryption: aws:kms, kms_key_id: k, links: presigned }`;
    expect(await read(all)).toEqual({
      type: 's3',
      bucket: 'files',
      region: 'eu-1',
      endpoint: 'https://s3.example:9000',
      prefix: 'a/b/',
      force_path_style: true,
      credentials: { access_key_id: 'env:A', secret_access_key: 'env:B' },
      encryption: { algorithm: 'aws:kms', kms_key_id: 'k' },
      links: 'presigned',
    });
  });

  it('reads routes with the time limits of their kind', async () => {
    const routes = `[{ provider: p }, { provider: p, id: p-2 }, { provider: p, upstream_model: up, timeout: { start: 10m, idle: 3s },
      poll: { first: 2s, max: 4s }, input: { a: 1 }, output: { b: 2 }, options: { c: 3 }, on_ambiguous_submit: failover,
      cost: [{ unit: image, amount: "0.001", per: 2, currency: PLN }, { unit: image, amount: "1" }] },
      { provider: p, timeout: { total: 30s } }]`;
    const { current } = await open(withProvider(image('a').replace('[{ provider: p }]', routes)));
    const [first, second, third, fourth] = current.models.get('a')?.routes ?? [];
    expect(first).toEqual({
      id: 'p',
      provider: 'p',
      upstream_model: 'a',
      timeout_ms: { connect: 5_000, first_byte: 60_000, idle: 60_000, start: 60_000, total: 300_000 },
      poll: { first_ms: 1_000, max_ms: 10_000 },
      output: {},
      options: {},
      on_ambiguous_submit: 'fail',
      cost: [],
    });
    expect(second?.id).toBe('p-2');
    expect(third).toEqual({
      id: 'p-3',
      provider: 'p',
      upstream_model: 'up',
      timeout_ms: { connect: 5_000, first_byte: 60_000, idle: 3_000, start: 600_000, total: 600_000 },
      poll: { first_ms: 2_000, max_ms: 4_000 },
      input: { a: 1 },
      output: { b: 2 },
      options: { c: 3 },
      on_ambiguous_submit: 'failover',
      cost: [
        { unit: 'image', amount: '0.001', per: 2, currency: 'PLN' },
        { unit: 'image', amount: '1', per: 1, currency: 'USD' },
      ],
    });
    expect(fourth).toMatchObject({ id: 'p-4', timeout_ms: { start: 30_000, total: 30_000 } });
  });

  it('leaves out routes without their secret and reports them, and other routes keep their ids', async () => {
    const text = `version: 1
providers: { p: { adapter: mock, api_key: env:A }, q: { adapter: mock, api_key: env:B, base_url: "http://q/" } }
models:
${image('a').replace('[{ provider: p }]', '[{ provider: p }, { provider: q }, { provider: q }]')}${image('b')}`;
    secrets.set('env:B', 'key of q');
    const holder = await open(text);
    expect([...holder.current.models.keys()]).toEqual(['a', ...builtin]);
    expect(holder.current.models.get('a')?.routes.map((route) => route.id)).toEqual(['q', 'q-2']);
    expect([...holder.current.providers.values()].at(-1)).toEqual({
      name: 'q',
      adapter: 'mock',
      base_url: 'http://q',
      api_key: 'key of q',
      allow_private: false,
    });
    expect(holder.current.warnings.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      'providers.p.api_key: the environment variable A is not set: the routes of p are not used.',
      'models[1]: has no usable route and is not offered.',
    ]);
    secrets.set('env:A', 'key of p');
    expect(await holder.reload()).toMatchObject({ ok: true, problems: [] });
    expect([...holder.current.models.keys()]).toEqual(['a', 'b', ...builtin]);
    expect(holder.current.models.get('a')?.routes.map((route) => route.id)).toEqual(['p', 'q', 'q-2']);
  });

  it('offers chat models when an adapter offers chat', async () => {
    const { current } = await open(`version: 1
providers: { p: { adapter: mock }, t: { adapter: talker } }
models:
  - { id: a, kind: chat, price: [{ unit: input_token, amount: "1" }], routes: [{ provider: p }] }
  - { id: b, kind: chat, max_output_tokens: 100, price: [], routes: [{ provider: p }, { provider: t }] }
`);
    expect([...current.models.keys()]).toEqual(['b', ...builtin]);
    const model = current.models.get('b');
    expect(model?.routes.map((route) => route.provider)).toEqual(['t']);
    expect(model).toMatchObject({
      output_types: ['text'],
      limits: { max_output_tokens: 100, default_output_tokens: 100 },
      estimate: {},
    });
    expect(model?.validateInput({})).toMatchObject({ ok: false, errors: [{ field: 'input.messages' }] });
  });
});

describe('a reload', () => {
  it('takes the new file whole', async () => {
    const holder = await open(withProvider(image('a')));
    const before = holder.current;
    await writeFile(config_file, withProvider(image('b')));
    expect(await holder.reload()).toEqual({
      ok: true,
      message: '12 models, 2 providers; models added: b; models removed: a',
      problems: [],
    });
    expect([...holder.current.models.keys()][0]).toBe('b');
    expect([...before.models.keys()][0]).toBe('a');
  });

  it('reports by name what has changed, or that nothing has', async () => {
    const holder = await open(withProvider(image('a')));
    expect((await holder.reload()).message).toBe('12 models, 2 providers; nothing changed');
    const dearer = withProvider(image('a')).replace('amount: "', 'amount: "1');
    await writeFile(config_file, `${dearer}limits: { generate_per_minute: 7 }\n`);
    expect((await holder.reload()).message).toBe('12 models, 2 providers; models changed: a; settings changed');
  });

  it('without a file says how a service gets one', async () => {
    const holder = await openCatalog({ adapters: ['sandbox'] });
    expect((await holder.reload()).message).toMatch(
      /; nothing changed\. No file is read: start the service with MEDLEY_CONFIG=FILE$/,
    );
  });

  it('rejects a file with a mistake as a whole, and a missing file', async () => {
    const holder = await open(withProvider(image('a')));
    const before = holder.current;
    await writeFile(config_file, withProvider(image('b') + image('b')));
    expect(await holder.reload()).toMatchObject({
      ok: false,
      message: expect.stringMatching(
        /^rejected.*\n.*medley\.yaml:5:11 models\[1\]\.id: b is the id of models\[0\] already\.$/,
      ),
      problems: [{ severity: 'error', line: 5, col: 11, path: 'models[1].id' }],
    });
    expect(holder.current).toBe(before);
    await rm(config_file);
    expect(await holder.reload()).toMatchObject({
      ok: false,
      problems: [{ message: expect.stringContaining('cannot be read') }],
    });
    expect(holder.current).toBe(before);
  });
});

describe('a file with mistakes', () => {
  it('is not opened, and the error lists them all', async () => {
    await expect(open('version: 2\nlimit: 1\n')).rejects.toThrow(
      expect.objectContaining({
        name: 'CatalogError',
        message: `${config_file}:1:10 version: must be 1 (got 2).\n${config_file}:2:1 limit: is not a known setting. Did you mean "limits"?`,
      }),
    );
  });

  it('is reported by the check, with its warnings apart', async () => {
    await writeFile(
      config_file,
      withProvider(image('a').replace('price: [{ unit: image, amount: "2" }], ', ''), 'oops: 1\n'),
    );
    expect(await checkCatalogFile(config_file, options)).toEqual({
      errors: [`${config_file}:2:1 oops: is not a known setting. Did you mean "tools"?`],
      warnings: [`${config_file}:5:5 models[0]: has no price: every run is free.`],
    });
    expect(await checkCatalogFile(join(folder, 'none.yaml'), options)).toEqual({
      errors: [expect.stringMatching(/none\.yaml:1:1 file: cannot be read: there is no such file \(ENOENT\)/)],
      warnings: [],
    });
  });
});

describe('modelRecord', () => {
  it('shows only the public fields', async () => {
    const more = `, name: A, description: d, created: 2026-03-01, capabilities: [x], limits: { l: 1 }, hidden: true`;
    const { current } = await open(withProvider(image('acme/a/b', more)));
    const model = current.models.get('acme/a/b');
    if (!model) throw new Error('the model is there');
    expect(modelRecord(model, current.settings.base_currency, 'available')).toEqual({
      id: 'acme/a/b',
      object: 'model',
      type: 'model',
      created: 1_772_323_200,
      created_at: '2026-03-01T00:00:00.000Z',
      owned_by: 'acme',
      display_name: 'A',
      modality: 'image',
      description: 'd',
      input_schema: { type: 'object' },
      output_types: ['image'],
      pricing: [{ unit: 'image', amount: '2', per: 1, currency: 'USD' }],
      limits: { l: 1 },
      capabilities: ['x'],
      status: 'available',
    });
    expect(model.hidden).toBe(true);
  });

  it('has defaults for what the file leaves out', async () => {
    const { current } = await open(
      withProvider(
        image('plain')
          .replace('}], routes', ', when: { c: 1 } }], routes')
          .replace('type: object', 'type: object, properties: { c: { const: 1 } }'),
      ),
    );
    const model = current.models.get('plain');
    if (!model) throw new Error('the model is there');
    expect(modelRecord(model, 'PLN', 'degraded')).toMatchObject({
      owned_by: 'medley',
      display_name: 'plain',
      description: '',
      created_at: '2026-01-01T00:00:00.000Z',
      capabilities: [],
      limits: {},
      pricing: [{ unit: 'image', amount: '2', per: 1, currency: 'PLN', when: { c: 1 } }],
      status: 'degraded',
    });
  });
});
