import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editDistance, nearest } from '../../src/lib/edit-distance.ts';

describe('editDistance', () => {
  it.each([
    ['', '', 0],
    ['a', '', 1],
    ['duration', 'duraton', 1],
    ['prompt', 'prmopt', 1],
    ['prompt', 'pront', 2],
    ['ca', 'abc', Infinity], // three edits: a swapped pair is not edited again
    ['kitten', 'sitting', Infinity],
    ['a'.repeat(64), 'a'.repeat(63), 1],
    ['a'.repeat(65), 'a'.repeat(64), Infinity],
  ])('of %s and %s is %d', (a, b, distance) => {
    expect(editDistance(a, b)).toBe(distance);
    expect(editDistance(b, a)).toBe(distance);
  });

  it('is at most the number of edits that were made', () => {
    const edit = fc.record({
      kind: fc.constantFrom('insert', 'delete', 'replace'),
      at: fc.nat(20),
      letter: fc.constantFrom('x', 'y'),
    });
    fc.assert(
      fc.property(fc.string({ minLength: 5, maxLength: 20 }), fc.array(edit, { maxLength: 2 }), (word, edits) => {
        let edited = word;
        for (const { kind, at, letter } of edits) {
          const place = Math.min(at, edited.length);
          const rest = kind === 'insert' ? place : place + 1;
          edited = edited.slice(0, place) + (kind === 'delete' ? '' : letter) + edited.slice(rest);
        }
        expect(editDistance(word, edited)).toBeLessThanOrEqual(edits.length);
      }),
    );
  });
});

describe('nearest', () => {
  it.each([
    ['duraton', ['prompt', 'duration'], 'duration'],
    ['DURATION', ['prompt', 'duration'], 'duration'],
    ['prompts', ['prompt', 'promptx'], 'prompt'],
    ['720', ['480p', '720p', '1080p'], '720p'],
    ['4:3', ['16:9', '1:1'], undefined],
    ['x', ['y'], undefined],
    ['quality', ['prompt', 'seed'], undefined],
    ['', ['a'], undefined],
    ['__proto__', ['prompt'], undefined],
    ['prompt', [], undefined],
  ])('to %s of %j is %s', (word, candidates, expected) => {
    expect(nearest(word, candidates)).toBe(expected);
  });
});
