import type { Delta, Settings } from '../conversation.ts';
import type { Turn } from '../turn.ts';

/** The content of an event of a stream; undefined parts are not for people. */
export type Heard = {
  delta?: Delta;
  /** The finish reason: `length` if it was cut. */
  finish?: string;
  error?: string;
};

/** One of the two ways to talk to a chat model. */
export type Style = {
  /** The body of a call, streamed or not. */
  bodyOf: (model: string, turns: readonly Turn[], settings: Settings) => Record<string, unknown>;
  /** Members of the body that ask for a stream with its usage. */
  streamed: Record<string, unknown>;
  hear: (event: Record<string, unknown>) => Heard;
};

export function textIn(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
