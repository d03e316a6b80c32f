import { describe, expect, it } from 'vitest';
import { cases, errorsIn, problemLines, video } from './problem-lines.ts';

describe('invalid YAML is reported', () => {
  it.each(
    cases([
      ['version: 1\n▸version: 2', 'version: this key exists twice.'],
      ['version: 1\nproviders:\n  p: {}\n  ▸p: {}', 'providers.p: this key exists twice.'],
      ['{ "version": 1, "a": { "b": 1, ▸"b": 1 } }', 'a.b: this key exists twice.'],
      ['version: 1\nserver: ▸*nope', 'server: there is no anchor &nope before this alias.'],
      ['version: 1\nmodels: &m [▸*m]', 'models[0]: the alias contains itself.'],
      ['version: 1\nlimits: { failed_per_24h: ▸.inf }', 'limits.failed_per_24h: must be a finite number.'],
      ['version: 1\nmodels: [{ limits: { a: ▸1e999 } }]', 'models[0].limits.a: must be a finite number.'],
      ['version: 1\nserver: ▸!!js/function "x"', 'server: Unresolved tag: tag:yaml.org,2002:js/function.'],
      ['version: 1\nserver: "x▸', 'file: Missing closing "quote.'],
      ['version: 1\nserver:\n▸\tbase_url: x', 'server: Tabs are not allowed as indentation.'],
      ['version: 1\n▸---\nversion: 2', 'file: a second document begins here; a catalogue is one.'],
      ['version: 1\n? ▸[a]\n: b', 'file: With stringKeys, all keys must be strings.'],
    ]),
  )('as $expected', ({ marked, expected }) => {
    expect(errorsIn(marked)).toEqual([`error: ▸${expected}`]);
  });

  it('completely', () => {
    expect(problemLines('a: 1\na: 2\nb: 1\nb: 2')).toHaveLength(2);
  });

  it('up to a limit', () => {
    expect(problemLines('a: 1\n'.repeat(1_000))).toHaveLength(20);
  });
});

describe('a small text that expands to a huge one', () => {
  it('ends at the limit of aliases', () => {
    const levels = [...'bcdefghij'].map((name, index) => {
      const alias = `*${'abcdefghi'.charAt(index)}`;
      return `${name}: &${name} [${Array.from({ length: 10 }, () => alias).join(', ')}]`;
    });
    expect(problemLines(`▸version: 1\na: &a [x]\n${levels.join('\n')}\n`)).toEqual([
      'error: ▸file: its aliases multiply to more than 1000 copies of one part.',
    ]);
  });

  it('ends at the limit of depth', () => {
    expect(problemLines('['.repeat(10_000))).toEqual([expect.stringContaining('is nested too deeply.')]);
  });

  it('ends at the limit of size', () => {
    expect(problemLines(`▸version: 1 #${'x'.repeat(5_000_000)}`)).toEqual(['error: ▸file: is larger than 5 MB.']);
  });
});

describe('a valid file', () => {
  it.each([
    ['YAML', video('')],
    ['JSON', '{\n\t"version": 1,\n\t"limits": {\n\t\t"failed_per_24h": 3\n\t}\n}'],
    ['an alias', video('description: &d x\n    name: *d')],
    ['a byte order mark', '\uFEFFversion: 1'],
    ['Windows line ends', video('').replaceAll('\n', '\r\n')],
  ])('in %s gets no report', (_, text) => {
    expect(problemLines(text)).toEqual([]);
  });

  it('has positions behind an alias where they are written', () => {
    const text = video('description: &l [1]\n    capabilities: *l')
      .replace('[1]', '[▸1]')
      .replace('description', 'limits');
    expect(errorsIn(text)).toEqual(
      [
        'error: ▸models[0].capabilities[0]: must be lower-case letters, digits and underscores (got 1).',
        expect.stringContaining('models[0].limits: must be an object (got array).'),
      ].toSorted(),
    );
  });
});
