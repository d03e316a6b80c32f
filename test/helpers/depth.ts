/** True in `npm run test:nightly`, which also runs what takes minutes. */
const is_nightly = process.env['MEDLEY_TEST_DEPTH'] === 'nightly';

/** Returns `usual` in `npm test` and `nightly` in `npm run test:nightly`: how many cases, runs or calls a test makes. */
export function depth<T>(usual: T, nightly: T): T {
  return is_nightly ? nightly : usual;
}

/** Has `define` make tests in `npm run test:nightly` only: those of a file whose others are quick, and show nearly the same. */
export function byNight(define: () => void): void {
  if (is_nightly) define();
}
