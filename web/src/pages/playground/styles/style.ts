import type { Delta, Settings, Turn } from '../conversation.ts';

/** What an event of a stream says; nothing of it, where it says nothing for people. */
export type Heard = {
  delta?: Delta;
  /** Why the answer ended: `length` where it was cut. */
  finish?: string;
  error?: string;
};

/** One of the two ways to talk to a chat model. */
export type Style = {
  /** The body of a call, streamed or not. */
  bodyOf: (model: string, turns: readonly Turn[], settings: Settings) => Record<string, unknown>;
  /** What a body has besides, to be answered as a stream that tells what it used. */
  streamed: Record<string, unknown>;
  hear: (event: Record<string, unknown>) => Heard;
};

export function textIn(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
