import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openCatalog, type CatalogHolder } from '../../src/catalog/catalog.ts';
import { endingSoon } from '../../src/catalog/dated.ts';
import { unknownModel } from '../../src/catalog/model-errors.ts';
import { modelRecord } from '../../src/catalog/view.ts';
import { problemLines, video } from './problem-lines.ts';

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'medley-dated-'))));
afterEach(() => rm(folder, { recursive: true }));

const file = `version: 1
sandbox: false
providers: { p: { adapter: mock } }
models:
  - id: a/song
    kind: image
    input_schema: { type: object }
    retires: 2027-01-06
    replaced_by: a/opera
    price:
      - { unit: image, amount: "2" }
      - { unit: image, amount: "3", from: 2026-12-01 }
      - { unit: request, amount: "0.5", from: 2026-12-24 }
    routes: [{ provider: p, cost: [{ unit: image, amount: "1" }, { unit: image, amount: "0.8", from: 2026-12-24 }] }]
  - { id: a/opera, kind: image, input_schema: { type: object }, price: [{ unit: image, amount: "4" }], routes: [{ provider: p }] }
`;

async function openAt(start: string): Promise<{ catalog: CatalogHolder; moveTo: (time: string) => void }> {
  const config_file = join(folder, 'medley.yaml');
  await writeFile(config_file, file);
  const catalog = await openCatalog({ adapters: ['mock'], config_file });
  let now_ms = Date.parse(start);
  catalog.keepTime({ now: () => now_ms });
  return { catalog, moveTo: (time) => void (now_ms = Date.parse(time)) };
}

const amounts = (catalog: CatalogHolder) => {
  const model = catalog.current.models.get('a/song');
  return [model?.price, model?.routes[0]?.cost].map((rows) => rows?.map(({ unit, amount }) => `${unit} ${amount}`));
};

describe('a price with a date', () => {
  it('holds from the midnight of its day, UTC, without a reload', async () => {
    const { catalog, moveTo } = await openAt('2026-11-30T23:59:59.999Z');
    expect(amounts(catalog)).toEqual([['image 2'], ['image 1']]);
    moveTo('2026-12-01T00:00:00Z');
    expect(amounts(catalog)).toEqual([['image 3'], ['image 1']]);
    moveTo('2026-12-24T00:00:00Z');
    expect(amounts(catalog)).toEqual([['image 3', 'request 0.5'], ['image 0.8']]);
  });

  it('is said to callers without its date, once it holds', async () => {
    const { catalog } = await openAt('2026-12-02T00:00:00Z');
    const model = catalog.current.models.get('a/song');
    expect(model && modelRecord(model, 'USD', 'available')).toMatchObject({
      pricing: [{ unit: 'image', amount: '3', per: 1, currency: 'USD' }],
      retires: '2027-01-06',
      replaced_by: 'a/opera',
    });
  });

  it.each([
    ['price: [{ unit: second, amount: "0.1" }, { unit: second, amount: "0.2", from: 2027-01-01 }]', []],
    [
      'price: [{ unit: second, amount: "0.1", when: { mode: a } }, { unit: second, amount: "0.2", from: 2027-01-01 }]',
      ['inputs that fit no row for second are free: add one without `when`.'],
    ],
    ['price: [{ unit: second, amount: "0.1", from: soon }]', ['must be a date such as 2026-01-31 (got "soon").']],
  ])('is checked for each day on which something changes: %s', (price, messages) => {
    const lines = problemLines(video(price, 'price')).filter((line) => line.includes('price'));
    expect(lines.map((line) => messages.some((message) => line.endsWith(message)))).toEqual(messages.map(() => true));
  });
});

describe('a model that ends', () => {
  it('is refused from its day on, naming its successor, and keeps its routes for what it has accepted', async () => {
    const { catalog, moveTo } = await openAt('2027-01-05T23:59:59.999Z');
    expect([...catalog.current.models.keys()]).toEqual(['a/song', 'a/opera']);
    moveTo('2027-01-06T00:00:00Z');
    const { models, retired } = catalog.current;
    expect([...models.keys()]).toEqual(['a/opera']);
    expect(retired.get('a/song')?.routes).toHaveLength(1);
    expect(unknownModel('a/song', 'model', retired.get('a/song')?.retirement)).toMatchObject({
      status: 404,
      message: 'a/song ended on 2027-01-06; use a/opera instead.',
      extras: { param: 'model' },
    });
  });

  it('is announced to operators 30 days before', async () => {
    const { catalog } = await openAt('2026-12-01T00:00:00Z');
    const models = () => catalog.current.models.values();
    expect(endingSoon(models(), Date.parse('2026-12-06T23:59:00Z'))).toEqual([]);
    expect(endingSoon(models(), Date.parse('2026-12-07T00:00:00Z'))).toEqual([
      'a/song ends on 2027-01-06; use a/opera instead.',
    ]);
  });

  it.each([
    ['▸replaced_by: c/d', 'error: ▸models[0].replaced_by: has no meaning without `retires`.'],
    ['retires: 2027-01-06\n    replaced_by: ▸a/b', 'error: ▸models[0].replaced_by: is the model itself.'],
  ])('has its successor checked: %s', (more, expected) => {
    expect(problemLines(video(more))).toEqual([expected]);
  });
});
