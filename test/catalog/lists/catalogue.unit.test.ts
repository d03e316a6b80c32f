import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compareWithList } from '../../../src/catalog/lists/compare.ts';
import { knownExplanations } from '../../../src/catalog/lists/explained.ts';
import { readList } from '../../../src/catalog/lists/index.ts';
import { isObject, type Json, type JsonObject, type Model } from '../../../src/catalog/model.ts';
import {
  compareAll,
  defaultCatalogue,
  isInOrder,
  readLatest,
  reportOf,
  storedLists,
  storedPart,
  type List,
} from './catalogue.ts';

const today = '2026-11-28';
let models: Model[] = [];
let lists: List[] = [];
beforeAll(async () => {
  models = await defaultCatalogue();
  lists = storedLists();
});

/** The stored list with a change of one of its models. */
function withChange(id: string, change: JsonObject): List[] {
  return lists.map((list) => {
    const all: Json = JSON.parse(list.text);
    const entry = isObject(all) ? all[id] : undefined;
    if (!isObject(all) || !isObject(entry)) throw new Error(`${id} is in the list`);
    return { ...list, text: JSON.stringify({ ...all, [id]: { ...entry, ...change } }) };
  });
}

describe('the default catalogue beside LiteLLM’s list', () => {
  it('differs in nothing that has no reason, and has no reason for nothing', () => {
    const compared = compareAll(models, lists, today);
    const [{ comparison, sorted } = { comparison: undefined, sorted: undefined }] = compared;
    expect(sorted?.unexplained).toEqual([]);
    expect(sorted?.unexplained_absences).toEqual([]);
    expect(sorted?.stale).toEqual([]);
    expect(isInOrder(compared)).toBe(true);
    expect(comparison?.compared).toBeGreaterThanOrEqual(50);
    const kinds = new Set(models.filter(({ id }) => comparison?.in_list.has(id)).map(({ kind }) => kind));
    expect([...kinds].toSorted()).toEqual(['audio', 'chat', 'embedding', 'image', 'moderation', 'rerank', 'video']);
  });

  it('has a line for each model, with its price, its dates and what the list says', () => {
    const lines = reportOf(models, compareAll(models, lists, today)).split('\n');
    for (const { id } of models) expect(lines.filter((line) => line.startsWith(`${id}: `))).toHaveLength(1);
    expect(lines).toContain(
      'openai/tts-1: since 2023-11-06, ends 2027-01-06; 15.00 for 1000000 character; read 2026-08-02; litellm: equal',
    );
    expect(lines.find((line) => line.startsWith('luma/ray-3.2: '))).toMatch(/litellm: not there$/);
  });

  it.each([
    ['a price of tokens', 'gpt-6-astra', { output_cost_per_token: 0.000051 }, 'output_token: 50 here, 51 in the list'],
    ['a cached price', 'claude-sonnet-5-5', { cache_read_input_token_cost: 2e-7 }, 'cached_input_token: '],
    ['an end', 'gpt-6-astra', { deprecation_date: '2027-05-01' }, 'retires: nothing here, 2027-05-01 in the list'],
    ['another end', 'tts-1', { deprecation_date: '2027-01-07' }, 'retires: 2027-01-06 here, 2027-01-07 in the list'],
    ['a search', 'rerank-v4.0-pro', { input_cost_per_query: 0.003 }, 'search_unit: 0.0025 here, 0.003 in the list'],
    ['moderation', 'omni-moderation-latest', { input_cost_per_token: 1e-7 }, 'input_token: nothing here, 0.1'],
    ['an image', 'stability/sd3.5-large', { output_cost_per_image: 0.07 }, 'image: 0.065 here, 0.07 in the list'],
    ['a resolution', 'runwayml/gen4.5', { output_cost_per_second: 0.13 }, 'second: 0.12 here, 0.13 in the list'],
    [
      'one resolution of several',
      'fal_ai/bytedance/seedance-2.0/text-to-video',
      { output_cost_per_second_1080p: 0.7 },
      'second at 1080p: 0.682 here, 0.7 in the list',
    ],
    [
      'a minute',
      'whisper-1',
      { output_cost_per_second: 0, input_cost_per_second: 0.0002 },
      'second: 0.0001 here, 0.0002',
    ],
    ['letters', 'elevenlabs/eleven_v3', { input_cost_per_character: 0.0001 }, 'character: 80 here, 100 in the list'],
  ])('shows when the list changes %s', (_what, id, change, text) => {
    const compared = compareAll(models, withChange(id, change), today);
    expect(isInOrder(compared)).toBe(false);
    const [line = '', ...more] = reportOf(models, compared)
      .split('\n')
      .filter((each) => each.includes('NOT EXPLAINED'));
    expect(line).toContain(text);
    expect(more).toEqual([]);
  });

  it('shows when a difference with a reason is another one now, or is none any more', () => {
    const changed = compareAll(models, withChange('stability/fast', { output_cost_per_image: 0.003 }), today);
    expect(changed[0]?.sorted.unexplained).toMatchObject([{ model: 'stability/fast-upscaler', theirs: '0.003' }]);
    expect(changed[0]?.sorted.stale).toMatchObject([{ model: 'stability/fast-upscaler', theirs: '0.002' }]);
    const equal = compareAll(models, withChange('stability/fast', { output_cost_per_image: 0.02 }), today);
    expect(equal[0]?.sorted.unexplained).toEqual([]);
    expect(isInOrder(equal)).toBe(false);
    expect(reportOf(models, equal)).toContain('EXPLAINS NOTHING: {"form":"litellm","model":"stability/fast-upscaler"');
  });

  it('shows when a model is gone from the list', () => {
    const text = lists[0]?.text.replace('"gpt-6-astra"', '"gpt-6-astra-before"') ?? '';
    const compared = compareAll(models, [{ form: 'litellm', place: 'here', text }], today);
    expect(compared[0]?.sorted.unexplained_absences).toMatchObject([{ model: 'openai/gpt-6-astra' }]);
    expect(isInOrder(compared)).toBe(false);
  });

  it('is compared with the prices of the day', () => {
    const [gpt] = models.filter(({ id }) => id === 'openai/gpt-6-astra');
    if (!gpt) throw new Error('it is there');
    const later = gpt.routes.map((route) => ({
      ...route,
      cost: [
        ...route.cost,
        { unit: 'output_token', per: 1_000_000, amount: '40', from: '2026-12-01', currency: 'USD' } as const,
      ],
    }));
    const list = readList('litellm', lists[0]?.text ?? '');
    const on = (day: string) =>
      compareWithList([{ ...gpt, routes: later }], list, { day, form: 'litellm' }).differences;
    expect(on('2026-11-30')).toEqual([]);
    expect(on('2026-12-01')).toMatchObject([{ what: 'output_token', ours: '40', theirs: '50' }]);
  });

  it('is found in OpenRouter’s list by the ids that callers send', () => {
    const data = [
      { id: 'openai/gpt-6.1-sol', pricing: { prompt: '0.000002', completion: '0.000011' } },
      { id: 'acme/none', pricing: {} },
    ];
    const text = JSON.stringify({ data });
    const [{ comparison } = { comparison: undefined }] = compareAll(
      models,
      [{ form: 'openrouter', place: 'o', text }],
      today,
    );
    expect(comparison?.compared).toBe(1);
    expect(comparison?.differences).toContainEqual(
      expect.objectContaining({ model: 'openai/gpt-6.1-sol', what: 'output_token', ours: '10', theirs: '11' }),
    );
  });

  it('has reasons that are sentences', () => {
    const { differences, absences } = knownExplanations();
    for (const { reason } of [...differences, ...absences]) expect(reason).toMatch(/^[A-Z].{20,}\.$/);
  });

  it('is stored again as it is stored now, out of the same list', () => {
    const text = lists[0]?.text ?? '';
    const part: Json = JSON.parse(storedPart(models, text, 'x'));
    expect({ ...(isObject(part) && part), _: 0 }).toEqual({ ...JSON.parse(text), _: 0 });
  });
});

describe('the lists of today', () => {
  const folder = mkdtempSync(join(tmpdir(), 'medley-latest-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const fileOf = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };

  it('are read as far as they can be, and each of the others is named with its reason', async () => {
    const good = fileOf('good.json', JSON.stringify({ data: [{ id: 'acme/x', pricing: { prompt: '0.000001' } }] }));
    const html = fileOf('html.json', '<html>');
    const gone = join(folder, 'gone.json');
    const { lists: read, unread } = await readLatest({ litellm: html, openrouter: good, 'models.dev': gone });
    expect(read.map(({ form, place }) => [form, place])).toEqual([['openrouter', good]]);
    expect(unread).toEqual([`${html} is no JSON.`, expect.stringMatching(`^${gone} could not be read: ENOENT`)]);
    expect(compareAll(models, read, today)).toHaveLength(1);
  });

  it('say why there is no connection', async () => {
    const { lists: read, unread } = await readLatest({ litellm: 'http://127.0.0.1:9/list.json' });
    expect(read).toEqual([]);
    expect(unread).toEqual([
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:9\/list\.json could not be read: (?!fetch failed)/),
    ]);
  });
});
