import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCatalog } from '../../src/catalog/catalog.ts';
import { CatalogError, showProblem } from '../../src/catalog/problem.ts';
import { adapterFacts } from '../../src/providers/facts.ts';
import { adapters } from '../../src/providers/index.ts';
import { textToImage } from '../providers/imitations/comfyui/workflows.ts';

const folder = mkdtempSync(join(tmpdir(), 'medley-option-files-'));
const config_file = join(folder, 'medley.yaml');

beforeAll(() => {
  mkdirSync(join(folder, 'workflows'));
  writeFileSync(join(folder, 'workflows', 'portrait.json'), JSON.stringify(textToImage()));
  writeFileSync(join(folder, 'broken.json'), '{');
  writeFileSync(join(folder, 'editor.json'), JSON.stringify({ nodes: [], links: [] }));
});
afterAll(() => rmSync(folder, { recursive: true }));

const inputs = 'inputs: { prompt: Positive.text }';

/** Opens a catalogue with one route of these options; answers its options, or what is wrong with the file. */
async function optionsOf(options: string, more = ''): Promise<unknown> {
  writeFileSync(
    config_file,
    `version: 1
providers: { studio: { adapter: comfyui, allow_private: true } }
models:
  - id: portrait
    kind: image
    input_schema: { type: object, properties: { prompt: { type: string } } }
    price: [{ unit: image, amount: "0" }]
    routes: [{ provider: studio, options: { ${options} }${more} }]
`,
  );
  try {
    const { current } = await openCatalog({ ...adapterFacts(adapters), config_file, secret: () => undefined });
    return current.models.get('portrait')?.routes[0]?.options;
  } catch (error) {
    if (!(error instanceof CatalogError)) throw error;
    return error.problems.map((problem) => showProblem(problem).replace(/^.*?:8:\d+ models\[0\]\.routes\[0\]\./, ''));
  }
}

describe('an option that names a JSON file', () => {
  it('is what is in the file, beside medley.yaml or by an absolute path', async () => {
    const expected = { workflow: textToImage(), inputs: { prompt: 'Positive.text' } };
    expect(await optionsOf(`workflow: workflows/portrait.json, ${inputs}`)).toEqual(expected);
    expect(await optionsOf(`workflow: ${join(folder, 'workflows', 'portrait.json')}, ${inputs}`)).toEqual(expected);
  });

  it('is read again by each reload, and a reload with a file that is broken changes nothing', async () => {
    await optionsOf(`workflow: changing.json, ${inputs}`).catch(() => undefined);
    const file = join(folder, 'changing.json');
    writeFileSync(file, JSON.stringify(textToImage()));
    const catalog = await openCatalog({ ...adapterFacts(adapters), config_file, secret: () => undefined });
    const { '9': saved, ...others } = textToImage();
    writeFileSync(file, JSON.stringify({ ...others, '90': saved }));
    expect(await catalog.reload()).toMatchObject({ ok: true, message: /models changed: portrait/ });
    writeFileSync(file, '{');
    expect(await catalog.reload()).toMatchObject({ ok: false, message: /changing\.json: is no JSON/ });
    expect(catalog.current.models.get('portrait')?.routes[0]?.options).toMatchObject({ workflow: { '90': saved } });
  });

  it.each([
    ['gone.json', 'options.workflow: gone.json: does not exist.'],
    ['broken.json', 'options.workflow: broken.json: is no JSON.'],
    ['workflows', 'options.workflow: workflows: is no file.'],
    [
      'editor.json',
      'options.workflow: is a workflow as the editor saves it: export it with “Export (API)” in the menu “Workflow”.',
    ],
  ])('that is wrong is said at its place: %s', async (path, problem) => {
    expect(await optionsOf(`workflow: ${path}, ${inputs}`)).toEqual([problem]);
  });
});

describe('the options of a ComfyUI route', () => {
  const workflow = 'workflow: workflows/portrait.json';
  it.each<[string, string[]]>([
    [workflow, ['options.inputs: is required: which field of a node each field of the input sets.']],
    [inputs, ['options.workflow: must be a workflow in the API format, or the name of its file.']],
    [`${workflow}, inputs: { prompt: Nobody.text }`, ['options.inputs.prompt: there is no node Nobody.']],
    [
      `${workflow}, inputs: { prompt: "6.words" }`,
      ['options.inputs.prompt: the node 6 has no field words. It has: text.'],
    ],
    [
      `${workflow}, inputs: { prompt: "6.clip" }`,
      ['options.inputs.prompt: clip of the node 6 comes from another node: name the field there.'],
    ],
    [
      `${workflow}, inputs: { prompt: 7 }`,
      [
        'options.inputs.prompt: must be a field such as KSampler.seed, a list of them, or { width: …, height: … } of a size.',
      ],
    ],
    [
      `${workflow}, inputs: { prompt: { width: "5.width" } }`,
      [
        'options.inputs.prompt: must be a field such as KSampler.seed, a list of them, or { width: …, height: … } of a size.',
      ],
    ],
    [
      `${workflow}, inputs: { prompt: ["6.text", Positive.text] }`,
      ['options.inputs.prompt: sets 6.text, which prompt sets already.'],
    ],
    [`${workflow}, ${inputs}, outputs: Nobody`, ['options.outputs: there is no node Nobody.']],
    [`${workflow}, ${inputs}, seed: 7`, ['options.seed: must be one of: random, fixed.']],
    [
      `${workflow}, inputs: { text: "6.text" }`,
      ['options.inputs: does not say what the field prompt of the input sets.'],
    ],
  ])('are checked: %s', async (options, problems) => {
    expect(await optionsOf(options)).toEqual(problems);
  });

  it('names the fields after the mapping of the route', async () => {
    expect(
      await optionsOf(`${workflow}, inputs: { text: "6.text" }`, ', input: { text: $input.prompt }'),
    ).toMatchObject({
      inputs: { text: '6.text' },
    });
  });

  it('says which ids nodes of the same name have', async () => {
    const { '6': node, ...others } = textToImage();
    writeFileSync(join(folder, 'twins.json'), JSON.stringify({ ...others, '6': node, '60': node }));
    expect(await optionsOf(`workflow: twins.json, ${inputs}`)).toEqual([
      'options.inputs.prompt: 2 nodes are called Positive: give one of the ids 6, 60.',
    ]);
  });
});
