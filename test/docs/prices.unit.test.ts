import { describe, expect, it } from 'vitest';
import { openCatalog } from '../../src/catalog/catalog.ts';
import type { JsonObject, Model, PriceRow } from '../../src/catalog/model.ts';
import {
  chargeAmount,
  estimateUnits,
  freezePricing,
  holdAmount,
  unitsOfOutputs,
  type Pricing,
  type Units,
} from '../../src/catalog/price.ts';
import { withMargin } from '../../src/catalog/margin.ts';
import { costOf, holdFor, pricingForHold, unitsOf } from '../../src/chat/price.ts';
import { exact } from '../../src/money/money.ts';
import { adapterFacts } from '../../src/providers/facts.ts';
import { adapters } from '../../src/providers/index.ts';
import { searchUnits } from '../../src/styles/search-units.ts';
import { readDocument } from './document.ts';

const catalog = await openCatalog({ ...adapterFacts(adapters), secret: () => 'key' });
catalog.keepTime({ now: () => Date.parse('2026-11-25') }); // later some models have ended
const { current } = catalog;

/** The example of each section, computed as the service does. */
type Example = { held?: string; charged: string };

const usd = { currency: 'USD', currencies: new Map([['USD', '1']]) };

function modelOf(id: string): Model {
  const model = current.models.get(id);
  if (!model) throw new Error(`${id} is there`);
  return model;
}

function inputOf(model: Model, fields: JsonObject): JsonObject {
  const checked = model.validateInput(fields);
  if (!checked.ok) throw new Error(JSON.stringify(checked.errors));
  return checked.input;
}

function task(id: string, fields: JsonObject, units: Units, seconds?: number): Example {
  const model = modelOf(id);
  const input = inputOf(model, fields);
  const durations = new Map(model.media.map(({ name }) => [name, String(seconds)] as const));
  return charge(freezePricing(model, input, usd.currency, usd), estimateUnits(model, input, durations), units);
}

function charge(pricing: Pricing, held_units: Units, reported: Units): Example {
  return { held: exact(holdAmount(pricing, held_units)), charged: exact(chargeAmount(pricing, reported, held_units)) };
}

type Called = { input: number; cached: number; written?: number; for_an_hour?: number; output: number };

function call(id: string, { input, cached, written = 0, for_an_hour = 0, output }: Called): Example {
  const pricing = freezePricing(modelOf(id), {}, usd.currency, usd);
  const usage = {
    input_tokens: input,
    cached_input_tokens: cached,
    cache_write_tokens: written + for_an_hour,
    cache_write_1h_tokens: for_an_hour,
    output_tokens: output,
  };
  return { charged: exact(costOf(pricing, unitsOf(pricing, usage))) };
}

function ranking(id: string, documents: number): Example {
  const pricing = freezePricing(modelOf(id), {}, usd.currency, usd);
  const search_unit = String(
    searchUnits(
      20,
      Array.from({ length: documents }, () => 60),
    ),
  );
  return { charged: exact(costOf(pricing, { request: '1', search_unit })) };
}

const haiku = { input: 40_000, cached: 60_000, written: 20_000, for_an_hour: 10_000, output: 2_000 };
const video = (duration: number) => unitsOfOutputs([{ type: 'video', width: 1920, height: 1080, duration }]);
const prompt = 'x'.repeat(200);

function megapixels(): Example {
  const price: PriceRow[] = [{ unit: 'megapixel', amount: '0.012', per: 1 }];
  const images = unitsOfOutputs(
    Array.from({ length: 3 }, () => ({ type: 'image' as const, width: 1536, height: 1024 })),
  );
  return charge(freezePricing({ price }, {}, 'USD', usd), { megapixel: '6' }, images);
}

function withMarginInZloty(): Example {
  const flux = modelOf('black-forest-labs/flux-2-pro');
  const [dearer] = withMargin(
    [{ id: flux.id, kind: 'image', price: flux.price.map((row) => ({ ...row })), routes: [] }],
    '1.2',
  );
  const price = (dearer?.price ?? []).map((row): PriceRow => ({ ...row, per: row.per ?? 1 }));
  const currencies = new Map([
    ['USD', '1'],
    ['PLN', '3.65'],
  ]);
  const input = inputOf(flux, { prompt, resolution: '2 MP' });
  return charge(freezePricing({ price }, input, 'PLN', { currencies }), { image: '1' }, { image: '1' });
}

const examples: (() => Example)[] = [
  () => call('openai/gpt-6.1-terra', { input: 4_000, cached: 8_000, output: 1_500 }),
  () => call('anthropic/claude-haiku-5-5', haiku),
  () => task('kwaivgi/kling-v3', { prompt, resolution: '1080p', sound: true }, video(5.04)),
  () => task('runway/gen4.5', { prompt, duration: 10 }, video(9.875)),
  () => task('elevenlabs/eleven-flash-v2.5', { text: 'ż'.repeat(1_233) + '🚲' }, {}),
  () =>
    task(
      'openai/gpt-image-2',
      { prompt, size: '1024x1536', quality: 'high', n: 2 },
      { image: '2', input_token: '180', output_token: '9000' },
    ),
  megapixels,
  () => task('openai/whisper-1', { audio: 'https://example.com/talk.mp3' }, {}, 451.5),
  () => call('openai/text-embedding-3-small', { input: 8_191, cached: 0, output: 0 }),
  withMarginInZloty,
  () => task('elevenlabs/scribe-v2', { audio: 'https://example.com/beep.mp3' }, {}, 1),
  () => task('minimax/hailuo-2.3', { prompt, duration: 10 }, video(10.1)),
  () => ranking('cohere/rerank-v4.0-pro', 250),
];

const sections = readDocument('docs/prices.md')
  .text.split(/^## (?=\d+\. )/m)
  .slice(1)
  .map((text) => {
    const [, line = ''] = /```text\n(.*)\n```/.exec(text) ?? [];
    const [, sum = '', figure = ''] = /^(.*) = (\d+\.\d{6}) (?:USD|PLN)$/.exec(line) ?? [];
    return { title: text.split('\n')[0] ?? '', text, sum, figure };
  });

describe('docs/prices.md', () => {
  it('has as many examples as are computed', () => {
    expect(sections.length).toBe(examples.length);
    expect(sections.length).toBeGreaterThanOrEqual(10);
  });

  it.each(sections.map((section, index) => [section.title, section, examples[index]] as const))(
    '%s',
    (_, { sum, figure }, compute) => {
      expect(figure).not.toBe('');
      expect(compute?.().charged).toBe(figure);
      expect(roundedHalfUp(valueOf(sum))).toBe(figure);
    },
  );

  it('tells what is held where that is another figure', () => {
    const [held, rounded] = [examples[3]?.().held, examples[10]?.().held];
    expect([held, rounded]).toEqual(['1.200000', '0.000062']);
    expect(sections[10]?.text).toContain('0.000062 are held');
  });

  it('a hold of a call is for the price of its length', () => {
    const pricing = freezePricing(modelOf('anthropic/claude-haiku-5-5'), {}, usd.currency, usd);
    const holds = (for_an_hour: boolean) =>
      [100_000, 100_001].map((input) => exact(holdFor(pricingForHold(pricing, for_an_hour), input, 1_000)));
    expect(holds(false)).toEqual(['0.013000', '0.065001']);
    expect(holds(true)).toEqual(['0.020500', '0.102501']);
  });
});

type Fraction = { over: bigint; under: bigint };

/** The exact value of a sum such as `(4,000 × 1.00 + 2) ÷ 60`, with the usual precedence. */
function valueOf(sum: string): Fraction {
  const words = sum.match(/[\d,]+(?:\.\d+)?|[×÷+()]/g) ?? [];
  let at = 0;
  const term = (): Fraction => {
    let value = factor();
    while (words[at] === '×' || words[at] === '÷') {
      const is_product = words[at++] === '×';
      const { over, under } = factor();
      value = is_product
        ? { over: value.over * over, under: value.under * under }
        : { over: value.over * under, under: value.under * over };
    }
    return value;
  };
  const whole = (): Fraction => {
    let value = term();
    while (words[at] === '+') {
      at++;
      const { over, under } = term();
      value = { over: value.over * under + over * value.under, under: value.under * under };
    }
    return value;
  };
  const factor = (): Fraction => {
    const word = words[at++] ?? '';
    if (word !== '(') {
      const [digits = '', fraction = ''] = word.replaceAll(',', '').split('.');
      return { over: BigInt(digits + fraction), under: 10n ** BigInt(fraction.length) };
    }
    const value = whole();
    expect(words[at++]).toBe(')');
    return value;
  };
  const value = whole();
  expect(at).toBe(words.length);
  return value;
}

function roundedHalfUp({ over, under }: Fraction): string {
  return exact((over * 2_000_000n + under) / (under * 2n));
}
