import { beforeAll, describe, expect, it } from 'vitest';
import { openCatalog } from '../../../src/catalog/catalog.ts';
import { defaultProviders, keyName } from '../../../src/catalog/default.ts';
import { fieldsOf } from '../../../src/catalog/input-schema.ts';
import { mediaFieldsOf } from '../../../src/catalog/media-fields.ts';
import { isMediaKind, type Json, type JsonObject, type MediaKind, type Model } from '../../../src/catalog/model.ts';
import { ApiError } from '../../../src/errors.ts';
import { adapterFacts } from '../../../src/providers/facts.ts';
import { adapters } from '../../../src/providers/index.ts';
import { offerOf, type Offer } from '../../../src/styles/media-parameters/offer.ts';
import {
  mapParameter,
  edit_parameters,
  image_parameters,
  speech_parameters,
  transcription_parameters,
  translation_parameters,
  video_parameters,
  type Parameters,
} from '../../../src/styles/media-parameters/parameters.ts';

const offer = (kind: MediaKind, properties: JsonObject): Offer => {
  const schema = { type: 'object', properties };
  return { model: 'acme/model', kind, fields: fieldsOf(schema), media: mediaFieldsOf(schema) };
};

/** The input that is made of the parameters, or the parameter that is refused. */
function carried(parameters: Parameters, of: Offer, body: JsonObject): JsonObject | string {
  try {
    return mapParameter(of, parameters, body).input;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return `${error.status === 400 ? 'refused' : error.status}: ${error.extras.param}`;
  }
}

const text = { type: 'string' };
const whole = { type: 'integer' };
const oneOf = (...values: Json[]) => ({ enum: values });
const image = { type: 'string', 'x-media': 'image' };
const images = { type: 'array', items: image };
const audio = { type: 'string', 'x-media': 'audio' };

type Case = [what: string, fields: JsonObject, given: JsonObject, becomes: JsonObject | string];

describe('pictures', () => {
  const ratios = oneOf('1:1', '16:9', '9:16', '3:2', '2:3');
  const cases: Case[] = [
    ['size among the sizes', { size: oneOf('1024x1024', 'auto') }, { size: '1024x1024' }, { size: '1024x1024' }],
    ['size, written otherwise', { size: oneOf('1024*1536') }, { size: '1024x1536' }, { size: '1024*1536' }],
    ['size that is none of them', { size: oneOf('1024x1024') }, { size: '512x512' }, 'refused: size'],
    ['size auto where it is a word', { size: oneOf('1024x1024', 'auto') }, { size: 'auto' }, { size: 'auto' }],
    ['size auto where it is none', { size: oneOf('1024x1024') }, { size: 'auto' }, {}],
    ['size as any text', { size: text }, { size: '300x200' }, { size: '300x200' }],
    ['size in words of the model', { size: oneOf('1K', '2K') }, { size: '2K' }, { size: '2K' }],
    ['size that is no size', { width: whole, height: whole }, { size: 'large' }, 'refused: size'],
    ['size as width and height', { width: whole, height: whole }, { size: '300x200' }, { width: 300, height: 200 }],
    ['size as a shape', { aspect_ratio: ratios }, { size: '1536x1024' }, { aspect_ratio: '3:2' }],
    ['size as the nearest shape', { aspect_ratio: ratios }, { size: '1024x1792' }, { aspect_ratio: '9:16' }],
    ['size of no shape there is', { aspect_ratio: ratios }, { size: '1000x400' }, 'refused: size'],
    ['size as any shape', { aspect_ratio: text }, { size: '1920x1080' }, { aspect_ratio: '16:9' }],
    [
      'size as a shape and thousands of pixels',
      { aspect_ratio: ratios, resolution: oneOf('1K', '2K', '4K') },
      { size: '2048x2048' },
      { aspect_ratio: '1:1', resolution: '2K' },
    ],
    [
      'size as a shape and megapixels',
      { aspect_ratio: ratios, resolution: oneOf('1 MP', '4 MP') },
      { size: '1024x1024' },
      { aspect_ratio: '1:1', resolution: '1 MP' },
    ],
    ['size far from any', { aspect_ratio: ratios, resolution: oneOf('4K') }, { size: '512x512' }, 'refused: size'],
    ['size where there is no choice', { seed: whole }, { size: '512x512' }, 'refused: size'],
    ['size auto where there is no choice', { seed: whole }, { size: 'auto' }, {}],
    ['n', { num_images: whole }, { n: 3 }, { num_images: 3 }],
    ['n from a form', { num_outputs: whole }, { n: '3' }, { num_outputs: 3 }],
    ['n 1 where there is no choice', {}, { n: 1 }, {}],
    ['n 2 where there is no choice', {}, { n: 2 }, 'refused: n'],
    ['quality', { quality: oneOf('low', 'high') }, { quality: 'high' }, { quality: 'high' }],
    ['quality of older models', { quality: oneOf('low', 'medium', 'high') }, { quality: 'hd' }, { quality: 'high' }],
    ['quality auto', { quality: oneOf('low', 'high') }, { quality: 'auto' }, {}],
    ['the usual quality, without a choice', {}, { quality: 'standard' }, {}],
    ['high quality, without a choice', {}, { quality: 'high' }, 'refused: quality'],
    ['background', { background: oneOf('transparent') }, { background: 'transparent' }, { background: 'transparent' }],
    ['a transparent background, without a choice', {}, { background: 'transparent' }, 'refused: background'],
    ['an opaque background, without a choice', {}, { background: 'opaque' }, {}],
    ['jpeg, which is jpg there', { output_format: oneOf('jpg') }, { output_format: 'jpeg' }, { output_format: 'jpg' }],
    ['webp, without a choice', {}, { output_format: 'webp' }, 'refused: output_format'],
    ['user', { prompt: text }, { user: 'someone', safety_identifier: 'x', prompt: 'a' }, { prompt: 'a' }],
    ['null', { n: whole }, { n: null, size: null }, {}],
    ['a field of the model', { seed: whole }, { seed: 7 }, { seed: 7 }],
    [
      'a field of the model, from a form',
      { seed: whole, raw: { type: 'boolean' } },
      { seed: '7', raw: 'true' },
      { seed: 7, raw: true },
    ],
    [
      'a field of the model before a parameter',
      { width: whole, height: whole },
      { width: 5, size: '9x9' },
      { width: 5, height: 9 },
    ],
    ['something unknown', { seed: whole }, { sede: 7 }, 'refused: sede'],
    ['what every object inherits', {}, { constructor: 1 }, 'refused: constructor'],
    [
      'a picture, which this call has not',
      { image },
      { image: 'https://a.example/b.png' },
      { image: 'https://a.example/b.png' },
    ],
  ];
  it.each(cases)('%s', (_, fields, body, becomes) => {
    expect(carried(image_parameters, offer('image', fields), body)).toEqual(becomes);
  });

  const edits: Case[] = [
    ['one picture', { image }, { image: 'a' }, { image: 'a' }],
    ['one picture in a list', { images }, { image: 'a' }, { images: ['a'] }],
    ['several pictures', { image, images }, { image: ['a', 'b'] }, { images: ['a', 'b'] }],
    ['several pictures for one place', { image }, { image: ['a', 'b'] }, 'refused: image'],
    [
      'references',
      { images },
      { images: [{ image_url: 'https://a' }, { file_id: 'file_1' }] },
      { images: ['https://a', 'file_1'] },
    ],
    ['a mask', { image, mask_image: image }, { image: 'a', mask: 'm' }, { image: 'a', mask_image: 'm' }],
    ['no mask', { image }, { image: 'a', mask: 'm' }, 'refused: mask'],
    ['no picture', { prompt: text }, { image: 'a' }, 'refused: image'],
    [
      'the first picture and not the last',
      { last_image: image, first_image: image },
      { image: 'a' },
      { first_image: 'a' },
    ],
  ];
  it.each(edits)('edit: %s', (_, fields, body, becomes) => {
    expect(carried(edit_parameters, offer('image', fields), body)).toEqual(becomes);
  });
});

describe('films', () => {
  const cases: Case[] = [
    ['seconds', { duration: { type: 'number' } }, { seconds: '4' }, { duration: 4 }],
    ['seconds as a number', { duration: { type: 'number' } }, { seconds: 4 }, { duration: 4 }],
    ['seconds among numbers', { duration: oneOf(4, 8) }, { seconds: '8' }, { duration: 8 }],
    ['seconds among texts', { duration: oneOf('4s', '8s') }, { seconds: '8' }, { duration: '8s' }],
    ['seconds as a text', { seconds: text }, { seconds: 8 }, { seconds: '8' }],
    [
      'seconds that are none of them',
      { duration: { type: 'integer', enum: [4, 8] } },
      { seconds: '5' },
      { duration: 5 },
    ],
    ['seconds without a choice', {}, { seconds: '4' }, 'refused: seconds'],
    [
      'size',
      { aspect_ratio: oneOf('adaptive', '16:9', '9:16'), resolution: oneOf('480p', '720p', '4k') },
      { size: '720x1280' },
      { aspect_ratio: '9:16', resolution: '720p' },
    ],
    [
      'size of four thousand pixels',
      { aspect_ratio: oneOf('16:9'), resolution: oneOf('720p', '4k') },
      { size: '3840x2160' },
      { aspect_ratio: '16:9', resolution: '4k' },
    ],
    ['size where the model decides the shape', { resolution: oneOf('768P') }, { size: '1280x720' }, 'refused: size'],
    [
      'a picture',
      { first_frame: image },
      { input_reference: { image_url: 'https://a' } },
      { first_frame: 'https://a' },
    ],
    ['a picture, where there is none', { prompt: text }, { input_reference: 'a' }, 'refused: input_reference'],
  ];
  it.each(cases)('%s', (_, fields, body, becomes) => {
    expect(carried(video_parameters, offer('video', fields), body)).toEqual(becomes);
  });
});

describe('speech and transcripts', () => {
  const speech: Case[] = [
    ['input', { text }, { input: 'a' }, { text: 'a' }],
    ['voice', { voice_id: text }, { voice: 'nova' }, { voice_id: 'nova' }],
    ['a voice of one’s own', { voice: text }, { voice: { id: 'voice_1' } }, { voice: 'voice_1' }],
    ['voice without a choice', {}, { voice: 'nova' }, {}],
    ['voice that is nothing', {}, { voice: {} }, 'refused: voice'],
    ['speed', { speed: { type: 'number' } }, { speed: '1.5' }, { speed: 1.5 }],
    ['the usual speed, without a choice', {}, { speed: 1 }, {}],
    ['another speed, without a choice', {}, { speed: 2 }, 'refused: speed'],
    ['instructions without a field', {}, { instructions: 'softly' }, 'refused: instructions'],
    ['a format', { output_format: oneOf('mp3', 'wav') }, { response_format: 'wav' }, { output_format: 'wav' }],
    ['the usual format, without a choice', {}, { response_format: 'mp3' }, {}],
    ['another format, without a choice', {}, { response_format: 'opus' }, 'refused: response_format'],
  ];
  it.each(speech)('speech: %s', (_, fields, body, becomes) => {
    expect(carried(speech_parameters, offer('audio', fields), body)).toEqual(becomes);
  });

  const forms = { output_format: oneOf('text', 'json', 'srt') };
  const transcripts: Case[] = [
    ['file', { audio }, { file: 'a' }, { audio: 'a' }],
    ['json, of which the words are asked for', forms, { response_format: 'json' }, { output_format: 'text' }],
    ['json where it is all there is', { format: oneOf('json') }, { response_format: 'text' }, { format: 'json' }],
    ['subtitles', forms, { response_format: 'srt' }, { output_format: 'srt' }],
    ['subtitles, without a choice', {}, { response_format: 'srt' }, 'refused: response_format'],
    ['words, without a choice', {}, { response_format: 'text' }, {}],
    ['times of segments', {}, { timestamp_granularities: ['segment'] }, {}],
    ['times of words', {}, { timestamp_granularities: ['word'] }, 'refused: timestamp_granularities'],
    ['temperature 0', {}, { temperature: '0' }, {}],
    ['temperature', {}, { temperature: '0.8' }, 'refused: temperature'],
    ['language', { language_code: text }, { language: 'pl' }, { language_code: 'pl' }],
    ['language, without a choice', {}, { language: 'pl' }, 'refused: language'],
    ['probabilities', {}, { include: ['logprobs'] }, 'refused: include'],
  ];
  it.each(transcripts)('transcripts: %s', (_, fields, body, becomes) => {
    expect(carried(transcription_parameters, offer('audio', fields), body)).toEqual(becomes);
  });

  it.each<Case>([
    ['a switch', { translate: { type: 'boolean' } }, { translate: true }, { translate: true }],
    ['a task', { task: oneOf('transcribe', 'translate') }, { translate: true }, { task: 'translate' }],
    ['a language', { target_language: text }, { translate: true }, { target_language: 'en' }],
    ['another task', { task: oneOf('transcribe') }, { translate: true }, 'refused: model'],
    ['nothing', {}, { translate: true }, 'refused: model'],
  ])('translations by %s', (_, fields, body, becomes) => {
    expect(carried(translation_parameters, offer('audio', fields), body)).toEqual(becomes);
  });
});

describe('every model of the default catalogue and the sandbox', () => {
  let models: Model[];
  beforeAll(async () => {
    const keys = Object.values(defaultProviders()).map(keyName);
    const secret = (reference: string) => (keys.includes(reference.replace('env:', '')) ? 'key' : undefined);
    const { current } = await openCatalog({ ...adapterFacts(adapters), secret });
    models = [...current.models.values()].filter(({ kind }) => isMediaKind(kind));
  });

  /** Lists the mistakes of a call, model by model. */
  function problemsOf(those: (model: Model) => boolean, parameters: Parameters, bodyFor: (model: Model) => JsonObject) {
    const meant = models.filter(those);
    expect(meant.length).toBeGreaterThan(3);
    return meant.flatMap((model) => {
      if (!isMediaKind(model.kind)) return [];
      const check = model.validateInput(mapParameter(offerOf(model, model.kind), parameters, bodyFor(model)).input);
      return check.ok ? [] : [`${model.id}: ${check.errors[0]?.message}`];
    });
  }
  const needs = ({ input_schema }: Model, field: string) => JSON.stringify(input_schema['required']).includes(field);
  const writes = ({ output_types }: Model) => output_types.includes('text');
  const file = 'https://files.example/a';

  it('makes pictures as the SDK asks for them', () => {
    const bodyFor = (model: Model) => ({
      prompt: 'a cat',
      n: 1,
      size: '1024x1024',
      quality: 'auto',
      ...(needs(model, 'image') && { image: file }),
    });
    // These change a given image, by no prompt or by two: they are asked by their own fields.
    const is_tool = ({ id }: Model) => /^stability\/(?:search|remove|fast)-/.test(id);
    expect(problemsOf((model) => model.kind === 'image' && !is_tool(model), edit_parameters, bodyFor)).toEqual([]);
  });

  it('makes films as the SDK asks for them', () => {
    const takesShape = ({ id }: Model) => /^minimax\/|image-to-video$/.test(id); // of their picture
    const bodyFor = (model: Model) => ({
      prompt: 'a cat',
      ...(!takesShape(model) && { size: '1280x720' }),
      ...(needs(model, 'image') && { input_reference: { image_url: file } }),
    });
    expect(problemsOf(({ kind }) => kind === 'video', video_parameters, bodyFor)).toEqual([]);
  });

  it('speaks', () => {
    const bodyFor = ({ input_schema }: Model) => {
      const fields = fieldsOf(input_schema);
      const voices = fields.keyword('voice', 'enum');
      const voice = Array.isArray(voices) ? (voices[0] ?? '') : (fields.keyword('voice', 'default') ?? 'any');
      return { input: 'Good morning', voice, speed: 1 };
    };
    // These change a given recording: they are asked by their own fields.
    const is_tool = (model: Model) => model.id.includes('isolation') || needs(model, 'audio');
    const speaks = (model: Model) => model.kind === 'audio' && !writes(model) && !is_tool(model);
    expect(problemsOf(speaks, speech_parameters, bodyFor)).toEqual([]);
  });

  it('writes down', () => {
    const bodyFor = () => ({ file, response_format: 'json', temperature: '0' });
    expect(problemsOf(writes, transcription_parameters, bodyFor)).toEqual([]);
  });
});
