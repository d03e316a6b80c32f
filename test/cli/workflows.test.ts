import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { textToImage } from '../providers/imitations/comfyui/workflows.ts';
import { commandsOf, medleySoon } from './medley.ts';

let folder = '';
let workflow = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'medley-workflows-'));
  workflow = join(folder, 'My portrait.json');
  writeFileSync(workflow, JSON.stringify(textToImage()));
});
afterAll(() => rmSync(folder, { recursive: true }));

const commands = (env: Record<string, string> = {}) =>
  commandsOf({ MEDLEY_DATA: join(folder, 'data'), ...env }, medleySoon);

describe('medley models import workflow', () => {
  it('makes a configuration out of nothing: a ComfyUI, and a model that runs the file', async () => {
    const file = join(folder, 'own.yaml');
    const add = [
      'provider',
      'add',
      'comfyui',
      '--as',
      'studio',
      '--base-url',
      'http://192.168.1.20:8188',
      '--into',
      file,
    ];
    expect((await commands().text(...add)).out).toContain('models import workflow FILE --provider studio');
    const words = ['models', 'import', 'workflow', workflow, '--provider', 'studio', '--price', '0.02', '--into', file];
    const shown = await commands().text(...words);
    expect(shown.out).toMatch(/yes +prompt=6\.text/);
    expect(shown.out).toContain('Nothing was written; --write does.');
    expect(readFileSync(file, 'utf8')).not.toContain('models:');
    expect((await commands().text(...words, '--write')).out).toContain('studio/My-portrait is added in');
    expect(readFileSync(file, 'utf8')).toMatch(/workflow: My portrait\.json/);
    const listed = await commands({ MEDLEY_CONFIG: file }).text('models', 'show', 'studio/My-portrait');
    expect(listed.out).toContain('Route studio: studio, studio/My-portrait: usable');
    expect(listed.out).toContain('0.02');
  });

  it('takes the fields that are named, with an end to their numbers', async () => {
    const file = join(folder, 'fields.yaml');
    await commands().text('provider', 'add', 'comfyui', '--into', file);
    const words = ['models', 'import', 'workflow', workflow, '--provider', 'comfyui', '--id', 'small', '--into', file];
    await commands().text(...words, '--write', '--set', 'text=6.text', 'rounds=3.steps');
    const text = readFileSync(file, 'utf8');
    expect(text).toContain('inputs: { text: 6.text, rounds: 3.steps }');
    expect(text).toMatch(/rounds:\s+type: integer\s+title: Rounds\s+minimum: 1\s+maximum: 60/);
  });

  it.each<[string[], string]>([
    [[], 'Say by --provider which provider of medley.yaml runs the workflow.'],
    [['--provider', 'groq'], 'groq runs no workflow.'],
    [['--provider', 'comfyui', '--price', 'free'], '--price must be a decimal such as 0.05; not "free".'],
    [['--provider', 'comfyui', '--set', '6.text'], '--set takes NAME=NODE.FIELD, such as prompt=6.text; not "6.text".'],
    [['--provider', 'comfyui', '--set', 'prompt=6.words'], 'The workflow has no field 6.words.'],
    [['--provider', 'comfyui', '--id', '..'], 'The id must have letters'],
  ])('says what is wrong: %j', async (words, message) => {
    const file = join(folder, 'none.yaml');
    const result = await medleySoon(
      ['models', 'import', 'workflow', workflow, ...words, '--into', file, '--write'],
      {},
    );
    expect(result.code).not.toBe(0);
    expect(result.error).toContain(message);
    expect(existsSync(file)).toBe(false);
  });

  it('says what is wrong with the file', async () => {
    const wrong = join(folder, 'wrong.json');
    const words = ['models', 'import', 'workflow', wrong, '--provider', 'comfyui', '--into', join(folder, 'x.yaml')];
    expect((await medleySoon(words, {})).error).toContain(`${wrong} cannot be read`);
    writeFileSync(wrong, '{"nodes": []}');
    expect((await medleySoon(words, {})).error).toContain('export it with “Export (API)”');
  });
});
