import { describe, expect, it } from 'vitest';
import { falRow, readFalPrices } from '../../../src/catalog/lists/fal-prices.ts';
import type { Kind } from '../../../src/catalog/model.ts';

const price = (unit: string, amount: number | string = 0.025, currency = 'USD') => ({
  endpoint: 'acme/x',
  amount,
  unit,
  currency,
});

describe('a price of fal', () => {
  it.each<[string, Kind, { unit: string; amount: string; per: number }]>([
    ['image', 'image', { unit: 'image', amount: '0.025', per: 1 }],
    ['images', 'image', { unit: 'image', amount: '0.025', per: 1 }],
    ['megapixels', 'image', { unit: 'megapixel', amount: '0.025', per: 1 }],
    ['seconds', 'video', { unit: 'second', amount: '0.025', per: 1 }],
    ['video_second', 'video', { unit: 'second', amount: '0.025', per: 1 }],
    ['minutes', 'audio', { unit: 'minute', amount: '0.025', per: 1 }],
    ['1000 characters', 'audio', { unit: 'character', amount: '0.025', per: 1000 }],
    ['1k characters', 'audio', { unit: 'character', amount: '0.025', per: 1000 }],
    ['Videos', 'video', { unit: 'request', amount: '0.025', per: 1 }],
    ['generations', 'video', { unit: 'request', amount: '0.025', per: 1 }],
  ])('by %s of a model for %s has its row', (unit, kind, row) => {
    expect(falRow(price(unit), kind)).toEqual(row);
  });

  it('keeps its amount exactly, as a number and as a text', () => {
    expect(falRow(price('seconds', 7e-5), 'video')).toMatchObject({ amount: '0.00007' });
    expect(falRow(price('seconds', '0.0024075'), 'video')).toMatchObject({ amount: '0.0024075' });
  });

  it.each<[string, Kind]>([
    ['compute_seconds', 'image'],
    ['credits', 'video'],
    ['megapixels', 'video'],
    ['toString', 'image'],
    ['0 images', 'image'],
    ['', 'image'],
  ])('by %j of a model for %s is none, since nothing here measures it', (unit, kind) => {
    expect(falRow(price(unit), kind)).toContain(`fal bills it by ${unit === '' ? 'no unit' : unit}`);
  });

  it.each([
    [price('image', 0.02, 'EUR'), 'its price is in EUR'],
    [price('image', 0.02, ''), 'its price is in no currency'],
    [price('image', 0), 'its price is nothing'],
    [price('image', -1), 'its price is nothing'],
    [price('image', 'much'), 'its price is nothing'],
  ])('that is no amount of dollars is none: %j', (one, reason) => {
    expect(falRow(one, 'image')).toBe(reason);
  });

  it('is read out of an answer that has others', () => {
    const prices = [
      { endpoint_id: 'acme/x', unit_price: 0.025, unit: 'image', currency: 'USD' },
      { unit_price: 1 },
      null,
      { endpoint_id: 'acme/y' },
    ];
    expect(readFalPrices({ prices, next_cursor: 'two', has_more: true })).toEqual({
      prices: [price('image'), { endpoint: 'acme/y', amount: undefined, unit: '', currency: '' }],
      next_cursor: 'two',
    });
    expect(() => readFalPrices({ detail: 'no' })).toThrow('has no prices.');
  });
});
