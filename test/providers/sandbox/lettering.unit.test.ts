import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { letterInBox, letterLine, lineWidth } from '../../../src/providers/sandbox/lettering.ts';

const box = { x: 100, y: 50, width: 400, height: 200 };
const sizes = { min: 10, max: 60 };

/** All coordinates of path data. */
function pointsOf(path: string): { x: number; y: number }[] {
  const numbers = [...path.matchAll(/-?\d+(?:\.\d+)?/g)].map(Number);
  return numbers.flatMap((x, i) => (i % 2 === 0 ? [{ x, y: numbers[i + 1] ?? Number.NaN }] : []));
}

const boxGlyph = letterLine('漢', 0, 0, 100);

describe('a letter', () => {
  it.each([...'ĄĆĘŁŃÓŚŹŻąćęłńóśźż', ...'ΑΒΓΔΩάβγδώ', ...'АБВГЯабвгяЖщ', ...'שלום', ...'سلام', ...'ÄÖÜßéñç€…—„”'])(
    '%s has an outline of its own',
    (letter) => {
      const path = letterLine(letter, 0, 0, 100);
      expect(path.length).toBeGreaterThan(20);
      expect(path).not.toBe(boxGlyph);
    },
  );

  it.each(['漢', '字', '🚲', '\u{10ffff}', '\ufffe'])('%j is a box', (letter) => {
    expect(letterLine(letter, 0, 0, 100)).toBe(boxGlyph);
  });

  it('differs from every other', () => {
    const letters = [...'abcdefghijklmnopqrstuvwxyząćęłńóśźż0123456789'];
    expect(new Set(letters.map((letter) => letterLine(letter, 0, 0, 100))).size).toBe(letters.length);
  });

  it('is in its place: a capital on its baseline, as wide as its advance', () => {
    const points = pointsOf(letterLine('H', 10, 200, 100));
    const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
    expect(Math.max(...ys)).toBeCloseTo(200, 1); // feet
    expect(Math.min(...ys)).toBeCloseTo(200 - 72.9, 1); // capitals of DejaVu are 0.729 em high
    expect(Math.min(...xs)).toBeGreaterThan(10);
    expect(Math.max(...xs)).toBeLessThan(10 + 100 * lineWidth('H'));
  });

  it('with an accent reaches above one without', () => {
    const top = (letter: string) => Math.min(...pointsOf(letterLine(letter, 0, 0, 100)).map(({ y }) => y));
    expect(top('Ż')).toBeLessThan(top('Z') - 5);
    expect(top('ó')).toBeLessThan(top('o') - 10);
  });
});

describe('letterInBox', () => {
  it('sets a short text at the largest size, in the middle', () => {
    const { size, box: filled } = letterInBox('Hi', box, sizes);
    expect(size).toBe(60);
    expect(filled.x + filled.width / 2).toBeCloseTo(300, 5);
    expect(filled.y + filled.height / 2).toBeCloseTo(150, 5);
  });

  it('sets a longer text smaller, on several lines', () => {
    const { size, box: filled } = letterInBox('the quick brown fox jumps over the lazy dog '.repeat(4), box, sizes);
    expect(size).toBeLessThan(40);
    expect(size).toBeGreaterThan(sizes.min);
    expect(filled.height).toBeGreaterThan(100);
  });

  it('sets a long word smaller rather than breaking it', () => {
    const { size } = letterInBox('extraordinarily', box, sizes);
    expect(size * lineWidth('extraordinarily')).toBeLessThanOrEqual(400.001);
    expect(size).toBeGreaterThan(35);
  });

  it('ends a text that does not fit in an ellipsis', () => {
    const long = letterInBox('word '.repeat(2_000), box, sizes);
    expect(long.size).toBe(sizes.min);
    expect(long.box.height).toBeLessThanOrEqual(box.height);
    expect(long.path.endsWith(letterLine('…', 0, 0, 1).slice(-1))).toBe(true);
    expect(long.path.length).toBeLessThan(letterLine('word '.repeat(2_000), 0, 0, 10).length / 2);
  });

  it('reverses Hebrew, so that it reads from the right', () => {
    const first = pointsOf(letterInBox('של', box, sizes).path)[0];
    const lamed = pointsOf(letterLine('ל', 0, 0, 60))[0];
    const { box: filled } = letterInBox('של', box, sizes);
    expect((first?.x ?? 0) - filled.x).toBeCloseTo(lamed?.x ?? Number.NaN, 1); // the last letter stands on the left
  });

  it('keeps any text inside its box', () => {
    const side = fc.integer({ min: 100, max: 2_000 });
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 400 }), side, side, (text, width, height) => {
        const room = { x: 0, y: 0, width, height };
        const max = Math.min(width, height) * 0.18; // the widest character, a whole sentence, takes 5 em
        const { box: filled, path } = letterInBox(text, room, { min: max / 4, max });
        expect(path).not.toContain('NaN');
        expect(filled.width).toBeLessThanOrEqual(width + 0.01);
        expect(filled.height).toBeLessThanOrEqual(height + 0.01);
      }),
      { numRuns: 200 },
    );
  });
});
