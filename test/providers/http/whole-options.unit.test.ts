import { describe, expect, it } from 'vitest';
import { readCatalogFile } from '../../../src/catalog/file.ts';
import { adapterFacts } from '../../../src/providers/facts.ts';
import { adapters } from '../../../src/providers/index.ts';

describe('config check of models that answer in one piece', () => {
  const checked = (kind: string, provider: string, more = '', price = 'request, amount: "0"') => {
    const text = `version: 1
providers:
  oai: { adapter: openai, base_url: "http://127.0.0.1:9901/v1", allow_private: true }
  ant: { adapter: anthropic, base_url: "http://127.0.0.1:9901", allow_private: true }
  coh: { adapter: cohere, base_url: "http://127.0.0.1:9901", allow_private: true }
models:
  - id: acme/one
    kind: ${kind}
    price: [{ unit: ${price} }]
    routes:
      - { provider: ${provider}${more} }
`;
    const reading = readCatalogFile(text, 'x', { ...adapterFacts(adapters), secret: () => undefined });
    const problems = reading.ok ? reading.warnings : reading.problems;
    return problems.map(({ path, message }) => `${path}: ${message}`);
  };

  it.each([
    ['rerank', 'oai', ', options: { format: tei }'],
    ['rerank', 'oai', ', options: { format: usual, refuse: [top_n] }'],
    ['rerank', 'coh', ''],
    ['moderation', 'oai', ', options: { pass_fields: [language] }'],
  ])('takes a route of kind %s by %s%s', (kind, provider, more) => {
    expect(checked(kind, provider, more)).toEqual([]);
  });

  it.each([
    ['rerank', 'oai', ', options: { format: cohere }', 'models[0].routes[0].options.format: must be usual or tei.'],
    [
      'moderation',
      'oai',
      ', options: { format: tei }',
      'models[0].routes[0].options.format: is not an option of a moderation route and has no effect.',
    ],
    [
      'rerank',
      'ant',
      '',
      'models[0].routes[0].provider: adapter anthropic cannot run rerank models: this route is not used.',
    ],
    [
      'moderation',
      'coh',
      '',
      'models[0].routes[0].provider: adapter cohere cannot run moderation models: this route is not used.',
    ],
  ])('says of kind %s by %s%s what is wrong', (kind, provider, more, message) => {
    expect(checked(kind, provider, more).join('\n')).toContain(message);
  });

  it('knows search units of rerank models alone', () => {
    const price = 'search_unit, per: 1000, amount: "2.00"';
    expect(checked('rerank', 'oai', '', price)).toEqual([]);
    expect(checked('moderation', 'oai', '', price)).toEqual([
      'models[0].price[0].unit: search_unit is not a unit of moderation models. Their units: request, input_token.',
    ]);
  });

  it('warns of a model that the upstream sells by another unit', () => {
    const cost = ', cost: [{ unit: search_unit, amount: "0.002" }]';
    expect(checked('rerank', 'oai', cost, 'input_token, per: 1000000, amount: "0.05"')).toEqual([
      "models[0].routes[0].cost[0]: the upstream charges for search_unit, but the model's price has no row for it.",
    ]);
  });
});
