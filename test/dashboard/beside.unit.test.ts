import { describe, expect, it } from 'vitest';
import type { ModelView } from '../../src/dashboard/views/models.ts';
import type { EstimateView } from '../../src/dashboard/views/playground.ts';
import { estimateTogether } from '../../web/src/pages/playground/beside/estimate-together.ts';
import { runsIn, runText } from '../../web/src/pages/playground/beside/run-text.ts';
import { isRunnable } from '../../web/src/pages/playground/runnable.ts';
import { areComparable, inputFor, sharedInput } from '../../web/src/pages/playground/beside/shared-input.ts';

type Fields = Record<string, Record<string, unknown>>;

function modelOf(name: string, properties: Fields, more: Partial<ModelView> & { required?: string[] } = {}): ModelView {
  const { required = ['prompt'], ...rest } = more;
  return {
    id: name,
    display_name: name,
    owned_by: 'us',
    modality: 'image',
    description: '',
    input_schema: { type: 'object', properties: { prompt: { type: 'string' }, ...properties }, required },
    output_types: ['image'],
    pricing: [],
    limits: {},
    capabilities: [],
    status: 'available',
    pace: null,
    ...rest,
  };
}

describe('the input of several models', () => {
  it('is the schema itself for one model', () => {
    const one = modelOf('A', { seed: { type: 'integer' } });
    expect(sharedInput([one])).toEqual({ schema: one.input_schema, differences: [] });
  });

  it('has the fields that all of them take, and names those that only some have', () => {
    const a = modelOf('A', { seed: { type: 'integer' }, steps: { type: 'integer' }, n: { type: 'integer' } });
    const b = modelOf('B', { n: { type: 'integer' }, style: { type: 'string' } });
    const { schema, differences } = sharedInput([a, b]);
    expect(schema).toEqual({
      type: 'object',
      properties: { prompt: { type: 'string' }, n: { type: 'integer' } },
      required: ['prompt'],
    });
    expect(differences).toEqual([
      { is: 'only', models: ['A'], fields: ['Seed', 'Steps'] },
      { is: 'only', models: ['B'], fields: ['Style'] },
    ]);
    expect(inputFor({ input_schema: schema }, { prompt: 'x', seed: 1, n: 2 })).toEqual({ prompt: 'x', n: 2 });
  });

  it('has a field that one model cannot do without, which no other model is sent', () => {
    const edit = modelOf('Edit', { image: { type: 'string', 'x-media': 'image' } }, { required: ['prompt', 'image'] });
    const draw = modelOf('Draw', {});
    const { schema, differences } = sharedInput([draw, edit]);
    expect(schema).toMatchObject({ properties: { image: { 'x-media': 'image' } }, required: ['prompt'] });
    expect(differences).toEqual([{ is: 'needed', models: ['Edit'], fields: ['Image'] }]);
    const input = { prompt: 'x', image: 'file_1' };
    expect([inputFor(draw, input), inputFor(edit, input)]).toEqual([{ prompt: 'x' }, input]);
  });

  it.each([
    [
      'whole numbers within the narrower bounds',
      { type: 'number', minimum: 1, maximum: 10 },
      { type: 'integer', minimum: 2, maximum: 20 },
      { type: 'integer', minimum: 2, maximum: 10 },
    ],
    ['choices that both have', { enum: ['a', 'b', 'c'] }, { enum: ['c', 'b', 'd'] }, { enum: ['b', 'c'] }],
    [
      'choices within the bounds of the other',
      { type: 'integer', enum: [4, 8, 12] },
      { type: 'integer', minimum: 5, maximum: 8 },
      { type: 'integer', enum: [8], minimum: 5, maximum: 8 },
    ],
    ['the default that both have', { default: 1 }, { default: 1 }, { default: 1 }],
    ['no default where they differ', { default: 1 }, { default: 2 }, {}],
    [
      'texts of the shorter length',
      { type: 'string', maxLength: 9 },
      { type: 'string', maxLength: 5 },
      { type: 'string', maxLength: 5 },
    ],
  ])('takes %s', (_name, one, other, both) => {
    const { schema } = sharedInput([modelOf('A', { x: one }), modelOf('B', { x: other })]);
    expect(schema['properties']).toEqual({ prompt: { type: 'string' }, x: both });
  });

  it.each([
    ['types', { type: 'string' }, { type: 'integer' }],
    ['choices', { enum: ['a'] }, { enum: ['b'] }],
    ['bounds', { maximum: 1 }, { minimum: 2 }],
    ['patterns', { pattern: 'a' }, { pattern: 'b' }],
    ['files', { type: 'string', 'x-media': 'image' }, { type: 'string' }],
  ])('leaves a field out whose %s have nothing in common', (_name, one, other) => {
    const { schema, differences } = sharedInput([modelOf('A', { x: one }), modelOf('B', { x: other })]);
    expect(schema['properties']).toEqual({ prompt: { type: 'string' } });
    expect(differences).toEqual([{ is: 'apart', field: 'X' }]);
  });

  it('names the ranges and the defaults that differ', () => {
    const a = modelOf('A', { width: { type: 'integer', minimum: 16, maximum: 64, default: 32 } });
    const b = modelOf('B', { width: { type: 'integer', minimum: 16, maximum: 128 } });
    expect(sharedInput([a, b]).differences).toEqual([
      {
        is: 'range',
        field: 'Width',
        ranges: [
          { models: ['A'], text: '16 to 64' },
          { models: ['B'], text: '16 to 128' },
        ],
      },
      {
        is: 'default',
        field: 'Width',
        defaults: [
          { models: ['A'], text: '32' },
          { models: ['B'], text: 'its own choice' },
        ],
      },
    ]);
  });
});

describe('models side by side', () => {
  const speech = modelOf('Speech', {}, { modality: 'audio', output_types: ['audio'] });
  const recording = { audio: { type: 'string', 'x-media': 'audio' } };
  it.each([
    ['two with a prompt', modelOf('A', {}), modelOf('B', { n: {} }), true],
    ['kinds that differ', modelOf('A', {}), modelOf('B', {}, { modality: 'video', output_types: ['video'] }), false],
    [
      'speech and transcripts',
      speech,
      modelOf('T', recording, { modality: 'audio', output_types: ['text'], required: ['audio'] }),
      false,
    ],
    [
      'no field in common that they need',
      speech,
      { ...speech, input_schema: { required: ['text'], properties: { text: {} } } },
      false,
    ],
    ['a prompt that is another thing', modelOf('A', {}), modelOf('B', { prompt: { type: 'array' } }), false],
  ])('%s', (_name, one, other, can) => {
    expect(areComparable(one, other)).toBe(can);
  });
});

const money = (exact: string) => ({ amount: exact.slice(0, -4), exact, currency: 'USD' });

function fine(cost: string, available: string | null, more: Partial<EstimateView & { ok: true }> = {}): EstimateView {
  const left = available === null ? null : money(available);
  const rest = { key_left: null, obstacle: null, paused_until: null, ...more };
  return { ok: true, estimated_cost: money(cost), available: left, ...rest };
}

describe('the hold of several runs', () => {
  it('is their exact sum', () => {
    const view = estimateTogether([fine('0.010000', '5.000000'), fine('0.000001', '5.000000')], ['A', 'B']);
    expect(view).toMatchObject({ ok: true, estimated_cost: { exact: '0.010001', currency: 'USD' }, obstacle: null });
  });

  it('is more than what is available where each of them alone is not', () => {
    const view = estimateTogether([fine('3.000000', '5.000000'), fine('3.000000', '5.000000')], ['A', 'B']);
    expect(view).toMatchObject({ ok: true, obstacle: 'insufficient_balance' });
  });

  it.each(['9.000000', null])(
    'is more than what is left of the key where each of them alone is not: %s',
    (available) => {
      const one = fine('3.000000', available, { key_left: money('5.000000') });
      expect(estimateTogether([one, one], ['A', 'B'])).toMatchObject({ ok: true, obstacle: 'spend_limit' });
      expect(estimateTogether([one], ['A'])).toMatchObject({ obstacle: null });
    },
  );

  it('is there before several of them begin; one run does not wait for it', () => {
    const estimating = { view: fine('1.000000', '5.000000'), error: null };
    const [stale, settled] = [true, false].map((is_stale) => ({ ...estimating, is_stale }));
    expect([1, 2].map((runs) => stale && isRunnable(stale, runs))).toEqual([true, false]);
    expect([1, 2].map((runs) => settled && isRunnable(settled, runs))).toEqual([true, true]);
  });

  it('has the obstacle of one of them', () => {
    const view = estimateTogether(
      [fine('1.000000', '5.000000'), fine('1.000000', '5.000000', { obstacle: 'spend_limit' })],
      [],
    );
    expect(view).toMatchObject({ ok: true, obstacle: 'spend_limit' });
  });

  it('is not there while one of them has a mistake, which has the name of its model', () => {
    const errors = [{ field: 'input.width', message: 'input.width must be at most 64.' }];
    expect(estimateTogether([fine('1.000000', '5.000000'), { ok: false, errors }], ['A', 'B'])).toEqual({
      ok: false,
      errors: [{ field: 'input.width', message: 'B: width must be at most 64.' }],
    });
  });
});

describe('the runs in the address', () => {
  it.each([
    ['task_1', ['a'], { a: 'task_1' }],
    ['task_1,,task_3', ['a', 'b', 'c'], { a: 'task_1', c: 'task_3' }],
    [',task_2', ['a', 'b'], { b: 'task_2' }],
    [undefined, ['a', 'b'], {}],
  ])('%s are those of their models', (run, models, runs) => {
    expect(runsIn(run, models)).toEqual(runs);
    expect(runText(runs, models)).toBe(run);
  });
});
