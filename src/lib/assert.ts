import { inspect } from 'node:util';

/** A broken promise of our own code, never the caller's mistake: ends in a 500 and a log line. */
export class AssertionError extends Error {
  override name = 'AssertionError';
}

/** Throws AssertionError with `message` unless `condition` holds. Stays on in production. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** Stands in the `default` of a switch over a union: the compiler proves that it cannot be reached. */
export function unreachable(value: never): never {
  throw new AssertionError(`unexpected value ${inspect(value)}`);
}
