import { describe, expect, it } from 'vitest';
import { assert, AssertionError, unreachable } from '../../src/lib/assert.ts';

describe('assert', () => {
  it.each([true, 1, 'a', {}, []])('accepts %j', (condition) => {
    expect(() => assert(condition, 'no')).not.toThrow();
  });

  it.each([false, 0, '', null, undefined, NaN, 0n])('throws for %s', (condition) => {
    expect(() => assert(condition, 'the hold is open')).toThrow(new AssertionError('the hold is open'));
  });
});

describe('unreachable', () => {
  const circle: { self?: unknown } = {};
  circle.self = circle;

  it.each([
    ['done', "unexpected value 'done'"],
    [undefined, 'unexpected value undefined'],
    [5n, 'unexpected value 5n'],
    [circle, 'unexpected value <ref *1> { self: [Circular *1] }'],
  ])('names the unexpected value: %s', (value, message) => {
    // What the compiler proves impossible still comes: in a row that another version wrote.
    expect(() => Reflect.apply(unreachable, undefined, [value])).toThrow(new AssertionError(message));
  });
});
