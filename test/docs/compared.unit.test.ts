import { describe, expect, it } from 'vitest';
import { readDocument } from './document.ts';

/** A line below a table: `3. [LiteLLM: files](https://…), 2026-03-11: a note.` */
const source_line = /^(\d+)\. \[([^\]]+)\]\((\S+)\), (\d{4}-\d{2}(?:-\d{2})?)(?:: \S.*)?\.$/;

/** A word, and the numbers of its sources; no source says what nobody says. */
const answer = /^(?:unknown|(?:yes|partly|no)(?: \[\d+\])+)$/;

type Source = { number: number; product: string; link: string; date: string };

/** The mistakes of a page that compares: cells without an allowed word or a source, sources without a link or a date. */
function mistakesOf(text: string): string[] {
  const sections = text.split(/^## /m).slice(1);
  return sections.flatMap((section) => {
    const name = section.split('\n')[0] ?? '';
    return mistakesOfSection(section).map((mistake) => `${name}: ${mistake}`);
  });
}

function mistakesOfSection(section: string): string[] {
  const lines = section.split('\n');
  const [heads = [], , ...rows] = lines.filter((line) => line.startsWith('|')).map(cellsOf);
  const numbered = lines.filter((line) => /^\d+\. /.test(line));
  const sources = numbered.flatMap(sourceOf);
  const used = new Set(rows.flatMap((row) => numbersIn(row.join(' '))));
  const by_product = heads.at(-1) === 'Sources' ? rows.flatMap(mistakesOfProduct) : undefined;
  return [
    ...(rows.length === 0 ? ['no table'] : []),
    ...numbered.filter((line) => sourceOf(line).length === 0).map((line) => `not a source: ${line}`),
    ...sources.filter(({ number }, at) => number !== at + 1).map(({ number }) => `source ${number} is out of order`),
    ...sources.flatMap(mistakesOfSource),
    ...sources.filter(({ number }) => !used.has(number)).map(({ number }) => `source ${number} is not used`),
    ...[...used].filter((number) => number > sources.length).map((number) => `source ${number} is missing`),
    ...(by_product ?? rows.flatMap((row) => mistakesOfRow(heads, row, sources))),
  ];
}

/** A feature, and an answer for each product, whose sources are about that product. */
function mistakesOfRow(heads: string[], [feature = '', ...cells]: string[], sources: Source[]): string[] {
  if (cells.length !== heads.length - 1) return [`${feature}: ${cells.length} cells`];
  return cells.flatMap((cell, at) => {
    const product = heads[at + 1];
    const strangers = numbersIn(cell).filter((number) => sources[number - 1]?.product !== product);
    const says_all = answer.test(cell) && !(product === 'Medley' && cell === 'unknown');
    return [
      ...(says_all ? [] : [`${feature}, ${product}: ${cell || 'empty'}`]),
      ...strangers.map((number) => `${feature}, ${product}: source ${number} is about another product`),
    ];
  });
}

/** A product, and facts about it in words; its last cell has the sources. */
function mistakesOfProduct(row: string[]): string[] {
  const is_whole = row.every((cell) => cell !== '') && /^\[\d+\](?: \[\d+\])*$/.test(row.at(-1) ?? '');
  return is_whole ? [] : [`${row[0]}: an empty cell, or no source`];
}

function mistakesOfSource({ number, link, date }: Source): string[] {
  const is_page = link.startsWith('https://') || !link.includes('://');
  const day = new Date(`${date.padEnd(10, '-01')}T00:00:00Z`);
  const is_day = !Number.isNaN(day.getTime()) && day.toISOString().startsWith(date);
  return [
    ...(is_page ? [] : [`source ${number} has no link that is safe: ${link}`]),
    ...(is_day ? [] : [`source ${number} has no date: ${date}`]),
  ];
}

function sourceOf(line: string): Source[] {
  const [, number, title = '', link = '', date = ''] = source_line.exec(line) ?? [];
  if (number === undefined) return [];
  return [{ number: Number(number), product: title.split(':')[0] ?? '', link, date }];
}

function cellsOf(line: string): string[] {
  return line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim());
}

function numbersIn(text: string): number[] {
  return [...text.matchAll(/\[(\d+)\]/g)].map(([, number]) => Number(number));
}

describe('docs/compared.md', () => {
  const { text } = readDocument('docs/compared.md');

  it('has an answer with a source and a date in every cell, and no source that nothing uses', () => {
    expect(mistakesOf(text)).toEqual([]);
  });

  it('compares every feature with all seven others', () => {
    const heads = text.split('\n').filter((line) => line.startsWith('| Feature |'));
    const others = ['LiteLLM', 'OpenRouter', 'new-api', 'Bifrost', 'Portkey', 'Langfuse', 'Replicate'];
    expect(heads.length).toBeGreaterThanOrEqual(8);
    expect(heads.map(cellsOf)).toEqual(heads.map(() => ['Feature', 'Medley', ...others]));
  });
});

describe('a page that compares', () => {
  const page = (row: string, ...sources: string[]) =>
    ['## Limits', '| Feature | Medley | Bifrost |', '|---|---|---|', row, '', ...sources].join('\n');
  const own = '1. [Medley: operate](operate.md), 2026-11-28.';
  const other = '2. [Bifrost: limits](https://docs.getbifrost.ai/limits), 2026-11: Enterprise.';

  it('is right with a word and a source, or with unknown', () => {
    expect(mistakesOf(page('| Keys | yes [1] | partly [2] |', own, other))).toEqual([]);
    expect(mistakesOf(page('| Keys | no [1] | unknown |', own))).toEqual([]);
  });

  it.each([
    ['another word', '| Keys | yes [1] | maybe [2] |', own, other, 'Keys, Bifrost: maybe [2]'],
    ['no source', '| Keys | yes [1] | yes |', own, '', 'Keys, Bifrost: yes'],
    ['an empty cell', '| Keys | yes [1] | |', own, '', 'Keys, Bifrost: empty'],
    ['a cell too few', '| Keys | yes [1] |', own, '', 'Keys: 1 cells'],
    ['nothing known of Medley', '| Keys | unknown | yes [1] |', other.replace('2.', '1.'), '', 'Keys, Medley: unknown'],
    ['a source that is missing', '| Keys | yes [1] | yes [2] |', own, '', 'source 2 is missing'],
    ['a source that nothing uses', '| Keys | yes [1] | unknown |', own, other, 'source 2 is not used'],
    ['a source of another product', '| Keys | yes [1] | yes [1] |', own, '', 'source 1 is about another product'],
    [
      'a source without a date',
      '| Keys | yes [1] | unknown |',
      '1. [Medley: operate](operate.md).',
      '',
      'not a source',
    ],
    [
      'a day that is none',
      '| Keys | yes [1] | unknown |',
      own.replace('11-28', '02-30'),
      '',
      'has no date: 2026-02-30',
    ],
    [
      'a link that is not safe',
      '| Keys | yes [1] | unknown |',
      own.replace('(op', '(http://op'),
      '',
      'no link that is safe',
    ],
  ])('%s is a mistake', (_, row, first, second, mistake) => {
    expect(mistakesOf(page(row, first, second)).join('\n')).toContain(mistake);
  });

  it('in a table of products, facts without a source are a mistake', () => {
    const table = (cell: string) =>
      `## Price\n| Product | Price | Sources |\n|---|---|---|\n| Medley | 0 | ${cell} |\n\n${own}`;
    expect(mistakesOf(table('[1]'))).toEqual([]);
    expect(mistakesOf(table(''))).toContain('Price: Medley: an empty cell, or no source');
  });
});
