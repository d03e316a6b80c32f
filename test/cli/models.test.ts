import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkCatalogFile } from '../../src/catalog/catalog.ts';
import { adapterFacts } from '../../src/providers/facts.ts';
import { adapters } from '../../src/providers/index.ts';
import { startChatUpstream } from '../helpers/chat-upstream.ts';
import { startFal } from '../providers/imitations/fal.ts';
import { sampleFile, type Imitation } from '../providers/imitations/imitation.ts';
import { startIdeogram } from '../providers/imitations/vendors.ts';
import { commandsOf, medleySoon } from './medley.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'medley-models-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Returns the `--json` output of any command. */
async function json(words: string[], env: Record<string, string> = {}, code = 0) {
  const result = await medleySoon([...words, '--json'], env);
  expect(result.code, result.error + result.out).toBe(code);
  return JSON.parse(result.out);
}

describe('medley models', () => {
  it('lists what the keys make usable and what further keys would add', async () => {
    const { models, providers } = await json(['models'], { FAL_KEY: 'x' });
    const flux = models.find(({ id }: { id: string }) => id === 'black-forest-labs/flux-2-pro');
    expect(flux).toEqual({
      id: 'black-forest-labs/flux-2-pro',
      kind: 'image',
      name: 'FLUX.2 [pro]',
      origin: 'default',
      usable: true,
      routes: [
        { id: 'bfl', provider: 'bfl', upstream_model: 'flux-2-pro', usable: false, missing: 'BFL_API_KEY' },
        {
          id: 'replicate',
          provider: 'replicate',
          upstream_model: 'black-forest-labs/flux-2-pro',
          usable: false,
          missing: 'REPLICATE_API_TOKEN',
        },
        { id: 'fal', provider: 'fal', upstream_model: 'fal-ai/flux-2-pro', usable: true },
      ],
    });
    expect(providers).toContainEqual({ name: 'fal', key: 'FAL_KEY', found: true });
    expect(providers).toContainEqual({ name: 'openai', key: 'OPENAI_API_KEY', found: false });
    const { out } = await commandsOf({ FAL_KEY: 'x' }, medleySoon).text('models');
    expect(out).toMatch(/^black-forest-labs\/flux-2-pro +image +from 0\.03 USD per image +fal$/m);
    expect(out).toMatch(/^ {2}ANTHROPIC_API_KEY +4 models: anthropic\/claude-fable-5-1, /m);
    expect(out).toMatch(/^ {2}BFL_API_KEY +1 model: .*; a further route for black-forest-labs\/flux-2-pro, /m);
    expect(out).not.toMatch(/^anthropic\//m);
  });

  it('shows prices with their pages and days, routes and fields', async () => {
    const veo = await json(['models', 'show', 'google/veo-3.1']);
    expect(veo).toMatchObject({
      usable: false,
      price: [{ unit: 'second', amount: '0.60', per: 1, when: { resolution: '4k' } }, { amount: '0.40' }],
      price_source: { url: 'https://fal.ai/models/fal-ai/veo3.1', date: expect.stringMatching(/^2026-/) },
      retires: null,
      routes: [
        {
          id: 'fal',
          missing: 'FAL_KEY',
          cost: [{ currency: 'USD' }, {}],
          cost_source: { url: expect.stringContaining('fal.ai') },
        },
      ],
    });
    const { out } = await commandsOf({}, medleySoon).text('models', 'show', 'anthropic/claude-haiku-5-5');
    expect(out).toContain('0.50 USD per million input tokens, for inputs above 100,000 tokens');
    expect(await commandsOf({}, medleySoon).fails(1, 'models', 'show', 'google/veo-3.2')).toContain(
      'Did you mean google/veo-3.1?',
    );
  });

  it("reads the operator's own file", async () => {
    const path = join(folder, 'own.yaml');
    writeFileSync(path, 'version: 1\nsandbox: false\ncatalog: { default: [fal], margin: "2" }\n');
    const env = { MEDLEY_CONFIG: path, FAL_KEY: 'x' };
    const { price } = await json(['models', 'show', 'google/veo-3.1'], env);
    expect(price.map(({ amount }: { amount: string }) => amount)).toEqual(['1.2', '0.8']);
    const { models } = await json(['models'], env);
    expect(models.every(({ origin }: { origin: string }) => origin === 'default')).toBe(true);
    writeFileSync(path, 'version: 2\n');
    expect(await commandsOf(env, medleySoon).fails(2, 'models')).toContain('version');
  });

  it('finds the default catalogue valid', async () => {
    const output = await json(['config', 'check', '--default']);
    expect(output).toEqual({ ok: true, file: 'The default catalogue', errors: [], warnings: [] });
  });
});

describe('medley models test', () => {
  let upstream: Imitation;
  let env: Record<string, string>;
  beforeAll(async () => {
    upstream = await startFal();
    const path = join(folder, 'test.yaml');
    writeFileSync(
      path,
      `version: 1
providers: { fal: { adapter: fal, base_url: "${upstream.url}", api_key: env:FAL_KEY, allow_private: true } }
catalog: { default: [fal] }
`,
    );
    env = { MEDLEY_CONFIG: path, FAL_KEY: 'the-key' };
  });
  afterAll(() => upstream.stop());

  it('sends nothing without --real, and prints what it would send and what it would cost', async () => {
    const output = await json(['models', 'test', 'black-forest-labs/flux-2-pro'], env);
    expect(output).toMatchObject({
      real: false,
      route: 'fal',
      sent: { image_size: { width: 1024, height: 1024 } },
      estimated_cost: '0.030000',
    });
    expect(upstream.requests).toEqual([]);
  });

  it('makes one run with --real and writes its files', async () => {
    const words = ['models', 'test', 'black-forest-labs/flux-2-pro', '--real', '--out', join(folder, 'out')];
    const input = JSON.stringify({ prompt: 'Blue hour', resolution: '2 MP' });
    const output = await json([...words, '--input', input, '--route', 'fal'], env);
    expect(output).toMatchObject({
      real: true,
      outcome: 'done',
      cost: '0.045000',
      units: { image: '1' },
      files: [{ path: join(folder, 'out', 'black-forest-labs-flux-2-pro-1.png'), content_type: 'image/png' }],
    });
    expect(readFileSync(output.files[0].path).length).toBe(output.files[0].size_bytes);
    expect(output.steps.map(({ phase }: { phase: string }) => phase)).toEqual(['submit', 'waiting', 'running', 'done']);
    const [submit] = upstream.requestsFor('submit');
    expect(submit?.json).toMatchObject({ prompt: 'Blue hour', image_size: { width: 1408, height: 1408 } });
  });

  it('a chat model is sent the bound of a call that names none', async () => {
    const chat = await startChatUpstream();
    const path = join(folder, 'chat.yaml');
    const model = (id: string, fields: string) =>
      `  - { id: ${id}, kind: chat, ${fields} price: [{ unit: output_token, amount: "1" }], routes: [{ provider: own, upstream_model: ${id} }] }\n`;
    const provider = `own: { adapter: openai, base_url: "${chat.url}/v1", allow_private: true }`;
    const models = model('plain', '') + model('bound', 'max_output_tokens: 300,');
    writeFileSync(path, `version: 1\nproviders: { ${provider} }\nmodels:\n${models}`);
    for (const id of ['plain', 'bound']) {
      chat.script(id, {
        json: { id: 'c', object: 'chat.completion', choices: [{ index: 0, message: { content: 'Hi' } }] },
      });
      await json(['models', 'test', id, '--real'], { MEDLEY_CONFIG: path });
    }
    await chat.stop();
    expect(chat.requests.map(({ body }) => body)).toMatchObject([{ max_tokens: 4096 }, { max_tokens: 300 }]);
  });

  it('sends a given file in a form, and wants a file where the upstream takes no links', async () => {
    const ideogram = await startIdeogram();
    const path = join(folder, 'ideogram.yaml');
    const provider = `{ adapter: http-queue, base_url: "${ideogram.url}", api_key: env:IDEOGRAM_API_KEY, allow_private: true }`;
    writeFileSync(
      path,
      `version: 1\ncatalog: { default: [ideogram] }\nproviders: { ideogram: ${provider} }\nmodels: []\n`,
    );
    const own = { MEDLEY_CONFIG: path, IDEOGRAM_API_KEY: 'the-key' };
    const words = ['models', 'test', 'ideogram/ideogram-3-remix', '--real', '--out', join(folder, 'remix'), '--input'];
    const image = `data:image/png;base64,${(await sampleFile('image')).toString('base64')}`;
    const output = await json([...words, JSON.stringify({ prompt: 'Snow', image })], own);
    expect(output).toMatchObject({ outcome: 'done', cost: '0.060000', files: [{ content_type: 'image/png' }] });
    const linked = JSON.stringify({ prompt: 'Snow', image: 'https://files.example/a.png' });
    expect(await commandsOf(own, medleySoon).fails(1, ...words, linked)).toContain('takes a data URL in image');
    await ideogram.stop();
  });

  it('explains a refusal and ends with 1', async () => {
    upstream.instead('submit', {
      status: 401,
      json: { detail: 'Cannot access application. Authentication is required' },
    });
    const output = await json(['models', 'test', 'black-forest-labs/flux-schnell', '--real'], env, 1);
    expect(output).toMatchObject({ outcome: 'not started', message: expect.stringMatching(/^rejected_credentials: /) });
    expect(JSON.stringify(output)).not.toContain('the-key');
  });

  it.each([
    [2, ['black-forest-labs/flux-2-pro', '--input', '{"promt":1}'], 'input.prompt is required.'],
    [2, ['black-forest-labs/flux-2-pro', '--input', 'x'], 'The input must be a JSON object.'],
    [
      2,
      ['black-forest-labs/flux-2-pro', '--input', '{"prompt":"x","seed":9007199254740993}'],
      'input.seed must be within ±9007199254740991, or a text: 9007199254740993 would be rounded.',
    ],
    [1, ['black-forest-labs/flux-2-pro', '--route', 'bfl'], 'has no route "bfl"; it has fal.'],
    [1, ['black-forest-labs/flux-3'], 'There is no model "black-forest-labs/flux-3".'],
  ])('ends with %d for %j', async (code, words, message) => {
    expect(await commandsOf(env, medleySoon).fails(code, 'models', 'test', ...words)).toContain(message);
  });

  it('needs the key of the route', async () => {
    const message = await commandsOf({}, medleySoon).fails(1, 'models', 'test', 'openai/gpt-6-luna', '--real');
    expect(message).toBe('The route openai of openai/gpt-6-luna needs a key in OPENAI_API_KEY.');
  });

  it('calls chat models and embedding models, too', async () => {
    const chat = await json(['models', 'test', 'sandbox/chat', '--real', '--input', 'Good morning']);
    expect(chat).toMatchObject({ outcome: 'done', text: expect.stringContaining('Good morning') });
    expect(Number(chat.units.output_token)).toBeGreaterThan(0);
    const embedding = await json(['models', 'test', 'sandbox/embedding', '--real']);
    expect(embedding).toMatchObject({ outcome: 'done', text: 'A vector of 256 numbers.' });
  });

  it('calls rerank models and moderation models', async () => {
    const ranking = await json(['models', 'test', 'sandbox/rerank', '--real', '--input', 'Good morning']);
    expect(ranking).toMatchObject({
      outcome: 'done',
      text: expect.stringMatching(/^Of two documents, document 1 scores 1, document 2 scores 0/),
      units: { search_unit: '1' },
      cost: '0.001000',
    });
    const moderation = await json(['models', 'test', 'sandbox/moderation', '--real', '--input', 'Hello [[flag]]']);
    expect(moderation).toMatchObject({ outcome: 'done', text: 'The message is flagged.', cost: '0.000000' });
  });
});

describe('medley models import', () => {
  const requests: IncomingMessage[] = [];
  const answers = new Map<string, { status?: number; json: unknown }>();
  const server = createServer((request, response) => {
    requests.push(request);
    const { status = 200, json: body } = answers.get(request.url ?? '') ?? { status: 404, json: { detail: 'no' } };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  let url = '';
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  const replicate_input = {
    type: 'object',
    title: 'Input',
    required: ['prompt', 'gone'],
    properties: {
      seed: {
        type: 'integer',
        title: 'Seed',
        nullable: true,
        'x-order': 3,
        description: 'Random  seed',
        default: null,
      },
      prompt: { type: 'string', title: 'Prompt', 'x-order': 0 },
      aspect_ratio: {
        enum: ['1:1', '16:9'],
        allOf: [{ $ref: '#/components/schemas/ratio' }],
        default: '1:1',
        'x-order': 1,
      },
      num_outputs: { type: 'integer', minimum: 1, maximum: 4, default: 1, 'x-order': 2 },
      guidance: { type: 'number', minimum: 0, maximum: 10, default: 20, 'x-order': 4 },
      input_images: { type: 'array', items: { type: 'string', format: 'uri' }, default: [], 'x-order': 5 },
      mask: { anyOf: [{ type: 'string', format: 'uri' }, { type: 'null' }], 'x-order': 6 },
    },
  };

  it('drafts a replicate model that passes config check but for its price', async () => {
    const schemas = { Input: replicate_input, ratio: { type: 'string', title: 'Aspect ratio', description: 'Shape' } };
    answers.set('/v1/models/acme/painter', {
      json: {
        name: 'painter',
        description: 'Paints an image',
        latest_version: { openapi_schema: { components: { schemas } } },
      },
    });
    const env = { REPLICATE_API_TOKEN: 'the-token' };
    const words = ['models', 'import', 'replicate', 'acme/painter', '--base-url', `${url}/v1`];
    const out = join(folder, 'painter.yaml');
    const output = await json([...words, '--out', out], env);
    expect(requests.at(-1)?.headers.authorization).toBe('Bearer the-token');
    expect(output).toMatchObject({ id: 'acme/painter', kind: 'image', file: out });
    expect(output.input_schema).toEqual({
      type: 'object',
      required: ['prompt'],
      additionalProperties: false,
      properties: {
        prompt: { type: 'string', title: 'Prompt' },
        aspect_ratio: {
          type: 'string',
          title: 'Aspect ratio',
          enum: ['1:1', '16:9'],
          description: 'Shape',
          default: '1:1',
        },
        num_outputs: { type: 'integer', minimum: 1, maximum: 4, default: 1 },
        seed: { type: 'integer', title: 'Seed', description: 'Random seed' },
        guidance: { type: 'number', minimum: 0, maximum: 10 },
        input_images: { type: 'array', items: { type: 'string', 'x-media': 'image' } },
        mask: { type: 'string', 'x-media': 'image' },
      },
    });
    const text = readFileSync(out, 'utf8');
    expect(text).toContain('    # price:\n    #   - { unit: image, amount: "0.00" }\n');
    expect(text).toContain('prompt: $input.prompt');
    expect(text).toContain('image: $input.num_outputs');
    const check = await checkCatalogFile(out, { ...adapterFacts(adapters), secret: () => 'set' });
    expect(check.errors).toEqual([]);
    expect(check.warnings).toEqual([expect.stringContaining('has no price: every run is free.')]);
    writeFileSync(out, text.replaceAll(/^ {4}# (?= *(price:|- ))/gm, '    '));
    expect(await checkCatalogFile(out, { ...adapterFacts(adapters), secret: () => 'set' })).toEqual({
      errors: [],
      warnings: [],
    });
    expect(await commandsOf(env, medleySoon).fails(1, ...words, '--out', out)).toContain('could not be written');
  });

  it('drafts a fal model from the body of its POST, and its kind from its result', async () => {
    const name = 'acme/clips/text-to-video';
    const ref = (to: string) => ({
      content: { 'application/json': { schema: { $ref: `#/components/schemas/${to}` } } },
    });
    answers.set(`/api/openapi/queue/openapi.json?endpoint_id=${encodeURIComponent(name)}`, {
      json: {
        info: { title: 'Queue OpenAPI for acme/clips', description: 'Clips' },
        paths: {
          '/acme/clips/requests/{request_id}/status': { get: { responses: { 200: ref('QueueStatus') } } },
          '/acme/clips': { post: { requestBody: ref('In') } },
          '/acme/clips/requests/{request_id}': { get: { responses: { 200: ref('Out') } } },
        },
        components: {
          schemas: {
            QueueStatus: { type: 'object', properties: { status: { type: 'string' } } },
            In: {
              type: 'object',
              required: ['prompt'],
              properties: {
                prompt: { type: 'string' },
                duration: { type: 'integer', minimum: 1, maximum: 10, default: 5 },
                image_url: { type: 'string' },
                audio_urls: { type: 'array', items: { type: 'string' } },
                output_format: { type: 'string', enum: ['mp4'] },
              },
            },
            Out: { type: 'object', properties: { video: { type: 'object' }, seed: { type: 'integer' } } },
          },
        },
      },
    });
    const { kind, input_schema, yaml } = await json(['models', 'import', 'fal', name, '--base-url', url]);
    expect(kind).toBe('video');
    expect(input_schema.properties).toMatchObject({
      image_url: { type: 'string', 'x-media': 'image' },
      audio_urls: { type: 'array', items: { 'x-media': 'audio' } },
      output_format: { enum: ['mp4'] },
    });
    const out = join(folder, 'clips.yaml');
    writeFileSync(out, yaml);
    const check = await checkCatalogFile(out, { ...adapterFacts(adapters), secret: () => 'set' });
    expect(check.errors).toEqual([]);
    expect(check.warnings).toEqual([expect.stringContaining('has no price')]);
  });

  it.each([
    [2, ['replicate', 'painter'], {}, 'painter must have the form owner/name.'],
    [2, ['fal', 'acme/x', '--kind', 'text'], {}, '--kind must be one of image, video, audio; not "text".'],
    [1, ['replicate', 'acme/painter'], {}, 'set REPLICATE_API_TOKEN'],
    [1, ['replicate', 'acme/unknown'], { REPLICATE_API_TOKEN: 'x' }, 'there is no such model'],
    [1, ['fal', 'acme/unknown'], {}, 'there is no such model'],
  ])('ends with %d for %j', async (code, words, env, message) => {
    const at = ['--base-url', words[0] === 'replicate' ? `${url}/v1` : url];
    expect(await commandsOf(env, medleySoon).fails(code, 'models', 'import', ...words, ...at)).toContain(message);
  });
});
