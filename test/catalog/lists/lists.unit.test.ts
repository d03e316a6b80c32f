import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readCatalogFile } from '../../../src/catalog/file.ts';
import { CatalogText } from '../../../src/catalog/lists/edit.ts';
import { entryOf, type EntryOptions } from '../../../src/catalog/lists/entry.ts';
import { readList } from '../../../src/catalog/lists/index.ts';
import { tokenRows, type ListedModel } from '../../../src/catalog/lists/listed.ts';
import { providerPresets } from '../../../src/catalog/presets.ts';
import { adapters } from '../../../src/providers/index.ts';

/** Some models of LiteLLM 1.110.2, under its licence, which is beside it. */
const litellm = readFileSync(new URL('litellm.json', import.meta.url), 'utf8');

const options: EntryOptions = { provider: 'openai', prefix: 'openai/', margin: '1', options: {}, source: undefined };
const byName = (models: readonly ListedModel[], name: string) => models.find((one) => one.upstream_model === name);
const row = (unit: string, amount: string, above?: number) => ({
  unit,
  amount,
  per: 1_000_000,
  ...(above !== undefined && { above_input_tokens: above }),
});

describe('prices by the token', () => {
  it.each([
    [1.25e-6, '1.25'],
    [5e-8, '0.05'],
    [3.7037e-8, '0.037037'],
    ['0.0000025', '2.5'],
    ['2e-06', '2'],
    [0.00123, '1230'],
    [1, '1000000'],
  ])('become exact decimals by the million: %s', (price, amount) => {
    expect(tokenRows({ input_token: price }, 6)).toEqual([row('input_token', amount)]);
  });

  it.each([0, '0', -1, '-1', 'free', '', null, Infinity, '1e-999'])('that are none have no row: %s', (price) => {
    expect(tokenRows({ input_token: price }, 6)).toEqual([]);
  });
});

describe('a list', () => {
  it('of LiteLLM has prices with steps, limits, ends and successors', () => {
    const models = readList('litellm', litellm);
    expect(byName(models, 'gpt-5')).toEqual({
      upstream_model: 'gpt-5',
      provider: 'openai',
      kind: 'chat',
      retires: '2026-12-11',
      replaced_by: 'gpt-5.6-sol',
      context_tokens: 272_000,
      max_output_tokens: 128_000,
      capabilities: ['tools', 'json_schema', 'images', 'documents', 'thinking', 'streaming'],
      price: [row('input_token', '1.25'), row('cached_input_token', '0.125'), row('output_token', '10')],
    });
    expect(byName(models, 'gemini-2.5-pro')?.price.slice(-3)).toEqual([
      row('input_token', '2.5', 200_000),
      row('cached_input_token', '0.25', 200_000),
      row('output_token', '15', 200_000),
    ]);
    expect(byName(models, 'claude-sonnet-5-5')?.price).toContainEqual(row('cache_write_1h_token', '4'));
    expect(byName(models, 'text-embedding-3-small')).toMatchObject({ kind: 'embedding' });
    expect(byName(models, 'whisper-1')).toMatchObject({ kind: 'other', retires: '2027-02-26' });
    expect(models.some(({ upstream_model }) => upstream_model === 'sample_spec')).toBe(false);
  });

  it('of OpenRouter has prices as texts', () => {
    const list = {
      data: [
        {
          id: 'maker/talker',
          name: 'Maker: Talker',
          created: 1_790_000_000,
          description: 'It  talks.',
          context_length: 131_072,
          architecture: { input_modalities: ['text', 'image', 'file'], output_modalities: ['text'] },
          pricing: { prompt: '0.0000003', completion: '0.0000012', request: '0', input_cache_read: '0.00000003' },
          top_provider: { max_completion_tokens: 16_384 },
          supported_parameters: ['tools', 'reasoning', 'structured_outputs'],
          expiration_date: '2027-03-01',
        },
        { id: 'maker/painter', architecture: { input_modalities: ['text'], output_modalities: ['image'] } },
        { name: 'without an id' },
        null,
      ],
    };
    const [talker, painter, ...more] = readList('openrouter', JSON.stringify(list));
    expect(talker).toEqual({
      upstream_model: 'maker/talker',
      kind: 'chat',
      name: 'Maker: Talker',
      description: 'It  talks.',
      created: '2026-09-21',
      retires: '2027-03-01',
      context_tokens: 131_072,
      max_output_tokens: 16_384,
      capabilities: ['tools', 'json_schema', 'images', 'documents', 'thinking', 'streaming'],
      price: [row('input_token', '0.3'), row('cached_input_token', '0.03'), row('output_token', '1.2')],
    });
    expect(painter?.kind).toBe('other');
    expect(more).toEqual([]);
  });

  it('of models.dev has providers with their models', () => {
    const model = {
      name: 'Talker',
      release_date: '2026-05-01',
      tool_call: true,
      reasoning: false,
      modalities: { input: ['text', 'pdf'], output: ['text'] },
      cost: { input: 0.27, output: 1.1, cache_read: 0.07, context_over_200k: { input: 0.54, output: 2.2 } },
      limit: { context: 128_000, output: 8_192 },
    };
    expect(
      readList('models.dev', JSON.stringify({ maker: { models: { talker: model } }, empty: {}, odd: null })),
    ).toEqual([
      {
        upstream_model: 'talker',
        provider: 'maker',
        kind: 'chat',
        name: 'Talker',
        created: '2026-05-01',
        context_tokens: 128_000,
        max_output_tokens: 8_192,
        capabilities: ['tools', 'documents', 'streaming'],
        price: [
          row('input_token', '0.27'),
          row('cached_input_token', '0.07'),
          row('output_token', '1.1'),
          row('input_token', '0.54', 200_000),
          row('output_token', '2.2', 200_000),
        ],
      },
    ]);
  });

  it('of a server of OpenAI’s style has names, and lengths where the server tells them', () => {
    const data = [{ id: 'llama', created: 1_790_000_000, max_model_len: 32_768 }, { id: 'nomic-embed-text' }];
    expect(readList('openai-compatible', JSON.stringify({ object: 'list', data }))).toMatchObject([
      { upstream_model: 'llama', kind: 'chat', context_tokens: 32_768, price: [] },
      { upstream_model: 'nomic-embed-text', kind: 'embedding' },
    ]);
  });

  it('has models for rerank and moderation', () => {
    const list = JSON.stringify({
      'rerank-v4.0-pro': { litellm_provider: 'cohere', mode: 'rerank', input_cost_per_query: 0.0025 },
      'voyage/rerank-3': {
        litellm_provider: 'voyage',
        mode: 'rerank',
        input_cost_per_token: 5e-8,
        max_input_tokens: 32_000,
      },
      'omni-moderation-latest': { litellm_provider: 'openai', mode: 'moderation', input_cost_per_token: 0 },
    });
    const drafts = readList('litellm', list).map((one) => entryOf(one, { ...options, prefix: 'x/' }));
    expect(drafts).toMatchObject([
      { id: 'x/rerank-v4.0-pro', kind: 'rerank', price: [{ unit: 'search_unit', per: 1, amount: '0.0025' }] },
      { id: 'x/rerank-3', kind: 'rerank', limits: { context_tokens: 32_000 }, price: [row('input_token', '0.05')] },
      { id: 'x/omni-moderation-latest', kind: 'moderation' },
    ]);
    const data = ['bge-reranker-v2-m3', 'omni-moderation-latest', 'nomic-embed-text'].map((id) => ({ id }));
    const server = readList('openai-compatible', JSON.stringify({ data })).map(({ kind }) => kind);
    expect(server).toEqual(['rerank', 'moderation', 'embedding']);
    const models = { 'qwen3-reranker-8b': { modalities: { input: ['text'], output: ['text'] }, cost: { input: 0.2 } } };
    expect(readList('models.dev', JSON.stringify({ maker: { models } }))).toMatchObject([{ kind: 'rerank' }]);
    const text = new CatalogText('');
    text.addProvider('openai', { adapter: 'openai', api_key: 'env:SET' });
    for (const draft of drafts) if (draft) text.putModel(draft, 'openai');
    const facts = { adapters: ['openai'], canServe: () => true, secret: () => 'x' };
    expect(readCatalogFile(text.toString(), 'medley.yaml', facts)).toMatchObject({ ok: true });
  });

  const forms = ['litellm', 'openrouter', 'models.dev', 'openai-compatible'] as const;

  it.each(['{', '[]', 'null', '{}', '{"data":[]}', '7'])('that is none is refused: %s', (text) => {
    for (const form of forms) expect(() => readList(form, text)).toThrow(/is no JSON|has no models/);
  });

  it('may name a model as JavaScript names prototypes', () => {
    const text = '{"__proto__":{"litellm_provider":"x"}}';
    expect(readList('litellm', text)).toMatchObject([{ upstream_model: '__proto__' }]);
    for (const form of forms.slice(1)) expect(() => readList(form, text)).toThrow('has no models');
  });
});

describe('a model of a list', () => {
  const gpt = byName(readList('litellm', litellm), 'gpt-5');
  if (!gpt) throw new Error('gpt-5 is in the list');

  it('is one of a medley.yaml: the price with what you charge, the cost without', () => {
    expect(entryOf(gpt, { ...options, margin: '1.2' })).toMatchObject({
      id: 'openai/gpt-5',
      retires: '2026-12-11',
      replaced_by: 'openai/gpt-5.6-sol',
      limits: { context_tokens: 272_000 },
      price: [{ amount: '1.5' }, { amount: '0.15' }, { amount: '12' }],
      routes: [
        {
          provider: 'openai',
          upstream_model: 'gpt-5',
          cost: [{ amount: '1.25' }, { amount: '0.125' }, { amount: '10' }],
        },
      ],
    });
  });

  it.each([
    ['llama3.2:1b', 'ollama/llama3.2:1b'],
    ['@cf/meta/llama', 'ollama/-cf/meta/llama'],
    ['ollama/mine', 'ollama/mine'],
    ['a//b', undefined],
    ['../etc', undefined],
    ['x'.repeat(200), undefined],
  ])('has an id that callers can send: %s', (upstream_model, id) => {
    const listed: ListedModel = { upstream_model, kind: 'chat', capabilities: [], price: [] };
    expect(entryOf(listed, { ...options, prefix: 'ollama/' })?.id).toBe(id);
  });
});

describe('the text of a medley.yaml', () => {
  const before = `# Ours.
version: 1
providers:
  openai: { adapter: openai, api_key: env:SET } # the key of the team
models:
  - id: openai/gpt-5
    kind: chat
    name: Our favourite # as people know it
    price: [{ unit: input_token, per: 1000000, amount: "1" }, { unit: output_token, per: 1000000, amount: "10" }]
    routes: [{ provider: openai, upstream_model: gpt-5, options: { sampling: false } }]
`;
  const entries = () => {
    const models = readList('litellm', litellm).filter(({ provider }) => provider === 'openai');
    return models.flatMap((one) => entryOf(one, options) ?? []);
  };

  it('keeps comments, names and options, and gets what the list knows better', () => {
    const text = new CatalogText(before);
    const changes = entries().map((entry) => text.putModel(entry, 'openai'));
    expect(changes.map(({ id, kind }) => `${kind} ${id}`)).toEqual([
      'changed openai/gpt-5',
      'added openai/gpt-6-astra',
      'added openai/text-embedding-3-small',
    ]);
    expect(changes[0]?.lines[0]).toBe(
      'price: input_token 1, output_token 10 → input_token 1.25, cached_input_token 0.125, output_token 10',
    );
    const after = text.toString();
    expect(after).toContain('# Ours.');
    expect(after).toContain('name: Our favourite # as people know it');
    expect(after).toContain('options: { sampling: false }');
    const reading = readCatalogFile(after, 'medley.yaml', {
      adapters: ['openai'],
      canServe: () => true,
      secret: () => 'x',
    });
    expect(reading).toMatchObject({ ok: true, warnings: [] });
  });

  it('is left as it is by the same list once more', () => {
    const text = new CatalogText(before);
    for (const entry of entries()) text.putModel(entry, 'openai');
    const again = new CatalogText(text.toString());
    expect(entries().map((entry) => again.putModel(entry, 'openai').kind)).toEqual(entries().map(() => 'unchanged'));
    expect(again.toString()).toBe(text.toString());
  });

  it('begins with nothing', () => {
    const text = new CatalogText('');
    text.addProvider('groq', {
      adapter: 'openai',
      base_url: 'https://api.groq.com/openai/v1',
      api_key: 'env:GROQ_API_KEY',
    });
    expect(parse(text.toString())).toEqual({
      version: 1,
      providers: {
        groq: { adapter: 'openai', base_url: 'https://api.groq.com/openai/v1', api_key: 'env:GROQ_API_KEY' },
      },
    });
  });
});

it('every provider that is known by name is one of a medley.yaml', () => {
  const text = new CatalogText('');
  for (const [name, entry] of Object.entries(providerPresets())) text.addProvider(name, entry);
  const reading = readCatalogFile(text.toString(), 'medley.yaml', {
    adapters: Object.keys(adapters),
    canServe: () => true,
    secret: () => 'x',
  });
  expect(reading).toMatchObject({ ok: true, warnings: [] });
});
