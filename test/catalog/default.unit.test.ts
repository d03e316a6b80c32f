import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkDefaults, openCatalog, surveyCatalog, type CatalogOptions } from '../../src/catalog/catalog.ts';
import { defaultModels, defaultProviders, keyName } from '../../src/catalog/default.ts';
import { mapInput } from '../../src/catalog/input.ts';
import { isMediaKind, isObject, kinds, type Json, type JsonObject, type Model } from '../../src/catalog/model.ts';
import { shippedTitle } from '../../src/catalog/presets.ts';
import { estimateUnits, freezePricing, holdAmount } from '../../src/catalog/price.ts';
import { sampleInput } from '../../src/catalog/sample.ts';
import { adapterFacts } from '../../src/providers/facts.ts';
import { adapters } from '../../src/providers/index.ts';

const facts = adapterFacts(adapters);
const with_keys = (...names: string[]): CatalogOptions => ({
  ...facts,
  secret: (reference) => (names.includes(reference.replace('env:', '')) ? 'key' : undefined),
});
const every_key = Object.values(defaultProviders()).map(keyName);
const idsOf = (models: Iterable<{ id: string }>) => [...models].map(({ id }) => id);

describe('the default catalogue', () => {
  let models: Model[];
  beforeAll(async () => {
    const catalog = await openCatalog(with_keys(...every_key));
    catalog.keepTime({ now: () => Date.parse('2026-10-01') }); // before any of them ends
    const { current } = catalog;
    models = [...current.models.values()].filter(({ id }) => !id.startsWith('sandbox/'));
  });

  it('passes config check', () => {
    expect(checkDefaults(facts)).toEqual({ errors: [], warnings: [] });
  });

  it('takes of Eleven v3 only the stabilities that it has', () => {
    const eleven = models.find(({ id }) => id === 'elevenlabs/eleven-v3');
    const ok = (stability: number) => eleven?.validateInput({ text: 'Good morning.', stability }).ok;
    expect([0, 0.3, 0.5, 0.7, 1].map(ok)).toEqual([true, false, true, false, true]);
  });

  it('asks for no model that its provider has deprecated', () => {
    const called = models.flatMap(({ routes }) => routes.map(({ upstream_model }) => upstream_model));
    expect(called.filter((name) => /^music_v1$|^imagen-/.test(name))).toEqual([]);
    const ends = models.filter(({ routes }) =>
      routes.some(({ provider, upstream_model }) => provider === 'gemini' && upstream_model.startsWith('veo-')),
    );
    expect(ends.map(({ retirement }) => retirement?.on)).toEqual(ends.map(() => '2026-10-22'));
  });

  it('has some fifty models of all kinds, each with a usable route when all keys are set', () => {
    expect(models.length).toBeGreaterThanOrEqual(40);
    expect(idsOf(models)).toEqual(idsOf(defaultModels()));
    expect(new Set(models.map(({ kind }) => kind))).toEqual(new Set(kinds));
    for (const { routes } of defaultModels())
      for (const { provider } of routes) expect(defaultProviders()).toHaveProperty(provider);
  });

  it('has a name for people for every provider', () => {
    const nameless = Object.keys(defaultProviders()).filter((name) => name !== 'fal' && shippedTitle(name) === name);
    expect(nameless).toEqual([]);
  });

  it('leaves addresses to the adapters, which recognize the provider itself by that, except for presets without code', () => {
    const with_address = Object.entries(defaultProviders()).filter(([, { base_url }]) => base_url !== undefined);
    const by_adapter = with_address.filter(([, { adapter }]) => adapter !== 'http-queue');
    expect(by_adapter.map(([name]) => name)).toEqual(['luma-dream-machine']);
    for (const [, { adapter, base_url }] of Object.entries(defaultProviders()))
      expect(adapter !== 'http-queue' || base_url !== undefined).toBe(true);
  });

  it('says where and when every price was read', () => {
    const wrong = models.flatMap(({ id, price_source, price }) =>
      price.length > 0 && price_source && price_source.url.startsWith('https://') && isPast(price_source.date)
        ? []
        : [id],
    );
    expect(wrong).toEqual([]);
    const without_cost = models.flatMap(({ id, routes }) =>
      routes.flatMap(({ provider, cost, cost_source }) =>
        cost.length > 0 === (cost_source !== undefined) ? [] : [`${id} by ${provider}`],
      ),
    );
    expect(without_cost).toEqual([]);
  });

  it('has no route that costs more than its model', () => {
    const rows = ({ price }: { price: Model['price'] }) =>
      price.map(({ unit, amount, per, when }) => ({ unit, amount, per, when }));
    const differing = models.flatMap((model) =>
      model.routes
        .filter(({ cost }) => cost.length > 0 && !isDeepStrictEqual(rows({ price: cost }), rows(model)))
        .map(({ provider }) => `${model.id} by ${provider}`),
    );
    expect(differing).toEqual([]);
  });

  it('describes every field of every input', () => {
    const bare = models
      .filter(({ kind }) => isMediaKind(kind))
      .flatMap(({ id, input_schema }) =>
        Object.entries(input_schema['properties'] ?? {}).flatMap(([name, field]) =>
          field.title && field.description ? [] : [`${id} ${name}`],
        ),
      );
    expect(bare).toEqual([]);
  });

  it('prices and maps the examples of its own schemas', () => {
    for (const model of models.filter(({ kind }) => isMediaKind(kind))) {
      const checked = model.validateInput(sampleInput(model, () => 'data:image/png;base64,AAAA'));
      if (!checked.ok) throw new Error(`${model.id}: ${checked.errors.map(({ message }) => message).join(' ')}`);
      const pricing = freezePricing(model, checked.input, 'USD', { currencies: new Map([['USD', '1']]) });
      const durations = new Map(model.media.map(({ name }) => [name, '60'] as const));
      expect(holdAmount(pricing, estimateUnits(model, checked.input, durations)), model.id).toBeGreaterThan(0n);
      for (const route of model.routes) {
        const sent = mapInput(route, checked.input);
        expect(JSON.stringify(sent), `${model.id} by ${route.id}`).not.toMatch(/\$(input|lookup|spread)/);
        expect(Object.keys(sent).length).toBeGreaterThan(0);
      }
    }
  });

  it('has an upstream value for every value of a field', () => {
    const wordless = models.flatMap(({ id, input_schema, routes }) =>
      combinations(input_schema).flatMap((input) =>
        routes.flatMap((route) => {
          const sent = mapInput(route, { ...input, seed: 1 });
          const looked_up = Object.entries(route.input ?? {}).filter(
            ([, value]) => isObject(value) && '$lookup' in value,
          );
          const missing = looked_up.filter(([name]) => !(name in sent));
          return missing.map(([name]) => `${id} by ${route.id}: ${name} for ${JSON.stringify(input)}`);
        }),
      ),
    );
    expect(wordless).toEqual([]);
  });

  it('keeps FLUX.2 within the megapixels that are paid for, in steps of 16', () => {
    const flux = models.find(({ id }) => id === 'black-forest-labs/flux-2-pro');
    const direct = flux?.routes.find(({ provider }) => provider === 'bfl');
    if (!flux || !direct) throw new Error('it is there');
    const sizes = combinations(flux.input_schema).map((input) => ({
      ...mapInput(direct, input),
      resolution: input['resolution'],
    }));
    expect(sizes.length).toBeGreaterThanOrEqual(21);
    for (const size of sizes) {
      const [w, h] = [Number(Reflect.get(size, 'width')), Number(Reflect.get(size, 'height'))];
      const { resolution } = size;
      expect([w % 16, h % 16]).toEqual([0, 0]);
      const megapixels = Number.parseInt(String(resolution), 10);
      expect(w * h).toBeLessThanOrEqual(megapixels * 1024 * 1024);
      expect(w * h).toBeGreaterThan(megapixels * 850_000);
    }
  });
});

/** Every choice of the fields that have a list of values. */
function combinations({ properties }: JsonObject): JsonObject[] {
  const listed = Object.entries(isObject(properties) ? properties : {}).flatMap(([name, field]): [string, Json[]][] => {
    const values = isObject(field) ? (field['type'] === 'boolean' ? [true, false] : field['enum']) : undefined;
    return Array.isArray(values) ? [[name, values]] : [];
  });
  return listed.reduce<JsonObject[]>(
    (all, [name, values]) => all.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    [{}],
  );
}

function isPast(date: string): boolean {
  return /^20\d\d-\d\d-\d\d$/.test(date) && Date.parse(date) < Date.now();
}

describe('the keys of default providers', () => {
  it('switch on their models, and two providers of one model are two routes', async () => {
    const one = await openCatalog(with_keys('FAL_KEY'));
    const two = await openCatalog(with_keys('FAL_KEY', 'REPLICATE_API_TOKEN', 'BFL_API_KEY'));
    const routes = ({ current }: typeof one) =>
      current.models.get('black-forest-labs/flux-2-pro')?.routes.map(({ provider }) => provider);
    expect(routes(one)).toEqual(['fal']);
    expect(routes(two)).toEqual(['bfl', 'replicate', 'fal']);
    expect(one.current.keyed_providers).toEqual(['fal']);
    expect(one.current.models.has('openai/gpt-6-luna')).toBe(false);
    expect([...two.current.models.keys()].at(-1)).toMatch(/^sandbox\//);
  });

  it('leave only the sandbox when none is set', async () => {
    const { current } = await openCatalog(with_keys());
    expect([...current.models.keys()].filter((id) => !id.startsWith('sandbox/'))).toEqual([]);
    expect(current.keyed_providers).toEqual([]);
  });

  it('do not limit a survey, which lists all models', async () => {
    const { models, catalog, providers } = await surveyCatalog(with_keys('FAL_KEY'));
    expect(models.filter(({ origin }) => origin === 'default')).toHaveLength(defaultModels().length);
    expect(catalog.models.size).toBeLessThan(models.length);
    expect([...providers.keys()]).toEqual(expect.arrayContaining(['openai', 'sandbox']));
  });
});

describe('the default catalogue beside a file', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'medley-default-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  async function open(text: string, ...keys: string[]) {
    const config_file = join(folder, 'medley.yaml');
    await writeFile(config_file, `version: 1\n${text}`);
    return (await openCatalog({ ...with_keys(...keys), config_file })).current;
  }

  const own = (id: string, provider: string) =>
    `models: [{ id: ${id}, kind: chat, price: [{ unit: input_token, amount: "1" }, { unit: output_token, amount: "1" }], routes: [{ provider: ${provider} }] }]\n`;

  it('is off unless the file switches it on', async () => {
    const { models, keyed_providers: keyed } = await open('limits: {}\n', 'OPENAI_API_KEY');
    expect([...models.keys()].every((id) => id.startsWith('sandbox/'))).toBe(true);
    expect(keyed).toEqual([]);
  });

  it('is limited by a list to some of its providers', async () => {
    const { keyed_providers: keyed, models } = await open('catalog: { default: [fal] }\n', 'OPENAI_API_KEY', 'FAL_KEY');
    expect(keyed).toEqual(['fal']);
    expect(models.has('openai/gpt-6-luna')).toBe(false);
    expect(models.get('google/veo-3.1')?.routes.map(({ provider }) => provider)).toEqual(['fal']);
  });

  it("comes after the file's models, whose routes may name default providers", async () => {
    const { models } = await open(
      `catalog: { default: true }\n${own('openai/gpt-6-luna', 'openai')}`,
      'OPENAI_API_KEY',
    );
    expect([...models.keys()][0]).toBe('openai/gpt-6-luna');
    expect(models.get('openai/gpt-6-luna')?.price[0]?.amount).toBe('1');
    expect(models.has('openai/gpt-6-sol')).toBe(true);
  });

  it("uses the file's provider of the same name when it speaks the same protocol", async () => {
    const same =
      'providers: { openai: { adapter: openai, base_url: "https://eu.api.openai.com/v1", api_key: env:EU } }\n';
    const mine = await open(`catalog: { default: true }\n${same}`, 'EU');
    expect(mine.providers.get('openai')?.base_url).toBe('https://eu.api.openai.com/v1');
    expect(mine.models.has('openai/gpt-6-luna')).toBe(true);
    const other = 'providers: { openai: { adapter: anthropic, api_key: env:EU } }\n';
    expect(
      (await open(`catalog: { default: true }\n${other}`, 'EU', 'OPENAI_API_KEY')).models.has('openai/gpt-6-luna'),
    ).toBe(false);
  });

  it('has a margin that multiplies the prices of callers and not the upstream costs', async () => {
    const { models } = await open('catalog: { default: true, margin: "1.2" }\n', 'FAL_KEY');
    const veo = models.get('google/veo-3.1');
    expect(veo?.price.map(({ amount }) => amount)).toEqual(['0.72', '0.48']);
    expect(veo?.routes[0]?.cost.map(({ amount }) => amount)).toEqual(['0.60', '0.40']);
    expect(models.get('sandbox/image')?.price[0]?.amount).toBe('0.01');
  });
});
