import { expect } from 'vitest';
import { InputRefused, NotStarted, type FailureType, type RunState } from '../../../src/providers/provider.ts';

export type Expected =
  | { not_started: NotStarted['reason']; retry_after_ms?: number }
  | { refused: InputRefused['type']; message?: RegExp }
  | { phase: RunState['phase']; type?: FailureType; message?: RegExp }
  /** An error that says nothing of the run: of a submit, that nobody knows; of a poll, to ask again. */
  | 'unknown';

const anything = /(?:)/;

/** Holds what became of a start or a poll against what was expected. */
export async function expectOutcome(work: Promise<RunState>, expected: Expected): Promise<void> {
  const { message = anything, ...facts } =
    expected === 'unknown' ? { unknown: true, message: anything } : { message: anything, ...expected };
  const outcome = await work.catch(errorFacts);
  expect(outcome).toMatchObject(facts);
  expect('message' in outcome ? outcome.message : '').toMatch(message);
}

/** An error in the words of what is expected. */
function errorFacts(error: unknown) {
  if (error instanceof NotStarted) {
    const { reason, retry_after_ms, message } = error;
    return { not_started: reason, retry_after_ms, message };
  }
  if (error instanceof InputRefused) return { refused: error.type, message: error.message };
  return { unknown: error instanceof Error, message: String(error) };
}

/** Returns the outcome of a promise, even if it is an error. */
export async function endOf(work: Promise<unknown> | undefined): Promise<unknown> {
  return work?.catch((error: unknown) => error);
}
