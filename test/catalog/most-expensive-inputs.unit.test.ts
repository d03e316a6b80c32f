import { beforeAll, describe, expect, it } from 'vitest';
import { openCatalog } from '../../src/catalog/catalog.ts';
import { defaultProviders, keyName } from '../../src/catalog/default.ts';
import { isMediaKind, isObject, type Json, type JsonObject, type Model } from '../../src/catalog/model.ts';
import { estimateUnits, freezePricing, holdAmount, measuredCost, type Units } from '../../src/catalog/price.ts';
import { sampleInput } from '../../src/catalog/sample.ts';
import { upstreamCharge, fitCosts } from '../../src/catalog/upstream-cost.ts';
import { adapterFacts } from '../../src/providers/facts.ts';
import { adapters } from '../../src/providers/index.ts';

const keys = Object.values(defaultProviders()).map(keyName);
const settings = { currencies: new Map([['USD', '1']]), base_currency: 'USD' };
const minute_of_files = '60';

/** Four bytes and a token for each of them; and one that some upstreams count twice. */
const worst_characters = ['𝔘', '漢', 'a'];

/** Upstreams that count a character of Chinese as two. */
const doubled = new Set(['minimax']);

describe('the hold of every model of the default catalogue', () => {
  let models: Model[];
  beforeAll(async () => {
    const secret = (reference: string) => (keys.includes(reference.replace('env:', '')) ? 'key' : undefined);
    const { current } = await openCatalog({ ...adapterFacts(adapters), secret });
    models = [...current.models.values()].filter(({ id, kind }) => !id.startsWith('sandbox/') && isMediaKind(kind));
  });

  it('covers the most expensive input that its schema permits, at every route', () => {
    const short: string[] = [];
    const taken = new Set<string>();
    for (const model of models) {
      for (const candidate of mostExpensiveInputs(model)) {
        const checked = model.validateInput(candidate);
        if (!checked.ok) continue; // fields that exclude each other
        taken.add(model.id);
        const { input } = checked;
        const pricing = freezePricing(model, input, 'USD', settings);
        const held_units = estimateUnits(model, input, new Map(model.media.map(({ name }) => [name, minute_of_files])));
        const held = holdAmount(pricing, held_units);
        for (const route of model.routes) {
          const units = reportedUnits(route.provider, input, held_units);
          const rows = fitCosts(route.cost, () => input);
          const charge = upstreamCharge(settings, { rows, units, held_units, rate: '1' });
          const cost = 'cost' in charge ? charge.cost : measuredCost(pricing, units, held_units);
          if (cost > held || measuredCost(pricing, units, held_units) > held) {
            short.push(`${model.id} by ${route.id}: ${held} held, ${cost} cost`);
          }
        }
      }
    }
    expect([...new Set(short)]).toEqual([]);
    expect([...taken]).toEqual(models.map(({ id }) => id));
  });
});

/** The most that an upstream may count of this input: a token for every byte, a quarter of a second of speech for every character. */
function reportedUnits(provider: string, input: JsonObject, held_units: Units): Units {
  const texts = Object.values(input).flatMap((value) =>
    typeof value === 'string' && !value.startsWith('data:') ? [value] : [],
  );
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  const spoken = typeof input['text'] === 'string' ? [...input['text']] : [];
  const wide = doubled.has(provider) ? spoken.filter((each) => each === '漢').length : 0;
  return {
    ...held_units,
    ...('input_token' in held_units && { input_token: String(bytes + 20) }),
    ...('output_token' in held_units && { output_token: String(Math.ceil((spoken.length / 4) * (1_250 / 60))) }),
    ...('character' in held_units && { character: String(spoken.length + wide) }),
    ...('image' in held_units && { image: String(input['n'] ?? input['count'] ?? 1) }),
    ...('second' in held_units && typeof input['duration'] === 'number' && { second: String(input['duration']) }),
  };
}

/** Every choice of the listed fields, with the longest texts of each worst character, the largest numbers, the most files. */
function mostExpensiveInputs(model: Model): JsonObject[] {
  const { properties } = model.input_schema;
  const required = sampleInput(model, () => 'data:image/png;base64,AAAA');
  const fields = Object.entries(isObject(properties) ? properties : {});
  return worst_characters.flatMap((character) =>
    fields.reduce<JsonObject[]>(
      (all, [name, schema]) => {
        const values = isObject(schema) ? mostExpensiveValues(schema, character) : [];
        return values.length === 0 ? all : all.flatMap((one) => values.map((value) => ({ ...one, [name]: value })));
      },
      [required],
    ),
  );
}

function mostExpensiveValues(schema: JsonObject, character: string): Json[] {
  if (Array.isArray(schema['enum'])) return schema['enum'];
  if (schema['x-media'] !== undefined || schema['pattern'] !== undefined) return [];
  switch (schema['type']) {
    case 'string':
      return typeof schema['maxLength'] === 'number' ? [character.repeat(schema['maxLength'])] : [];
    case 'boolean':
      return [true, false];
    case 'integer':
    case 'number':
      return [schema['minimum'], schema['maximum']].filter((value) => typeof value === 'number');
    case 'array':
      return isObject(schema['items']) &&
        schema['items']['x-media'] !== undefined &&
        typeof schema['maxItems'] === 'number'
        ? [Array.from({ length: schema['maxItems'] }, () => 'data:image/png;base64,AAAA')]
        : [];
    default:
      return [];
  }
}
