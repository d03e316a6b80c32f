import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { readCatalogFile } from '../../src/catalog/file.ts';
import { showProblem } from '../../src/catalog/problem.ts';
import { adapterFacts } from '../../src/providers/facts.ts';
import { adapters } from '../../src/providers/index.ts';
import { cases, errorsIn, problemLines, video, withModels } from './problem-lines.ts';

const plain_url = 'must be an http(s) address without user name, query or fragment';
const range = 'must be a range of addresses such as 10.0.0.0/8 or fd00::/8';
const duration = 'must be a duration such as 500ms, 10s, 1.5m, 2h or 7d';
const decimal = 'must be a decimal in quotes, such as "0.10"';
const units =
  '"request", "image", "megapixel", "second", "minute", "character", "input_token", "cached_input_token", ' +
  '"cache_write_token", "cache_write_1h_token", "output_token", "web_search", "code_interpreter", "search_unit"';
const model_settings =
  'id, aliases, kind, name, description, owned_by, created, retires, replaced_by, hidden, capabilities, limits, max_output_tokens, ' +
  'default_output_tokens, input_schema, output_types, price, price_source, estimate, routes';

describe('a file of the wrong form is reported', () => {
  it.each(
    cases([
      ['▸', 'file: must be an object (got null).'],
      ['▸[1]', 'file: must be an object (got array).'],
      ['▸limits: {}', 'version: is required.'],
      ['version: ▸2', 'version: must be 1 (got 2).'],
      ['version: 1\n▸limit: {}', 'limit: is not a known setting. Did you mean "limits"?'],
      [
        'version: 1\n▸__proto__: {}',
        `__proto__: is not a known setting. Known here: version, currencies, server, limits, money, routing, net, webhooks, outputs, tasks, retention, storage, backup, files, responses, content_log, tools, billing, mail, sign_in, status_page, alerts, sandbox, catalog, providers, models, aliases.`,
      ],
      [
        'version: 1\nserver: { ▸cache: 1 }',
        'server.cache: is not a known setting. Known here: base_url, trusted_proxies, cors_origins, hsts.',
      ],
      ['version: 1\nserver: { base_url: ▸ftp://x }', `server.base_url: ${plain_url} (got "ftp://x").`],
      ['version: 1\nserver: { base_url: ▸"http://u:p@x" }', `server.base_url: ${plain_url} (got "http://u:p@x").`],
      ['version: 1\nserver: { base_url: ▸"http://x/?a" }', `server.base_url: ${plain_url} (got "http://x/?a").`],
      [
        'version: 1\nserver: { cors_origins: [▸https://a.com/] }',
        'server.cors_origins[0]: must be an origin such as https://app.example.com (got "https://a.com/").',
      ],
      ['version: 1\nnet: { allow: [fd00::/8, ▸10.0.0.0/99] }', `net.allow[1]: ${range} (got "10.0.0.0/99").`],
      ['version: 1\nnet: { allow: [▸10.0.0.0] }', `net.allow[0]: ${range} (got "10.0.0.0").`],
      ['version: 1\nserver: { trusted_proxies: [▸10/8] }', `server.trusted_proxies[0]: ${range} (got "10/8").`],
      ['version: 1\nlimits: { failed_per_24h: ▸0 }', 'limits.failed_per_24h: must be at least 1 (got 0).'],
      ['version: 1\nlimits: { failed_per_24h: ▸1.5 }', 'limits.failed_per_24h: must be an integer (got 1.5).'],
      ['version: 1\n▸limits:', 'limits: must be an object (got null).'],
      ['version: 1\nwebhooks: { timeout: ▸10 }', `webhooks.timeout: ${duration} (got 10).`],
      ['version: 1\nwebhooks: { timeout: ▸0s }', `webhooks.timeout: ${duration} (got "0s").`],
      ['version: 1\nwebhooks: { timeout: ▸1h }', 'webhooks.timeout: must be at most 5m (got "1h").'],
      [
        'version: 1\nwebhooks: { retry_delays: ▸[1s, 1s, 1s, 1s, 1s, 1s] }',
        'webhooks.retry_delays: must have at most 5 items (got 6).',
      ],
      [
        'version: 1\ncurrencies: { ▸usd: "1" }',
        'currencies.usd: must be named by a code of three capital letters, such as USD.',
      ],
      [
        'version: 1\ncurrencies: { USD: ▸1 }',
        'currencies.USD: must be a positive decimal in quotes, such as "3.65" (got 1).',
      ],
      [
        'version: 1\ncurrencies: { USD: "1", PLN: ▸"0.0" }',
        'currencies.PLN: must be a positive decimal in quotes, such as "3.65" (got "0.0").',
      ],
      ['version: 1\ncurrencies: ▸{}', 'currencies: must have at least 1 field (got 0).'],
      [
        'version: 1\nproviders: { ▸My Own: { adapter: mock } }',
        'providers["My Own"]: must be named in 1 to 64 lower-case letters, digits, dashes and underscores.',
      ],
      ['version: 1\nproviders: { p: ▸{} }', 'providers.p.adapter: is required.'],
      [
        'version: 1\nproviders: { p: { adapter: mock, api_key: ▸sk-live-1234 } }',
        'providers.p.api_key: must be env:NAME or file:/path, since secrets are never written in this file.',
      ],
      [
        'version: 1\nstorage: { s3: { bucket: ▸My_Bucket } }',
        'storage.s3.bucket: must be 3 to 63 lower-case letters, digits, dots and dashes (got "My_Bucket").',
      ],
      [
        'version: 1\nstorage: { s3: { bucket: files, prefix: ▸a/../b } }',
        'storage.s3.prefix: must be names of letters, digits, dots, dashes and underscores, with slashes between them (got "a/../b").',
      ],
      [
        'version: 1\nstorage: { s3: { bucket: files, access_key_id: env:A, secret_access_key: ▸abc } }',
        'storage.s3.secret_access_key: must be env:NAME or file:/path, since secrets are never written in this file.',
      ],
      [
        'version: 1\nstorage: { s3: { bucket: files, kms_key_id: ▸abc } }',
        'storage.s3.kms_key_id: needs encryption: aws:kms or aws:kms:dsse beside it.',
      ],
      [
        'version: 1\nstorage: { shared: ▸true, s3: { bucket: files } }',
        'storage.shared: says something of the disk, but the files are in a bucket: remove one of them.',
      ],
      [
        'version: 1\ntools: { web_search: ▸{ api: searxng, price: "0.01" } }',
        'tools.web_search: base_url is missing: it is the address of your own SearXNG.',
      ],
      [
        'version: 1\ntools: { web_search: ▸{ api: exa, price: "0.01" } }',
        'tools.web_search: api_key is missing: exa answers nobody without one.',
      ],
      ['version: 1\nsandbox: ▸no', 'sandbox: must be a boolean (got string).'],
    ]),
  )('as $expected', ({ marked, expected }) => {
    expect(errorsIn(marked)).toEqual([`error: ▸${expected}`]);
  });

  it.each(
    cases([
      [withModels('  - ▸{ id: a, kind: image }'), 'routes: is required.'],
      [video('▸colour: 1'), `colour: is not a known setting. Known here: ${model_settings}.`],
      [video('created: ▸2026-02-30'), 'created: must be a date such as 2026-01-31 (got "2026-02-30").'],
      [
        video('capabilities: [a, ▸B]'),
        'capabilities[1]: must be lower-case letters, digits and underscores (got "B").',
      ],
      [video('limits: { a: ▸-1 }'), 'limits.a: must be at least 0 (got -1).'],
      [
        video('price: [{ unit: ▸secnd, amount: "1" }]', 'price'),
        `price[0].unit: must be one of ${units} (got "secnd"). Did you mean "second"?`,
      ],
      [video('price: [{ unit: second, amount: ▸0.1 }]', 'price'), `price[0].amount: ${decimal} (got 0.1).`],
      [video('price: [{ unit: second, amount: ▸"-1" }]', 'price'), `price[0].amount: ${decimal} (got "-1").`],
      [video('price: [{ unit: second, amount: ▸"1e3" }]', 'price'), `price[0].amount: ${decimal} (got "1e3").`],
      [video('price: [{ unit: second, amount: "1", per: ▸0 }]', 'price'), 'price[0].per: must be at least 1 (got 0).'],
      [
        video('price: [{ unit: second, amount: "1", when: { steps: ▸{} } }]', 'price'),
        'price[0].when.steps: must be a value, or a list of values, of the input field (got {}).',
      ],
      [video('estimate: { second: ▸-1 }', 'estimate'), 'estimate.second: must be at least 0 (got -1).'],
      [
        video('estimate: { second: ▸input.duration }', 'estimate'),
        'estimate.second: must be $input.FIELD, $media.FIELD.duration, $bytes.FIELD, a number, or a list of these (their product) (got "input.duration").',
      ],
      [
        video('estimate: { second: [▸true] }', 'estimate'),
        'estimate.second[0]: must be $input.FIELD, $media.FIELD.duration, $bytes.FIELD or a number that is not negative (got true).',
      ],
      [video('routes: ▸[]', 'routes'), 'routes: must have at least 1 item (got 0).'],
      [
        video('routes: [{ provider: p, timeout: { ▸begin: 1s } }]', 'routes'),
        'routes[0].timeout.begin: is not a known setting. Known here: connect, first_byte, idle, start, total.',
      ],
      [
        video('routes: [{ provider: p, id: ▸a#b }]', 'routes'),
        'routes[0].id: must be 1 to 64 letters, digits, dots, dashes or underscores (got "a#b").',
      ],
      [
        video('routes: [{ provider: p, on_ambiguous_submit: ▸retry }]', 'routes'),
        'routes[0].on_ambiguous_submit: must be one of "fail", "failover" (got "retry").',
      ],
    ]),
  )('as models[0].$expected', ({ marked, expected }) => {
    expect(errorsIn(marked)).toEqual([`error: ▸models[0].${expected}`]);
  });

  it.each(['a b', 'a//b', '/a', 'a/', 'a/../b', './a', 'ä', 'a#b', 'a'.repeat(129), ''])('for the id %j', (id) => {
    const text = video('').replace('id: a/b', `id: ▸${JSON.stringify(id)}`);
    expect(problemLines(text)).toEqual([expect.stringMatching(/^error: ▸models\[0\].id: must be 1 to 128 letters/)]);
  });

  it.each(['a', 'a/b/c', 'A-1_2.3:v4', '..a', 'a'.repeat(128)])('but not for the id %j', (id) => {
    expect(problemLines(video('').replace('id: a/b', `id: ${JSON.stringify(id)}`))).toEqual([]);
  });
});

describe('a file whose parts do not fit together is reported', () => {
  it.each(
    cases([
      [
        'version: 1\ncurrencies: { USD: ▸"2" }',
        'currencies.USD: must be "1": the first currency is the base of all prices.',
      ],
      [
        'version: 1\ncurrencies: { USD: "1", ▸PLM: "3.65" }',
        'currencies.PLM: is not a known currency. Did you mean "PLN"?',
      ],
      [
        'version: 1\nproviders: { p: { adapter: ▸sandbx } }',
        'providers.p.adapter: is not an adapter. Did you mean "sandbox"?',
      ],
      [
        'version: 1\nproviders: { p: { adapter: ▸unheard-of } }',
        'providers.p.adapter: is not an adapter. There are: sandbox, mock.',
      ],
      [
        'version: 1\nproviders: { sandbox: { adapter: ▸mock } }',
        'providers.sandbox.adapter: the name belongs to the built-in sandbox: choose another, or set sandbox: false.',
      ],
      [
        video('routes: [{ provider: ▸pp }]', 'routes'),
        'models[0].routes[0].provider: there is no provider "pp". Did you mean "p"?',
      ],
      [
        `sandbox: false\n${video('routes: [{ provider: ▸sandbox }]', 'routes')}`,
        'models[0].routes[0].provider: there is no provider "sandbox". There are: p.',
      ],
      [
        `${video('')}${video('').split('models:\n')[1]}`
          .replace(/id: a\/b(?=[^$]*$)/, 'id: a/b')
          .replace(/(?<=kind[^]*id: )(?=a\/b)/, '▸'),
        'models[1].id: a/b is the id of models[0] already.',
      ],
      [
        video('routes: [{ id: x, provider: p }, { id: ▸x, provider: p }]', 'routes'),
        'models[0].routes[1].id: x is the id of an earlier route of this model already.',
      ],
      [
        video('routes: [{ provider: p, timeout: { start: ▸2m, total: 1m } }]', 'routes'),
        'models[0].routes[0].timeout.start: must not be longer than total (1m), which begins at the same time.',
      ],
      [
        video('routes: [{ provider: p, cost: [{ unit: second, amount: "1", currency: ▸EUR }] }]', 'routes'),
        'models[0].routes[0].cost[0].currency: "EUR" is not one of the currencies: USD, PLN.',
      ],
      [
        video('routes: [{ provider: p, cost: [{ unit: second, amount: "1", when: { ▸size: 1 } }] }]', 'routes'),
        'models[0].routes[0].cost[0].when.size: the input_schema has no field "size". There are: prompt, text, duration, length, steps, resolution, mode.',
      ],
      [
        video('routes: [{ provider: p, input: { a: { b: [▸$input.promt] } } }]', 'routes'),
        'models[0].routes[0].input.a.b[0]: the input_schema has no field "promt". Did you mean "prompt"?',
      ],
      [
        video('routes: [{ provider: p, input: { a: ▸$input } }]', 'routes'),
        'models[0].routes[0].input.a: must be $input.FIELD; the whole input is copied by `$spread: $input`.',
      ],
      [
        video('routes: [{ provider: p, input: { a: { $lookup: ▸mode, x: 1 } } }]', 'routes'),
        'models[0].routes[0].input.a.$lookup: must be $input.FIELD, whose value is looked up beside it.',
      ],
      [
        video('routes: [{ provider: p, input: { a: { $lookup: $input.mode, a: 1, b: 2, ▸c: 3 } } }]', 'routes'),
        'models[0].routes[0].input.a.c: is not a value of mode.',
      ],
      [
        video('routes: [{ provider: p, input: { $spread: ▸$input.prompt } }]', 'routes'),
        'models[0].routes[0].input.$spread: must be $input.',
      ],
      [video('▸max_output_tokens: 5'), 'models[0].max_output_tokens: has no meaning for video models.'],
      [
        video('', 'schema', 'estimate', 'price').replace('id:', '▸id:'),
        'models[0].input_schema: is required for video models.',
      ],
    ]),
  )('as $expected', ({ marked, expected }) => {
    expect(errorsIn(marked)).toEqual([`error: ▸${expected}`]);
  });

  it.each(
    cases([
      ['▸input_schema: { type: object }', 'input_schema: has no meaning for chat models.'],
      ['▸estimate: { request: 1 }', 'estimate: has no meaning for chat models.'],
      [
        'price: [{ unit: input_token, amount: "1", ▸when: { a: 1 } }]',
        'price[0].when: has no meaning for chat models.',
      ],
      [
        'price: [{ unit: ▸image, amount: "1" }]',
        'price[0].unit: image is not a unit of chat models. Their units: request, input_token, cached_input_token, cache_write_token, cache_write_1h_token, output_token, web_search, code_interpreter.',
      ],
      [
        'max_output_tokens: 10, default_output_tokens: ▸11',
        'default_output_tokens: is larger than max_output_tokens (10).',
      ],
    ]),
  )('for chat as $expected', ({ marked, expected }) => {
    const text = withModels(`  - { id: a, kind: chat, routes: [{ provider: p }], ${marked} }`);
    expect(errorsIn(text)).toEqual([`error: ▸models[0].${expected}`]);
  });

  it.each(
    cases([
      [
        'version: 1\nproviders: { p: { adapter: mock, api_key: ▸env:UNSET } }',
        'providers.p.api_key: the environment variable UNSET is not set: the routes of p are not used.',
      ],
      [
        'version: 1\nproviders: { p: { adapter: mock, api_key: ▸file:/no/such } }',
        'providers.p.api_key: /no/such cannot be read, or is empty: the routes of p are not used.',
      ],
    ]),
  )('with the warning: $expected', ({ marked, expected }) => {
    expect(problemLines(marked)).toEqual([`warning: ▸${expected}`]);
  });

  it('but not for a secret that is set', () => {
    expect(problemLines('version: 1\nproviders: { p: { adapter: mock, api_key: env:SET } }')).toEqual([]);
  });
});

describe('a file', () => {
  it('has all of its mistakes reported at once in their order, and no secret', () => {
    const text = `version: 1
limit: {}
currencies: { USD: "1", XQX: "2" }
providers:
  p: { adapter: mock, api_key: plain-text }
  q: { adapter: nobody }
models:
  - { id: a, kind: image, price: [{ unit: second, amount: "1" }], routes: [{ provider: r }] }
  - { id: b, kind: pictures, routes: [{ provider: p }] }
  - { id: a, kind: chat, estimate: { request: 1 }, routes: [{ provider: q }] }
`;
    const lines = errorsIn(text);
    expect(lines.map((line) => /^error: medley.yaml:(\d+):\d+ (\S+):/.exec(line)?.slice(1).join(' '))).toEqual([
      '2 limit',
      '3 currencies.XQX',
      '5 providers.p.api_key',
      '6 providers.q.adapter',
      '8 models[0].input_schema',
      '8 models[0].price[0].unit',
      '8 models[0].routes[0].provider',
      '9 models[1].kind',
      '10 models[2].id',
      '10 models[2].estimate',
    ]);
    expect(lines.join('\n')).not.toContain('plain-text');
  });

  it('like the example is valid once its keys are set', async () => {
    const text = await readFile(new URL('../../medley.example.yaml', import.meta.url), 'utf8');
    const real = { ...adapterFacts(adapters), canServe: () => true };
    expect(readCatalogFile(text, 'x', { ...real, secret: () => 'x' })).toMatchObject({ ok: true, warnings: [] });
    expect(readCatalogFile(text, 'x', { ...real, secret: () => undefined })).toMatchObject({
      ok: true,
      warnings: [
        { path: 'providers.openai.api_key' },
        { path: 'providers.anthropic.api_key' },
        { path: 'models[0]', message: 'has no usable route and is not offered.' },
        { path: 'models[1]', message: 'has no usable route and is not offered.' },
        { path: 'models[2]', message: 'has no usable route and is not offered.' },
        { path: 'models[3]', message: 'has no usable route and is not offered.' },
      ],
    });
  });
});

describe('the options of a chat route', () => {
  const checked = (provider: string, options: string) => {
    const text = `version: 1
providers:
  oai: { adapter: openai, base_url: "http://127.0.0.1:9901/v1", allow_private: true }
  ant: { adapter: anthropic, base_url: "http://127.0.0.1:9901", allow_private: true }
models:
  - id: acme/assistant
    kind: chat
    price: [{ unit: input_token, amount: "0.000001" }, { unit: output_token, amount: "0.000001" }]
    routes:
      - { provider: ${provider}, options: { ${options} } }
`;
    const real = { ...adapterFacts(adapters), canServe: () => true, secret: () => undefined };
    const reading = readCatalogFile(text, 'medley.yaml', real);
    const problems = reading.ok ? reading.warnings : reading.problems;
    return problems.map((problem) => `${problem.severity}: ${showProblem(problem)}`);
  };
  const place = (col: number) => `medley.yaml:10:${col} models[0].routes[0].options`;

  it.each([
    ['oai', 'max_tokens_field: max_completion_tokens, stream_options: false, tool_id_length_max: 40'],
    ['ant', 'thinking: budget, sampling: false, structured_output: tool'],
    ['sandbox', 'behaviour: { fail: before_start }'],
  ])('of %s are valid: %s', (provider, options) => {
    expect(checked(provider, options)).toEqual([]);
  });

  it.each([
    ['oai', 'stream_options: "no"', `error: ${place(53)}.stream_options: must be one of true, false.`],
    ['ant', 'thinking: much', `error: ${place(47)}.thinking: must be one of adaptive, budget, always, none.`],
    ['oai', 'tool_id_length_max: 8', `error: ${place(57)}.tool_id_length_max: must be a whole number of at least 24.`],
    [
      'ant',
      'sampeling: false',
      `warning: ${place(37)}.sampeling: is not an option of a chat route and has no effect. Did you mean "sampling"?`,
    ],
    [
      'ant',
      'hosted_tools: [web_search]',
      `warning: ${place(37)}.hosted_tools: the model has no price for "web_search": callers' tools of this kind are left out.`,
    ],
    [
      'ant',
      'hosted_tools: [searching]',
      `error: ${place(51)}.hosted_tools: must be a list of these: web_search, code_interpreter.`,
    ],
    ['oai', 'zzz: 1', `warning: ${place(37)}.zzz: is not an option of a chat route and has no effect.`],
  ])('of %s are invalid: %s', (provider, options, expected) => {
    expect(checked(provider, options)).toEqual([expected]);
  });
});

describe('the default catalogue beside a file', () => {
  const surroundings = {
    adapters: ['sandbox', 'mock'],
    canServe: () => true,
    secret: (reference: string) => (reference === 'env:SET' ? 'secret' : undefined),
    default_providers: {
      one: { adapter: 'mock', api_key: 'env:SET' },
      two: { adapter: 'mock', api_key: 'env:UNSET' },
    },
  };
  const read = (text: string) => {
    const reading = readCatalogFile(text, 'm', surroundings);
    return (reading.ok ? reading.warnings : reading.problems).map(showProblem);
  };
  const model = (provider: string) =>
    `models: [{ id: a, kind: chat, price: [{ unit: input_token, amount: "1" }, { unit: output_token, amount: "1" }], routes: [{ provider: ${provider} }] }]`;

  it('has providers that routes can name when it is switched on', () => {
    expect(read(`version: 1\ncatalog: { default: [one] }\n${model('one')}`)).toEqual([]);
    expect(read(`version: 1\n${model('one')}`)).toEqual([expect.stringContaining('there is no provider "one".')]);
    expect(read(`version: 1\ncatalog: { default: [two] }\n${model('one')}`)).toEqual([
      expect.stringContaining('there is no provider "one". '),
    ]);
  });

  it('has a warning at the route for a missing key', () => {
    expect(read(`version: 1\ncatalog: { default: true }\n${model('two')}`)).toEqual([
      expect.stringContaining('has no usable route and is not offered.'),
      expect.stringContaining('routes[0].provider: env:UNSET is not set: this route is not used.'),
    ]);
  });

  it('has a mistake reported for the name of an unknown provider', () => {
    expect(read('version: 1\ncatalog: { default: [onee] }')).toEqual([
      'm:2:22 catalog.default[0]: is not a provider of the default catalogue. Did you mean "one"?',
    ]);
    expect(read('version: 1\ncatalog: { default: yes }')).toEqual([
      expect.stringContaining('catalog.default: must be true, false or a list of providers'),
    ]);
  });

  it('has its prices in dollars', () => {
    expect(read('version: 1\ncurrencies: { PLN: "1", USD: "0.27" }\ncatalog: { default: true }')).toEqual([
      'm:3:21 catalog.default: the prices of the default catalogue are in USD: list USD first in currencies, or set catalog.default to false.',
    ]);
    expect(read('version: 1\ncurrencies: { PLN: "1", USD: "0.27" }\ncatalog: { default: false }')).toEqual([]);
  });

  it.each(['0', '"0"', '"-1"', '"1.23456"', '1.2'])(
    'has a margin that is a positive decimal in quotes, not %s',
    (margin) => {
      expect(read(`version: 1\ncatalog: { margin: ${margin} }`)).toEqual([
        expect.stringContaining('catalog.margin: must be a positive decimal in quotes, such as "1.2"'),
      ]);
    },
  );
});

describe('the address of a provider', () => {
  const file = (base_url: string, more = '') =>
    `version: 1\nproviders:\n  p: { adapter: mock, base_url: ▸"${base_url}"${more} }\nmodels: []\n`;

  it.each(['http://127.0.0.1:11434/v1', 'http://localhost:8000', 'http://[::1]:8000/v1', 'http://192.168.1.5/v1'])(
    'gets a warning as %s without allow_private, because nothing is sent there',
    (base_url) => {
      const host = new URL(base_url).hostname.replace(/^\[|\]$/g, '');
      expect(problemLines(file(base_url))).toEqual([
        `warning: ▸providers.p.base_url: ${host} is not a public address, so nothing is sent there. If this upstream is your own, set allow_private: true for p.`,
      ]);
      expect(problemLines(file(base_url, ', allow_private: true').replace('▸', ''))).toEqual([]);
    },
  );

  it.each(['https://api.example.com/v1', 'http://8.8.8.8/v1', 'http://ollama:11434/v1'])(
    'gets no warning as %s',
    (base_url) => {
      expect(problemLines(file(base_url).replace('▸', ''))).toEqual([]);
    },
  );
});
