import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { csvAnswer, type Cell } from '../../src/dashboard/csv.ts';

async function fileOf(header: string[], rows: AsyncIterable<Cell[]> | Cell[][]): Promise<string> {
  const { body } = csvAnswer('x', header, rows);
  if (!(body instanceof Readable)) throw new Error('it is not streamed');
  return (await text(body)).replace(/^\uFEFF/, '');
}

it('a CSV file is RFC 4180 with a byte order mark, streamed, and has the requested name', async () => {
  const answer = csvAnswer('medley-x', ['a'], []);
  expect(answer.headers).toEqual({
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': 'attachment; filename="medley-x.csv"',
  });
  const chunks: string[] = [];
  for await (const chunk of answer.body as Readable) chunks.push(String(chunk));
  expect(chunks.join('')).toBe('\uFEFFa\r\n');
});

it.each<[Cell, string]>([
  ['plain', 'plain'],
  ['a,b', '"a,b"'],
  ['say "no"', '"say ""no"""'],
  ['two\nlines', '"two\nlines"'],
  [new Date('2026-11-15T12:00:00Z'), '2026-11-15T12:00:00.000Z'],
  ['-0.012500', '-0.012500'],
  [null, ''],
  [undefined, ''],
  ['=1+1', "'=1+1"],
  ['+48 600', "'+48 600"],
  ['-2+3', "'-2+3"],
  ['@sum(a1)', "'@sum(a1)"],
  [' =1', "' =1"],
  ['\t=1', "'\t'=1"],
  ['\r=1', '"\'\r\'=1"'],
  ['＝1', "'＝1"],
  ['=HYPERLINK("http://x","y")', `"'=HYPERLINK(""http://x"",""y"")"`],
  ['-', "'-"],
  ['x;=1+1', "x;'=1+1"],
  ['x\t@sum(a1)', "x\t'@sum(a1)"],
  ['x| +1+1', "x| '+1+1"],
  ['x,-2+3', '"x,\'-2+3"'],
  ['x\n=1', '"x\n\'=1"'],
  ['1,-2,-3.5', '"1,-2,-3.5"'],
])('the value %j is written as %j in CSV', async (cell, written) => {
  expect(await fileOf(['h'], [[cell]])).toBe(`h\r\n${written}\r\n`);
});

it('a CSV file holds numbers of any length', async () => {
  expect(await fileOf(['h'], [[12n, 7, 123_456_789_012_345_678n]])).toBe('h\r\n12,7,123456789012345678\r\n');
});

it('a CSV file is generated no faster than it is read', async () => {
  let pages_read = 0;
  async function* rows() {
    while (true) yield [`row ${pages_read++} ${'x'.repeat(1_000)}`];
  }
  const body = csvAnswer('x', ['h'], rows()).body as Readable;
  for await (const chunk of body) if (String(chunk).includes('row 20')) break;
  expect(pages_read).toBeLessThan(2_000);
  expect(body.destroyed).toBe(true);
});
