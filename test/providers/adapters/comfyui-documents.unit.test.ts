import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { readCatalogFile } from '../../../src/catalog/file.ts';
import { comfyui } from '../../../src/providers/adapters/comfyui/adapter.ts';
import { adapterFacts } from '../../../src/providers/facts.ts';
import { adapters } from '../../../src/providers/index.ts';
import type { DocumentModel } from '../../../src/providers/offer/document.ts';
import { inpaint, textToImage, textToVideo } from '../imitations/comfyui/workflows.ts';

/** Models that are made of workflows. */

const { documents } = comfyui;
const place = { provider: 'studio', prefix: 'studio/' };

const suggestedOf = (workflow: JsonObject) =>
  documents
    .read(workflow)
    .fields.filter(({ is_suggested }) => is_suggested)
    .map(({ target, name, type }) => `${name}: ${target} (${type})`);

/** A workflow of Flux: a guider, a text for two encoders that is linked, and noise of its own. */
const flux: JsonObject = {
  '6': {
    class_type: 'CLIPTextEncodeFlux',
    inputs: { clip: ['11', 0], t5xxl: ['30', 0], clip_l: ['30', 0], guidance: 3.5 },
  },
  '13': {
    class_type: 'SamplerCustomAdvanced',
    inputs: { noise: ['25', 0], guider: ['22', 0], latent_image: ['27', 0] },
  },
  '22': { class_type: 'BasicGuider', inputs: { model: ['12', 0], conditioning: ['26', 0] } },
  '25': { class_type: 'RandomNoise', inputs: { noise_seed: 219_670_278_747_233 } },
  '26': { class_type: 'FluxGuidance', inputs: { conditioning: ['6', 0], guidance: 3.5 } },
  '27': { class_type: 'EmptySD3LatentImage', inputs: { width: 1024, height: 1024, batch_size: 1 } },
  '30': { class_type: 'PrimitiveString', _meta: { title: 'The prompt' }, inputs: { value: 'a bay' } },
  '9': { class_type: 'SaveImage', inputs: { images: ['13', 0], filename_prefix: 'flux' } },
};

describe('the fields of a workflow that callers usually set', () => {
  it.each<[string, JsonObject, string[]]>([
    [
      'text to image: by the links of the sampler, whatever the nodes are called',
      textToImage(),
      [
        'seed: 3.seed (integer)',
        'width: 5.width (integer)',
        'height: 5.height (integer)',
        'prompt: 6.text (text)',
        'negative_prompt: 7.text (text)',
      ],
    ],
    [
      'inpainting: the picture and its mask are files',
      inpaint(),
      [
        'seed: 3.seed (integer)',
        'prompt: 6.text (text)',
        'negative_prompt: 7.text (text)',
        'image: 10.image (image)',
        'mask: 11.image (image)',
      ],
    ],
    [
      'Flux: a text behind several links',
      flux,
      [
        'seed: 25.noise_seed (integer)',
        'width: 27.width (integer)',
        'height: 27.height (integer)',
        'prompt: 30.value (text)',
      ],
    ],
    [
      'no sampler that is known: the first text',
      {
        '1': { class_type: 'Speak', inputs: { text: 'Hello', speed: 1.5 } },
        '2': { class_type: 'SaveAudio', inputs: { audio: ['1', 0] } },
      },
      ['prompt: 1.text (text)'],
    ],
  ])('%s', (_, workflow, suggested) => {
    expect(suggestedOf(workflow).toSorted()).toEqual(suggested.toSorted());
  });

  it('are offered beside all others, each under a name of its own', () => {
    const { fields } = documents.read(textToImage());
    const names = fields.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toContain('sampler_name');
    expect(fields.find(({ target }) => target === '5.batch_size')).toMatchObject({
      name: 'n',
      type: 'integer',
      maximum: 4,
      is_suggested: false,
    });
    expect(fields.find(({ target }) => target === '3.cfg')).toMatchObject({ type: 'number', value: 8 });
  });

  it('come with the kind of what is saved', () => {
    const kinds = [textToImage(), textToVideo(), { '1': { class_type: 'SaveAudioMP3', inputs: {} } }].map(
      (one) => documents.read(one).kind,
    );
    expect(kinds).toEqual(['image', 'video', 'audio']);
  });

  it.each<[string, JsonObject, RegExp]>([
    [
      'as the editor saves it',
      { nodes: [], links: [] },
      /^This is a workflow as the editor saves it: export it with “Export \(API\)”/,
    ],
    ['nothing', {}, /^This has no nodes\.$/],
    ['another JSON', { a: 7 }, /^This has the node a without class_type or inputs\.$/],
  ])('are refused for a document that is none: %s', (_, document, message) => {
    expect(() => documents.read(document)).toThrow(message);
  });
});

describe('the model of a workflow', () => {
  const model = (more: Partial<DocumentModel> = {}): DocumentModel => ({
    id: 'portrait',
    kind: 'image',
    fields: [
      { target: '6.text', name: 'prompt' },
      { target: '7.text', name: 'negative_prompt' },
      { target: '5.batch_size', name: 'n', maximum: 2 },
      { target: '3.cfg', name: 'guidance', maximum: 20 },
      { target: '3.seed', name: 'seed' },
    ],
    ...more,
  });

  it('has the chosen fields, the prompt and files required, numbers with an end, and each image counted', () => {
    const entry = documents.entry(textToImage(), model({ name: 'Portraits' }), place);
    expect(entry).toMatchObject({
      id: 'studio/portrait',
      name: 'Portraits',
      estimate: { image: '$input.n' },
      input_schema: {
        required: ['prompt'],
        additionalProperties: false,
        properties: {
          prompt: { type: 'string', minLength: 1 },
          negative_prompt: { default: 'text, watermark' },
          n: { type: 'integer', minimum: 1, maximum: 2, default: 1 },
          guidance: { type: 'number', maximum: 20, default: 8 },
          seed: { type: 'integer', minimum: 0, maximum: 4_294_967_295 },
        },
      },
      routes: [{ provider: 'studio', options: { inputs: { prompt: '6.text', n: '5.batch_size', guidance: '3.cfg' } } }],
    });
  });

  it.each([
    ['image', textToImage(), model()],
    [
      'image with files',
      inpaint(),
      model({
        fields: [
          { target: '10.image', name: 'image' },
          { target: '11.image', name: 'mask' },
        ],
      }),
    ],
    ['video', textToVideo(), model({ kind: 'video', fields: [{ target: '6.text', name: 'prompt' }] })],
    ['every field of it', textToImage(), model({ fields: documents.read(textToImage()).fields })],
    ['every field of Flux', flux, model({ fields: documents.read(flux).fields })],
  ])('passes the checks of medley.yaml: %s', (_, workflow, chosen) => {
    const entry = { ...documents.entry(workflow, chosen, place), price: [{ unit: 'request', amount: '0' }] };
    const content = { version: 1, providers: { studio: { adapter: 'comfyui', allow_private: true } }, models: [entry] };
    const reading = readCatalogFile(JSON.stringify(content), 'f', {
      ...adapterFacts(adapters),
      secret: () => undefined,
    });
    expect(reading).toMatchObject({ ok: true, warnings: [] });
  });

  it('sets fields of one name together', () => {
    const fields = [
      { target: '6.text', name: 'prompt' },
      { target: '7.text', name: 'prompt' },
    ];
    const entry = documents.entry(textToImage(), model({ fields }), place);
    expect(entry.routes[0]?.options?.['inputs']).toEqual({ prompt: ['6.text', '7.text'] });
  });

  it.each<[string, Partial<DocumentModel>, RegExp]>([
    ['no field', { fields: [] }, /Tick at least one field/],
    [
      'a field that is not there',
      { fields: [{ target: '6.words', name: 'prompt' }] },
      /The workflow has no field 6\.words/,
    ],
    [
      'a field twice',
      {
        fields: [
          { target: '6.text', name: 'a' },
          { target: '6.text', name: 'b' },
        ],
      },
      /can be chosen once/,
    ],
    [
      'a name with spaces',
      { fields: [{ target: '6.text', name: 'my prompt' }] },
      /lower-case letters, digits and underscores/,
    ],
    [
      'one name for a text and a number',
      {
        fields: [
          { target: '6.text', name: 'a' },
          { target: '3.cfg', name: 'a' },
        ],
      },
      /of several types/,
    ],
    ['an id that leads elsewhere', { id: '../x' }, /The id must have letters/],
  ])('is refused with %s', (_, wrong, message) => {
    expect(() => documents.entry(textToImage(), model(wrong), place)).toThrow(message);
  });
});
