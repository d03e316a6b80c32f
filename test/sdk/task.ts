import { z } from 'zod';

/** A test's request to an SDK, in words of none of them. */
export type Task = {
  model: string;
  stream: boolean;
  image?: string;
  tools?: boolean;
  signal?: AbortSignal;
  /** The number of times that the SDK may repeat what failed. Without it, never. */
  retries?: number;
};

export type Got = {
  text: string;
  thinking: string;
  calls: { name: string; input: unknown }[];
  finish: string;
  /** Sends the SDK's own messages back, with a result for each call. */
  answer(results: string[]): Promise<Got>;
};

export type Caller = {
  name: string;
  style: 'completions' | 'messages' | 'responses';
  ask(task: Task): Promise<Got>;
  /** A JSON answer by this schema, by the SDK's own way. */
  structured(model: string): Promise<unknown>;
};

/** The address of the service, and a key: all that an SDK gets of it. */
export type Place = { url: string; key: string };

export const question = 'What is the weather?';
export const max_tokens = 1_000;
export const tool_names = ['look', 'wait', 'search'];
export const tool_schema = { type: 'object' as const, properties: { city: { type: 'string' } } };
export const answer_schema = z.object({ city: z.string(), degrees: z.number() });
