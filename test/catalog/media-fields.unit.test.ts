import { describe, expect, it } from 'vitest';
import { mediaFieldsOf, mediaMistakes, mediaTexts, replaceMedia } from '../../src/catalog/media-fields.ts';
import type { JsonObject } from '../../src/catalog/model.ts';
import { estimateUnits, measuredUnits } from '../../src/catalog/price.ts';
import { problemLines, withModels } from './problem-lines.ts';

const schema: JsonObject = {
  type: 'object',
  properties: {
    prompt: { type: 'string' },
    first: { type: 'string', 'x-media': 'image' },
    others: { type: 'array', items: { type: 'string', 'x-media': 'video' } },
    all: { type: ['string', 'array'], 'x-media': 'audio' },
    'x-media': { type: 'string' },
    free: { default: { 'x-media': 1 } },
  },
};

it('the fields that take files are found in a schema', () => {
  expect(mediaFieldsOf(schema)).toEqual([
    { name: 'first', kind: 'image' },
    { name: 'others', kind: 'video' },
    { name: 'all', kind: 'audio' },
  ]);
  expect(mediaMistakes(schema)).toEqual([]);
  expect(mediaFieldsOf({ type: 'object' })).toEqual([]);
});

it.each([
  [{ properties: { a: { 'x-media': 'picture' } } }, ['properties', 'a', 'x-media'], 'must be image, audio, video.'],
  [{ properties: { a: { 'x-media': true } } }, ['properties', 'a', 'x-media'], 'must be image, audio, video.'],
  [{ 'x-media': 'image' }, ['x-media'], 'has an effect only on'],
  [
    { properties: { a: { properties: { b: { 'x-media': 'image' } } } } },
    ['properties', 'a', 'properties', 'b', 'x-media'],
    'has an effect only on',
  ],
  [{ anyOf: [{ 'x-media': 'image' }] }, ['anyOf', 0, 'x-media'], 'has an effect only on'],
  [{ $defs: { a: { 'x-media': 'image' } } }, ['$defs', 'a', 'x-media'], 'has an effect only on'],
])('an x-media like %j is a mistake', (wrong: JsonObject, path, message) => {
  const mistakes = mediaMistakes(wrong);
  expect(mistakes.map((mistake) => mistake.path)).toEqual([path]);
  expect(mistakes[0]?.message).toContain(message);
});

it('texts are replaced in their fields and everything else is unchanged', async () => {
  const input = { prompt: 'first', first: 'a', others: ['b', 5, null, 'c'], all: null, more: { first: 'x' } };
  const fields = mediaFieldsOf(schema);
  const replaced = await replaceMedia(input, fields, async (text, { kind }, place) => `${kind} ${text} ${place}`);
  expect(replaced).toEqual({
    prompt: 'first',
    first: 'image a input.first',
    others: ['video b input.others[0]', 5, null, 'video c input.others[3]'],
    all: null,
    more: { first: 'x' },
  });
  expect(fields.map((field) => mediaTexts(input, field))).toEqual([['a'], ['b', 'c'], []]);
  expect(mediaTexts({}, { name: 'constructor', kind: 'image' })).toEqual([]);
});

describe('a model that is priced by the length of its audio input', () => {
  const model = (estimate: string, unit = 'minute', more = '') =>
    withModels(
      `  - id: a\n    kind: audio\n    output_types: [text]\n` +
        `    input_schema: { type: object, required: [audio, name], properties: { audio: { type: string, x-media: audio }, name: { type: string }, face: { type: string, x-media: image } } }\n` +
        `    price: [{ unit: ${unit}, amount: "0.006" }]\n    estimate: { ${estimate} }\n    routes: [{ provider: p }]\n${more}`,
    );

  it('holds for its seconds', () => {
    expect(problemLines(model('second: $media.audio.duration'))).toEqual([]);
    expect(problemLines(model('second: [$media.audio.duration, 2]', 'second'))).toEqual([]);
  });

  it.each([
    ['minute: ▸$media.audio.duration', 'minute: durations are in seconds: write it under second, minutes follow'],
    ['second: ▸$media.name.duration', 'second: name has no duration: it must have x-media: audio or video.'],
    ['second: ▸$media.face.duration', 'second: face has no duration: it must have x-media: audio or video.'],
    ['second: ▸$media.adio.duration', 'second: the input_schema has no field "adio". Did you mean "audio"?'],
    [
      'second: ▸$media.audio.length',
      'second: must be $input.FIELD, $media.FIELD.duration, $bytes.FIELD, a number, or a list',
    ],
  ])('cannot be estimated by %s', (estimate, message) => {
    expect(problemLines(model(estimate)).join('\n')).toContain(`error: ▸models[0].estimate.${message}`);
  });

  it('makes no images', () => {
    const text = model('second: $media.audio.duration').replace('[text]', '▸[image]');
    expect(problemLines(text)).toEqual(['error: ▸models[0].output_types: audio models do not make image.']);
  });

  it('measures what others estimate', () => {
    const estimate = { second: [{ duration_of: 'audio' }, { constant: '2' }], request: [{ constant: '1' }] };
    const units = estimateUnits({ estimate }, { audio: 'file_1' }, new Map([['audio', '61.5']]));
    expect(units).toEqual({ second: '123', request: '1' });
    expect(measuredUnits({ estimate }, units)).toEqual({ second: '123' });
    expect(() => estimateUnits({ estimate }, {})).toThrow('input.audio is required, since the price depends on it.');
  });
});
