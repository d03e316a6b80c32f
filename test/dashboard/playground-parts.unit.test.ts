import { describe, expect, it } from 'vitest';
import { readCsv, writeCsv } from '../../web/src/pages/playground/batch/csv.ts';
import { runRows, type RowState } from '../../web/src/pages/playground/batch/run-rows.ts';
import { diffOf } from '../../web/src/pages/playground/prompts/diff.ts';
import { filled, missingIn, variablesIn } from '../../web/src/pages/playground/prompts/template.ts';

describe('a text with variables', () => {
  it('has each of them once, in the order in which they come', () => {
    expect(variablesIn('Hello {{ name }}, {{city}} and {{name}}.', '{{tone}} {{größe}}')).toEqual([
      'name',
      'city',
      'tone',
      'größe',
    ]);
  });

  it.each(['{name}', '{{}}', '{{ a b }}', '{{1st}}', '{{#if x}}', '{{a', `{{${'x'.repeat(50)}}}`])(
    'takes %s for text',
    (text) => {
      expect(variablesIn(text)).toEqual([]);
      expect(filled(text, { name: 'x', a: 'x' })).toBe(text);
    },
  );

  it('is filled once: a value that looks like a variable, or like a pattern, stays as it is', () => {
    expect(filled('{{a}}-{{b}}-{{a}}', { a: '{{b}}', b: "$& $1 $'" })).toBe("{{b}}-$& $1 $'-{{b}}");
    expect(filled('{{constructor}} {{missing}}', {})).toBe('{{constructor}} {{missing}}');
    expect(missingIn(['a', 'b', 'toString'], { a: 'x', b: '' })).toEqual(['b', 'toString']);
  });
});

describe('a table', () => {
  it.each([
    ['commas', 'a,b\n1,2\n3,4\n'],
    ['semicolons and Windows line ends', 'a;b\r\n1;2\r\n3;4'],
    ['tabs, a mark of UTF-8 and empty lines', '\uFEFFa\tb\n\n1\t2\n3\t4\n\n'],
    ['old line ends', 'a,b\r1,2\r3,4'],
    ['quotes', '"a","b"\n"1","2"\n"3","4"'],
  ])('is read with %s', (_name, text) => {
    expect(readCsv(text)).toEqual({
      columns: ['a', 'b'],
      rows: [
        ['1', '2'],
        ['3', '4'],
      ],
    });
  });

  it('has fields with quotes, separators and lines in them, and short rows are filled up', () => {
    expect(readCsv('a,b,c\n"x, ""y""\nz",2\n').rows).toEqual([['x, "y"\nz', '2', '']]);
  });

  it.each([
    ['', /empty/],
    ['a,b\n', /no rows/],
    ['a,a\n1,2', /twice/],
    ['a,\n1,2', /no name/],
    ['a,b\n1,2,3', /Row 1 has more fields/],
    ['a,b\n"1,2', /never closed/],
    [`a\n${'x\n'.repeat(1_001)}`, /at most 1000/],
  ])('that is wrong is refused with the reason: %j', (text, reason) => {
    expect(() => readCsv(text)).toThrow(reason);
  });

  it('is written so that it is read the same again, and that no cell is a formula', () => {
    const table = {
      columns: ['a', 'b'],
      rows: [
        ['x, "y"\nz', 'plain'],
        ['-5', '1.5'],
      ],
    };
    expect(readCsv(writeCsv(table))).toEqual(table);
    const hostile = ['=1+1', '+1+1', '-1+1', '@SUM(A1)', '\t=1', ' =1', '＝1'];
    const { rows } = readCsv(writeCsv({ columns: ['a'], rows: hostile.map((text) => [text]) }));
    expect(rows.map(([text]) => text?.[0])).toEqual(hostile.map(() => "'"));
  });
});

describe('rows that are run', () => {
  const done: RowState = { state: 'done', text: '', cost: '0', took_ms: 1, request_id: '' };

  it('run a few at once, each of them once', async () => {
    let [at_once, most] = [0, 0];
    const began: number[] = [];
    await runRows({
      count: 25,
      at_once: 4,
      signal: new AbortController().signal,
      run: async (index) => {
        began.push(index);
        at_once += 1;
        most = Math.max(most, at_once);
        await Promise.resolve();
        at_once -= 1;
        return done;
      },
      show: () => undefined,
    });
    expect(began).toEqual(Array.from({ length: 25 }, (_, index) => index));
    expect(most).toBe(4);
  });

  it('that have not begun are stopped when somebody stops', async () => {
    const controller = new AbortController();
    const states: string[] = [];
    await runRows({
      count: 6,
      at_once: 2,
      signal: controller.signal,
      run: async (index) => {
        if (index === 2) controller.abort();
        return done;
      },
      show: (index, { state }) => {
        states[index] = state;
      },
    });
    expect(states.slice(0, 3)).toEqual(['done', 'done', 'done']);
    expect(states.slice(4)).toEqual(['stopped', 'stopped']);
  });
});

describe('the difference of two texts', () => {
  it('is shown line by line', () => {
    const lines = diffOf('one\ntwo\nthree', 'one\n2\nthree\nfour').map(({ kind, text }) => `${kind} ${text}`);
    expect(lines).toEqual(['same one', 'removed two', 'added 2', 'same three', 'added four']);
  });

  it('of long texts is all of both, at once', () => {
    const lines = diffOf('a\n'.repeat(3_000), 'b\n'.repeat(3_000));
    expect(lines.filter(({ kind }) => kind === 'removed').length).toBe(3_001);
    expect(lines.filter(({ kind }) => kind === 'added').length).toBe(3_001);
  });
});
