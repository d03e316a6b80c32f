import { beforeAll, describe, expect, it, test } from 'vitest';
import { fieldsOf as ourFieldsOf, InputDraft } from '../../clients/ai-sdk/src/fields.ts';
import { putRatio, putSize } from '../../clients/ai-sdk/src/size.ts';
import { readTranscript } from '../../clients/ai-sdk/src/transcript.ts';
import { openCatalog } from '../../src/catalog/catalog.ts';
import { defaultProviders, keyName } from '../../src/catalog/default.ts';
import { isMediaKind, type JsonObject, type Model } from '../../src/catalog/model.ts';
import { ApiError } from '../../src/errors.ts';
import { adapterFacts } from '../../src/providers/facts.ts';
import { adapters } from '../../src/providers/index.ts';
import { offerOf } from '../../src/styles/media-parameters/offer.ts';
import { carrySize } from '../../src/styles/media-parameters/size.ts';

const sizes = [
  '1024x1024',
  '1024x1536',
  '1792x1024',
  '1280x720',
  '720x1280',
  '1920x1080',
  '3840x2160',
  '512x512',
  '1000x400',
];

/** Returns what the calls in OpenAI's words make of a size: an input, a refusal, or nothing. */
function byTheService(model: Model, size: string): JsonObject | 'refused' | 'no field' {
  if (model.kind !== 'image' && model.kind !== 'video') throw new Error(`${model.id} has no sizes.`);
  try {
    return carrySize(offerOf(model, model.kind), size) ?? 'no field';
  } catch (error) {
    if (error instanceof ApiError) return 'refused';
    throw error;
  }
}

function byTheProvider({ id, kind, input_schema }: Model, size: string): JsonObject | 'refused' | 'no field' {
  const draft = new InputDraft(id, ourFieldsOf(input_schema));
  putSize(draft, 'size', size, kind === 'video' ? 'video' : 'image');
  const { input } = draft;
  if (draft.warnings.length > 0) return 'no field';
  const isRefused = ([name, value]: [string, unknown]) => {
    const choices = draft.fields.get(name)?.choices;
    return choices !== undefined && !choices.some((choice) => choice === value);
  };
  return Object.entries(input).some(isRefused) ? 'refused' : JSON.parse(JSON.stringify(input));
}

describe('the sizes of every model of the default catalogue and the sandbox', () => {
  let models: Model[];
  beforeAll(async () => {
    const keys = Object.values(defaultProviders()).map(keyName);
    const secret = (reference: string) => (keys.includes(reference.replace('env:', '')) ? 'key' : undefined);
    const { current } = await openCatalog({ ...adapterFacts(adapters), secret });
    models = [...current.models.values()].filter(({ kind }) => isMediaKind(kind) && kind !== 'audio');
  });

  it.each(sizes)('become the same fields as in the calls of the service: %s', (size) => {
    // The service has no size for videos that have a class of pixels alone; the AI SDK asks for the class.
    const hasClassAlone = ({ kind, input_schema }: Model) =>
      kind === 'video' &&
      /"resolution"/.test(JSON.stringify(input_schema)) &&
      !/_ratio"|"ratio"/.test(JSON.stringify(input_schema));
    const same = models.filter((model) => !hasClassAlone(model));
    expect(same.length).toBeGreaterThan(10);
    for (const model of same)
      expect(byTheProvider(model, size), `${model.id} ${size}`).toEqual(byTheService(model, size));
  });
});

const draftOf = (properties: JsonObject, own: Record<string, string | number> = {}) =>
  new InputDraft('acme/model', ourFieldsOf({ type: 'object', properties }), own);

test.each<[string, JsonObject, `${number}:${number}`, object]>([
  ['a field for it', { aspect_ratio: { enum: ['1:1', '16:9'] } }, '16:9', { aspect_ratio: '16:9' }],
  ['nearly the same shape', { ratio: { enum: ['1:1', '16:9'] } }, '7:4', { ratio: '16:9' }],
  ['a list of sizes', { size: { enum: ['1024x1024', '1024x1536'] } }, '2:3', { size: '1024x1536' }],
  ['any text', { aspect_ratio: { type: 'string' } }, '5:4', { aspect_ratio: '5:4' }],
  ['no such shape, which the service refuses', { ratio: { enum: ['1:1'] } }, '5:4', { ratio: '5:4' }],
])('a shape becomes %s', (_name, properties, ratio, input) => {
  const draft = draftOf(properties);
  putRatio(draft, ratio);
  expect([draft.input, draft.warnings]).toEqual([input, []]);
});

test.each<[string, JsonObject, string | number, object]>([
  ['the choice that reads the same', { seconds: { enum: ['4', '8'] } }, 8, { seconds: '8' }],
  ['the choice in another word', { seconds: { enum: ['4s', '8s'] } }, 8, { seconds: '8s' }],
  ['a number where it came as digits', { seconds: { type: 'integer' } }, '8', { seconds: 8 }],
  ['a text where the field has no numbers', { seconds: { type: 'string' } }, 8, { seconds: '8' }],
  ['itself where nothing fits', { seconds: { type: 'integer', enum: [4] } }, 8, { seconds: 8 }],
])('a value becomes %s', (_name, properties, value, input) => {
  const draft = draftOf(properties);
  draft.put('duration', value, ['duration', 'seconds'], { synonyms: [`${value}s`] });
  expect([draft.input, draft.warnings]).toEqual([input, []]);
});

test('fields are found behind references, also behind those that go in circles', () => {
  const schema = {
    allOf: [{ $ref: '#/$defs/base' }],
    $defs: {
      base: { properties: { size: { $ref: '#/$defs/a~1b' }, files: { type: 'array', items: { 'x-media': 'image' } } } },
      'a/b': { enum: ['1x1'], allOf: [{ $ref: '#/$defs/a~1b' }, { $ref: '#/$defs/gone' }] },
    },
  };
  const fields = ourFieldsOf(schema);
  expect([...fields.keys()]).toEqual(['size', 'files']);
  expect(fields.get('size')?.choices).toEqual(['1x1']);
  expect(fields.get('files')).toMatchObject({ media: 'image', is_list: true });
});

test('names of a hostile schema are names and no prototype', () => {
  const draft = draftOf(JSON.parse('{ "__proto__": { "type": "string" }, "constructor": { "enum": ["x"] } }'));
  draft.put('prompt', 'words', ['__proto__']);
  expect(draft.field(['toString'])).toBeUndefined();
  expect(Object.getPrototypeOf(draft.input)).toBe(Object.prototype);
});

test.each<[string, object]>([
  ['Hello.', { text: 'Hello.', segments: [] }],
  ['{"not": "a transcript"}', { text: '{"not": "a transcript"}' }],
  ['{"text": "Hi", "language": "english", "duration": 1.5}', { text: 'Hi', language: 'en', durationInSeconds: 1.5 }],
  ['{"text": "Hi", "language": "pl-PL"}', { language: 'pl' }],
  ['{"text": "Hi", "language": "klingonese"}', { language: undefined }],
  [
    '{"text": "Hi", "segments": [{"text": "Hi", "start": 0, "end": 1}, {"text": 7}, null], "words": [{"word": "Hi", "start": 0, "end": 1}]}',
    { segments: [{ text: 'Hi', startSecond: 0, endSecond: 1 }], words: [{ text: 'Hi', startSecond: 0, endSecond: 1 }] },
  ],
])('the transcript %s is read', (text, transcript) => {
  expect(readTranscript(text)).toMatchObject(transcript);
});
