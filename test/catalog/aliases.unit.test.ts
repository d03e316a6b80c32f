import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listedAlias, listedModels } from '../../src/catalog/alias.ts';
import { openCatalog } from '../../src/catalog/catalog.ts';
import { modelNamed } from '../../src/catalog/names.ts';
import { cases, problemLines, withModels } from './problem-lines.ts';

/** Names of the operator's for several chat models. */

const problemsIn = (text: string) =>
  problemLines(text, { canServe: () => true }).filter((line) => !line.endsWith('every run is free.'));
const chats = (...models: string[]) =>
  withModels(models.map((facts) => `  - { kind: chat, routes: [{ provider: p }], ${facts} }`).join('\n'));
const withAliases = (aliases: string) => `${chats('id: a/large', 'id: a/small, aliases: [tiny]')}\naliases: ${aliases}`;

describe('an alias that cannot be meant is reported', () => {
  it.each(
    cases([
      [withAliases('▸[]'), 'aliases: must be an object (got array).'],
      [
        withAliases('{ ▸a//b: { models: [{ model: a/large }] } }'),
        'aliases["a//b"]: must be 1 to 128 letters, digits or . _ - : /, without empty parts, "." or "..".',
      ],
      [withAliases('{ smart: ▸{} }'), 'aliases.smart.models: is required.'],
      [withAliases('{ smart: { models: ▸[] } }'), 'aliases.smart.models: must have at least 1 item (got 0).'],
      [withAliases('{ smart: { models: [▸a/large] } }'), 'aliases.smart.models[0]: must be an object (got string).'],
      [
        withAliases('{ smart: { models: [{ model: a/large, weight: ▸-1 }] } }'),
        'aliases.smart.models[0].weight: must be at least 0 (got -1).',
      ],
      [
        withAliases('{ smart: { models: [{ model: a/large, weight: ▸0.5 }] } }'),
        'aliases.smart.models[0].weight: must be an integer (got 0.5).',
      ],
      [
        withAliases('{ smart: { models: ▸[{ model: a/large, weight: 0 }, { model: a/small, weight: 0 }] } }'),
        'aliases.smart.models: must have a weight above 0: no model would get a conversation.',
      ],
      [
        withAliases('{ smart: { models: [{ model: a/large }, { model: ▸a/large }] } }'),
        'aliases.smart.models[1].model: a/large stands here twice: add its weights.',
      ],
      [
        withAliases('{ smart: { models: [{ model: ▸sandbox/image }] } }'),
        'aliases.smart.models[0].model: sandbox/image is no chat model, but one of image.',
      ],
      [
        withAliases('{ ▸a/large: { models: [{ model: a/small }] } }'),
        'aliases["a/large"]: is the id of a model: take another name.',
      ],
      [
        withAliases('{ ▸sandbox/chat: { models: [{ model: a/small }] } }'),
        'aliases["sandbox/chat"]: is the id of a model: take another name.',
      ],
      [
        withAliases('{ ▸tiny: { models: [{ model: a/large }] } }'),
        'aliases.tiny: is an alias of a/small already: take another name.',
      ],
      [
        withAliases('{ smart: { models: [{ model: ▸smart }] } }'),
        'aliases.smart.models[0].model: smart is an alias itself: name the models that it stands for.',
      ],
      [
        withAliases('{ x: { models: [{ model: a/large }] }, y: { models: [{ model: ▸x }] } }'),
        'aliases.y.models[0].model: x is an alias itself: name the models that it stands for.',
      ],
    ]),
  )('as $expected', ({ marked, expected }) => {
    expect(problemsIn(marked)).toEqual([`error: ▸${expected}`]);
  });

  it('and one with an unknown model is a warning, since operators add models in the dashboard, too', () => {
    expect(problemsIn(withAliases('{ smart: { models: [{ model: a/large }, { model: ▸a/smal }] } }'))).toEqual([
      'warning: ▸aliases.smart.models[1].model: there is no model a/smal in this file: it is passed over. Did you mean "a/small"?',
    ]);
    expect(problemsIn(withAliases('{ smart: { models: [{ model: sandbox/chat }, { model: a/large }] } }'))).toEqual([]);
  });
});

describe('an alias in the catalogue', () => {
  let folder: string;
  beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'medley-alias-'))));
  afterEach(() => rm(folder, { recursive: true }));

  const price = (input: string, output: string) =>
    `price: [{ unit: input_token, amount: "${input}" }, { unit: output_token, amount: "${output}" }]`;
  const models = [
    `id: a/large, capabilities: [tools, vision], limits: { context_tokens: 100, max_images: 4 }, ${price('1', '9')}`,
    `id: a/small, capabilities: [tools], limits: { context_tokens: 20 }, ${price('5', '9')}`,
    `id: b/smart, ${price('9', '1')}`,
  ];
  async function open(aliases: string) {
    const config_file = join(folder, 'medley.yaml');
    const write = (text: string) => writeFile(config_file, `${chats(...models)}\naliases: ${text}`);
    await write(aliases);
    const holder = await openCatalog({ adapters: ['mock', 'sandbox'], config_file });
    return { holder, write };
  }

  it('is listed with the prices of its most expensive model, and what all of its models can', async () => {
    const { holder } = await open('{ smart: { models: [{ model: a/large, weight: 9 }, { model: a/small }] } }');
    const { current } = holder;
    const { model, members } = listedAlias(current, 'smart') ?? {};
    expect(members?.map(({ id }) => id)).toEqual(['a/large', 'a/small']);
    expect(model).toMatchObject({
      id: 'smart',
      name: 'smart',
      kind: 'chat',
      description: 'Answered by a/large or a/small.',
      capabilities: ['tools'],
      limits: { context_tokens: 20 },
      price: [{ amount: '5' }, { amount: '9' }],
    });
    expect(listedModels(current).at(-1)?.model.id).toBe('smart');
    expect(listedAlias(current, 'a/large')).toBeUndefined();
    expect(() => modelNamed(current, 'smart', 'model')).toThrow('"smart" is a chat model: use POST /v1/chat');
  });

  it('goes before the end of an id, and is not listed where none of its models is offered', async () => {
    const { holder } = await open('{ smart: { models: [{ model: a/gone }] } }');
    expect(listedAlias(holder.current, 'smart')).toBeUndefined();
    expect(listedModels(holder.current).map(({ model }) => model.id)).not.toContain('smart');
    expect(() => modelNamed(holder.current, 'smart', 'model')).toThrow('"smart" is a chat model');
  });

  it('changes with a reload, which names it, and stays where a reload has a mistake', async () => {
    const { holder, write } = await open('{ smart: { models: [{ model: a/large }] } }');
    await write('{ smart: { models: [{ model: a/small }] }, quick: { models: [{ model: b/smart }] } }');
    expect(await holder.reload()).toMatchObject({
      ok: true,
      message: expect.stringContaining('aliases added: quick; aliases changed: smart'),
    });
    expect(listedAlias(holder.current, 'smart')?.members.map(({ id }) => id)).toEqual(['a/small']);
    await write('{ smart: { models: [{ model: smart }] } }');
    expect(await holder.reload()).toMatchObject({ ok: false });
    expect([...holder.current.aliases.keys()]).toEqual(['smart', 'quick']);
  });
});
